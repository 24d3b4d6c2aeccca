//! The organisation's folder, on the computer of an administrator: keys, identities, and the configuration of the servers.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use amplifier_audit::{PublicKey, SigningKey};
use amplifier_process::files::{Durability, create_private_folder, read_regular, write_atomic};
use jiff::Timestamp;
use nkeys::KeyPair;
use serde::{Deserialize, Serialize};

use super::certificates::Certificates;
use super::member::signing_key;
use super::server_config::ServerAddress;
use super::{EnrolError, FleetRole, JoinToken, Permissions, jwt, server_config};
use crate::FleetName;

const LIST: &str = "organisation.json";
const POLICY_KEY: &str = "policy.key";
const CERTIFICATE: &str = "servers/organisation.pem";
const MAX_BYTES: u64 = 64 << 20;

/// The servers of a new organisation.
#[derive(Clone, Debug)]
pub struct NewOrganisation {
    /// Their addresses: one or three of the form `tls://HOST:PORT`.
    pub servers: Vec<String>,
    /// The folder in which each server stores its streams.
    pub store: PathBuf,
}

/// The keys, identities and servers of an organisation.
#[derive(Debug)]
pub struct Organisation {
    folder: PathBuf,
    list: OrganisationFile,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OrganisationFile {
    servers: Vec<String>,
    /// The key of policies, which may be elsewhere.
    policy_key: PublicKey,
    system_account: String,
    /// Running servers accept accounts only with the same JWT of their operator.
    operator: String,
    identities: Vec<Identity>,
}

/// An identity of an organisation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Identity {
    /// The name.
    pub name: FleetName,
    /// The roles.
    pub roles: Vec<FleetRole>,
    /// The group whose policy applies.
    pub group: FleetName,
    /// The public NKey.
    pub nkey: String,
    /// The key that signs messages.
    pub key: PublicKey,
    /// The time of the enrolment.
    pub since: Timestamp,
    /// The time at which the identity expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// The time of the revocation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<Timestamp>,
}

impl Identity {
    fn is_active(&self) -> bool {
        self.revoked.is_none() && self.expires.is_none_or(|expires| expires > Timestamp::now())
    }
}

