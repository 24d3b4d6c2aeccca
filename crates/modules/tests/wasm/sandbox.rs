//! What a guest in Rust, with all of its standard library, can reach: what is granted, and nothing else.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use amplifier_core::{EventData, Hook, HookError, HookRegistry, HookResult, data};
use amplifier_modules::bundle::load;
use amplifier_modules::transport::{FolderGrant, Grant, WasmHook};
use amplifier_modules::{HookEnvironment, Scope, Starter};
use futures::future::join_all;

use super::guest;
use super::made;
use crate::transport::failure;

/// The guest that tries what it is told to, if this machine can build it.
fn guest(grant: Grant, folder: &Path) -> Option<WasmHook> {
    static BUILT: OnceLock<Option<std::path::PathBuf>> = OnceLock::new();
    let component = BUILT.get_or_init(|| guest::build("crates/modules/tests/guest", "guest.wasm")).as_ref()?;
    Some(made(component, |options| {
        options.grant = grant;
        options.folder = folder.to_owned();
        options.timeout = Duration::from_secs(90);
    }))
}

fn sealed() -> Option<WasmHook> {
    guest(Grant::default(), Path::new(""))
}

async fn tries(hook: &WasmHook, what: &str, path: &str) -> String {
    let answer = hook.handle("tool:pre", &data! { "try": what, "path": path, "text": "text" }).await.unwrap();
    answer.message.unwrap().text
}

async fn fails(hook: &WasmHook, data: EventData) -> String {
    failure(hook.handle("tool:pre", &data).await)
}

#[tokio::test]
async fn without_a_grant_there_is_nothing() {
    let Some(hook) = sealed() else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    for (what, path, expected) in [
        ("environment", "", "[]"),
        ("arguments", "", "[]"),
        ("input", "", ""),
        ("list", "/", "NotFound"),
        ("list", ".", "NotFound"),
        ("read", "/etc/passwd", "NotFound"),
        ("read", "../../../../../../etc/passwd", "NotFound"),
        ("read", "/proc/self/environ", "NotFound"),
        ("read", "Cargo.toml", "NotFound"),
        ("write", "/tmp/amplifier-guest", "NotFound"),
        ("connect", &address, "PermissionDenied"),
        ("listen", "127.0.0.1:0", "PermissionDenied"),
        ("datagram", "127.0.0.1:0", "PermissionDenied"),
        ("thread", "", "Unsupported"),
        ("process", "", "Unsupported"),
    ] {
        assert_eq!(tries(&hook, what, path).await, expected, "{what} {path}");
    }
}

#[tokio::test]
async fn a_variable_that_is_granted_is_all_there_is() {
    let Some(hook) = guest(Grant { env: vec!["PATH".into()], ..Grant::default() }, Path::new("")) else {
        return;
    };
    let value = std::env::var("PATH").unwrap();
    assert_eq!(tries(&hook, "environment", "").await, format!("[(\"PATH\", {value:?})]"));
    assert_eq!(tries(&hook, "list", ".").await, "NotFound");
    assert!(!format!("{hook:?}").contains(&value), "{hook:?}");
}

#[tokio::test]
async fn a_folder_that_is_granted_has_no_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    for path in ["rules/deep", "notes"] {
        std::fs::create_dir_all(at(path)).unwrap();
    }
    std::fs::write(at("secret"), "secret").unwrap();
    std::fs::write(at("rules/deep/one"), "a rule").unwrap();
    std::os::unix::fs::symlink(at("secret"), at("rules/absolute")).unwrap();
    std::os::unix::fs::symlink("../secret", at("rules/relative")).unwrap();
    std::os::unix::fs::symlink("deep/one", at("rules/inside")).unwrap();
    let files =
        vec![FolderGrant { path: "rules".into(), write: false }, FolderGrant { path: "./notes".into(), write: true }];
    let Some(hook) = guest(Grant { files, ..Grant::default() }, folder.path()) else { return };
    for (what, path, expected) in [
        ("list", "rules", "absolute deep inside relative"),
        ("read", "rules/deep/one", "a rule"),
        ("read", "rules/inside", "a rule"),
        ("read", "rules/absolute", "PermissionDenied"),
        ("read", "rules/relative", "PermissionDenied"),
        ("read", "rules/../secret", "PermissionDenied"),
        ("read", "rules/deep/../../secret", "PermissionDenied"),
        ("read", "secret", "NotFound"),
        ("read", "/etc/passwd", "NotFound"),
        ("write", "rules/new", "PermissionDenied"),
        ("write", "rules/deep/one", "PermissionDenied"),
        ("remove", "rules/deep/one", "PermissionDenied"),
        ("write", "notes/new", "written"),
        ("read", "notes/new", "text"),
        ("write", "notes/../secret", "PermissionDenied"),
        ("remove", "notes/new", "removed"),
    ] {
        assert_eq!(tries(&hook, what, path).await, expected, "{what} {path}");
    }
    assert_eq!(std::fs::read_to_string(at("secret")).unwrap(), "secret");
    std::fs::remove_dir_all(at("rules")).unwrap();
    let gone = fails(&hook, data! { "try": "count" }).await;
    assert!(gone.contains("granted folder") && gone.contains("/rules` cannot be opened: "), "{gone}");
}

