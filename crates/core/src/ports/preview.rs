//! The effect of an operation, described by the code that will run it.

use std::borrow::Cow;
use std::future::Future;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{BoxFuture, PortError};
use crate::event::events::{AGENT_SPAWN, PROMPT_SUBMIT, TOOL_PRE};
use crate::event::{EventData, EventName};
use crate::text::{counted, truncate_bytes};

/// The field of an operation's data with the file that its preview was compared with. The kernel sets it before the request, so that the digest
/// covers it; the code that runs the operation reads it as a [`ComparedWith`].
pub const COMPARED_WITH: &str = "compared_with";

/// Makes previews of operations for approval requests. The code that runs the operations provides it.
pub trait PreviewSource: Send + Sync + 'static {
    /// Describes an operation with this data, which no hook changes any more; `None` if the data describes it completely.
    ///
    /// # Errors
    /// If the preview cannot be made; the operation is then denied.
    fn preview(
        &self,
        event: &EventName,
        data: &EventData,
    ) -> impl Future<Output = Result<Option<ActionPreview>, PortError>> + Send;
}

/// The effect of an operation, described for the approver before it runs.
///
/// The code that will run the operation makes it; other operations are shown as data. Terminals, pages and programs only draw it. The
/// texts may contain any characters: the drawing code must escape them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ActionPreview {
    /// The kind of operation: the name of a tool, `prompt`, `agent`, or an event.
    pub title: String,
    /// The file, pattern or agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The effect in a few words: a new file, the number of lines that are added and removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Warnings that the approver must read before the answer.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// The operation line by line: a command, a diff, a task.
    #[serde(default)]
    pub body: Vec<PreviewRow>,
    /// Further settings of the operation: a time limit, a range.
    #[serde(default)]
    pub fields: Vec<PreviewField>,
    /// `true` if a part is left out because it is too large. The first warning says so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// The file that the preview was compared with, if the operation changes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared_with: Option<ComparedWith>,
}

/// One line of a preview.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PreviewRow {
    /// The kind of line.
    pub kind: PreviewRowKind,
    /// The text, without its line feed.
    pub text: String,
    /// Its line number before the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<usize>,
    /// Its line number after the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<usize>,
}

/// The kind of a line of a preview.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum PreviewRowKind {
    /// A line that is not part of a diff.
    Plain,
    /// A line that stays.
    Context,
    /// A line that is added.
    Added,
    /// A line that is removed.
    Removed,
    /// Omitted lines; the text gives the position of the next ones.
    Gap,
    /// A remark about the line before it.
    Note,
}

/// A named value of a preview.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PreviewField {
    /// The name.
    pub name: String,
    /// The value as JSON.
    pub value: String,
}

/// The file that a preview was compared with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ComparedWith {
    /// The path, with links followed.
    pub path: String,
    /// The version of its content: `sha256:` and the digest, `missing`, `unreadable`, or `outside` of the workspace.
    pub version: String,
}

impl PreviewRow {
    /// Creates a line without numbers.
    pub fn new(kind: PreviewRowKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), old: None, new: None }
    }
}

impl ActionPreview {
    /// The size of the largest body, in bytes. Each line counts its text and 64 bytes more.
    pub const LARGEST_BODY: usize = 1 << 20;
    /// The size of the largest target, warning and value of a field, in bytes.
    pub const LARGEST_TEXT: usize = 16 << 10;
    /// The largest number of fields.
    pub const MOST_FIELDS: usize = 100;
    /// The first warning of an incomplete preview.
    pub const TOO_LARGE: &str =
        "this is too large to be shown in full: look at all of it elsewhere before you allow it";

    /// Creates a preview with only a title.
    ///
    /// ```
    /// # use amplifier_core::ActionPreview;
    /// let preview = ActionPreview::new("Bash").lines("cargo publish").field("timeout", &60.into());
    /// assert_eq!((preview.body[0].text.as_str(), preview.fields[0].value.as_str()), ("cargo publish", "60"));
    /// ```
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// Describes an event by its data.
    pub fn from_event(event: &EventName, data: &EventData) -> Self {
        let known = match event {
            _ if *event == TOOL_PRE.name() => {
                let tool = data.text("tool_name").zip(data.get("tool_input"));
                tool.map(|(name, input)| Self::new(name).json(input))
            }
            _ if *event == PROMPT_SUBMIT.name() => data.text("prompt").map(|prompt| Self::new("prompt").lines(prompt)),
            _ if *event == AGENT_SPAWN.name() => data.text("agent_name").zip(data.text("task")).map(|(name, task)| {
                let preview = Self::new("agent").target(name).lines(task);
                data.get("config_override").into_iter().fold(preview, |it, config| it.field("config_override", config))
            }),
            _ => None,
        };
        known.unwrap_or_else(|| {
            let mut data = data.clone();
            data.remove("timestamp");
            Self::new(event.as_str()).json(&Value::from(data))
        })
    }

