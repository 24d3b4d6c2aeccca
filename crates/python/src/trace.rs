//! Warnings and errors of the kernel, for Python's `logging`.

use std::cell::RefCell;
use std::fmt::{self, Write as _};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::{log, threads};

/// From now on, warnings and errors go to the logger `amplifier_core`. Whoever has another subscriber keeps it.
pub(crate) fn to_logging() {
    _ = tracing::subscriber::set_global_default(LoggingSubscriber);
}

thread_local! {
    /// The hook, the part of a session or the contributor whose failure was logged already, with its traceback.
    static LOGGED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Says that the failure of a hook or a part was logged, which the kernel is about to log, too.
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

    // There are no spans: those of the kernel are for whoever looks at more than warnings.
    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

/// What an event says.
#[derive(Default)]
struct LogLine {
    message: String,
    fields: String,
    /// The hook, the part or the contributor that it is about.
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