impl Organisation {
    /// Creates an organisation in a folder: its keys, and the configuration of its servers.
    ///
    /// # Errors
    /// If the folder exists or cannot be written, or an address is invalid.
    pub fn create(folder: &Path, new: &NewOrganisation) -> Result<Self, EnrolError> {
        let addresses = server_config::addresses(&new.servers)?;
        if folder.symlink_metadata().is_ok() {
            return Err(EnrolError::Exists { path: folder.to_owned() });
        }
        // Visible only when complete.
        let unfinished = folder.with_added_extension("new");
        match fs::remove_dir_all(&unfinished) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(EnrolError::file(&unfinished)(error)),
            _ => Self::create_in(&unfinished, new, &addresses)?,
        }
        fs::rename(&unfinished, folder).map_err(EnrolError::file(folder))?;
        Self::open(folder)
    }

    fn create_in(folder: &Path, new: &NewOrganisation, addresses: &[ServerAddress]) -> Result<(), EnrolError> {
        create_private_folder(&folder.join("servers")).map_err(EnrolError::file(folder))?;
        let system = KeyPair::new_account();
        let operator = KeyPair::new_operator();
        let operator_jwt = jwt::operator(&operator, &system.public_key())?;
        for (name, key) in [("operator.nk", operator), ("account.nk", KeyPair::new_account())] {
            write(&folder.join(name), key.seed()?.as_bytes())?;
        }
        let policy_key = SigningKey::create(&folder.join(POLICY_KEY))?.public();
        if addresses.iter().any(|address| address.is_tls) {
            let hosts: Vec<String> = addresses.iter().map(|address| address.host.clone()).collect();
            let Certificates { organisation, server, server_key } = Certificates::create(&hosts)?;
            write(&folder.join(CERTIFICATE), organisation.as_bytes())?;
            write(&folder.join("servers/server.pem"), server.as_bytes())?;
            write(&folder.join("servers/server.key"), server_key.as_bytes())?;
        }
        for (number, address) in addresses.iter().enumerate() {
            let text = server_config::server(number, address, addresses, &new.store);
            write(&folder.join(format!("servers/nats-{}.conf", number + 1)), text.as_bytes())?;
        }
        let list = OrganisationFile {
            servers: new.servers.clone(),
            policy_key,
            system_account: system.public_key(),
            operator: operator_jwt,
            identities: Vec::new(),
        };
        let organisation = Self { folder: folder.to_owned(), list };
        organisation.write_accounts()?;
        organisation.save()
    }

    /// Opens the organisation in a folder.
    ///
    /// # Errors
    /// If a file is missing or damaged.
    pub fn open(folder: &Path) -> Result<Self, EnrolError> {
        let file = folder.join(LIST);
        let text = read_regular(&file, MAX_BYTES).map_err(EnrolError::file(&file))?;
        let list = serde_json::from_slice(&text).map_err(|error| EnrolError::damaged(&file, error))?;
        Ok(Self { folder: folder.to_owned(), list })
    }

    /// Adds an identity, and returns the token with which it joins. Running servers accept it at once.
    ///
    /// # Errors
    /// If the name is in use, or a file cannot be written.
    pub fn add(
        &mut self,
        name: FleetName,
        roles: Vec<FleetRole>,
        group: FleetName,
        expires: Option<Timestamp>,
    ) -> Result<JoinToken, EnrolError> {
        if self.list.identities.iter().any(|identity| identity.name == name && identity.is_active()) {
            return Err(EnrolError::Taken { name: name.to_string() });
        }
        let user = KeyPair::new_user();
        let (nkey, seed) = (user.public_key(), user.seed()?);
        let claims = Permissions::new(&name, &roles).claims();
        let jwt = jwt::user(&self.key("account.nk")?, &nkey, &name, expires, claims)?;
        let certificate = match fs::read_to_string(self.folder.join(CERTIFICATE)) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            read => Some(read.map_err(EnrolError::file(&self.folder.join(CERTIFICATE)))?),
        };
        let (key, since) = (signing_key(&seed)?.public(), Timestamp::now());
        let identity = Identity { name, roles, group, nkey, key, since, expires, revoked: None };
        let token = JoinToken {
            name: identity.name.clone(),
            roles: identity.roles.clone(),
            group: identity.group.clone(),
            servers: self.list.servers.clone(),
            certificate,
            jwt,
            seed,
            organisation: self.list.policy_key,
        };
        self.list.identities.push(identity);
        self.save()?;
        Ok(token)
    }

    /// Revokes all identities of a name. Servers refuse them after they have reloaded their configuration.
    ///
    /// # Errors
    /// If the name is unknown, or a file cannot be written.
    pub fn revoke(&mut self, name: &str) -> Result<(), EnrolError> {
        let now = Timestamp::now();
        let active = |identity: &&mut Identity| &*identity.name == name && identity.revoked.is_none();
        let mut revoked = self.list.identities.iter_mut().filter(active).peekable();
        if revoked.peek().is_none() {
            return Err(EnrolError::Unknown { name: name.to_owned() });
        }
        revoked.for_each(|identity| identity.revoked = Some(now));
        // First: a revocation that is listed must also be in the configuration.
        self.write_accounts()?;
        self.save()
    }

    /// Returns all identities, also revoked ones.
    pub fn identities(&self) -> &[Identity] {
        &self.list.identities
    }

    /// Returns the addresses of the servers.
    pub fn servers(&self) -> &[String] {
        &self.list.servers
    }

    /// Returns the public keys of the active identities with a role.
    pub fn keys(&self, role: FleetRole) -> BTreeMap<FleetName, PublicKey> {
        let active =
            self.list.identities.iter().filter(|identity| identity.is_active() && identity.roles.contains(&role));
        active.map(|identity| (identity.name.clone(), identity.key)).collect()
    }

    /// Returns the file of the key that signs policies. Keep it offline.
    pub fn policy_key_file(&self) -> PathBuf {
        self.folder.join(POLICY_KEY)
    }

    /// Returns the folder with the configuration of the servers.
    pub fn server_folder(&self) -> PathBuf {
        self.folder.join("servers")
    }

    fn key(&self, name: &str) -> Result<KeyPair, EnrolError> {
        let file = self.folder.join(name);
        let seed = fs::read_to_string(&file).map_err(EnrolError::file(&file))?;
        KeyPair::from_seed(seed.trim()).map_err(|error| EnrolError::damaged(&file, error))
    }

    /// Writes the accounts for the servers, with all revocations.
    fn write_accounts(&self) -> Result<(), EnrolError> {
        let (operator, account) = (self.key("operator.nk")?, self.key("account.nk")?.public_key());
        let system = &self.list.system_account;
        let revoked: Vec<_> =
            self.list.identities.iter().filter_map(|user| Some((user.nkey.clone(), user.revoked?))).collect();
        let text = server_config::accounts(
            &self.list.operator,
            (&account, &jwt::account(&operator, &account, "amplifier", true, &revoked)?),
            (system, &jwt::account(&operator, system, "system", false, &[])?),
        );
        write(&self.folder.join("servers/accounts.conf"), text.as_bytes())
    }

    fn save(&self) -> Result<(), EnrolError> {
        let file = self.folder.join(LIST);
        let text = serde_json::to_vec_pretty(&self.list).map_err(|error| EnrolError::damaged(&file, error))?;
        write(&file, &text)
    }
}

fn write(file: &Path, content: &[u8]) -> Result<(), EnrolError> {
    write_atomic(file, content, Durability::Synced).map_err(EnrolError::file(file))
}
