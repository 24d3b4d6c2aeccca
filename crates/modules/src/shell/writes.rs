//! Files that commands write to.

use super::command::Command;
use super::options::{self, Arguments};
use super::walk::Walker;
use super::word::Word;
use super::{destructive, git, syntax};

/// The operands of a program that are written or deleted.
#[derive(Clone, Copy)]
enum WrittenOperands {
    Every,
    Last,
    /// All but the first, which is a mode or is read.
    ButFirst,
}

const OPERANDS: [(&str, WrittenOperands); 26] = [
    ("tee", WrittenOperands::Every),
    ("touch", WrittenOperands::Every),
    ("mkdir", WrittenOperands::Every),
    ("rmdir", WrittenOperands::Every),
    ("rm", WrittenOperands::Every),
    ("unlink", WrittenOperands::Every),
    ("shred", WrittenOperands::Every),
    ("truncate", WrittenOperands::Every),
    ("mkfifo", WrittenOperands::Every),
    ("sponge", WrittenOperands::Every),
    ("gzip", WrittenOperands::Every),
    ("gunzip", WrittenOperands::Every),
    ("xz", WrittenOperands::Every),
    // A moved file disappears from its old path.
    ("mv", WrittenOperands::Every),
    ("cp", WrittenOperands::Last),
    ("install", WrittenOperands::Last),
    ("ln", WrittenOperands::Last),
    ("link", WrittenOperands::Last),
    ("scp", WrittenOperands::Last),
    ("rsync", WrittenOperands::Last),
    ("chmod", WrittenOperands::ButFirst),
    ("chown", WrittenOperands::ButFirst),
    ("chgrp", WrittenOperands::ButFirst),
    ("chattr", WrittenOperands::ButFirst),
    ("setfacl", WrittenOperands::Every),
    ("uniq", WrittenOperands::ButFirst),
];

/// Options whose value is an output file or folder: program, letters, names.
const VALUED: [(&str, &str, &[&str]); 14] = [
    ("sort", "o", &["output"]),
    (
        "curl",
        "oDc",
        &[
            "output",
            "output-dir",
            "dump-header",
            "cookie-jar",
            "trace",
            "trace-ascii",
            "stderr",
            "etag-save",
            "hsts",
            "alt-svc",
            "libcurl",
        ],
    ),
    (
        "wget",
        "OoaP",
        &["output-document", "output-file", "append-output", "directory-prefix", "save-cookies", "warc-file"],
    ),
    ("rsync", "T", &["backup-dir", "log-file", "only-write-batch", "partial-dir", "temp-dir", "write-batch"]),
    ("tree", "o", &["output"]),
    ("gcc", "o", &["output"]),
    ("cc", "o", &["output"]),
    ("time", "o", &["output"]),
    ("cp", "t", &["target-directory"]),
    ("mv", "t", &["target-directory"]),
    ("ln", "t", &["target-directory"]),
    ("install", "t", &["target-directory"]),
    ("unzip", "d", &[]),
    ("zip", "Ob", &["out", "temp-path"]),
];

/// Options written as plain words, with a file as the next word.
const WORDS: [(&str, &[&str]); 2] =
    [("find", &["-fprint", "-fprint0", "-fprintf", "-fls"]), ("openssl", &["-out", "-keyout", "--out", "--keyout"])];

