//! What a question is about, told from the action itself and not from what a hook says about it.

mod diff;
mod edit;
pub(crate) mod masked;
mod place;

use amplifier_core::{AGENT_SPAWN, ActionPreview, ApprovalRequest, EventData, Map, PROMPT_SUBMIT, TOOL_PRE};
use serde_json::Value;

use self::diff::{all, diff};
use self::edit::{Edit, edited};
pub use self::place::Files;
use self::place::{Present, outside, present};
use crate::wire::{Action, Field, Row, RowKind};

/// The field that every event has and that tells nothing about what will run.
const TIMESTAMP: &str = "timestamp";

/// So many things: `1 byte`, `2 bytes`.
pub(crate) fn counted(number: usize, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}

impl Action {
    /// The action that an approval is requested for. A change of a file is shown against the content that the request's digest covers.
    pub fn of_request(request: &ApprovalRequest, files: &dyn Files) -> Self {
        Self::shown(request.event.as_str(), &request.data, files, request.preview.as_deref())
    }

    /// Tells the action from the data of an event. Of a file that would change, what is there now is read, if it may be shown.
    pub fn of(event: &str, data: &EventData, files: &dyn Files) -> Self {
        Self::shown(event, data, files, None)
    }

    fn shown(event: &str, data: &EventData, files: &dyn Files, preview: Option<&ActionPreview>) -> Self {
        let known = match event {
            _ if event == TOOL_PRE.as_str() => Self::tool(data, files, preview),
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

    fn tool(data: &EventData, files: &dyn Files, preview: Option<&ActionPreview>) -> Option<Self> {
        let name = data.text("tool_name")?;
        let input = data.get("tool_input")?;
        let known = input.as_object().and_then(|fields| {
            let call = Call { name, fields, files, preview };
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
    files: &'a dyn Files,
    /// The file that it would change, if the code that will run it has looked.
    preview: Option<&'a ActionPreview>,
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
        let new = self.text("content")?;
        self.change(&["content"], |_| Ok(new.to_owned()), || all(RowKind::Added, new))
    }

    fn edit(&self, edits: Vec<Edit<'_>>, told: &[&str]) -> Option<Action> {
        self.change(
            told,
            |old| edited(old, &edits),
            || {
                let one =
                    |edit: &Edit<'_>| all(RowKind::Removed, edit.old).into_iter().chain(all(RowKind::Added, edit.new));
                edits.iter().flat_map(one).collect()
            },
        )
    }

    /// A change of a file: as a diff to what `becomes` of what is there, if that can be told, and otherwise `instead`.
    fn change(
        &self,
        told: &[&str],
        becomes: impl FnOnce(&str) -> Result<String, String>,
        instead: impl FnOnce() -> Vec<Row>,
    ) -> Option<Action> {
        let (field, path) = self.path()?;
        let mut notes = self.warning(path);
        let before = match self.preview {
            Some(preview) => preview.before.clone().into(),
            None => present(self.files, path),
        };
        let (is_new, old) = match before {
            Present::Nothing => (true, Ok(String::new())),
            Present::Text(text) => (false, Ok(text)),
            Present::Other(why) => (false, Err(format!("what is there now is not shown: {why}"))),
        };
        let changed = old.and_then(|old| match becomes(&old) {
            Ok(new) => Ok((old, new)),
            Err(why) => Err(format!("this will probably fail: {why}")),
        });
        let (about, body) = match changed {
            Err(note) => {
                notes.push(note);
                (None, instead())
            }
            Ok((_, new)) if is_new => (Some("new file".to_owned()), all(RowKind::Added, &new)),
            Ok((old, new)) if old == new => (Some("changes nothing".to_owned()), Vec::new()),
            Ok((old, new)) => {
                let diff = diff(&old, &new);
                (Some(format!("+{} −{}", diff.added, diff.removed)), diff.rows)
            }
        };
        let told: Vec<_> = told.iter().copied().chain([field]).collect();
        Some(Action { about, notes, body, fields: self.rest(&told), ..self.on(path) })
    }

    fn on(&self, what: &str) -> Action {
        Action { target: Some(what.to_owned()), ..Action::plain(self.name, Vec::new()) }
    }

    fn path(&self) -> Option<(&'static str, &str)> {
        ["file_path", "path"].into_iter().find_map(|field| Some((field, self.text(field)?)))
    }

    fn warning(&self, path: &str) -> Vec<String> {
        let place = outside(self.files.root(), path);
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
