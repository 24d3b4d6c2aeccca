//! Records as lines of text.

use amplifier_audit::{Body, BodyReader, Folder, Kind, Record};
use anstyle::{AnsiColor, Style};

use super::summary::{Weight, summary};
use super::text::{pad, sanitize, truncate};
use crate::commands::output::columns;

/// The maximum width of a line without a terminal.
const WIDEST: usize = 240;

const WIDEST_NAME: usize = 40;

/// The output format of records.
pub(crate) enum Form {
    /// Lines of the log, with bodies that are stored separately.
    Json,
    /// Columns of text, in lines of limited width.
    Row { columns: usize },
}

impl Form {
    pub(crate) fn new(json: bool) -> Self {
        if json { Self::Json } else { Self::Row { columns: columns().unwrap_or(WIDEST) } }
    }

    pub(crate) fn line(&self, record: &Record<'_>, bodies: &mut BodyReader, folder: &Folder) -> anyhow::Result<String> {
        match self {
            Self::Json => Ok(bodies.line(record, folder)?),
            // A body that is stored separately is too large for a row.
            Self::Row { columns } if record.body.get().starts_with("{\"blob\"") => {
                Ok(row(record, record.body.get(), *columns))
            }
            Self::Row { columns } => Ok(match bodies.read(record, folder)? {
                Body::Whole(body) => row(record, &body, *columns),
                Body::Erased { .. } | Body::Withheld { .. } => row(record, record.body.get(), *columns),
            }),
        }
    }

    /// Formats a record from its line in the log.
    pub(crate) fn line_of(&self, kept: &str, bodies: &mut BodyReader, folder: &Folder) -> anyhow::Result<String> {
        self.line(&Record::parse(kept.as_bytes())?, bodies, folder)
    }
}

fn row(record: &Record<'_>, body: &str, columns: usize) -> String {
    let name = |text: Option<&str>, width| pad(&truncate(&sanitize(text.unwrap_or("-")), WIDEST_NAME), width);
    let turn = record.turn.map_or_else(|| "-".to_owned(), |turn| turn.to_string());
    let place =
        format!("{:>6}  {}  {} {turn:>4}", record.seq, sanitize(&record.time), name(record.session.as_deref(), 10),);
    let event = name(record.event.as_deref(), 18);
    let kind = pad(record.kind.as_str(), 17);
    let (weight, text) = summary(record, body);
    let taken = unicode_width::UnicodeWidthStr::width(format!("{place}  {event} {kind} ").as_str());
    // On a narrow terminal the line wraps, so that the text stays readable.
    let text = sanitize(&text);
    let text = truncate(&text, columns.saturating_sub(taken).max(40));
    let (quiet, style) = (Style::new().dimmed(), style(record.kind, weight));
    format!("{quiet}{place}{quiet:#}  {event} {style}{kind}{style:#} {style}{text}{style:#}").trim_end().to_owned()
}

fn style(kind: Kind, weight: Weight) -> Style {
    match (weight, kind) {
        (Weight::Bad, _) => AnsiColor::Red.on_default(),
        (Weight::Good, _) => AnsiColor::Green.on_default(),
        (_, Kind::ApprovalRequest | Kind::LateAnswer) => AnsiColor::Yellow.on_default(),
        (_, Kind::Genesis | Kind::Segment | Kind::Checkpoint) => Style::new().dimmed(),
        _ => Style::new(),
    }
}
