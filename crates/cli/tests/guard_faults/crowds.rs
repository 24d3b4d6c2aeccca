//! Several workspaces, clients and sessions at once: each call is decided by the rules of its own workspace, and recorded in its own session.

use std::fs;
use std::thread;

use amplifier_guard::Client;

use super::{check_allowed, check_denied, shell_payload};
use crate::guard::Guarded;

const WORKSPACES: usize = 3;
/// Callers of each client in each workspace. Each call has a session of its own.
const CALLERS: usize = 2;

#[test]
fn workspaces_clients_and_sessions_at_once_do_not_mix() {
    let guarded = Guarded::installed();
    let mut folders = Vec::new();
    for number in 0..WORKSPACES {
        let folder = guarded.place.at(&format!("project-{number}"));
        fs::create_dir_all(folder.join(".amplifier")).unwrap();
        let rule = format!(
            "hooks:\n  - rule: project-{number}\n    on: tool:pre\n    when: tool_name == \"Bash\" && tool_input.command.contains(\"deploy {number}\")\n    deny: not from here\n"
        );
        fs::write(folder.join(".amplifier/bundle.yaml"), rule).unwrap();
        let mut trust = guarded.place.command(&["hooks", "trust", "--yes"]);
        assert!(trust.current_dir(&folder).output().unwrap().status.success());
        folders.push(folder.display().to_string());
    }
    thread::scope(|scope| {
        for client in Client::ALL {
            for (workspace, folder) in folders.iter().enumerate() {
                for caller in 0..CALLERS {
                    let guarded = &guarded;
                    scope.spawn(move || {
                        for project in 0..WORKSPACES {
                            let id = format!("t-{client}-{workspace}-{caller}-{project}");
                            let payload = shell_payload(client, folder, &id, &format!("deploy {project}")).to_string();
                            let output = guarded.ask(client, payload.as_bytes());
                            match project == workspace {
                                true => check_denied(client, &output, &format!("project-{project}")),
                                false => check_allowed(client, &output),
                            }
                        }
                    });
                }
            }
        }
    });
    guarded.check_log();
    assert_eq!(guarded.daemons().len(), 1);
    for client in Client::ALL {
        // Clients without ids of calls are found by their sessions.
        for workspace in 0..WORKSPACES {
            for (caller, project) in
                (0..CALLERS).flat_map(|caller| (0..WORKSPACES).map(move |project| (caller, project)))
            {
                let name = format!("canary-t-{client}-{workspace}-{caller}-{project}");
                let record = match project == workspace {
                    true => format!("project-{project}"),
                    false => "\"intent\"".to_owned(),
                };
                let quoted = format!("\"{name}\"");
                assert!(guarded.has_record(&[&quoted, &record]), "{name} has no record with {record}");
            }
        }
    }
}
