//! Warnings and errors of the kernel, for Python's `logging`.

use std::cell::RefCell;
use std::fmt::{self, Write as _};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::{log, threads};

/// Sends warnings and errors to the logger `amplifier_core`. An existing subscriber is kept.
pub(crate) fn to_logging() {
    _ = tracing::subscriber::set_global_default(LoggingSubscriber);
}

thread_local! {
    /// The source of a failure that was already logged with its traceback.
    static LOGGED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Records that a failure was logged, so that the kernel's own log entry is skipped.
pub(crate) fn is_logged(what: &str) {
    LOGGED.set(Some(what.to_owned()));
}

struct LoggingSubscriber;

impl Subscriber for LoggingSubscriber {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let is_ours = |target: &str| target.starts_with("amplifier") || target.starts_with(env!("CARGO_CRATE_NAME"));
        metadata.is_event() && *metadata.level() <= Level::WARN && is_ours(metadata.target())
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::WARN)
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = LogLine::default();
        event.record(&mut line);
        let was_logged =
            LOGGED.with_borrow_mut(|logged| line.failed.is_some() && *logged == line.failed && logged.take().is_some());
        if was_logged {
            return;
        }
        let level = if *event.metadata().level() == Level::ERROR { "error" } else { "warning" };
        let text = format!("{}{}", line.message, line.fields);
        threads::with_python(move |py| log::line(py, level, &text));
    }

    // Spans are ignored; the kernel's spans are only for more detailed levels.
    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

#[derive(Default)]
struct LogLine {
    message: String,
    fields: String,
    /// The hook, part or contributor of the event.
    failed: Option<String>,
}

impl Visit for LogLine {
    fn record_str(&mut self, field: &Field, value: &str) {
        if matches!(field.name(), "hook.name" | "part" | "contributor") {
            self.failed = Some(value.to_owned());
        }
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a text does not fail.
        _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, "; {name}: {value:?}"),
        };
    }
}
