use amplifier_agent::tool::{GlobTool, GrepTool, ToolOutput};
use serde_json::json;

use crate::tools::place::{Place, failed, failure, out_of_bounds, output, run};

fn project() -> Place {
    let place = Place::with(&[
        (".git/config", "fn"),
        (".github/test.yml", "on: push"),
        (".gitignore", "/target\n*.log\n"),
        ("README.md", "# Title\n"),
        ("src/a/deep.rs", "fn deep() {}\n"),
        ("src/a.rs", "fn a() {}\n"),
        ("src/noise.log", "fn"),
        ("target/out.rs", "fn out() {}\n"),
    ]);
    place.link("inside.rs", "src/a.rs");
    place.link("outside.rs", "../outside/secret");
    place.link("outside", "../outside");
    place
}

#[tokio::test]
async fn files_are_found_by_name_in_order() {
    let place = project();
    let glob = GlobTool::new(place.workspace.clone());
    let cases = [
        ("**/*.rs", "inside.rs\nsrc/a/deep.rs\nsrc/a.rs\n"),
        ("*.rs", "inside.rs\n"),
        ("./src/*", "src/a.rs\n"),
        ("**/*.{md,yml}", ".github/test.yml\nREADME.md\n"),
        ("src/**", "src/a/deep.rs\nsrc/a.rs\n"),
        ("**/secret", "no file matches `**/secret`"),
        ("**/config", "no file matches `**/config`"),
        ("../**", "no file matches `../**`"),
    ];
    for (pattern, expected) in cases {
        assert_eq!(output(&glob, json!({"pattern": pattern})).await, expected);
    }
    let expected = ToolOutput::text("src/a/deep.rs\nsrc/a.rs\n").with("files", 2);
    assert_eq!(run(&glob, json!({"pattern": "**/*.rs", "path": "src"})).await.unwrap(), expected);
    // A path given by name is searched, ignored or not.
    assert_eq!(output(&glob, json!({"pattern": "*.rs", "path": "target"})).await, "target/out.rs\n");
}

#[tokio::test]
async fn files_are_found_within_the_workspace_alone() {
    let place = project();
    let glob = GlobTool::new(place.workspace.clone());
    let input = |problem: &str| ("input", format!("invalid input of `Glob`: {problem}"));
    let cases = [
        (json!({"pattern": "*", "path": ".."}), out_of_bounds(&place, "..")),
        (json!({"pattern": "*", "path": "outside"}), out_of_bounds(&place, "outside")),
        (json!({"pattern": "*", "path": "README.md"}), failed("`README.md` is not a folder")),
        (
            json!({"pattern": "*", "path": "none"}),
            failed("`none` does not exist: use `Glob` to see which files there are"),
        ),
        (
            json!({"pattern": "/etc/*"}),
            input("`pattern` is absolute: give the folder as `path`, and a pattern relative to it"),
        ),
        (
            json!({"pattern": "{a"}),
            input("error parsing glob '{a': unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)"),
        ),
    ];
    for (input, expected) in cases {
        assert_eq!(failure(&glob, input).await, expected);
    }
}

#[tokio::test]
async fn no_more_files_are_given_than_a_model_can_read() {
    let place = Place::new();
    for number in 0..1_001 {
        place.put(&format!("{number:04}"), "");
    }
    let found = run(&GlobTool::new(place.workspace.clone()), json!({"pattern": "*"})).await.unwrap();
    let listed: String = (0..1_000).map(|number| format!("{number:04}\n")).collect();
    let expected = format!("{listed}(there are more than 1000: give a narrower `pattern` or a `path`)\n");
    assert_eq!(found, ToolOutput::text(expected).with("files", 1_000));
}

