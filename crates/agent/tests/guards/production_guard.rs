use amplifier_core::{HookResult, TOOL_PRE};
use serde_json::json;

use super::{Setup, asked, check_problems};

const GUARDED: &str = "
    hooks:
      - module: hooks-production-guard
    ";

#[tokio::test]
async fn a_person_is_asked_before_a_production_file_is_changed() {
    let edit = json!({ "file_path": "production/app.yaml", "old_string": "a", "new_string": "b" });
    let edits = json!({ "file_path": "production/app.yaml", "edits": [{ "old_string": "a", "new_string": "b" }] });
    let write = json!({ "file_path": "production/app.yaml", "content": "b" });
    for (tool, input) in [("Edit", edit), ("MultiEdit", edits), ("Write", write)] {
        let setup = Setup::new(GUARDED);
        setup.write("production/app.yaml", "a");
        let (run, result) = setup.call(&["Deny"], tool, input.clone()).await;
        let question = "Allow a change to the production file `production/app.yaml`?";
        assert_eq!(asked(&run), [question]);
        assert_eq!(result, format!("Denied by hook hooks-production-guard: User denied: {question}"));
        assert_eq!(setup.read("production/app.yaml").unwrap(), "a");

        setup.call(&["Allow once"], tool, input).await;
        assert_eq!(setup.read("production/app.yaml").unwrap(), "b", "{tool}");
    }
}

#[tokio::test]
async fn no_way_of_writing_a_path_gets_past_the_guard() {
    let table = [
        ("src/../.env", "`.env`"),
        ("./deep/.././.env.local", "`.env.local`"),
        ("harmless.txt", "`harmless.txt` (which is `.env`)"),
        ("harmless/key", "`harmless/key` (which is `secrets/key`)"),
        ("prod/app.yaml", "`prod/app.yaml` (which is `releases/7/app.yaml`)"),
        ("prod/../prod/./app.yaml", "`prod/app.yaml` (which is `releases/prod/app.yaml`)"),
        ("src/../../workspace/secrets/key", "`secrets/key`"),
    ];
    for (path, shown) in table {
        let setup = Setup::new(GUARDED);
        for file in [".env", "src/a.txt", "secrets/key", "releases/7/app.yaml"] {
            setup.write(file, "old");
        }
        for (target, link) in [(".env", "harmless.txt"), ("secrets", "harmless"), ("releases/7", "prod")] {
            std::os::unix::fs::symlink(target, setup.workspace().join(link)).unwrap();
        }
        let (run, _) = setup.call(&["Deny"], "Write", json!({ "file_path": path, "content": "new" })).await;
        assert_eq!(asked(&run), [format!("Allow a change to the production file {shown}?")], "{path}");
        for file in [".env", "secrets/key", "releases/7/app.yaml"] {
            assert_eq!(setup.read(file).unwrap(), "old", "{path}");
        }
    }
}

#[tokio::test]
async fn a_call_that_names_no_file_is_denied() {
    let setup = Setup::new(GUARDED);
    let unnamed = "the call has no `file_path`, so the changed file is unknown";
    let mistyped = "`file_path` is not a string, so the changed file is unknown";
    for (input, expected) in [
        (json!({ "content": "x" }), unnamed),
        (json!({ "path": ".env", "content": "x" }), unnamed),
        (json!({ "file_path": [".env"], "content": "x" }), mistyped),
        (json!({ "file_path": null, "content": "x" }), mistyped),
    ] {
        let (run, result) = setup.call(&["Allow once"], "Write", input).await;
        assert_eq!(result, format!("Denied by hook hooks-production-guard: {expected}"));
        assert_eq!(run.questions.len(), 0);
    }
}

#[tokio::test]
async fn a_path_that_cannot_be_resolved_is_denied() {
    let setup = Setup::new(GUARDED);
    std::os::unix::fs::symlink("there", setup.workspace().join("here")).unwrap();
    std::os::unix::fs::symlink("here", setup.workspace().join("there")).unwrap();
    let (_, result) = setup.call(&["Allow once"], "Write", json!({ "file_path": "here/x", "content": "x" })).await;
    assert!(result.starts_with("Denied by hook hooks-production-guard: "), "{result}");
}

#[tokio::test]
async fn the_guard_judges_what_other_hooks_have_made_of_the_call() {
    let setup = Setup::new(GUARDED);
    let world = setup.world(super::Script::new([
        super::ScriptedResponse::text("I write.").calling("Write", json!({ "file_path": "a.txt", "content": "x" })),
        super::ScriptedResponse::text("Done."),
    ]));
    world.hooks.on(TOOL_PRE, |_| HookResult::set("tool_input", json!({ "file_path": ".env", "content": "x" })));
    let run = world.person(&["Deny"]).run(&["Write"]).await;
    assert_eq!(asked(&run), ["Allow a change to the production file `.env`?"]);
    assert_eq!(setup.read(".env"), None);
}

#[tokio::test]
async fn other_files_and_other_tools_are_none_of_its_business() {
    let setup = Setup::new(GUARDED);
    setup.write(".env", "SECRET=1");
    let (run, _) = setup.call(&["Deny"], "Write", json!({ "file_path": "product/a.txt", "content": "x" })).await;
    assert_eq!((asked(&run).len(), setup.read("product/a.txt").unwrap()), (0, "x".to_owned()));
    let (run, result) = setup.call(&["Deny"], "Read", json!({ "file_path": ".env" })).await;
    assert!(asked(&run).is_empty() && result.contains("SECRET=1"), "{result}");
}

#[tokio::test]
async fn without_asking_it_denies() {
    let setup = Setup::new(
        "
        hooks:
          - module: hooks-production-guard
            config: { paths: ['live/**'], ask: false }
        ",
    );
    let (run, result) = setup.call(&["Allow once"], "Write", json!({ "file_path": "live/a", "content": "x" })).await;
    let reason = "`live/a` is a production file, and is not changed by an agent";
    assert_eq!(result, format!("Denied by hook hooks-production-guard: {reason}"));
    assert_eq!((asked(&run).len(), setup.read("live/a")), (0, None));
}

#[test]
fn mistakes_in_its_options_are_told() {
    check_problems(
        "hooks-production-guard",
        &[
            ("{ paths: [] }", "`paths` is empty: name at least one"),
            ("{ tools: [] }", "`tools` is empty: name at least one"),
            ("{ tools: ['*'] }", "invalid name `*` in `tools`: patterns are not supported; write each name"),
            ("{ fields: [] }", "`fields` is empty: name at least one"),
            (
                "{ paths: ['infra/'] }",
                "`paths`: the pattern `infra/` never matches: it ends with `/`, so no file matches; write `infra/**`",
            ),
            (
                "{ paths: ['a{b'] }",
                "`paths`: invalid path pattern `a{b`: unclosed alternate group; missing '}' \
                                    (maybe escape '{' with '[{]'?)",
            ),
            ("{ timeout: 0 }", "`timeout` is 0: give a number of seconds above zero"),
            ("{ ask: 3 }", "`ask`: invalid type: integer `3`, expected `true` or `false`"),
            ("{ path: ['x'] }", "unknown option `path`; did you mean `paths`?"),
        ],
    );
}
