//! Detection of too many approval requests in a short time.

use std::collections::{HashMap, HashSet, VecDeque};

use jiff::{SignedDuration, Timestamp};

use amplifier_link::{ApprovalId, OpenApproval};

use crate::api_types::ApprovalFlood;

/// Period in which requests are counted.
const WINDOW: SignedDuration = SignedDuration::from_secs(60);
/// Requests of one hook in that period that are not yet too many.
const LIMIT: usize = 5;
/// Limit of counted requests per hook.
const MAX_PER_HOOK: usize = 10_000;
/// Limit of requests that a pattern is derived from.
const SAMPLE: usize = 50;
/// Limit of a prompt in bytes; longer prompts make no pattern that a user could judge.
const MAX_PROMPT: usize = 1024;
/// Number of characters that prompts must share at their beginning: a shorter pattern would allow nearly everything.
const MIN_LITERAL: usize = 4;

/// The approval requests of each hook in the last minute.
#[derive(Debug, Default)]
pub(super) struct ApprovalRate {
    hooks: HashMap<String, VecDeque<RecentRequest>>,
    ids: HashSet<ApprovalId>,
}

#[derive(Debug)]
struct RecentRequest {
    id: ApprovalId,
    at: Timestamp,
    /// The prompt, if a rule may answer it. Truncated requests cannot be remembered.
    prompt: Option<String>,
}

impl ApprovalRate {
    /// Counts a request. A request that is announced again counts once.
    pub(super) fn count(&mut self, approval: &OpenApproval, now: Timestamp) {
        self.drop_old(now);
        let at = approval.created_at.min(now);
        if now.duration_since(at) >= WINDOW {
            return;
        }
        if !self.ids.insert(approval.id.clone()) {
            return;
        }
        let asked = self.hooks.entry(approval.hook.clone()).or_default();
        if asked.len() == MAX_PER_HOOK {
            asked.pop_front().map(|oldest| self.ids.remove(&oldest.id));
        }
        let place = asked.partition_point(|known| known.at <= at);
        let prompt =
            (approval.offers_rule(true) && approval.prompt.len() <= MAX_PROMPT).then(|| approval.prompt.clone());
        asked.insert(place, RecentRequest { id: approval.id.clone(), at, prompt });
    }

    /// Returns the hook with the most requests, if there are too many.
    pub(super) fn flood(&mut self, now: Timestamp) -> Option<ApprovalFlood> {
        self.drop_old(now);
        let many = self.hooks.iter().filter(|(_, asked)| asked.len() > LIMIT);
        let (hook, asked) = many.max_by_key(|(hook, asked)| (asked.len(), std::cmp::Reverse(*hook)))?;
        // A sample over the whole period: consecutive requests are often alike.
        let prompts: Vec<&str> =
            asked.iter().step_by(1 + asked.len() / SAMPLE).filter_map(|asked| asked.prompt.as_deref()).collect();
        Some(ApprovalFlood {
            asked: asked.len() as u64,
            seconds: WINDOW.as_secs().unsigned_abs(),
            hook: hook.clone(),
            pattern: pattern(&prompts),
        })
    }

    fn drop_old(&mut self, now: Timestamp) {
        self.hooks.retain(|_, asked| {
            while asked.front().is_some_and(|asked| now.duration_since(asked.at) >= WINDOW) {
                asked.pop_front().map(|oldest| self.ids.remove(&oldest.id));
            }
            !asked.is_empty()
        });
    }
}

/// Returns a pattern that matches the last prompt and similar ones: their common beginning and end. Without similar
/// prompts, the prompt itself; an empty text if the pattern would match more than it shows.
fn pattern(prompts: &[&str]) -> String {
    let Some(&last) = prompts.last() else { return String::new() };
    let alike: Vec<&str> = prompts.iter().copied().filter(|prompt| is_specific(common_prefix(last, prompt))).collect();
    if alike.iter().all(|prompt| *prompt == last) {
        return literal(last);
    }
    let (mut head, mut tail) = (last, last);
    for prompt in &alike {
        head = common_prefix(head, prompt);
        tail = &tail[tail.len() - common_bytes(tail.chars().rev(), prompt.chars().rev())..];
    }
    let tail = tail.rsplit('*').next().unwrap_or_default();
    // The common beginning and end may overlap in the shortest prompt.
    let shortest = alike.iter().map(|prompt| prompt.len()).min().unwrap_or_default();
    let tail = if head.len() + tail.len() > shortest { "" } else { tail };
    format!("{head}*{tail}")
}

/// Returns the common beginning of two prompts, up to a `*`, which would match any text.
fn common_prefix<'a>(one: &'a str, other: &str) -> &'a str {
    one[..common_bytes(one.chars(), other.chars())].split('*').next().unwrap_or_default()
}

/// Returns `true` if a pattern can begin so: "Run `*`?" would allow every command.
fn is_specific(head: &str) -> bool {
    !head.ends_with(['`', '"', '\'']) && head.trim().chars().count() >= MIN_LITERAL
}

fn literal(prompt: &str) -> String {
    if prompt.contains('*') { String::new() } else { prompt.to_owned() }
}

/// Returns the number of bytes that two texts have in common.
fn common_bytes(one: impl Iterator<Item = char>, other: impl Iterator<Item = char>) -> usize {
    one.zip(other).take_while(|(one, other)| one == other).map(|(one, _)| one.len_utf8()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_says_what_the_questions_have_in_common() {
        let check = |prompts: &[&str], expected: &str| assert_eq!(pattern(prompts), expected, "{prompts:?}");
        check(&["Run `cargo test`?", "Run `cargo build`?"], "Run `cargo *`?");
        check(&["Run `ls`?", "Run `ls`?"], "Run `ls`?");
        check(&["Write to `ä`?", "Write to `ö`?"], "Write to `ö`?");
        check(&["Write to `src/ä`?", "Write to `src/ö`?"], "Write to `src/*`?");
        check(&["Run `a*b`?", "Run `a*c`?"], "Run `a*`?");
        check(&["one", "two"], "two");
        check(&["one", "all *"], "");
        check(&["aaaaaa", "aaaaaaa"], "aaaaaa*");
        check(&["Run `cargo test`?", "Write to `a`?", "Run `ls`?", "Run `cargo build`?"], "Run `cargo *`?");
        check(&["Run `cargo test`?", "Run `cargo build`?", "Write to `a`?"], "Write to `a`?");
        check(&[], "");
    }
}
