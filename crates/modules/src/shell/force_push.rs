//! Commands that overwrite or delete something on a git remote, now or with the next plain `git push`.

use super::command::{Command, Stdin};
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

/// Programs that are `git` with more commands.
const GIT: [&str; 2] = ["git", "hub"];

/// Records a forced push, and settings that force later ones.
pub(super) fn note(name: &str, command: &Command, arguments: &Arguments, walker: &mut Walker) {
    let cause = match name {
        _ if GIT.contains(&name) => find_cause(command, walker),
        _ => of_other_programs(name, command, arguments).then(|| format!("`{name}` may overwrite or delete a branch")),
    };
    if let Some(cause) = cause {
        walker.analysis.force_push = true;
        walker.advise(cause);
    }
}

fn find_cause(command: &Command, walker: &mut Walker) -> Option<String> {
    let set = find_forcing_option(command, walker);
    set.or_else(|| git::calls(command).iter().find_map(|call| cause(call, walker)))
}

/// Returns `true` if a program other than `git` overwrites or deletes remote branches.
fn of_other_programs(name: &str, command: &Command, arguments: &Arguments) -> bool {
    let has = |words: &[&str]| words.iter().all(|word| command.texts().any(|text| text == *word));
    match name {
        "gh" => {
            has(&["repo", "sync"]) && arguments.may_have("", &["force"])
                || has(&["pr", "merge"]) && arguments.may_have("d", &["delete-branch"])
                || has(&["api"])
                    && command.texts().any(|text| text.contains("git/refs"))
                    && (has(&["DELETE"]) || command.texts().any(|text| text.contains("DELETE") || text == "force=true"))
        }
        "glab" => has(&["mr", "merge"]) && arguments.may_have("d", &["remove-source-branch"]),
        "hg" | "sl" => has(&["push"]) && arguments.may_have("f", &["force"]),
        "jj" => has(&["git", "push"]) && arguments.may_have("", &["deleted", "delete"]),
        _ => false,
    }
}

/// Returns the reason if a command may overwrite or delete remote branches. An unknown word may be an option or a refspec.
fn cause(call: &Call, walker: &mut Walker) -> Option<String> {
    let deletes = call.name == "http-push" && call.may_have("D", &[]);
    match &*call.name {
        name if matches!(name, "push" | "send-pack" | "http-push") || walker.push_aliases.iter().any(|p| p == name) => {
            if call.is_dry_run() {
                return None;
            }
            pushes(name, &call.words, walker).or_else(|| deletes.then(|| "`git http-push` deletes a branch".to_owned()))
        }
        "subtree" => {
            let at = call.words.iter().position(|word| word.literal() == Some("push"))?;
            pushes("subtree push", call.words.get(at + 1..)?, walker)
        }
        "remote" => (call.then(&["add"]) && call.may_have("", &["mirror"]))
            .then(|| "pushes to a mirror overwrite everything there".to_owned()),
        "config" => {
            // Each option may have a value, so that any word may be the key.
            let operands: Vec<Word> = call.arguments.operands().cloned().collect();
            operands.windows(2).find_map(|pair| match pair {
                [key, value] => forcing_setting(key.plain(), value.literal(), walker),
                _ => None,
            })
        }
        _ => None,
    }
}

/// Returns the reason if a push with these words is forced, or may be.
fn pushes(name: &str, words: &[Word], walker: &Walker) -> Option<String> {
    let words = words.iter().map(|word| {
        let known = || walker.expand_known(word).map(|text| Word::known(&text));
        (word.literal().is_none() && word.raw.contains('$')).then(known).flatten().unwrap_or_else(|| word.clone())
    });
    let words: Vec<Word> = words.collect();
    let may_force =
        |word: &&Word| word.literal().is_none() && !is_branch(word) && (word.splits() || word.lead().is_empty());
    if let Some(word) = words.iter().find(may_force) {
        let raw = &word.raw;
        return Some(format!(
            "`{raw}` of `git {name}` is unknown until run time, and may force the push; write it out"
        ));
    }
    Call::new("push", &words).overwrites().then(|| format!("`git {name}` is forced"))
}

/// Returns `true` for a substitution that names a branch, in either notation.
fn is_branch(word: &Word) -> bool {
    let raw = word.raw.trim_matches('"');
    let inner = raw.strip_prefix("$(").and_then(|raw| raw.strip_suffix(')'));
    let inner = inner.or_else(|| raw.strip_prefix('`').and_then(|raw| raw.strip_suffix('`')));
    inner.is_some_and(|inner| BRANCHES.contains(&inner.trim()))
}

/// Returns the reason if the options of `git` itself force a push, as in `git -c alias.x='push -f' x`.
fn find_forcing_option(command: &Command, walker: &mut Walker) -> Option<String> {
    let words = command.arguments();
    let all = Arguments::read(syntax::for_program("git"), words);
    let begin = all.first_at().next().unwrap_or(words.len());
    let global = Arguments::read(syntax::for_program("git"), words.get(..begin).unwrap_or_default());
    let mut causes = global.values("c", &["config-env"]).map(|word| {
        let known = word.literal().map(str::to_owned).or_else(|| walker.expand_known(word));
        let text = known.as_deref().unwrap_or_else(|| word.lead());
        let (key, value) = text.split_once('=').unwrap_or((text, "true"));
        forcing_setting(key, known.is_some().then_some(value), walker)
    });
    causes.find_map(|cause| cause)
}

/// Returns the reason if a setting forces pushes. An unknown value may do so.
fn forcing_setting(key: &str, value: Option<&str>, walker: &mut Walker) -> Option<String> {
    let lower = key.to_ascii_lowercase();
    let is_remote = |name: &str| lower.starts_with("remote.") && lower.ends_with(name);
    let forces = if is_remote(".mirror") {
        value != Some("false")
    } else if is_remote(".push") {
        value.is_none_or(|value| value.starts_with(['+', ':']) || value.contains(":+"))
    } else if let Some(alias) = lower.strip_prefix("alias.") {
        value.is_none_or(|value| is_forced_alias(alias, value, walker))
    } else {
        false
    };
    forces.then(|| format!("the setting `{key}` may force later pushes"))
}

/// Returns `true` if an alias forces pushes. Remembers an alias of a plain push, whose options follow later.
fn is_forced_alias(alias: &str, value: &str, walker: &mut Walker) -> bool {
    let value = value.replace(['"', '\'', '\\'], "");
    if let Some(command) = value.strip_prefix('!') {
        return command.contains("push") && command.contains(['-', '+', ':', '$']);
    }
    let words = std::iter::once("git").chain(value.split_whitespace()).map(Word::known).collect();
    let command = Command { words, stdin: Stdin::default() };
    let calls = git::calls(&command);
    if calls.iter().any(|call| call.name == "push" || walker.push_aliases.contains(&call.name)) {
        walker.push_aliases.push(alias.to_owned());
    }
    calls.iter().any(|call| call.name != "config" && cause(call, walker).is_some())
}
