//! Spans for `tracing`: one for each emission, and in it one for each hook.
//!
//! The OpenTelemetry layer reads the fields that begin with `otel.`: spans have the event's or the hook's name, and
//! failures appear as errors. Names and sizes are recorded, never the contents of events.

use tracing::{Instrument, Level, Span, field, span_enabled};

use super::driver::Driver;
use super::emission::Emission;
use super::hook::Answer;
use super::table::ListedHook;
use crate::result::HookError;

/// Returns `true` if spans are enabled; disabled ones cost nothing.
#[inline]
pub(super) fn is_on() -> bool {
    span_enabled!(Level::INFO)
}

pub(super) async fn emission(driver: Driver<'_>, emission: &mut Emission) {
    let event = emission.event().clone();
    let span = tracing::info_span!(
        "hook.emission",
        otel.name = %event,
        hook.event = %event,
        hook.decision = field::Empty,
        hook.denied_by = field::Empty,
    );
    driver.run_traced(emission).instrument(span.clone()).await;
    span.record("hook.decision", emission.decision().as_str());
    if let Some(denial) = emission.decision().denial() {
        span.record("hook.denied_by", &*denial.by);
    }
}

pub(super) fn hook(hook: &ListedHook) -> Span {
    let info = hook.info();
    tracing::info_span!(
        "hook.call",
        otel.name = %info.name,
        hook.name = %info.name,
        hook.role = ?info.role,
        hook.answer = field::Empty,
        otel.status_code = field::Empty,
    )
}

pub(super) fn failed(hook: &ListedHook, error: &HookError) {
    let (name, event) = (&*hook.info().name, hook.event());
    tracing::warn!({ hook.name = name, hook.event = %event, hook.failure = error.kind().as_str(), error = %error }, "hook failed");
}

pub(super) fn answered(span: &Span, hook: &ListedHook, answer: &Answer) {
    match answer {
        Ok(result) => {
            span.record("hook.answer", result.action.kind().as_str());
        }
        Err(error) => {
            span.record("hook.answer", error.kind().as_str());
            span.record("otel.status_code", "ERROR");
            span.in_scope(|| failed(hook, error));
        }
    }
}
