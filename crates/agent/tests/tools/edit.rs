use amplifier_agent::tool::{EditTool, MultiEditTool, ToolOutput};
use serde_json::{Value, json};

use crate::tools::place::{Place, failed, failure, file, out_of_bounds, output, run};

fn replace(old: &str, new: &str) -> Value {
    json!({"file_path": "a.py", "old_string": old, "new_string": new})
}

fn replace_all(old: &str, new: &str) -> Value {
    json!({"file_path": "a.py", "old_string": old, "new_string": new, "replace_all": true})
}

#[tokio::test]
async fn a_text_that_is_there_once_is_replaced() {
    let place = Place::with(&[("a.py", "one\ntwo\n")]);
    let expected = ToolOutput::text("replaced the text once in `a.py`")
        .with("file_path", "a.py")
        .with("replacements", 1)
        .writing("a.py", 10);
    assert_eq!(run(&EditTool::new(place.workspace.clone()), replace("two", "three")).await.unwrap(), expected);
    assert_eq!(place.content("a.py"), "one\nthree\n");
}

#[tokio::test]
async fn a_text_can_be_replaced_wherever_it_is() {
    let place = Place::with(&[("a.py", "x = x + x")]);
    let edit = EditTool::new(place.workspace.clone());
    assert_eq!(output(&edit, replace_all("x", "y")).await, "replaced the text 3 times in `a.py`");
    assert_eq!(place.content("a.py"), "y = y + y");
}

#[tokio::test]
async fn an_edit_that_is_not_clear_changes_nothing() {
    let place = Place::with(&[("a.py", "x = x\naaa")]);
    let edit = EditTool::new(place.workspace.clone());
    let input = |problem: &str| ("input", format!("invalid input of `Edit`: {problem}"));
    let ambiguous = "add lines around it so that it is there once, or set `replace_all`";
    let missing = "read the file again and give the text exactly as it is there, without line numbers";
    let cases = [
        (replace("z", "y"), failed(&format!("`old_string` is not in `a.py`: {missing}"))),
        (replace_all("z", "y"), failed(&format!("`old_string` is not in `a.py`: {missing}"))),
        (replace("x", "y"), failed(&format!("`old_string` is in `a.py` 2 times: {ambiguous}"))),
        (replace("aa", "b"), failed(&format!("`old_string` is in `a.py` 2 times: {ambiguous}"))),
        (replace("x", "x"), input("`old_string` and `new_string` are the same: nothing would change")),
        (replace("", "y"), input("`old_string` is empty: give the text to replace, or use `Write` to make a file")),
    ];
    for (edits, expected) in cases {
        assert_eq!(failure(&edit, edits).await, expected);
    }
    assert_eq!(place.content("a.py"), "x = x\naaa");
}

#[tokio::test]
async fn line_breaks_of_windows_are_pointed_out() {
    let place = Place::with(&[("a.py", "one\r\ntwo\r\n")]);
    let edit = EditTool::new(place.workspace.clone());
    let expected =
        "`old_string` is not in `a.py`: lines of the file end in `\\r\\n`, so `old_string` needs that as well";
    assert_eq!(failure(&edit, replace("one\ntwo", "three")).await, failed(expected));
    assert_eq!(output(&edit, replace("one\r\ntwo", "three")).await, "replaced the text once in `a.py`");
    assert_eq!(place.content("a.py"), "three\r\n");
}

#[tokio::test]
async fn only_text_within_the_workspace_is_edited() {
    let place = Place::new();
    place.put("a.py", b"caf\xe9");
    let edit = EditTool::new(place.workspace.clone());
    assert_eq!(
        failure(&edit, replace("caf", "tea")).await,
        failed("`a.py` is not UTF-8 text: only text can be edited")
    );
    std::fs::remove_file(place.path("a.py")).unwrap();
    assert_eq!(
        failure(&edit, replace("caf", "tea")).await,
        failed("`a.py` does not exist: use `Glob` to see which files there are")
    );
    place.link("a.py", "../outside/secret");
    assert_eq!(failure(&edit, replace("secret", "tea")).await, out_of_bounds(&place, "a.py"));
    assert_eq!(place.content("../outside/secret"), "secret\n");
}

#[tokio::test]
async fn an_edit_does_not_make_a_file_too_large() {
    let place = Place::with(&[("a.py", &"x".repeat(10_000))]);
    let edit = EditTool::new(place.workspace.clone());
    let too_large = failed("`a.py` would become larger than 10 MB");
    assert_eq!(failure(&edit, replace_all("x", &"y".repeat(10_000))).await, too_large);
    assert_eq!(place.content("a.py"), "x".repeat(10_000));
}

#[tokio::test]
async fn several_edits_are_made_one_after_the_other() {
    let place = Place::with(&[("a.py", "one two two")]);
    let edits = json!([
        {"old_string": "one", "new_string": "zero"},
        {"old_string": "two", "new_string": "one", "replace_all": true},
        {"old_string": "zero one", "new_string": "0 1"},
    ]);
    let expected =
        ToolOutput::text("made 3 edits in `a.py`").with("file_path", "a.py").with("replacements", 4).writing("a.py", 7);
    let multi_edit = MultiEditTool::new(place.workspace.clone());
    assert_eq!(run(&multi_edit, json!({"file_path": "a.py", "edits": edits})).await.unwrap(), expected);
    assert_eq!(place.content("a.py"), "0 1 one");
}

#[tokio::test]
async fn several_edits_are_all_made_or_none() {
    let place = Place::with(&[("a.py", "one two")]);
    let multi_edit = MultiEditTool::new(place.workspace.clone());
    let edits = json!([{"old_string": "one", "new_string": "1"}, {"old_string": "one", "new_string": "2"}]);
    let expected = "nothing was changed, because of `edits[1]`: `old_string` is not in `a.py`: \
                    read the file again and give the text exactly as it is there, without line numbers";
    assert_eq!(failure(&multi_edit, json!({"file_path": "a.py", "edits": edits})).await, failed(expected));
    assert_eq!(place.content("a.py"), "one two");

    let edits = json!([{"old_string": "one", "new_string": "1"}, {"old_string": "two", "new_string": "two"}]);
    let expected = "invalid input of `MultiEdit`: `edits[1]`: \
                    `old_string` and `new_string` are the same: nothing would change";
    assert_eq!(
        failure(&multi_edit, json!({"file_path": "a.py", "edits": edits})).await,
        ("input", expected.to_owned())
    );
    assert_eq!(place.content("a.py"), "one two");
}

#[tokio::test]
async fn several_edits_are_at_least_one() {
    let multi_edit = MultiEditTool::new(Place::new().workspace);
    let missing = "invalid input of `MultiEdit`: missing field `edits`";
    assert_eq!(failure(&multi_edit, file("a.py")).await, ("input", missing.to_owned()));
    let empty = "invalid input of `MultiEdit`: `edits` is empty: give at least one";
    assert_eq!(failure(&multi_edit, json!({"file_path": "a.py", "edits": []})).await, ("input", empty.to_owned()));
}
