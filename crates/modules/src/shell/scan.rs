//! Search for commands that delete, in text of any language.

/// Longest prefix of a text that is searched, in bytes.
const LONGEST: usize = 64 << 10;

/// Programs that are destructive with any arguments.
const ALWAYS: &[&str] =
    &["shred", "mkfs", "wipefs", "dropdb", "blkdiscard", "rimraf", "srm", "format-volume", "clear-content"];

/// Returns `true` if a text contains a command that deletes: `rm` with options, `git reset --hard`, `find … -delete` and
/// others. Quotes, brackets and commas separate words, so that `["rm", "-rf", "src"]` is found, too.
pub(super) fn deletes(text: &str) -> bool {
    let text = text.get(..LONGEST.min(text.len())).unwrap_or(text);
    // Only three words are needed.
    let mut words = text
        .split(|c: char| c.is_whitespace() || "\"'`;,|&()[]{}<>!".contains(c))
        .filter(|word| !word.is_empty())
        .map(|word| word.rsplit('/').next().unwrap_or(word));
    let mut window: [&str; 4] = [""; 4];
    let mut found = None;
    loop {
        let next = words.next();
        window.rotate_left(1);
        let [.., last] = &mut window;
        *last = next.unwrap_or_default();
        let [first, rest @ ..] = window;
        if first == "find" || found.is_some_and(|left| left > 0) {
            found = Some(if first == "find" { 40 } else { found.unwrap_or(1) - 1 });
            if rest.contains(&"-delete") {
                return true;
            }
        }
        if is_deletion(first, rest) {
            return true;
        }
        if next.is_none() && window.iter().all(|word| word.is_empty()) {
            return false;
        }
    }
}

fn is_deletion(program: &str, [first, second, third]: [&str; 3]) -> bool {
    let is_option = |word: &str| word.starts_with('-') && word.len() > 1;
    let removes = |word: &str| {
        matches!(word, "--recursive" | "--force" | "--no-preserve-root")
            || is_option(word) && !word.starts_with("--") && word.contains(['r', 'R', 'f', 'F'])
    };
    match program {
        "rm" => removes(first) || is_option(first) && removes(second),
        "dd" => [first, second, third].iter().any(|word| word.starts_with("of=")),
        "git" => match first {
            "reset" => [second, third].contains(&"--hard"),
            "clean" => removes(second) || removes(third),
            "checkout" => matches!(second, "--" | "." | "-f"),
            "restore" => second != "--staged",
            "push" => [second, third].iter().any(|word| matches!(*word, "--force" | "-f" | "--mirror" | "--delete")),
            "stash" => matches!(second, "drop" | "clear"),
            "branch" => second == "-D",
            _ => false,
        },
        "remove-item" | "Remove-Item" => true,
        program => ALWAYS.iter().any(|always| program == *always || program.starts_with("mkfs.")),
    }
}