#[tokio::test]
async fn an_address_that_is_granted_is_the_only_one() {
    let [granted, other] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let (address, elsewhere) = (granted.local_addr().unwrap(), other.local_addr().unwrap());
    let Some(hook) = guest(Grant { network: vec![address], ..Grant::default() }, Path::new("")) else { return };
    let served = std::thread::spawn(move || {
        let (mut connection, _) = granted.accept().unwrap();
        let mut request = [0; 6];
        connection.read_exact(&mut request).unwrap();
        connection.write_all(b"welcome").unwrap();
        request
    });
    assert_eq!(tries(&hook, "connect", &address.to_string()).await, "welcome");
    assert_eq!(&served.join().unwrap(), b"hello\n");
    assert_eq!(tries(&hook, "connect", &elsewhere.to_string()).await, "PermissionDenied");
    assert_eq!(tries(&hook, "listen", "0.0.0.0:0").await, "PermissionDenied");
    assert_eq!(tries(&hook, "datagram", "0.0.0.0:0").await, "PermissionDenied");
    other.set_nonblocking(true).unwrap();
    assert!(other.accept().is_err(), "nobody connected");
}

#[tokio::test]
async fn what_it_writes_is_the_output_of_the_hook_up_to_a_limit() {
    let Some(hook) = sealed() else { return };
    for to in ["stderr", "stdout"] {
        let said = hook.handle("tool:pre", &data! { "try": to, "text": "looking\u{1b}[31m" }).await;
        assert_eq!(said, Ok(HookResult::proceed().info("said").with_output("looking[31m")));
    }
    assert!(
        fails(&hook, data! { "try": "flood" }).await.starts_with("the component exceeded the output limit of stderr")
    );
    let long = data! { "try": "stderr", "text": "x".repeat(20_000) };
    assert_eq!(hook.handle("tool:pre", &long).await.unwrap().output.unwrap().len(), 10_240);
}

#[tokio::test]
async fn its_failures_say_what_it_said() {
    let Some(hook) = sealed() else { return };
    let panicked = fails(&hook, data! { "try": "panic" }).await;
    assert!(
        panicked.starts_with("the component failed: wasm trap: wasm `unreachable` instruction executed; "),
        "{panicked}"
    );
    assert!(panicked.contains("its stderr ends with: ") && panicked.contains("no more"), "{panicked}");
    assert_eq!(fails(&hook, data! { "try": "dance" }).await, "nobody knows how to try `dance`");
    assert!(fails(&hook, data! { "try": "exit" }).await.contains("exit"), "to leave is no answer");
    let memory = fails(&hook, data! { "try": "memory", "bytes": 100_000_000 }).await;
    assert_eq!(memory, "the component failed: memory limit of 64 MiB exceeded");
}

#[tokio::test]
async fn a_guest_that_sleeps_is_ended_at_the_limit() {
    let Some(component) = guest::build("crates/modules/tests/guest", "guest.wasm") else { return };
    let limit = Duration::from_millis(100);
    let hook = made(&component, |options| options.timeout = limit);
    let asked = join_all((0..20).map(|_| async { hook.handle("tool:pre", &data! { "try": "sleep" }).await })).await;
    assert_eq!(asked, vec![Err(HookError::TimedOut(limit)); 20]);
}

#[tokio::test]
async fn its_state_is_fresh_in_every_call() {
    let Some(hook) = sealed() else { return };
    for said in join_all((0..100).map(|_| tries(&hook, "count", ""))).await {
        assert_eq!(said, "1");
    }
}

/// Runs the tests of a bundle whose component was built elsewhere than by hand.
async fn passes(bundle: &Path, component: &Path) {
    let folder = bundle.parent().unwrap();
    let built = folder.join("target/wasm32-wasip2/release");
    std::fs::create_dir_all(&built).unwrap();
    std::fs::copy(component, built.join(component.file_name().unwrap())).unwrap();
    let loaded = load(bundle).unwrap();
    let hooks = HookRegistry::new();
    loaded.register(&hooks, &HookEnvironment::new(Scope::new(folder).unwrap())).unwrap();
    assert!(!loaded.tests.is_empty());
    for (_, case) in &loaded.tests {
        let outcome = hooks.emit(case.event.as_str(), case.data.clone()).await.unwrap();
        assert_eq!(case.expect.decision.as_deref(), Some(outcome.decision.as_str()), "{}", case.name);
        for (pointer, expected) in &case.expect.data {
            assert_eq!(outcome.data.pointer(pointer), Some(expected), "{}", case.name);
        }
    }
}

#[tokio::test]
async fn the_example_passes_its_tests() {
    let Some(component) = guest::build("examples/wasm-guard", "wasm_guard.wasm") else { return };
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("bundle.yaml");
    std::fs::copy(guest::workspace().join("examples/wasm-guard/bundle.yaml"), &bundle).unwrap();
    passes(&bundle, &component).await;
}

#[tokio::test]
async fn what_hooks_begin_with_passes_its_tests() {
    let folder = tempfile::tempdir().unwrap();
    for file in Starter::Wasm.files() {
        let path = folder.path().join(file.name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, file.text).unwrap();
    }
    // The versions of the example, which has the same dependencies: a test does not look for new ones.
    let versions = std::fs::read_to_string(guest::workspace().join("examples/wasm-guard/Cargo.lock")).unwrap();
    std::fs::write(folder.path().join("Cargo.lock"), versions.replace("\"wasm-guard\"", "\"guard\"")).unwrap();
    let Some(component) = guest::build_at(folder.path(), "guard.wasm") else { return };
    passes(&folder.path().join("bundle.yaml"), &component).await;
}
