//! Commands that overwrite or delete something on a git remote, now or with the next plain `git push`.

use super::command::Command;
use super::git::{self, Call};
use super::options::Arguments;
use super::syntax;
use super::walk::Walker;
use super::word::Word;

/// Substitutions that name a branch, which is never forced.
const BRANCHES: [&str; 4] = [
    "git branch --show-current",
    "git rev-parse --abbrev-ref HEAD",
    "git symbolic-ref --short HEAD",
    "git rev-parse HEAD",
];

/// Records a forced push, and settings that force later ones.
pub(super) fn note(command: &Command, walker: &mut Walker) {
    let is_forced = git::calls(command).iter().any(|call| is_forced(call, walker)) || is_set(command, walker);
    walker.analysis.force_push |= is_forced;
}

/// Returns `true` if a command may overwrite or delete remote branches. An unknown word may be an option or a refspec.
fn is_forced(call: &Call, walker: &Walker) -> bool {
    match &*call.name {
        "push" | "send-pack" => {
            if call.is_dry_run() {
                return false;
            }
            let words = call.words.iter().map(|word| {
                let known = || walker.expand_known(word).map(|text| Word::known(&text));
                (word.literal().is_none() && word.raw.contains('$'))
                    .then(known)
                    .flatten()
                    .unwrap_or_else(|| word.clone())
            });
            let words: Vec<Word> = words.collect();
            let may_be_forced = |word: &Word| !is_branch(word) && (word.splits() || word.lead().is_empty());
            words.iter().any(|word| word.literal().is_none() && may_be_forced(word))
                || Call::new("push", &words).overwrites()
        }
        "remote" => call.then(&["add"]) && call.may_have("", &["mirror"]),
        "config" => setting(call).is_some_and(|(key, value)| forces(&key, value.as_deref())),
        _ => false,
    }
}

fn is_branch(word: &Word) -> bool {
    let raw = word.raw.trim_matches('"');
    let substitution = raw.strip_prefix("$(").and_then(|raw| raw.strip_suffix(')'));
    substitution.is_some_and(|inner| BRANCHES.contains(&inner.trim()))
}

/// Returns the key and the value that `git config` sets; `None` for an unknown value.
fn setting(call: &Call) -> Option<(String, Option<String>)> {
    let operands: Vec<&Word> = call.arguments.operands().collect();
    // `git config set KEY VALUE`
    let begin = usize::from(operands.first().and_then(|word| word.literal()) == Some("set"));
    let key = operands.get(begin)?;
    let value = operands.get(begin + 1)?;
    Some((key.plain().to_owned(), value.literal().map(str::to_owned)))
}

/// Returns `true` if the options of `git` itself force a push, as in `git -c alias.x='push -f' x`.
fn is_set(command: &Command, walker: &Walker) -> bool {
    let words = command.arguments();
    let all = Arguments::read(syntax::for_program("git"), words);
    let begin = all.first_at().next().unwrap_or(words.len());
    let global = Arguments::read(syntax::for_program("git"), words.get(..begin).unwrap_or_default());
    global.values("c", &["config-env"]).any(|word| {
        let known = word.literal().map(str::to_owned).or_else(|| walker.expand_known(word));
        let text = known.as_deref().unwrap_or_else(|| word.lead());
        let (key, value) = text.split_once('=').unwrap_or((text, "true"));
        forces(key, known.is_some().then_some(value))
    })
}

/// Returns `true` if a setting forces pushes. An unknown value may do so.
fn forces(key: &str, value: Option<&str>) -> bool {
    let key = key.to_ascii_lowercase();
    let is_remote = |name: &str| key.starts_with("remote.") && key.ends_with(name);
    if is_remote(".mirror") {
        return value != Some("false");
    }
    if is_remote(".push") {
        return value.is_none_or(|value| value.starts_with(['+', ':']) || value.contains(":+"));
    }
    if !key.starts_with("alias.") {
        return false;
    }
    let Some(value) = value else { return true };
    if let Some(command) = value.strip_prefix('!') {
        return command.contains("push") && command.contains(['-', '+', ':', '$']);
    }
    let mut words = value.split_whitespace().map(Word::known);
    let name = words.next();
    name.is_some_and(|name| name.literal() == Some("push"))
        && Call::new("push", &words.collect::<Vec<Word>>()).overwrites()
}
