//! Patches: one operation for each file, or an error.

use amplifier_guard::patch_operations;
use serde_json::{Value, json};

fn check(patch: &str, expected: &[(&str, Value)]) {
    let found: Vec<(String, Value)> =
        patch_operations(patch).unwrap().into_iter().map(|one| (one.tool, Value::Object(one.input))).collect();
    let expected: Vec<(String, Value)> =
        expected.iter().map(|(tool, input)| ((*tool).to_owned(), input.clone())).collect();
    assert_eq!(found, expected, "{patch}");
}

#[test]
fn each_file_of_a_patch_is_one_operation() {
    check(
        "*** Begin Patch\n*** Add File: new.txt\n+one\n+*** Add File: only text\n*** Update File: src/a.rs\n@@ fn main\n context\n-old\n+new\n*** Delete File: gone.txt\n*** End Patch",
        &[
            ("Write", json!({ "file_path": "new.txt", "content": "one\n*** Add File: only text\n" })),
            (
                "Edit",
                json!({ "file_path": "src/a.rs", "old_string": "context\nold\n", "new_string": "context\nnew\n" }),
            ),
            ("Edit", json!({ "file_path": "gone.txt", "old_string": "", "new_string": "" })),
        ],
    );
}

#[test]
fn a_moved_file_is_an_operation_at_both_paths() {
    check(
        "*** Begin Patch\n*** Update File: a\n*** Move to: .ssh/authorized_keys\n@@\n-x\n+y\n*** End of File\n*** End Patch\n",
        &[
            ("Edit", json!({ "file_path": "a", "old_string": "x\n", "new_string": "y\n" })),
            ("Write", json!({ "file_path": ".ssh/authorized_keys", "content": "y\n" })),
        ],
    );
}

#[test]
fn a_file_after_trimmed_spaces_is_found() {
    check(
        "*** Begin Patch\n*** Add File: a\n+x\n  *** Add File: b\n+y\n*** End Patch",
        &[
            ("Write", json!({ "file_path": "a", "content": "x\n" })),
            ("Write", json!({ "file_path": "b", "content": "y\n" })),
        ],
    );
}

#[test]
fn a_doubtful_patch_is_an_error() {
    for (patch, expected) in [
        ("", "line 1 of the patch cannot be read: expected `*** Begin Patch`"),
        ("rm -rf /", "expected `*** Begin Patch`"),
        ("*** Begin Patch\n*** Add File: a\n+x", "expected `*** End Patch`"),
        ("*** Begin Patch\n*** End Patch", "it names no file"),
        ("*** Begin Patch\n*** Add File: \n+x\n*** End Patch", "expected a file or a change"),
        ("*** Begin Patch\n*** Add File: a\nx\n*** End Patch", "expected a file or a change"),
        ("*** Begin Patch\n*** Environment ID: 7\n*** End Patch", "expected a file or a change"),
        ("*** Begin Patch\n*** Update File: a\n *** Delete File: b\n*** End Patch", "looks like the next file"),
        ("*** Begin Patch\n*** Add File: a\n+x\n*** Move to: b\n*** End Patch", "without a changed file"),
        ("*** Begin Patch\n*** Add File: a\n+x\r*** Delete File: b\n*** End Patch", "a single carriage return"),
    ] {
        let error = patch_operations(patch).unwrap_err().to_string();
        assert!(error.contains(expected), "{patch:?}: {error}");
    }
}
