//! What a question is about, told from the action itself and not from what a hook says about it.

use std::path::Path;

use amplifier_core::{AGENT_SPAWN, EventData, Map, PROMPT_SUBMIT, TOOL_PRE};
use serde_json::Value;

use super::diff::{all, diff};
use super::edit::{Edit, edited};
use super::line::{BOLD, CYAN, DIM, GREEN, Line, PLAIN, RED, YELLOW, exact_lines};
use super::place::{Present, outside, present};

/// The field that every event has and that tells nothing about what will run.
const TIMESTAMP: &str = "timestamp";

/// What will happen if the person agrees.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// What it is, and on what: one line.
    pub title: Line,
    /// What the person should know about it.
    pub notes: Vec<Line>,
    /// All of it: a command, a diff, a task.
    pub body: Vec<Line>,
    /// What goes with it, a field a line: a time limit, a range.
    pub fields: Vec<Line>,
}

impl Action {
    /// Tells the action from the data of an event. Files are read below the workspace root, to show what changes.
    pub fn of(event: &str, data: &EventData, root: &Path) -> Self {
        let known = match event {
            _ if event == TOOL_PRE.as_str() => Self::tool(data, root),
            _ if event == PROMPT_SUBMIT.as_str() => data.text("prompt").map(Self::prompt),
            _ if event == AGENT_SPAWN.as_str() => Self::agent(data),
            _ => None,
        };
        known.unwrap_or_else(|| {
            let mut data = data.clone();
            data.remove(TIMESTAMP);
            Self::plain(title(event), json(&Value::from(data)))
        })
    }

    fn tool(data: &EventData, root: &Path) -> Option<Self> {
        let name = data.text("tool_name")?;
        let input = data.get("tool_input")?;
        let known = input.as_object().and_then(|fields| {
            let call = Call { name, fields, root };
            match name {
                "Bash" => call.command(),
                "Read" => call.file(),
                "Glob" | "Grep" => call.pattern(),
                "Write" => call.write(),
                "Edit" => call.edit(vec![Edit::read(input)?], &["old_string", "new_string", "replace_all"]),
                "MultiEdit" => {
                    let edits = fields.get("edits")?.as_array()?.iter().map(Edit::read);
                    call.edit(edits.collect::<Option<_>>()?, &["edits"])
                }
                _ => None,
            }
        });
        Some(known.unwrap_or_else(|| Self::plain(title(name), json(input))))
    }

    fn prompt(prompt: &str) -> Self {
        Self::plain(title("prompt"), exact_lines(PLAIN, prompt))
    }

    fn agent(data: &EventData) -> Option<Self> {
        let title = title("agent").exact(PLAIN, "  ").exact(CYAN, data.text("agent_name")?);
        let config = data.get("config_override").map(|config| field("config_override", config));
        Some(Self {
            fields: config.into_iter().collect(),
            ..Self::plain(title, exact_lines(PLAIN, data.text("task")?))
        })
    }

    fn plain(title: Line, body: Vec<Line>) -> Self {
        Self { title, notes: Vec::new(), body, fields: Vec::new() }
    }
}

/// A call of a tool whose input has a known form.
struct Call<'a> {
    name: &'a str,
    fields: &'a Map,
    root: &'a Path,
}

