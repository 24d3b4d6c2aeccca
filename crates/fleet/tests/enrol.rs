//! Organisations and their members, with the configuration that servers get.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use amplifier_fleet::enrol::{EnrolError, FleetRole, JoinToken, Member, MemberReaders, NewOrganisation, Organisation};
use amplifier_fleet::{Connection, ConnectionOptions, Replicas, create_streams};
use async_nats::HeaderMap;

use crate::support::{Server, free_port, new_server};

fn new_organisation(servers: &[&str]) -> NewOrganisation {
    NewOrganisation { servers: servers.iter().map(|&server| server.to_owned()).collect(), store: "/nonexistent".into() }
}

#[tokio::test(flavor = "multi_thread")]
async fn three_servers_start_with_their_configuration_and_take_only_members_with_tls() {
    let Some(program) = new_server() else { return };
    let folder = tempfile::tempdir().unwrap();
    // The ports of the cluster are 2000 above.
    let ports: Vec<u16> = std::iter::repeat_with(free_port).filter(|port| *port < 60_000).take(3).collect();
    let servers = ports.iter().map(|port| format!("tls://127.0.0.1:{port}")).collect();
    let new = NewOrganisation { servers, store: "store".into() };
    let mut organisation = Organisation::create(&folder.path().join("organisation"), &new).unwrap();
    let mut running = Vec::new();
    for (number, port) in ports.iter().enumerate() {
        // Each machine has its own copy.
        let own = folder.path().join(format!("server-{number}"));
        fs::create_dir(&own).unwrap();
        for file in fs::read_dir(organisation.server_folder()).unwrap().flatten() {
            fs::copy(file.path(), own.join(file.file_name())).unwrap();
        }
        let configuration = own.join(format!("nats-{}.conf", number + 1));
        running.push(Server::start_with(&program, configuration, *port));
    }
    let mut join = |name: &str, role: FleetRole| {
        let token = organisation.add(name.parse().unwrap(), vec![role], "all".parse().unwrap(), None).unwrap();
        let token = JoinToken::from_line(&token.to_line().unwrap()).unwrap();
        Member::join(&folder.path().join(name), token, MemberReaders::Owner).unwrap()
    };
    let admin = Connection::open(join("admin", FleetRole::Admin).connection_options()).await.unwrap();
    let mut created = create_streams(&admin, Replicas::Three, 64 << 20).await;
    // A new cluster elects its leader first.
    for _ in 0..60 {
        if created.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        created = create_streams(&admin, Replicas::Three, 64 << 20).await;
    }
    created.unwrap();
    let machine = Connection::open(join("m1", FleetRole::Machine).connection_options()).await.unwrap();
    machine.publish("audit.m1.log", HeaderMap::new(), "one".into()).await.unwrap();
    // Without TLS, and without an identity.
    let plain = ConnectionOptions::new("m1".parse().unwrap(), [format!("nats://127.0.0.1:{}", ports[0])]);
    assert!(Connection::open(plain).await.is_err());
    let stranger = ConnectionOptions::new("m1".parse().unwrap(), organisation.servers());
    let stranger = stranger.root_certificate(organisation.server_folder().join("organisation.pem"));
    assert!(Connection::open(stranger).await.is_err());
}

#[test]
fn a_member_is_stored_for_its_user_alone_and_once() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("organisation");
    let mut organisation = Organisation::create(&place, &new_organisation(&["tls://nats.example:4222"])).unwrap();
    let again = Organisation::create(&place, &new_organisation(&["tls://nats.example:4222"]));
    assert!(matches!(again, Err(EnrolError::Exists { .. })), "{again:?}");
    let add = |organisation: &mut Organisation, role| {
        organisation.add("m1".parse().unwrap(), vec![role], "all".parse().unwrap(), None)
    };
    let token = add(&mut organisation, FleetRole::Console).unwrap();
    assert!(matches!(add(&mut organisation, FleetRole::Machine), Err(EnrolError::Taken { .. })));
    let line = token.to_line().unwrap();
    assert!(!line.contains(char::is_whitespace));
    let home = folder.path().join("home/fleet");
    let member =
        Member::join(&home, JoinToken::from_line(&format!(" {line}\n")).unwrap(), MemberReaders::Owner).unwrap();
    assert!(matches!(Member::join(&home, token.clone(), MemberReaders::Owner), Err(EnrolError::Joined { .. })));
    for path in [home.join("member.json"), home.clone(), place.join("account.nk"), place.join("policy.key")] {
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o077, 0, "{}", path.display());
    }
    // The key of answers is the one that machines learn from the policy, and not the NKey.
    let keys = organisation.keys(FleetRole::Console);
    assert_eq!(keys[&"m1".parse().unwrap()], member.signing_key().unwrap().public());
    assert!(!format!("{token:?}").contains(&token.seed));
    let reopened = Organisation::open(&place).unwrap();
    assert_eq!(reopened.identities(), organisation.identities());
    organisation.revoke("m1").unwrap();
    assert!(organisation.keys(FleetRole::Console).is_empty());
    assert!(matches!(organisation.revoke("m1"), Err(EnrolError::Unknown { .. })));
    member.leave().unwrap();
    assert!(Member::load(&home).unwrap().is_none());
}

#[test]
fn invalid_tokens_and_servers_are_refused() {
    for line in ["", "x", "e30", "!!!"] {
        assert!(matches!(JoinToken::from_line(line), Err(EnrolError::Token { .. })), "{line}");
    }
    let folder = tempfile::tempdir().unwrap();
    for servers in [
        &[][..],
        &["tls://a:1", "tls://b:1"],
        &["nats://nats.example:4222"],
        &["http://a:1"],
        &["tls://a\"b:1"],
        &["tls://:1"],
        &["tls://a:port"],
    ] {
        let created = Organisation::create(&folder.path().join("organisation"), &new_organisation(servers));
        assert!(matches!(created, Err(EnrolError::Servers { .. })), "{servers:?}: {created:?}");
        assert!(!folder.path().join("organisation").exists());
    }
}
