//! What a question is about, told from the action itself and not from what a hook says about it.

mod diff;
mod edit;
mod place;

use std::path::Path;

use amplifier_core::{AGENT_SPAWN, EventData, Map, PROMPT_SUBMIT, TOOL_PRE};
use serde_json::Value;

use self::diff::{all, diff};
use self::edit::{Edit, edited};
use self::place::{Present, outside, present};
use crate::wire::{Action, Field, Row, RowKind};

/// The field that every event has and that tells nothing about what will run.
const TIMESTAMP: &str = "timestamp";

impl Action {
    /// Tells the action from the data of an event. Files are read below the workspace root, to show what changes.
    pub fn of(event: &str, data: &EventData, root: &Path) -> Self {
        let known = match event {
            _ if event == TOOL_PRE.as_str() => Self::tool(data, root),
            _ if event == PROMPT_SUBMIT.as_str() => {
                data.text("prompt").map(|prompt| Self::plain("prompt", lines(prompt)))
            }
            _ if event == AGENT_SPAWN.as_str() => Self::agent(data),
            _ => None,
        };
        known.unwrap_or_else(|| {
            let mut data = data.clone();
            data.remove(TIMESTAMP);
            Self::plain(event, json(&Value::from(data)))
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
        Some(known.unwrap_or_else(|| Self::plain(name, json(input))))
    }

    fn agent(data: &EventData) -> Option<Self> {
        let config = data.get("config_override").map(|config| field("config_override", config));
        let action = Self::plain("agent", lines(data.text("task")?));
        Some(Self { target: Some(data.text("agent_name")?.to_owned()), fields: config.into_iter().collect(), ..action })
    }

    fn plain(title: &str, body: Vec<Row>) -> Self {
        Self { title: title.to_owned(), body, ..Self::default() }
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
        let body = lines(self.text("command")?);
        Some(Action { fields: self.rest(&["command"]), ..Action::plain(self.name, body) })
    }

    fn file(&self) -> Option<Action> {
        let (field, path) = self.path()?;
        Some(Action { notes: self.warning(path), fields: self.rest(&[field]), ..self.on(path) })
    }

    fn pattern(&self) -> Option<Action> {
        let notes = self.path().map(|(_, path)| self.warning(path)).unwrap_or_default();
        Some(Action { notes, fields: self.rest(&["pattern"]), ..self.on(self.text("pattern")?) })
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
            let one =
                |edit: &Edit<'_>| all(RowKind::Removed, edit.old).into_iter().chain(all(RowKind::Added, edit.new));
            edits.iter().flat_map(one).collect()
        })
    }

    /// A change of a file: as a diff, if there is one, and otherwise `instead`.
    fn change(
        &self,
        path: &str,
        told: &[&str],
        after: Result<String, String>,
        instead: impl FnOnce() -> Vec<Row>,
    ) -> Option<Action> {
        let mut notes = self.warning(path);
        let (about, body) = match (present(&self.root.join(path)), after) {
            (_, Err(why)) => {
                notes.push(format!("this will probably fail: {why}"));
                (None, instead())
            }
            (Present::Nothing, Ok(new)) => (Some("new file".to_owned()), all(RowKind::Added, &new)),
            (Present::Other(why), Ok(new)) => {
                notes.push(format!("what is there is replaced: {why}"));
                (None, all(RowKind::Added, &new))
            }
            (Present::Text(old), Ok(new)) if old == new => (Some("changes nothing".to_owned()), Vec::new()),
            (Present::Text(old), Ok(new)) => {
                let diff = diff(&old, &new);
                (Some(format!("+{} −{}", diff.added, diff.removed)), diff.rows)
            }
        };
        Some(Action { about, notes, body, fields: self.rest(told), ..self.on(path) })
    }

    fn on(&self, what: &str) -> Action {
        Action { target: Some(what.to_owned()), ..Action::plain(self.name, Vec::new()) }
    }

    fn path(&self) -> Option<(&'static str, &str)> {
        ["file_path", "path"].into_iter().find_map(|field| Some((field, self.text(field)?)))
    }

    fn warning(&self, path: &str) -> Vec<String> {
        let place = outside(self.root, path);
        place.map(|place| format!("outside of the workspace: {}", place.display())).into_iter().collect()
    }

    /// The fields that are not told otherwise: what runs is shown, all of it.
    fn rest(&self, told: &[&str]) -> Vec<Field> {
        let rest = self.fields.iter().filter(|(field, _)| !told.contains(&field.as_str()));
        rest.map(|(name, value)| field(name, value)).collect()
    }
}

fn field(name: &str, value: &Value) -> Field {
    Field { name: name.to_owned(), value: value.to_string() }
}

fn lines(text: &str) -> Vec<Row> {
    all(RowKind::Plain, text)
}

fn json(value: &Value) -> Vec<Row> {
    // A value has no keys that are not text, so this does not fail.
    lines(&serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string()))
}
