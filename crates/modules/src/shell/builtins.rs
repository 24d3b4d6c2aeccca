//! Builtins and programs that take commands as text: `alias`, `trap`, `tmux`, `parallel` and others.

use super::command::Command;
use super::dialect::Dialect;
use super::readonly;
use super::shells::joined;
use super::walk::Walker;
use super::word::Word;

/// Commands of `tmux` and options of `screen` that only read, or only change the display.
const LOOKS: &[&str] = &[
    "ls",
    "list-sessions",
    "list-windows",
    "list-panes",
    "list-keys",
    "capture-pane",
    "has-session",
    "has",
    "attach",
    "attach-session",
    "a",
    "display-message",
    "show-options",
    "info",
    "-ls",
    "-list",
    "-V",
    "-v",
];

/// Follows such commands; returns `false` for other commands, or if the command should be refused.
pub(super) fn run(name: &str, command: &Command, walker: &mut Walker) -> bool {
    if !matches!(name, "hash" | "alias" | "trap" | "mapfile" | "readarray" | "tmux" | "screen" | "parallel") {
        return false;
    }
    walker.taint();
    let first = command.arguments().first().and_then(Word::literal);
    match name {
        "hash" => !command.texts().any(|text| text.starts_with("-p")),
        "alias" => alias(command, walker),
        "trap" => trap(command, walker),
        "mapfile" | "readarray" => {
            !command.arguments().iter().any(|word| word.literal().is_none_or(|text| text.starts_with("-C")))
        }
        "tmux" | "screen" if first.is_none_or(|first| LOOKS.contains(&first)) => true,
        "tmux" => tmux(command, walker),
        "parallel" => parallel(command, walker),
        _ => false,
    }
}

/// Walks an alias as if it were called. An alias of a known name is refused, because it would mislead.
fn alias(command: &Command, walker: &mut Walker) -> bool {
    let texts: Option<Vec<&str>> = command.arguments().iter().map(Word::literal).collect();
    let Some(texts) = texts else { return false };
    let misleads = |text: &&str| text.split_once('=').is_some_and(|(name, _)| readonly::is_known(name));
    if texts.iter().any(misleads) {
        return false;
    }
    for text in texts {
        if let Some((_, value)) = text.split_once('=') {
            walker.same_shell(value);
        }
    }
    true
}

fn trap(command: &Command, walker: &mut Walker) -> bool {
    let mut words = command.arguments().iter().filter(|word| word.literal() != Some("--"));
    match words.next().map(Word::literal) {
        None | Some(Some("-" | "" | "-l" | "-p")) => {}
        Some(Some(text)) => walker.same_shell(text),
        Some(None) => return false,
    }
    true
}

/// Follows `tmux new-session -d -s name 'command'` and `tmux send-keys 'command' Enter`, which run the text.
fn tmux(command: &Command, walker: &mut Walker) -> bool {
    let Some(texts) = command.arguments().iter().map(Word::literal).collect::<Option<Vec<_>>>() else { return false };
    let mut texts = texts.into_iter();
    let valued = match texts.next() {
        Some("new-session" | "new" | "new-window" | "neww" | "split-window" | "splitw") => "sntceFxypl",
        Some("send-keys" | "send") => "tN",
        Some("kill-session" | "kill-window" | "kill-pane") => return true,
        _ => return false,
    };
    let mut words = Vec::new();
    while let Some(text) = texts.next() {
        match text.strip_prefix('-') {
            Some(option) if words.is_empty() => {
                if option.len() == 1 && valued.contains(option) {
                    texts.next();
                }
            }
            _ if matches!(text, "Enter" | "C-m" | "C-c") => {}
            _ => words.push(text),
        }
    }
    if !words.is_empty() {
        walker.script(&words.join(" "), Dialect::Sh);
    }
    true
}

/// Follows `parallel command ::: values`, which runs the command with each value.
fn parallel(command: &Command, walker: &mut Walker) -> bool {
    let is_end = |word: &Word| word.literal().is_some_and(|text| text.starts_with(":::"));
    let arguments = command.arguments();
    let end = arguments.iter().position(is_end).unwrap_or(arguments.len());
    let words = arguments.get(..end).unwrap_or_default();
    let values = arguments.get(end + 1..).unwrap_or_default();
    if words.first().is_none_or(|word| word.lead().starts_with('-')) {
        // Without a command, the values are commands.
        let Some(texts) = values.iter().map(Word::literal).collect::<Option<Vec<_>>>().filter(|_| words.is_empty())
        else {
            return false;
        };
        if texts.is_empty() {
            return false;
        }
        texts.into_iter().for_each(|text| walker.script(text, Dialect::Sh));
        return true;
    }
    if words.len() == 1 && words.first().is_some_and(|word| word.raw.contains(' ')) {
        // The words go through a shell.
        let Some(text) = joined(words) else { return false };
        walker.script(&text.replace("{}", "\"$value\""), Dialect::Sh);
        return true;
    }
    let mut words: Vec<Word> = words.to_vec();
    let takes = |word: &Word| word.raw.contains('{');
    let places = words.iter().any(takes);
    // Each value is walked, because all are known.
    let values: Vec<Word> = if values.is_empty() { vec![Word::unknown("…")] } else { values.to_vec() };
    if values.len() > 16 || values.iter().any(|value| value.literal().is_none()) && places {
        return false;
    }
    if !places {
        words.extend(values);
        Command { words, stdin: command.stdin.clone() }.inspect(walker);
        return true;
    }
    for value in values {
        let words = words.iter().map(|word| if word.raw == "{}" { value.clone() } else { word.clone() }).collect();
        Command { words, stdin: command.stdin.clone() }.inspect(walker);
    }
    true
}
