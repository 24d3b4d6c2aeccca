//! Compaction: replaces the older part of a conversation by a summary before it exceeds the context window.

use std::sync::atomic::Ordering;

use amplifier_core::{
    CONTEXT_POST_COMPACT, CONTEXT_PRE_COMPACT, ContextPostCompact, ContextPreCompact, DECISION_CONTEXT_RESOLUTION,
    DecisionContextResolution, Map, Message, Speaker,
};
use serde_json::Value;

use crate::context::is_cut_point;
use crate::session::Core;
use crate::tokens::{TokenEstimate, token_upper_bound};
use crate::turn::{ModelCall, Stop, VerdictExt, call_model};

const INSTRUCTION: &str = "The conversation so far has to be shortened. Summarise it for yourself, so that you can go on with it alone: what \
the person wants, what was decided and why, what was done to which files, what was found out, and what is still to do. Keep names, \
paths, numbers and open questions exactly. Answer with the summary only.";

/// The largest share of the context window that the messages to summarize may take.
const SUMMARY_SHARE: f64 = 0.9;

/// The shortest length to which a message is truncated for the summary, in bytes.
const MIN_MESSAGE_BYTES: usize = 256;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Strategy {
    /// The model summarizes the older messages.
    #[default]
    Summarize,
    /// The older messages are removed.
    Truncate,
}