impl Call<'_> {
    fn text(&self, field: &str) -> Option<&str> {
        self.fields.get(field)?.as_str()
    }

    fn command(&self) -> Option<Action> {
        let body = exact_lines(BOLD, self.text("command")?);
        Some(Action { fields: self.rest(&["command"]), ..Action::plain(title(self.name), body) })
    }

    fn file(&self) -> Option<Action> {
        let (field, path) = self.path()?;
        let (notes, fields) = (self.warning(path), self.rest(&[field]));
        Some(Action { notes, fields, ..Action::plain(self.on(path), Vec::new()) })
    }

    fn pattern(&self) -> Option<Action> {
        let notes = self.path().map(|(_, path)| self.warning(path)).unwrap_or_default();
        let title = self.on(self.text("pattern")?);
        Some(Action { notes, fields: self.rest(&["pattern"]), ..Action::plain(title, Vec::new()) })
    }

    fn write(&self) -> Option<Action> {
        let (field, path) = self.path()?;
        self.change(path, &[field, "content"], Ok(self.text("content")?.to_owned()), Vec::new)
    }

    fn edit(&self, edits: Vec<Edit<'_>>, told: &[&str]) -> Option<Action> {
        let (field, path) = self.path()?;
        let after = match present(&self.root.join(path)) {
            Present::Nothing => edited("", &edits),
            Present::Text(text) => edited(&text, &edits),
            Present::Other(why) => Err(why),
        };
        let told: Vec<_> = told.iter().copied().chain([field]).collect();
        self.change(path, &told, after, || {
            let one = |edit: &Edit<'_>| all("-", RED, edit.old).into_iter().chain(all("+", GREEN, edit.new));
            edits.iter().flat_map(one).collect()
        })
    }

    /// A change of a file: as a diff, if there is one, and otherwise `instead`.
    fn change(
        &self,
        path: &str,
        told: &[&str],
        after: Result<String, String>,
        instead: impl FnOnce() -> Vec<Line>,
    ) -> Option<Action> {
        let mut notes = self.warning(path);
        let (about, body) = match (present(&self.root.join(path)), after) {
            (_, Err(why)) => {
                notes.push(note(format!("this will probably fail: {why}")));
                (String::new(), instead())
            }
            (Present::Nothing, Ok(new)) => ("  new file".into(), all("+", GREEN, &new)),
            (Present::Other(why), Ok(new)) => {
                notes.push(note(format!("what is there is replaced: {why}")));
                (String::new(), all("+", GREEN, &new))
            }
            (Present::Text(old), Ok(new)) if old == new => ("  changes nothing".into(), Vec::new()),
            (Present::Text(old), Ok(new)) => {
                let diff = diff(&old, &new);
                (format!("  +{} −{}", diff.added, diff.removed), diff.lines)
            }
        };
        Some(Action { title: self.on(path).exact(DIM, about), notes, body, fields: self.rest(told) })
    }

    fn on(&self, what: &str) -> Line {
        title(self.name).exact(PLAIN, "  ").exact(CYAN, what)
    }

    fn path(&self) -> Option<(&'static str, &str)> {
        ["file_path", "path"].into_iter().find_map(|field| Some((field, self.text(field)?)))
    }

    fn warning(&self, path: &str) -> Vec<Line> {
        let place = outside(self.root, path);
        place.map(|place| note(format!("outside of the workspace: {}", place.display()))).into_iter().collect()
    }

    /// The fields that are not told otherwise: what runs is shown, all of it.
    fn rest(&self, told: &[&str]) -> Vec<Line> {
        let rest = self.fields.iter().filter(|(field, _)| !told.contains(&field.as_str()));
        rest.map(|(name, value)| field(name, value)).collect()
    }
}

fn title(name: &str) -> Line {
    Line::new().exact(BOLD, name)
}

fn note(text: String) -> Line {
    Line::new().exact(YELLOW, text)
}

fn field(name: &str, value: &Value) -> Line {
    Line::new().exact(DIM, format!("{name}: {value}"))
}

fn json(value: &Value) -> Vec<Line> {
    // A value has no keys that are not text, so this does not fail.
    exact_lines(PLAIN, &serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string()))
}

#[cfg(test)]
mod tests {
    use amplifier_core::data;
    use serde_json::json;

    use super::*;

    /// What is shown of an action in a workspace with a file `notes.txt` of three lines.
    fn shown(event: &str, data: &EventData) -> String {
        let workspace = tempfile::tempdir().unwrap();
        std::fs::write(workspace.path().join("notes.txt"), "one\ntwo\nthree\n").unwrap();
        std::fs::write(workspace.path().join("picture.bin"), [0xff, 0xfe]).unwrap();
        let Action { title, notes, body, fields } = Action::of(event, data, workspace.path());
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
        let action = Action::of("tool:pre", &data, workspace.path());
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
        let expected = "Write  picture.bin\nwhat is there is replaced: it holds 2 bytes that are not text\n+x";
        check("Write", write("picture.bin", "x"), expected);
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
