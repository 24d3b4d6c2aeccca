//! The files that are written to.

use super::command::Command;
use super::destructive;
use super::walk::Walker;
use super::word::Word;

/// Programs that write to, or delete, every operand.
const EVERY: [&str; 13] =
    ["tee", "touch", "mkdir", "rmdir", "rm", "unlink", "shred", "truncate", "mkfifo", "sponge", "gzip", "gunzip", "xz"];

/// Programs that write to their last operand.
const LAST: [&str; 7] = ["cp", "mv", "install", "ln", "scp", "rsync", "link"];

/// Programs that write to every operand but the first, which says how.
const BUT_FIRST: [&str; 3] = ["chmod", "chown", "chgrp"];

/// Options whose value is a file that is written to: program, short, long.
const VALUED: [(&str, &[&str], &str); 13] = [
    ("sort", &["-o"], "--output"),
    ("curl", &["-o", "-D", "-c"], "--output"),
    ("wget", &["-O", "-o", "-P"], "--output-document"),
    ("tree", &["-o"], "--output"),
    ("gcc", &["-o"], "--output"),
    ("cc", &["-o"], "--output"),
    ("time", &["-o"], "--output"),
    ("find", &["-fprint", "-fprint0", "-fprintf", "-fls"], "--output"),
    ("git", &[], "--output"),
    ("cp", &["-t"], "--target-directory"),
    ("mv", &["-t"], "--target-directory"),
    ("unzip", &["-d"], "--output"),
    ("openssl", &["-out"], "--out"),
];

/// Notes the files that a known program writes to.
pub(super) fn note(name: &str, command: &Command, walker: &mut Walker) {
    let operands = command.operands();
    if EVERY.contains(&name) {
        operands.for_each(|word| walker.write(&word.raw));
    } else if LAST.contains(&name) {
        if let Some(word) = operands.last() {
            walker.write(&word.raw);
        }
    } else if BUT_FIRST.contains(&name) {
        operands.skip(1).for_each(|word| walker.write(&word.raw));
    } else if name == "dd" {
        for word in command.arguments() {
            if let Some(file) = word.raw.strip_prefix("of=") {
                walker.write(file);
            }
        }
    } else if matches!(name, "sed" | "perl") && command.has("i", &["in-place"]) {
        in_place(command, walker);
    } else if name == "uniq" {
        operands.skip(1).for_each(|word| walker.write(&word.raw));
    } else if matches!(name, "tar" | "zip") {
        archive(name, command, walker);
    }
    if let Some((_, short, long)) = VALUED.iter().find(|(program, ..)| *program == name) {
        valued(command, short, long, walker);
    }
}

/// Scripts are given by options, or else are the first operand; the other operands are files.
fn in_place(command: &Command, walker: &mut Walker) {
    let gives_script =
        |word: &Word| matches!(word.literal(), Some("-e" | "-f" | "-pe" | "-ne" | "-pie" | "--expression" | "--file"));
    let words = command.arguments();
    let mut skip =
        usize::from(!words.iter().any(|word| gives_script(word) || word.lead().starts_with("--expression=")));
    for word in words {
        let is_option = word.lead().starts_with('-');
        if gives_script(word) {
            skip = 1;
        } else if skip > 0 && !is_option {
            skip -= 1;
        } else if !is_option {
            walker.write(&word.raw);
        }
    }
}

fn archive(name: &str, command: &Command, walker: &mut Walker) {
    let mut operands = command.operands();
    let creates = name == "zip" || command.texts().next().is_some_and(|text| text.contains(['c', 'r', 'u']));
    if creates {
        // `tar cf x` begins with letters, `tar -cf x` with an option.
        let letters = usize::from(name == "tar" && !command.texts().next().is_some_and(|text| text.starts_with('-')));
        if let Some(word) = operands.nth(letters) {
            walker.write(&word.raw);
        }
    }
}

fn valued(command: &Command, short: &[&str], long: &str, walker: &mut Walker) {
    let mut arguments = command.arguments().iter().peekable();
    while let Some(word) = arguments.next() {
        let raw = word.raw.as_str();
        let option = word.lead();
        if short.contains(&option) || option == long {
            if let Some(file) = arguments.peek() {
                walker.write(&file.raw);
            }
        } else if let Some(file) = raw.strip_prefix(long).and_then(|rest| rest.strip_prefix('=')) {
            walker.write(file);
        } else if let Some(file) = short.iter().filter(|s| s.len() == 2).find_map(|short| raw.strip_prefix(short)) {
            walker.write(file);
        }
    }
}

/// Notes what a redirection to or from `word` does; true when it writes to a file.
pub(super) fn redirection(word: &Word, writes: bool, walker: &mut Walker) -> bool {
    if ["/dev/tcp/", "/dev/udp/"].iter().any(|device| word.lead().starts_with(device)) {
        walker.network();
    }
    if word.literal().is_none() && !word.is_operand() {
        // Devices of bash that stand for connections may come out of an expansion.
        walker.taint();
    }
    if !writes || matches!(word.literal(), Some("/dev/null" | "/dev/stdout" | "/dev/stderr")) {
        return false;
    }
    walker.write(&word.raw);
    if destructive::is_disk(word.lead()) {
        walker.destroys("writes over a device", &format!("> {}", word.raw));
    }
    true
}

/// Whether the target of `>&` is a descriptor: `1`, `-` or `2-`.
pub(super) fn is_descriptor(target: &str) -> bool {
    !target.is_empty() && target.strip_suffix('-').unwrap_or(target).bytes().all(|b| b.is_ascii_digit())
}

/// Whether `name` is in these tables.
pub(super) fn is_known(name: &str) -> bool {
    EVERY.contains(&name)
        || LAST.contains(&name)
        || BUT_FIRST.contains(&name)
        || VALUED.iter().any(|(program, ..)| *program == name)
}
