//! The membership of this machine.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use amplifier_audit::{Hash, PublicKey, SigningKey};
use amplifier_process::files::{AtomicFile, Durability, create_private_folder, permissions, read_regular};

use super::{EnrolError, FleetRole, JoinToken};
use crate::{ConnectionOptions, FleetName};

/// The file of a membership in its folder.
pub const MEMBER: &str = "member.json";
const CERTIFICATE: &str = "organisation.pem";
const MAX_MEMBER_BYTES: u64 = 1 << 20;

/// The readers of a membership, who can act as the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberReaders {
    /// One user.
    Owner,
    /// All users of the machine, none of whom can end the membership.
    AllUsers,
}

/// The membership of this machine in a fleet.
#[derive(Clone, Debug)]
pub struct Member {
    token: JoinToken,
    folder: PathBuf,
}

impl Member {
    /// Stores the membership in a folder, for these readers.
    ///
    /// # Errors
    /// If there is one already, or the folder cannot be written.
    pub fn join(folder: &Path, token: JoinToken, readers: MemberReaders) -> Result<Self, EnrolError> {
        if let Some(member) = Self::load(folder)? {
            return Err(EnrolError::Joined { name: member.token.name.to_string() });
        }
        let (folder_mode, mode) = match readers {
            MemberReaders::Owner => (0o700, 0o600),
            MemberReaders::AllUsers => (0o755, 0o644),
        };
        create_private_folder(folder).map_err(EnrolError::file(folder))?;
        if let Some(permissions) = permissions(folder_mode) {
            fs::set_permissions(folder, permissions).map_err(EnrolError::file(folder))?;
        }
        let write = |name: &str, text: &str| {
            let file = folder.join(name);
            let written = AtomicFile::create_with_mode(&file, mode).and_then(|mut new| {
                new.write_all(text.as_bytes())?;
                new.replace(Durability::Synced)
            });
            written.map_err(EnrolError::file(&file))
        };
        if let Some(certificate) = &token.certificate {
            write(CERTIFICATE, certificate)?;
        }
        // Last: without this file, nothing has happened.
        write(MEMBER, &token.to_line()?)?;
        Ok(Self { token, folder: folder.to_owned() })
    }

    /// Loads the membership from its folder; `None` without one.
    ///
    /// # Errors
    /// If the file is unreadable or damaged.
    pub fn load(folder: &Path) -> Result<Option<Self>, EnrolError> {
        let file = folder.join(MEMBER);
        let text = match read_regular(&file, MAX_MEMBER_BYTES) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(EnrolError::file(&file))?,
        };
        let text = String::from_utf8_lossy(&text);
        let token = JoinToken::from_line(&text).map_err(|error| EnrolError::damaged(&file, error))?;
        Ok(Some(Self { token, folder: folder.to_owned() }))
    }

    /// Sets other addresses of the servers.
    #[must_use]
    pub fn with_servers(mut self, servers: impl IntoIterator<Item = String>) -> Self {
        self.token.servers = servers.into_iter().collect();
        self
    }

    /// Removes the membership.
    ///
    /// # Errors
    /// If the file cannot be removed.
    pub fn leave(self) -> Result<(), EnrolError> {
        let file = self.folder.join(MEMBER);
        fs::remove_file(&file).map_err(EnrolError::file(&file))
    }

    /// Returns the name of the identity.
    pub fn name(&self) -> &FleetName {
        &self.token.name
    }

    /// Returns the roles of the identity.
    pub fn roles(&self) -> &[FleetRole] {
        &self.token.roles
    }

    /// Returns the group whose policy applies.
    pub fn group(&self) -> &FleetName {
        &self.token.group
    }

    /// Returns the addresses of the servers.
    pub fn servers(&self) -> &[String] {
        &self.token.servers
    }

    /// Returns the key of the organisation, which signs policies.
    pub fn organisation(&self) -> PublicKey {
        self.token.organisation
    }

    /// Returns the folder of the membership.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the options of a connection as this identity.
    pub fn connection_options(&self) -> ConnectionOptions {
        let JoinToken { name, servers, jwt, seed, certificate, .. } = &self.token;
        let options = ConnectionOptions::new(name.clone(), servers).credentials(credentials(jwt, seed));
        match certificate {
            Some(_) => options.root_certificate(self.folder.join(CERTIFICATE)),
            None => options,
        }
    }

    /// Returns the key that signs answers or receipts of this identity.
    ///
    /// # Errors
    /// If the seed is invalid.
    pub fn signing_key(&self) -> Result<SigningKey, EnrolError> {
        signing_key(&self.token.seed)
    }
}

/// Derives the key for messages from a seed. A server chooses what the NKey itself signs, and must not be able to choose the text of an answer.
pub(super) fn signing_key(seed: &str) -> Result<SigningKey, EnrolError> {
    let (_, secret) = nkeys::decode_seed(seed)?;
    let text = [b"amplifier-fleet messages\n".as_slice(), &secret].concat();
    Ok(SigningKey::from_seed(*Hash::sha256(&text).as_bytes()))
}

/// Returns a JWT with its seed in the form of NATS.
fn credentials(jwt: &str, seed: &str) -> String {
    format!(
        "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    )
}