    /// Sets the file, pattern or agent of the operation.
    #[must_use]
    pub fn target(mut self, target: impl Into<String>) -> Self {
        let target = self.shortened(target.into());
        Self { target: Some(target), ..self }
    }

    /// Sets the effect in a few words.
    #[must_use]
    pub fn summary(self, summary: impl Into<String>) -> Self {
        Self { summary: Some(summary.into()), ..self }
    }

    /// Adds a warning.
    #[must_use]
    pub fn warning(mut self, warning: impl Into<String>) -> Self {
        let warning = self.shortened(warning.into());
        self.warnings.push(warning);
        self
    }

    /// Adds a named value.
    #[must_use]
    pub fn field(mut self, name: impl Into<String>, value: &Value) -> Self {
        if self.fields.len() == Self::MOST_FIELDS {
            return self.too_large();
        }
        let (name, value) = (self.shortened(name.into()), self.shortened(value.to_string()));
        self.fields.push(PreviewField { name, value });
        self
    }

    /// Sets the body to the lines of a text.
    #[must_use]
    pub fn lines(self, text: &str) -> Self {
        let lines = text.strip_suffix('\n').unwrap_or(text).split('\n');
        self.rows(lines.map(|line| PreviewRow::new(PreviewRowKind::Plain, line)))
    }

    /// Sets the body to a value as JSON.
    #[must_use]
    pub fn json(self, value: &Value) -> Self {
        // All keys of a value are text, so this does not fail.
        let text = serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string());
        self.lines(&text)
    }

    /// Sets the body. Lines beyond [`LARGEST_BODY`](Self::LARGEST_BODY) are left out, and a warning says so.
    #[must_use]
    pub fn rows(self, rows: impl IntoIterator<Item = PreviewRow>) -> Self {
        let (mut body, mut room, mut left_out) = (Vec::new(), Self::LARGEST_BODY, 0_usize);
        let mut is_whole = true;
        for mut row in rows {
            if !is_whole {
                left_out += 1;
                continue;
            }
            // An empty line takes room, too.
            room = room.saturating_sub(64);
            is_whole = row.text.len() <= room;
            if !is_whole {
                row.text = truncate_bytes(&row.text, room).into_owned();
            }
            room -= row.text.len().min(room);
            body.push(row);
        }
        if left_out > 0 {
            let text = format!("not shown: {}", counted(left_out, "more line"));
            body.push(PreviewRow::new(PreviewRowKind::Note, text));
        }
        let preview = Self { body, ..self };
        if is_whole { preview } else { preview.too_large() }
    }

    /// Marks the preview as incomplete because it is too large.
    #[must_use]
    pub fn too_large(mut self) -> Self {
        self.truncate();
        self
    }

    fn truncate(&mut self) {
        if !self.truncated {
            self.truncated = true;
            self.warnings.insert(0, Self::TOO_LARGE.to_owned());
        }
    }

    fn shortened(&mut self, text: String) -> String {
        match truncate_bytes(&text, Self::LARGEST_TEXT) {
            Cow::Owned(short) => {
                self.truncate();
                short
            }
            Cow::Borrowed(_) => text,
        }
    }
}

pub(crate) trait AnyPreviewSource: Send + Sync {
    fn make<'a>(
        &'a self,
        event: &'a EventName,
        data: &'a EventData,
    ) -> BoxFuture<'a, Result<Option<ActionPreview>, PortError>>;
}

impl<T: PreviewSource> AnyPreviewSource for T {
    fn make<'a>(
        &'a self,
        event: &'a EventName,
        data: &'a EventData,
    ) -> BoxFuture<'a, Result<Option<ActionPreview>, PortError>> {
        Box::pin(async move { self.preview(event, data).await })
    }
}
