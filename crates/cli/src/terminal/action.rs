//! An action, as lines of the terminal.

use amplifier_server::wire::{self, Field, Row, RowKind};

use super::line::{BOLD, CYAN, DIM, GREEN, Line, PLAIN, RED, YELLOW};

/// What will happen if the person agrees.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Action {
    /// What it is, and on what: one line.
    pub(super) title: Line,
    /// What the person should know about it.
    pub(super) notes: Vec<Line>,
    /// All of it: a command, a diff, a task.
    pub(super) body: Vec<Line>,
    /// What goes with it, a field a line: a time limit, a range.
    pub(super) fields: Vec<Line>,
}

impl From<&wire::Action> for Action {
    fn from(action: &wire::Action) -> Self {
        let wire::Action { title, target, about, notes, body, fields } = action;
        let more = |line: Line, style, text: &Option<String>| match text {
            Some(text) => line.exact(PLAIN, "  ").exact(style, text),
            None => line,
        };
        let title_line = more(Line::new().exact(BOLD, title), CYAN, target);
        let plain = if title == "Bash" { BOLD } else { PLAIN };
        let row = |Row { kind, text, .. }: &Row| match kind {
            RowKind::Plain => Line::new().exact(plain, text),
            RowKind::Context => Line::new().exact(PLAIN, " ").exact(PLAIN, text),
            RowKind::Added => Line::new().exact(GREEN, "+").exact(GREEN, text),
            RowKind::Removed => Line::new().exact(RED, "-").exact(RED, text),
            RowKind::Gap => Line::new().exact(CYAN, text),
            RowKind::Note => Line::new().exact(DIM, "\\ ").exact(DIM, text),
        };
        Self {
            title: more(title_line, DIM, about),
            notes: notes.iter().map(|note| Line::new().exact(YELLOW, note)).collect(),
            body: body.iter().map(row).collect(),
            fields: fields
                .iter()
                .map(|Field { name, value }| Line::new().exact(DIM, format!("{name}: {value}")))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use amplifier_agent::tool::Workspace;
    use amplifier_core::{EventData, data};
    use serde_json::{Value, json};

    use super::*;
    use crate::shown::Shown;

    /// What is shown of an action in a workspace with a file `notes.txt` of three lines.
    fn shown(event: &str, data: &EventData) -> String {
        let workspace = tempfile::tempdir().unwrap();
        std::fs::write(workspace.path().join("notes.txt"), "one\ntwo\nthree\n").unwrap();
        std::fs::write(workspace.path().join("picture.bin"), [0xff, 0xfe]).unwrap();
        std::fs::write(workspace.path().join("key"), "the secret is 7").unwrap();
        std::os::unix::fs::symlink("key", workspace.path().join("link")).unwrap();
        std::fs::hard_link(workspace.path().join("key"), workspace.path().join("name")).unwrap();
        let files = Shown(Workspace::new(workspace.path()).unwrap().hide(["key"]).protect(["rules"]));
        let Action { title, notes, body, fields } = Action::from(&wire::Action::of(event, data, &files));
        let lines = std::iter::once(title).chain(notes).chain(body).chain(fields);
        lines.map(|line| line.render(false)).collect::<Vec<_>>().join("\n")
    }

    fn check(tool: &str, input: Value, expected: &str) {
        let data = data! { "tool_name": tool, "tool_input": input };
        assert_eq!(shown("tool:pre", &data), expected);
    }

    #[test]
    fn a_command_is_shown_whole_with_everything_that_goes_with_it() {
        check("Bash", json!({ "command": "cargo test" }), "Bash\ncargo test");
        let input = json!({ "command": "set -e\nmake \u{202e}all\x1b[1A", "timeout": 60 });
        let expected = "Bash\nset -e\nmake \\u{202e}all␛[1A\ntimeout: 60";
        check("Bash", input, expected);
    }

    #[test]
    fn reading_and_searching_show_where() {
        check("Read", json!({ "file_path": "notes.txt", "limit": 5 }), "Read  notes.txt\nlimit: 5");
        check(
            "Read",
            json!({ "file_path": "/etc/passwd" }),
            "Read  /etc/passwd\noutside of the workspace: /etc/passwd",
        );
        check("Glob", json!({ "pattern": "**/*.rs" }), "Glob  **/*.rs");
        check("Grep", json!({ "pattern": "TODO", "path": "src" }), "Grep  TODO\npath: \"src\"");
    }

    #[test]
    fn a_way_out_of_the_workspace_is_told() {
        let data = data! { "tool_name": "Read", "tool_input": { "file_path": "no/such/../../../../x" } };
        assert!(shown("tool:pre", &data).contains("\noutside of the workspace: "));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_out_of_the_workspace_is_told() {
        let workspace = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/etc", workspace.path().join("inside")).unwrap();
        let data = data! { "tool_name": "Read", "tool_input": { "file_path": "inside/new.txt" } };
        let files = Shown(Workspace::new(workspace.path()).unwrap());
        let action = Action::from(&wire::Action::of("tool:pre", &data, &files));
        assert_eq!(action.notes, [Line::new().exact(YELLOW, "outside of the workspace: /etc/new.txt")]);
    }

    #[test]
    fn writing_shows_what_changes() {
        let write = |path, content| json!({ "file_path": path, "content": content });
        check("Write", write("new.txt", "a\nb"), "Write  new.txt  new file\n+a\n+b");
        let expected = "Write  notes.txt  +1 −1\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three";
        check("Write", write("notes.txt", "one\n2\nthree\n"), expected);
        let expected = "Write  notes.txt  +1 −1\n@@ -1,3 +1,3 @@\n one\n two\n-three\n+three\n\
                        \\ no line break at the end of the file";
        check("Write", write("notes.txt", "one\ntwo\nthree"), expected);
        check("Write", write("notes.txt", "one\ntwo\nthree\n"), "Write  notes.txt  changes nothing");
        let expected = "Write  picture.bin\nwhat is there now is not shown: it is no text, but 2 bytes\n+x";
        check("Write", write("picture.bin", "x"), expected);
    }

    #[test]
    fn what_tools_cannot_change_is_not_shown() {
        let write = |path| json!({ "file_path": path, "content": "x" });
        let not_shown = "what is there now is not shown: it is";
        for path in ["key", "link", "name"] {
            check("Write", write(path), &format!("Write  {path}\n{not_shown} protected from tools\n+x"));
        }
        check("Write", write("rules/new"), &format!("Write  rules/new\n{not_shown} protected from tools\n+x"));
        for path in ["/etc/passwd", "/etc/no-such-file"] {
            let expected =
                format!("Write  {path}\noutside of the workspace: {path}\n{not_shown} outside of the workspace\n+x");
            check("Write", write(path), &expected);
        }
        let edit = json!({ "file_path": "key", "old_string": "the", "new_string": "a" });
        check("Edit", edit, &format!("Edit  key\n{not_shown} protected from tools\n-the\n+a"));
    }

    #[test]
    fn an_edit_shows_what_it_would_make_of_the_file() {
        let input = json!({ "file_path": "notes.txt", "old_string": "two", "new_string": "zwei" });
        check("Edit", input, "Edit  notes.txt  +1 −1\n@@ -1,3 +1,3 @@\n one\n-two\n+zwei\n three");
        let edits = json!([
            { "old_string": "o", "new_string": "0", "replace_all": true },
            { "old_string": "three", "new_string": "3" },
        ]);
        let expected = "MultiEdit  notes.txt  +3 −3\n@@ -1,3 +1,3 @@\n-one\n-two\n-three\n+0ne\n+tw0\n+3";
        check("MultiEdit", json!({ "file_path": "notes.txt", "edits": edits }), expected);
    }

    #[test]
    fn an_edit_that_cannot_be_made_is_shown_as_asked_for() {
        let input = json!({ "file_path": "notes.txt", "old_string": "o", "new_string": "0" });
        let expected = "Edit  notes.txt\nthis will probably fail: \
                        edit 1 replaces a text that the file holds 2 times\n-o\n+0";
        check("Edit", input, expected);
        let input = json!({ "file_path": "none.txt", "old_string": "x", "new_string": "y" });
        let expected = "Edit  none.txt\nthis will probably fail: \
                        edit 1 replaces a text that the file does not hold\n-x\n+y";
        check("Edit", input, expected);
    }

    #[test]
    fn other_tools_and_unexpected_input_are_shown_as_json() {
        check("Deploy", json!({ "to": "production" }), "Deploy\n{\n  \"to\": \"production\"\n}");
        check("Bash", json!({ "command": ["ls"] }), "Bash\n{\n  \"command\": [\n    \"ls\"\n  ]\n}");
    }

    #[test]
    fn other_events_show_what_they_carry() {
        assert_eq!(shown("prompt:submit", &data! { "prompt": "Hello\nyou" }), "prompt\nHello\nyou");
        let spawn = data! { "agent_name": "explorer", "task": "Look around", "config_override": { "model": "m" } };
        assert_eq!(shown("agent:spawn", &spawn), "agent  explorer\nLook around\nconfig_override: {\"model\":\"m\"}");
        let other = data! { "provider": "p", "timestamp": "2026-01-01T00:00:00Z" };
        assert_eq!(shown("provider:request", &other), "provider:request\n{\n  \"provider\": \"p\"\n}");
    }
}