impl Strategy {
    fn as_str(self) -> &'static str {
        match self {
            Self::Summarize => "summarize",
            Self::Truncate => "truncate",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Trigger {
    /// The conversation approaches the context limit.
    Auto,
    /// The user requested it.
    Manual,
}

/// Compacts the conversation if it approaches the context limit.
pub(crate) async fn if_needed(session: &Core) -> Result<(), Stop> {
    let limit = session.provider.context_limit() as f64 * session.options.compact_above;
    let history = session.context.conversation.history();
    // Counting is slow; for most conversations the byte count suffices.
    if (token_upper_bound(&history) as f64) < limit || (session.tokens.count(&history) as f64) < limit {
        return Ok(());
    }
    compact(session, history, Trigger::Auto).await
}

pub(crate) async fn now(session: &Core) -> Result<(), Stop> {
    let history = session.context.conversation.history();
    compact(session, history, Trigger::Manual).await
}

async fn compact(session: &Core, history: Vec<Message>, trigger: Trigger) -> Result<(), Stop> {
    let system = history.iter().take_while(|message| message.role == Speaker::System && is_own(message)).count();
    let (system, rest) = history.split_at(system);
    if rest.is_empty() {
        return match trigger {
            Trigger::Auto => Ok(()),
            Trigger::Manual => Err(Stop::Failed("nothing to compact: the conversation is empty".to_owned())),
        };
    }
    let tokens = session.tokens.count(&history);
    let strategy = strategy(session, tokens).await?;
    let Some(target) = target(session, &history, tokens, trigger).await? else { return Ok(()) };

    session.observer.note("compacting the conversation");
    let (older, newer) = rest.split_at(cut(rest, target / 2, &session.tokens));
    let replacement = match strategy {
        Strategy::Summarize => summary(session, system, older).await?,
        Strategy::Truncate => replacement("Older messages of the conversation were removed.".to_owned()),
    };

    let mut shortened = system.to_vec();
    shortened.push(replacement);
    // Messages that hooks injected meanwhile.
    shortened.extend(session.context.conversation.history_since(history.len()));
    shortened.extend_from_slice(newer);
    let now = session.tokens.count(&shortened);
    let messages = shortened.len();
    session.restore(shortened);
    let post = ContextPostCompact::new(tokens as u64, now as u64, messages as u64);
    session.coordinator.emit(CONTEXT_POST_COMPACT, post).await.ignore();
    Ok(())
}

/// Lets the hooks choose the strategy; the default if they deny or choose an unknown one.
async fn strategy(session: &Core, tokens: usize) -> Result<Strategy, Stop> {
    let (default, limit) = (Strategy::default(), session.provider.context_limit());
    let decision =
        DecisionContextResolution::new(default.as_str()).with("reason", format!("{tokens} of {limit} tokens are used"));
    let chosen = match session.gate(DECISION_CONTEXT_RESOLUTION, decision).await {
        Ok(data) => data.get("strategy").cloned().unwrap_or_default(),
        Err(Stop::Denied(denial)) => {
            session.observer.note(&format!("compacting with the default strategy: {denial}"));
            return Ok(default);
        }
        Err(stop) => return Err(stop),
    };
    let known = [Strategy::Summarize, Strategy::Truncate].into_iter().find(|known| chosen == known.as_str());
    Ok(known.unwrap_or_else(|| {
        session.observer.note(&format!("unknown context strategy {chosen}; using `{}`", default.as_str()));
        default
    }))
}

/// Emits the event before a compaction. Returns the target in tokens, or none if a hook defers the compaction.
async fn target(session: &Core, history: &[Message], tokens: usize, trigger: Trigger) -> Result<Option<usize>, Stop> {
    let limit = session.provider.context_limit();
    let (word, full) = match trigger {
        Trigger::Auto => ("auto", limit),
        // The user wants less than the current size, however small that is.
        Trigger::Manual => ("manual", limit.min(tokens)),
    };
    let target = (full as f64 * session.options.compact_to) as u64;
    let pre = ContextPreCompact::new(word, tokens as u64, target, history.len() as u64);
    let target = match session.gate(CONTEXT_PRE_COMPACT, pre).await {
        Ok(data) => data.get("target_tokens").and_then(Value::as_u64).unwrap_or(target),
        // A hook can defer it once: a conversation that never gets shorter would stop the session for good.
        Err(Stop::Denied(denial)) if !session.compaction_deferred.swap(true, Ordering::Relaxed) => {
            session.observer.note(&format!("compaction is deferred: {denial}"));
            return match trigger {
                Trigger::Auto => Ok(None),
                Trigger::Manual => Err(Stop::Denied(denial)),
            };
        }
        Err(Stop::Denied(_)) => target,
        Err(stop) => return Err(stop),
    };
    session.compaction_deferred.store(false, Ordering::Relaxed);
    Ok(Some(target as usize))
}

/// Returns the index of the first message to keep: the newest that fit into `room`, without separating a call from its result. At least one message
/// is replaced.
fn cut(messages: &[Message], mut room: usize, tokens: &TokenEstimate) -> usize {
    let mut begin = messages.len();
    for (at, message) in messages.iter().enumerate().skip(1).rev() {
        let Some(left) = room.checked_sub(tokens.count(std::slice::from_ref(message))) else { break };
        room = left;
        if is_cut_point(messages, at) {
            begin = at;
        }
    }
    begin
}

async fn summary(session: &Core, system: &[Message], older: &[Message]) -> Result<Message, Stop> {
    session.spend_step()?;
    let instruction = Message::user(INSTRUCTION);
    // The response needs room, too.
    let room = (session.provider.context_limit() as f64 * SUMMARY_SHARE) as usize;
    let count = |messages| session.tokens.count(messages);
    let room = room.saturating_sub(count(system) + count(std::slice::from_ref(&instruction)));
    let mut messages = system.to_vec();
    messages.extend(shorten_to_fit(older.iter().map(flatten).collect(), room, &session.tokens));
    messages.push(instruction);
    let answer = call_model(session, ModelCall::Side(messages)).await?;
    session.inject(answer.injected).await;
    if answer.text.trim().is_empty() {
        return Err(Stop::Failed("the model returned no summary; the conversation is unchanged".to_owned()));
    }
    Ok(replacement(format!("Summary of the conversation so far:\n\n{}", answer.text)))
}

fn replacement(text: String) -> Message {
    let metadata = Map::from_iter([("source".to_owned(), Value::from("compaction"))]);
    Message { metadata, ..Message::user(text) }
}

/// Describes tool calls as text: a summary has no tools, and providers reject calls without tools.
fn flatten(message: &Message) -> Message {
    let mut content = message.content.clone();
    for call in &message.tool_calls {
        content.push_str(&format!("\n[used {} with {}]", call.name, call.input));
    }
    match message.role {
        Speaker::Tool => Message::user(format!("[the result was: {content}]")),
        role => Message { role, metadata: message.metadata.clone(), ..Message::user(content.trim_start()) },
    }
}

/// Truncates the longest messages until all fit, so that a conversation over the context limit can still be summarized.
fn shorten_to_fit(mut messages: Vec<Message>, room: usize, tokens: &TokenEstimate) -> Vec<Message> {
    let mut longest = messages.iter().map(|message| message.content.len()).max().unwrap_or(0);
    while longest > MIN_MESSAGE_BYTES && token_upper_bound(&messages) > room && tokens.count(&messages) > room {
        longest = (longest / 2).max(MIN_MESSAGE_BYTES);
        for message in messages.iter_mut().filter(|message| message.content.len() > longest) {
            message.content.truncate(message.content.floor_char_boundary(longest));
            message.content.push_str(" […]");
        }
    }
    messages
}

/// Returns `true` if the message does not come from a hook.
fn is_own(message: &Message) -> bool {
    !message.metadata.contains_key("hook_name")
}
