//! Shortening a conversation to a summary before it outgrows the model.

use std::sync::atomic::Ordering;

use amplifier_core::{
    CONTEXT_POST_COMPACT, CONTEXT_PRE_COMPACT, ContextPostCompact, ContextPreCompact, DECISION_CONTEXT_RESOLUTION,
    DecisionContextResolution, Map, Message, Speaker,
};
use serde_json::Value;

use crate::context::is_cut;
use crate::session::Core;
use crate::tokens::count_messages;
use crate::turn::{Asking, Stop, VerdictExt, ask};

/// The `source` of a message that stands for those it took the place of.
pub(crate) const SOURCE: &str = "compaction";

const INSTRUCTION: &str = "The conversation so far has to be shortened. Summarise it for yourself, so that you can go on with it alone: what \
the person wants, what was decided and why, what was done to which files, what was found out, and what is still to do. Keep names, \
paths, numbers and open questions exactly. Answer with the summary only.";

/// Shortens the conversation if it is about to outgrow the model.
pub(crate) async fn if_needed(session: &Core) -> Result<(), Stop> {
    let limit = session.provider.context_limit() as f64;
    let history = session.context.conversation.history();
    // Counting takes time, and text has at most one token a byte: most conversations are told apart by their size.
    let bytes: usize = history.iter().map(|message| message.content.len() + 4 * PER_CALL).sum();
    if (bytes as f64) < limit * session.options.compact_above {
        return Ok(());
    }
    let tokens = count_messages(&history);
    if (tokens as f64) < limit * session.options.compact_above {
        return Ok(());
    }
    compact(session, history, tokens, "auto").await
}

const PER_CALL: usize = 64;

/// Shortens the conversation because a person wants it.
pub(crate) async fn now(session: &Core) -> Result<(), Stop> {
    let history = session.context.conversation.history();
    let tokens = count_messages(&history);
    compact(session, history, tokens, "manual").await
}

async fn compact(session: &Core, history: Vec<Message>, tokens: usize, trigger: &str) -> Result<(), Stop> {
    let decision = DecisionContextResolution::new("summarize")
        .with("reason", format!("{tokens} of {} tokens are used", session.provider.context_limit()));
    let put_off = match session.gate(DECISION_CONTEXT_RESOLUTION, decision).await {
        Ok(_) => None,
        Err(Stop::Refused(refusal)) => Some(refusal),
        Err(stop) => return Err(stop),
    };
    let target = (session.provider.context_limit() as f64 * session.options.compact_to) as u64;
    let pre = ContextPreCompact::new(trigger, tokens as u64, target, history.len() as u64);
    session.context.catch(false);
    let allowed = match put_off {
        Some(refusal) => Err(Stop::Refused(refusal)),
        None => session.gate(CONTEXT_PRE_COMPACT, pre).await,
    };
    let carried: Vec<Message> = session.context.caught().into_iter().map(Message::from).collect();
    let target = match allowed {
        Ok(data) => data.get("target_tokens").and_then(Value::as_u64).unwrap_or(target),
        // It can be put off once; a conversation that never gets shorter stops for good.
        Err(Stop::Refused(refusal)) if !session.put_off.swap(true, Ordering::Relaxed) => {
            session.watch.note(&format!("compaction is put off: {refusal}"));
            return Ok(());
        }
        Err(Stop::Refused(_)) => target,
        Err(stop) => return Err(stop),
    };
    session.put_off.store(false, Ordering::Relaxed);
    session.watch.note("the conversation is being shortened");

    let (system, summarised, kept) = parts(&history, target as usize);
    let mut question = system.clone();
    question.extend_from_slice(summarised);
    question.push(Message::user(INSTRUCTION));
    let summary = ask(session, Asking::Aside(question)).await?.text;

    let metadata = Map::from_iter([("source".to_owned(), Value::from(SOURCE))]);
    let summary = format!("Summary of the conversation so far:\n\n{summary}");
    let mut shortened = system;
    shortened.push(Message { metadata, ..Message::user(summary) });
    shortened.extend(carried);
    shortened.extend_from_slice(kept);
    let now = count_messages(&shortened);
    let messages = shortened.len();
    session.restore(shortened);
    let post = ContextPostCompact::new(tokens as u64, now as u64, messages as u64);
    session.coordinator.emit(CONTEXT_POST_COMPACT, post).await.ignore();
    Ok(())
}

/// What stays in front, what is summarised, and what stays at the end: the newest messages, as far as they take up half of what is aimed
/// for, beginning where no call is parted from its result.
fn parts(history: &[Message], target: usize) -> (Vec<Message>, &[Message], &[Message]) {
    let system = history.iter().take_while(|message| message.role == Speaker::System && is_own(message)).count();
    let (system, rest) = history.split_at(system);
    let mut room = target / 2;
    let mut begin = rest.len();
    for (at, message) in rest.iter().enumerate().rev() {
        let Some(left) = room.checked_sub(count_messages(std::slice::from_ref(message))) else { break };
        room = left;
        if is_cut(rest, at) && at > 0 {
            begin = at;
        }
    }
    let (summarised, kept) = rest.split_at(begin);
    (system.to_vec(), summarised, kept)
}

/// Whether a message is the session's own, and not of a hook.
fn is_own(message: &Message) -> bool {
    !message.metadata.contains_key("hook_name")
}
