//! Too many questions in a short time.

use std::collections::{HashMap, HashSet, VecDeque};

use jiff::{SignedDuration, Timestamp};

use amplifier_link::{ApprovalId, OpenApproval};

use crate::wire::Busy;

/// How long a question counts.
const WINDOW: SignedDuration = SignedDuration::from_secs(60);
/// More than so many of one hook within that time are too many.
const MANY: usize = 5;
/// How many are remembered of each hook: beyond that, it does not matter how many.
const MOST: usize = 10_000;
/// How many questions a pattern is made of, at most.
const LOOKED_AT: usize = 50;
/// Longer questions are no patterns that a person could judge.
const LONGEST: usize = 1024;
/// A pattern has to begin or end with that much of the questions: less would be as good as a yes to everything.
const SPECIFIC: usize = 4;

/// The questions of each hook in the last minute.
#[derive(Debug, Default)]
pub(super) struct Flood {
    hooks: HashMap<String, VecDeque<Asked>>,
    /// The ids of all of them.
    ids: HashSet<ApprovalId>,
}

#[derive(Debug)]
struct Asked {
    id: ApprovalId,
    at: Timestamp,
    /// The question, if it can be answered for longer than once: one that shows a part of what it is about cannot.
    prompt: Option<String>,
}

impl Flood {
    /// Counts a question. One that is announced again counts once.
    pub(super) fn count(&mut self, approval: &OpenApproval, now: Timestamp) {
        self.forget(now);
        let at = approval.created_at.min(now);
        if now.duration_since(at) >= WINDOW {
            return;
        }
        if !self.ids.insert(approval.id.clone()) {
            return;
        }
        let asked = self.hooks.entry(approval.hook.clone()).or_default();
        if asked.len() == MOST {
            asked.pop_front().map(|oldest| self.ids.remove(&oldest.id));
        }
        let place = asked.partition_point(|known| known.at <= at);
        let prompt = (approval.offers_rule(true) && approval.prompt.len() <= LONGEST).then(|| approval.prompt.clone());
        asked.insert(place, Asked { id: approval.id.clone(), at, prompt });
    }

    /// The hook that asks too much, if there is one: the one that asks most.
    pub(super) fn busy(&mut self, now: Timestamp) -> Option<Busy> {
        self.forget(now);
        let many = self.hooks.iter().filter(|(_, asked)| asked.len() > MANY);
        let (hook, asked) = many.max_by_key(|(hook, asked)| (asked.len(), std::cmp::Reverse(*hook)))?;
        // Spread over all of them: those that follow each other are often alike.
        let prompts: Vec<&str> =
            asked.iter().step_by(1 + asked.len() / LOOKED_AT).filter_map(|asked| asked.prompt.as_deref()).collect();
        Some(Busy {
            asked: asked.len() as u64,
            seconds: WINDOW.as_secs().unsigned_abs(),
            hook: hook.clone(),
            pattern: pattern(&prompts),
        })
    }

    fn forget(&mut self, now: Timestamp) {
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
    let alike: Vec<&str> = prompts.iter().copied().filter(|prompt| is_specific(begin(last, prompt))).collect();
    if alike.iter().all(|prompt| *prompt == last) {
        return literal(last);
    }
    let (mut head, mut tail) = (last, last);
    for prompt in &alike {
        head = begin(head, prompt);
        tail = &tail[tail.len() - common(tail.chars().rev(), prompt.chars().rev())..];
    }
    let tail = tail.rsplit('*').next().unwrap_or_default();
    // What they begin and end with may overlap in the shortest of them.
    let shortest = alike.iter().map(|prompt| prompt.len()).min().unwrap_or_default();
    let tail = if head.len() + tail.len() > shortest { "" } else { tail };
    format!("{head}*{tail}")
}

/// What two questions begin with, up to a `*`, which would stand for any text.
fn begin<'a>(one: &'a str, other: &str) -> &'a str {
    one[..common(one.chars(), other.chars())].split('*').next().unwrap_or_default()
}

/// Whether a pattern can begin so: "Run `*`?" would be a yes to every command.
fn is_specific(head: &str) -> bool {
    !head.ends_with(['`', '"', '\'']) && head.trim().chars().count() >= SPECIFIC
}

fn literal(prompt: &str) -> String {
    if prompt.contains('*') { String::new() } else { prompt.to_owned() }
}

/// How many bytes two texts have in common.
fn common(one: impl Iterator<Item = char>, other: impl Iterator<Item = char>) -> usize {
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
