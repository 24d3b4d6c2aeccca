//! Too many questions in a short time.

use std::collections::{HashMap, HashSet, VecDeque};

use jiff::{SignedDuration, Timestamp};

use amplifier_link::{ApprovalId, OpenApproval};

use crate::wire::ApprovalFlood;

/// How long a question counts.
const WINDOW: SignedDuration = SignedDuration::from_secs(60);
/// More than so many of one hook within that time are too many.
const LIMIT: usize = 5;
/// How many are remembered of each hook: beyond that, it does not matter how many.
const MAX_PER_HOOK: usize = 10_000;
/// How many questions a pattern is made of, at most.
const SAMPLE: usize = 50;
/// Longer questions are no patterns that a person could judge.
const MAX_PROMPT: usize = 1024;
/// A pattern has to begin or end with that much of the questions: less would be as good as a yes to everything.
const MIN_LITERAL: usize = 4;

/// The questions of each hook in the last minute.
#[derive(Debug, Default)]
pub(super) struct ApprovalRate {
    hooks: HashMap<String, VecDeque<RecentRequest>>,
    /// The ids of all of them.
    ids: HashSet<ApprovalId>,
}

#[derive(Debug)]
struct RecentRequest {
    id: ApprovalId,
    at: Timestamp,
    /// The question, if it can be answered for longer than once: one that shows a part of what it is about cannot.
    prompt: Option<String>,
}

impl ApprovalRate {
    /// Counts a question. One that is announced again counts once.
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
        let prompt = (approval.offers_rule(true) && approval.prompt.len() <= MAX_PROMPT).then(|| approval.prompt.clone());
        asked.insert(place, RecentRequest { id: approval.id.clone(), at, prompt });
    }

    /// The hook that asks too much, if there is one: the one that asks most.
    pub(super) fn flood(&mut self, now: Timestamp) -> Option<ApprovalFlood> {
        self.drop_old(now);
        let many = self.hooks.iter().filter(|(_, asked)| asked.len() > LIMIT);
        let (hook, asked) = many.max_by_key(|(hook, asked)| (asked.len(), std::cmp::Reverse(*hook)))?;
        // Spread over all of them: those that follow each other are often alike.
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

/// A pattern that fits the last question and those that are like it: what they begin and end with. Where no other is, the question itself;
/// where that would stand for more than it says, nothing.
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
    // What they begin and end with may overlap in the shortest of them.
    let shortest = alike.iter().map(|prompt| prompt.len()).min().unwrap_or_default();
    let tail = if head.len() + tail.len() > shortest { "" } else { tail };
    format!("{head}*{tail}")
}

/// What two questions begin with, up to a `*`, which would stand for any text.
fn common_prefix<'a>(one: &'a str, other: &str) -> &'a str {
    one[..common_bytes(one.chars(), other.chars())].split('*').next().unwrap_or_default()
}

/// Whether a pattern can begin so: "Run `*`?" would be a yes to every command.
fn is_specific(head: &str) -> bool {
    !head.ends_with(['`', '"', '\'']) && head.trim().chars().count() >= MIN_LITERAL
}

fn literal(prompt: &str) -> String {
    if prompt.contains('*') { String::new() } else { prompt.to_owned() }
}

/// How many bytes two texts have in common.
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
