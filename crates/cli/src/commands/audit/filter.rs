//! Record filters.

use std::str::FromStr;

use amplifier_audit::{Folder, Kind, Record, RecordFilter};
use amplifier_core::EventPattern;
use clap::Args;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

use super::reader::LogReader;
use crate::commands::arguments::whole_number;
use crate::commands::hooks::RecordedSessions;

/// Filters for records; a record must match all of them.
#[derive(Args, Clone, Debug)]
pub(crate) struct Filter {
    /// Only records of this session: its id, the beginning or the end of its id, or `last`
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Only records at this event; `*` matches any text, as in `tool:*`
    #[arg(long, value_name = "NAME", value_parser = EventPattern::filter)]
    event: Option<EventPattern>,
    /// Only records of these kinds, separated by commas, such as `intent,outcome`
    #[arg(long, value_name = "KIND", value_parser = kind, value_delimiter = ',')]
    kind: Vec<Kind>,
    /// Only answers, approval requests, messages and denials of this hook
    #[arg(long, value_name = "NAME")]
    hook: Option<String>,
    /// Only records from this time on: an age such as `7d`, a date, or a time (RFC 3339), such as `2026-01-31T09:00:00Z`
    #[arg(long, value_name = "TIME")]
    since: Option<Moment>,
    /// Only records before this time
    #[arg(long, value_name = "TIME")]
    until: Option<Moment>,
    /// Only records from this number on
    #[arg(long, value_name = "SEQ", default_value_t = 0, hide_default_value = true, value_parser = whole_number::<u64>, allow_negative_numbers = true)]
    from: u64,
}

impl Filter {
    /// Returns the predicate for records of a log.
    ///
    /// # Errors
    /// If the session is not in the log.
    pub(crate) fn compile(
        self,
        log: &LogReader,
    ) -> anyhow::Result<impl Fn(&Record<'_>, &Folder) -> anyhow::Result<bool> + use<>> {
        let Self { session, event, kind: kinds, hook, since, until, from } = self;
        let find = |session: String| RecordedSessions::read(log.folder().path())?.find(&session, None);
        let session = session.map(find).transpose()?;
        let (since, until) = (since.map(|Moment(time)| time), until.map(|Moment(time)| time));
        let filter = RecordFilter { session, event, kinds, hook, text: None, since, until };
        Ok(move |record: &Record<'_>, folder: &Folder| Ok(record.seq >= from && filter.matches(record, folder)?))
    }
}

fn kind(word: &str) -> Result<Kind, String> {
    Kind::from_word(word).ok_or_else(|| {
        let words: Vec<&str> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
        format!("unknown kind `{word}`; expected one of {}", words.join(", "))
    })
}

/// A point in time, in the format of records.
#[derive(Clone, Debug)]
pub(crate) struct Moment(String);

impl Moment {
    /// Returns `true` for records from this moment on.
    pub(crate) fn is_before(&self, time: &str) -> bool {
        // All times have the same format, so text order is time order.
        *time >= *self.0
    }
}

impl FromStr for Moment {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let midnight = |date: Date| Ok(date.to_zoned(TimeZone::UTC)?.timestamp());
        let ago = |span: Span| Ok(Timestamp::now().to_zoned(TimeZone::UTC).checked_sub(span)?.timestamp());
        let time = text
            .parse::<Timestamp>()
            // A time without a zone is an error; it must not be reduced to its date.
            .or_else(|error| if text.contains(':') { Err(error) } else { text.parse().and_then(midnight) })
            .or_else(|_| text.parse().and_then(ago))
            .map_err(
                |_: jiff::Error| "expected an age such as `7d`, a date such as `2026-01-31`, or a time (RFC 3339)",
            )?;
        Ok(Self(format!("{time:.6}")))
    }
}