pub(super) fn note(name: &str, command: &Command, arguments: &Arguments, walker: &mut Walker) {
    if name == "rsync" && arguments.surely_has("n", &["dry-run", "list-only"]) {
        return;
    }
    match name {
        "dd" => dd_output(command).for_each(|word| walker.write(&word)),
        "sed" if arguments.may_have("iI", &["in-place"]) => {
            in_place(("ef", &["expression", "file"]), arguments, walker)
        }
        "perl" if arguments.may_have("i", &[]) => in_place(("eE", &[]), arguments, walker),
        "curl" => written_out(arguments).iter().for_each(|file| walker.write(&Word::known(file))),
        // A line of its settings, such as `output_document=file`.
        "wget" => {
            let settings = arguments.values("e", &["execute"]).filter_map(Word::literal);
            let files: Vec<&str> = settings.filter_map(|line| Some(line.split_once('=')?.1.trim())).collect();
            files.into_iter().for_each(|file| walker.write(&Word::known(file)));
        }
        "tar" => tar(&tar_arguments(command), walker),
        "zip" => zip(arguments, walker),
        "7z" | "7za" | "7zz" | "7zr" => seven_zip(command, walker),
        "git" => git::calls(command).iter().for_each(|call| call.outputs().for_each(|word| walker.write(word))),
        _ => {}
    }
    if matches!(name, "rm" | "rmdir" | "unlink" | "shred") {
        arguments.operands().for_each(|word| walker.deletes(word));
    }
    if let Some((_, target)) = OPERANDS.iter().find(|(program, _)| *program == name)
        && !has_folder(name, arguments)
    {
        note_operands(adjusted(name, *target, arguments), arguments, walker);
    }
    if let Some((_, short, long)) = VALUED.iter().find(|(program, ..)| *program == name) {
        let prints = |word: &Word| match word.literal() {
            Some("-") => matches!(name, "curl" | "wget"),
            text => matches!(text, Some("/dev/null" | "/dev/stdout")),
        };
        arguments.values(short, long).filter(|word| !prints(word)).for_each(|word| walker.write(word));
    }
    if let Some((_, options)) = WORDS.iter().find(|(program, _)| *program == name) {
        let pairs = command.arguments().iter().zip(command.arguments().iter().skip(1));
        pairs
            .filter(|(option, _)| option.literal().is_some_and(|text| options.contains(&text)))
            .for_each(|(_, file)| walker.write(file));
    }
}

fn note_operands(target: WrittenOperands, arguments: &Arguments, walker: &mut Walker) {
    match target {
        WrittenOperands::Every => arguments.operands().for_each(|word| walker.write(word)),
        WrittenOperands::ButFirst => {
            // The first word may expand to several.
            let first = usize::from(!arguments.operands().next().is_some_and(Word::is_many));
            arguments.operands().skip(first).for_each(|word| walker.write(word));
        }
        WrittenOperands::Last => arguments.last().into_iter().for_each(|word| walker.write(word)),
    }
}

/// Returns `true` if an option certainly names the target folder, so that all operands are only read.
fn has_folder(name: &str, arguments: &Arguments) -> bool {
    matches!(name, "cp" | "install" | "ln") && arguments.surely_has("t", &["target-directory"])
}

/// Applies the options that change the written operands.
fn adjusted(name: &str, target: WrittenOperands, arguments: &Arguments) -> WrittenOperands {
    match name {
        "install" if arguments.may_have("d", &["directory"]) => WrittenOperands::Every,
        // A mode that removes permissions is among the options, and needs no operand.
        "chmod" if arguments.may_have("rwxXstugoa", &["reference"]) => WrittenOperands::Every,
        "chown" | "chgrp" if arguments.may_have("", &["reference"]) => WrittenOperands::Every,
        _ => target,
    }
}

/// Records files edited in place: scripts are given by options, or as the first operand; the other operands are files.
fn in_place((short, long): (&str, &[&str]), arguments: &Arguments, walker: &mut Walker) {
    let gives_script = arguments.may_have(short, long);
    note_operands(if gives_script { WrittenOperands::Every } else { WrittenOperands::ButFirst }, arguments, walker);
}

pub(super) fn dd_output(command: &Command) -> impl Iterator<Item = Word> {
    const OPERAND: &str = "of=";
    command.arguments().iter().filter_map(|word| {
        if word.lead().starts_with(OPERAND) {
            return Some(word.tail(OPERAND.len()));
        }
        // A word that begins with an expansion may be any operand.
        word.may_be(&[OPERAND]).then(|| word.clone())
    })
}

/// Rewrites `tar cfz x y`: the first word holds letters, and the next words are their values.
pub(super) fn tar_arguments(command: &Command) -> Arguments {
    let syntax = syntax::for_program("tar");
    let words = command.arguments();
    let Some((first, rest)) = words.split_first().filter(|(first, _)| first.is_operand()) else {
        return Arguments::read(syntax, words);
    };
    let (mut rest, mut read) = (rest.iter().cloned(), Vec::new());
    if first.lead().len() > options::GROUP {
        read.push(Word::known(&format!("-{}", first.lead())));
        read.extend(rest);
        return Arguments::read(syntax, &read);
    }
    for letter in first.lead().chars() {
        read.push(Word::known(&format!("-{letter}")));
        if syntax.takes_value(letter) {
            read.extend(rest.next());
        }
    }
    read.extend(rest);
    Arguments::read(syntax, &read)
}

