//! Protected and hidden paths within the workspace.

use std::fs;

use amplifier_agent::tool::{BashTool, EditTool, GrepTool, ReadTool, Workspace, WriteTool};
use amplifier_process::sandbox::Sandbox;
use serde_json::{Value, json};

use crate::tools::place::{Place, failed, failure, file, output, run};

fn place() -> (Place, Workspace) {
    let place = Place::with(&[("rules/bundle.yaml", "hooks: []\n"), ("keys/key", "secret\n"), ("src/a", "a\n")]);
    let workspace = place.workspace.clone().protect(["rules", "missing/file"]).hide(["keys/key"]);
    (place, workspace)
}

fn write(path: &str) -> Value {
    json!({ "file_path": path, "content": "x" })
}

#[tokio::test]
async fn a_protected_place_is_not_written_to_by_any_path() {
    let (place, workspace) = place();
    place.link("link", "rules");
    place.link("chain", "link/bundle.yaml");
    fs::hard_link(place.path("rules/bundle.yaml"), place.path("src/other-name")).unwrap();
    let absolute = place.path("rules/bundle.yaml").display().to_string();
    let paths = [
        "rules/bundle.yaml",
        "rules/deep/new",
        "rules",
        "src/../rules/new",
        "link/new",
        "chain",
        "src/other-name",
        "missing/file",
        "missing/file/new",
        "missing",
        "keys/key",
        "keys",
        absolute.as_str(),
    ];
    for path in paths {
        let (_, problem) = failure(&WriteTool::new(workspace.clone()), write(path)).await;
        assert!(problem.contains("tools cannot change `"), "{path}: {problem}");
        assert!(workspace.protects(path).is_some(), "{path}");
    }
    let edit = json!({ "file_path": "link/bundle.yaml", "old_string": "hooks", "new_string": "x" });
    let expected = format!(
        "`rules/bundle.yaml` cannot be written: tools cannot change `{}`, which decides what they may do or records what they did; if it \
         has to change, ask the person to do it",
        place.path("rules").display()
    );
    assert_eq!(failure(&EditTool::new(workspace.clone()), edit).await, failed(&expected));
    assert_eq!(
        (place.content("rules/bundle.yaml").as_str(), place.names("rules")),
        ("hooks: []\n", vec!["bundle.yaml".to_owned()])
    );
    assert!(!place.path("missing").exists());
}

#[tokio::test]
async fn what_is_beside_it_is_written_to_and_the_place_itself_is_read() {
    let (place, workspace) = place();
    for path in ["src/a", "rules.md", "rules-2/bundle.yaml", "keys/other"] {
        run(&WriteTool::new(workspace.clone()), write(path)).await.unwrap();
        assert_eq!((place.content(path).as_str(), workspace.protects(path)), ("x", None), "{path}");
    }
    assert_eq!(output(&ReadTool::new(workspace), file("rules/bundle.yaml")).await, "     1\thooks: []\n");
}

#[tokio::test]
async fn a_key_is_not_read_by_any_name() {
    let (place, workspace) = place();
    place.link("link", "keys/key");
    fs::hard_link(place.path("keys/key"), place.path("src/other-name")).unwrap();
    for (path, name) in [("keys/key", "keys/key"), ("link", "keys/key"), ("src/other-name", "src/other-name")] {
        let expected = format!("`{name}` cannot be read: hidden from tools");
        assert_eq!(failure(&ReadTool::new(workspace.clone()), file(path)).await, failed(&expected));
    }
    // A key that was replaced is as secret as the one before.
    fs::rename(place.path("src/other-name"), place.path("old")).unwrap();
    fs::write(place.path("new"), "newer secret\n").unwrap();
    fs::rename(place.path("new"), place.path("keys/key")).unwrap();
    let found = output(&GrepTool::new(workspace), json!({ "pattern": "newer" })).await;
    assert_eq!(found, "no line matches `newer`");
}

#[tokio::test]
async fn commands_are_started_by_the_launcher() {
    let (_place, workspace) = place();
    let bash = BashTool::new(workspace.sandboxed(Sandbox::through(["env", "LAUNCHED=by env"])));
    assert_eq!(output(&bash, json!({ "command": "echo $LAUNCHED; pwd -P | xargs basename" })).await, "by env\ninside");
    let (_, problem) = failure(&bash, json!({ "command": "exit 3" })).await;
    assert_eq!(problem, "exit code 3");
}
