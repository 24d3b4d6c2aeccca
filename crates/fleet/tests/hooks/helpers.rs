//! Services in Python and JavaScript.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use amplifier_core::Coordinator;

use super::{call, gate, reason};
use crate::approvals::LIMIT;
use crate::support::{Server, new_server};

/// A service program, which is killed on drop.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn helper(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("helpers").join(file)
}

/// Installs a package into a folder; without a registry, the test does not run, and says so.
fn is_installed(command: &mut Command, what: &str) -> bool {
    let is_done = command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    if !is_done {
        assert!(std::env::var_os("CI").is_none(), "CI needs {what}");
        eprintln!("not run: {what} cannot be installed");
    }
    is_done
}

async fn serves(gate: &Coordinator) {
    let started = Instant::now();
    // The service is ready when it denies for its own reason.
    while reason(call(gate, "rm").await) != "no rm" {
        assert!(started.elapsed() < LIMIT, "the service does not start");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert!(call(gate, "ls").await.is_proceed());
    let failed = reason(call(gate, "broken").await);
    assert!(failed.contains("the rules cannot be read"), "{failed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_in_python_answers() {
    let Some(program) = new_server() else { return };
    let folder = tempfile::tempdir().unwrap();
    let packages = folder.path().join("packages");
    let mut install = Command::new("python3");
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target"]).arg(&packages);
    if !is_installed(install.arg("nats-py==2.16.0"), "the Python package `nats-py`") {
        return;
    }
    let server = Server::start(&program, "");
    let script = "
import sys
import amplifier_service

def decide(event, data):
    command = data['tool_input']['command']
    if command == 'broken':
        raise ValueError('the rules\\ncannot be read')
    return {'action': 'deny', 'reason': 'no rm'} if command == 'rm' else None

amplifier_service.serve(decide, 'policy', sys.argv[1])
";
    let file = folder.path().join("service.py");
    std::fs::write(&file, script).unwrap();
    std::fs::copy(helper("amplifier_service.py"), folder.path().join("amplifier_service.py")).unwrap();
    let mut service = Command::new("python3");
    service.arg(&file).arg(server.url()).env("PYTHONPATH", &packages).stdin(Stdio::null());
    let _service = Program(service.spawn().unwrap());
    serves(&gate(&server.connect("m1").await, LIMIT)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_in_javascript_answers() {
    let Some(program) = new_server() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut install = Command::new("npm");
    install.args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"]).arg(folder.path());
    if !is_installed(install.arg("@nats-io/transport-node@3.4.0"), "the package `@nats-io/transport-node`") {
        return;
    }
    let server = Server::start(&program, "");
    let script = "
import { connect } from '@nats-io/transport-node';
import { serve } from './amplifier_service.mjs';

const connection = await connect({ servers: process.argv[2] });
await serve(connection, 'policy', async (event, data) => {
  if (data.tool_input.command === 'broken') throw new Error('the rules\\ncannot be read');
  if (data.tool_input.command === 'rm') return { action: 'deny', reason: 'no rm' };
});
";
    let file = folder.path().join("service.mjs");
    std::fs::write(&file, script).unwrap();
    std::fs::copy(helper("amplifier_service.mjs"), folder.path().join("amplifier_service.mjs")).unwrap();
    let mut service = Command::new("node");
    service.arg(&file).arg(server.url().replace("nats://", "")).stdin(Stdio::null());
    let _service = Program(service.spawn().unwrap());
    serves(&gate(&server.connect("m1").await, LIMIT)).await;
}