fn tar(arguments: &Arguments, walker: &mut Walker) {
    let file = |word: &&Word| word.literal() != Some("-");
    if arguments.may_have("crAu", &["create", "append", "catenate", "concatenate", "update", "delete"]) {
        arguments.values("f", &["file"]).filter(file).for_each(|word| walker.write(word));
    }
    if arguments.may_have("x", &["extract", "get"]) {
        arguments.values("C", &["directory", "one-top-level"]).for_each(|word| walker.write(word));
        if arguments.may_have("P", &["absolute-names"]) {
            walker.write(&Word::known("/"));
        }
    }
    arguments.values("g", &["listed-incremental", "index-file", "volno-file"]).for_each(|word| walker.write(word));
    if arguments.may_have("", &["remove-files"]) {
        note_operands(WrittenOperands::Every, arguments, walker);
    }
}

fn zip(arguments: &Arguments, walker: &mut Walker) {
    if arguments.may_have("m", &["move"]) {
        note_operands(WrittenOperands::Every, arguments, walker);
    }
    let archive = arguments.first().flatten().filter(|word| word.literal() != Some("-"));
    archive.for_each(|word| walker.write(word));
}

/// Returns the files in the format of `curl -w`: `%output{file}`, or `%output{>>file}` to append.
fn written_out(arguments: &Arguments) -> Vec<String> {
    let formats = arguments.values("w", &["write-out"]).flat_map(|format| format.plain().split("%output{").skip(1));
    formats.filter_map(|rest| Some(rest.split_once('}')?.0.trim_start_matches('>').to_owned())).collect()
}

/// Records the archive that `7z a` writes, or `7z d` changes.
fn seven_zip(command: &Command, walker: &mut Walker) {
    let mut words = command.arguments().iter();
    let changes = words.next().is_some_and(|action| action.may_be(&["a", "u", "d", "rn"]));
    let archive = words.find(|word| !word.lead().starts_with('-')).filter(|_| changes);
    archive.into_iter().for_each(|word| walker.write(word));
}

/// Records a redirection to or from `word`; returns `true` if it writes to a file.
pub(super) fn redirection(word: &Word, writes: bool, walker: &mut Walker) -> bool {
    if ["/dev/tcp/", "/dev/udp/"].iter().any(|device| word.lead().starts_with(device)) {
        let host = word.lead().split('/').nth(3).unwrap_or_default();
        if !super::fetch::is_loopback(host) {
            walker.network(Some(host.to_owned()).filter(|host| !host.is_empty()));
            walker.sends("opens a connection", &word.raw);
        }
    }
    if word.literal().is_none() && !word.is_operand() {
        // An expansion may produce a device of bash that stands for a connection.
        walker.taint();
    }
    if !writes || matches!(word.literal(), Some("/dev/null" | "/dev/stdout" | "/dev/stderr")) {
        return false;
    }
    walker.write(word);
    if destructive::is_disk(word.lead()) {
        walker.destroys("writes over a device", &format!("> {}", word.raw));
    }
    true
}

/// Returns `true` if the target of `>&` is a descriptor: `1`, `-` or `2-`.
pub(super) fn is_descriptor(target: &str) -> bool {
    !target.is_empty() && target.strip_suffix('-').unwrap_or(target).bytes().all(|b| b.is_ascii_digit())
}

/// Returns `true` if all files that a program changes with its known options are recorded.
pub(super) fn records_all(name: &str) -> bool {
    const OTHERS: [&str; 21] = [
        "bsdtar", "curl", "dd", "dirs", "export", "find", "gtar", "kill", "popd", "pushd", "set", "shopt", "sort",
        "tar", "tree", "umask", "unset", "unzip", "wait", "wget", "zip",
    ];
    OPERANDS.iter().any(|(program, _)| *program == name) || OTHERS.contains(&name)
}

/// Returns `true` if `name` is in these tables.
pub(super) fn is_known(name: &str) -> bool {
    OPERANDS.iter().any(|(program, _)| *program == name)
        || VALUED.iter().any(|(program, ..)| *program == name)
        || WORDS.iter().any(|(program, _)| *program == name)
}