#[tokio::test]
async fn lines_are_found_with_file_and_number() {
    let place = project();
    let grep = GrepTool::new(place.workspace.clone());
    let expected = ToolOutput::text("src/a/deep.rs:1:fn deep() {}\nsrc/a.rs:1:fn a() {}\n").with("matches", 2);
    assert_eq!(run(&grep, json!({"pattern": r"^fn \w+"})).await.unwrap(), expected);
    let cases = [
        (json!({"pattern": "fn", "path": "src/a.rs"}), "src/a.rs:1:fn a() {}\n"),
        (json!({"pattern": "fn", "path": "src/a"}), "src/a/deep.rs:1:fn deep() {}\n"),
        (json!({"pattern": "fn", "path": "inside.rs"}), "src/a.rs:1:fn a() {}\n"),
        (json!({"pattern": "fn", "glob": "d*.rs"}), "src/a/deep.rs:1:fn deep() {}\n"),
        (json!({"pattern": "fn", "glob": "src/*.rs"}), "src/a.rs:1:fn a() {}\n"),
        (json!({"pattern": "TITLE", "case_insensitive": true}), "README.md:1:# Title\n"),
        (json!({"pattern": "TITLE"}), "no line matches `TITLE`"),
        (json!({"pattern": "secret"}), "no line matches `secret`"),
    ];
    for (input, expected) in cases {
        assert_eq!(output(&grep, input).await, expected);
    }
}

#[tokio::test]
async fn lines_around_a_match_are_given_once() {
    let place = Place::with(&[("a", "1\n2\nx3\n4\nx5\n6\n7\n8\n9\nx10\n"), ("b", "x1\n2\n3\n")]);
    let grep = GrepTool::new(place.workspace.clone());
    let expected = "a-2-2\na:3:x3\na-4-4\na:5:x5\na-6-6\n--\na-9-9\na:10:x10\n--\nb:1:x1\nb-2-2\n";
    assert_eq!(output(&grep, json!({"pattern": "x", "context": 1})).await, expected);
}

#[tokio::test]
async fn no_more_matches_are_given_than_asked_for() {
    let place = Place::with(&[("a", &"x\n".repeat(201)), ("b", &format!("{}\n", "y".repeat(400)).repeat(900))]);
    let grep = GrepTool::new(place.workspace.clone());
    let expected = "a:1:x\na:2:x\n(there are more than these 2: narrow `pattern`, `path` or `glob`)\n";
    assert_eq!(output(&grep, json!({"pattern": "x", "max_matches": 2})).await, expected);
    let exact = run(&grep, json!({"pattern": "x", "max_matches": 201})).await.unwrap();
    assert_eq!(exact.result["matches"], 201);
    assert!(exact.result["output"].as_str().unwrap().ends_with("a:201:x\n"));
    let usual = output(&grep, json!({"pattern": "x"})).await;
    assert!(usual.ends_with("a:200:x\n(there are more than these 200: narrow `pattern`, `path` or `glob`)\n"));
    let large = output(&grep, json!({"pattern": "y", "max_matches": 1_000})).await;
    assert!(large.len() < 101 * 1024 && large.ends_with("narrow `pattern`, `path` or `glob`)\n"), "{}", large.len());
}

#[tokio::test]
async fn binary_and_very_large_files_are_not_searched() {
    let place = Place::new();
    place.put("binary", "x\0");
    place.put("large", "x\n".repeat(5 * 1024 * 1024 + 1));
    place.put("latin", b"x caf\xe9\r\n");
    place.put("long", format!("x{}", "€".repeat(1_000)));
    let expected = format!("latin:1:x caf\u{fffd}\nlong:1:x{}… (2502 bytes more)\n", "€".repeat(166));
    assert_eq!(output(&GrepTool::new(place.workspace.clone()), json!({"pattern": "x"})).await, expected);
}

#[tokio::test]
async fn a_search_that_cannot_be_made_is_refused() {
    let place = project();
    let grep = GrepTool::new(place.workspace.clone());
    let (kind, text) = failure(&grep, json!({"pattern": "(x"})).await;
    assert_eq!(kind, "input");
    assert!(text.starts_with("invalid input of `Grep`: `pattern`: regex parse error:"), "{text}");
    assert!(text.ends_with("error: unclosed group"), "{text}");
    assert_eq!(failure(&grep, json!({"pattern": "secret", "path": "outside"})).await, out_of_bounds(&place, "outside"));
    assert_eq!(
        failure(&grep, json!({"pattern": "x", "path": "none"})).await,
        failed("`none` does not exist: use `Glob` to see which files there are")
    );
}
