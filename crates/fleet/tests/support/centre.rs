//! An organisation with one server, whose identities have the permissions of their roles.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use amplifier_audit::SigningKey;
use amplifier_fleet::enrol::{FleetRole, JoinToken, Member, MemberReaders, NewOrganisation, Organisation};
use amplifier_fleet::{Connection, FleetError, Replicas, create_streams};
use jiff::Timestamp;
use tempfile::TempDir;

use super::{Server, free_port, sync_of};

pub(crate) struct Centre {
    pub(crate) server: Server,
    pub(crate) organisation: Organisation,
    pub(crate) folder: TempDir,
}

impl Centre {
    /// Starts a server with streams.
    pub(crate) async fn start(program: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let new =
            NewOrganisation { servers: vec![format!("nats://127.0.0.1:{port}")], store: folder.path().join("unused") };
        let organisation = Organisation::create(&folder.path().join("organisation"), &new).unwrap();
        let place = folder.path().join("server");
        fs::create_dir(&place).unwrap();
        fs::copy(organisation.server_folder().join("accounts.conf"), place.join("accounts.conf")).unwrap();
        let server = Server::start_in(program, &place, port, "include accounts.conf\n", sync_of(program));
        let mut centre = Self { server, organisation, folder };
        let admin = centre.connect("first-admin", &[FleetRole::Admin]).await;
        create_streams(&admin, Replicas::One, 64 << 20).await.unwrap();
        centre
    }

    /// Adds an identity.
    pub(crate) fn add(
        &mut self,
        name: &str,
        roles: &[FleetRole],
        group: &str,
        expires: Option<Timestamp>,
    ) -> JoinToken {
        self.organisation.add(name.parse().unwrap(), roles.to_vec(), group.parse().unwrap(), expires).unwrap()
    }

    /// Joins with a token, in a folder of its own.
    pub(crate) fn join(&self, token: &JoinToken) -> Member {
        let folder = self.folder.path().join(&*token.name);
        Member::join(&folder, JoinToken::from_line(&token.to_line().unwrap()).unwrap(), MemberReaders::Owner).unwrap()
    }

    /// Connects as a member.
    pub(crate) async fn open(&self, member: &Member) -> Result<Connection, FleetError> {
        // Short, because a refused message shows itself only by no reply.
        let limit = Duration::from_millis(700);
        Connection::open(member.connection_options().take_old_servers().time_limit(limit)).await
    }

    /// Adds an identity in the group `all`, and connects as it.
    pub(crate) async fn connect(&mut self, name: &str, roles: &[FleetRole]) -> Connection {
        let token = self.add(name, roles, "all", None);
        self.open(&self.join(&token)).await.unwrap()
    }

    /// Gives the accounts to the server again, after a revocation.
    pub(crate) fn reload(&self) {
        let accounts = self.organisation.server_folder().join("accounts.conf");
        fs::copy(accounts, self.folder.path().join("server/accounts.conf")).unwrap();
        self.server.reload();
    }

    /// The organisation's key.
    pub(crate) fn policy_key(&self) -> SigningKey {
        SigningKey::load(&self.organisation.policy_key_file()).unwrap()
    }

    /// A folder with a bundle.
    pub(crate) fn bundle(&self, name: &str, text: &str) -> PathBuf {
        let folder = self.folder.path().join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("bundle.yaml"), text).unwrap();
        folder
    }
}
