//! Commands that destroy the content of a file: they write nothing to it, or nothing of the old content.

use super::command::{Command, Stdin};
use super::effects::Exemption;
use super::options::Arguments;
use super::sed;
use super::walk::Walker;
use super::word::Word;

/// The kind of output of a command, as far as it matters for the target file.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum OutputContent {
    /// Content that may be useful.
    #[default]
    Anything,
    Nothing,
    /// Random bytes or zeros.
    Noise,
    /// A file as it is in the history of git.
    Version,
}

impl OutputContent {
    /// Returns the reason why writing this content over a file is a loss.
    pub(super) fn loss(self) -> Option<&'static str> {
        match self {
            Self::Anything => None,
            Self::Nothing => Some("empties a file"),
            Self::Noise => Some("writes noise over a file"),
            Self::Version => Some("writes an earlier version over a file"),
        }
    }

    /// Returns the kind of output of a command; `fed` is the kind of its input from a pipeline.
    pub(super) fn printed_by(words: &[Word], stdin: &Stdin, fed: Self) -> Self {
        let Some((name, arguments)) = words.split_first() else { return Self::Nothing };
        let read = Self::read_from(stdin, fed);
        let texts: Vec<&str> = arguments.iter().map(Word::plain).collect();
        let is_option = |text: &&&str| text.starts_with('-') && text.len() > 1;
        let mut operands = texts.iter().filter(|text| !is_option(text)).peekable();
        match name.literal() {
            Some(":" | "true" | "false") => Self::Nothing,
            // Alone, it redirects the output of the shell itself.
            Some("exec") if arguments.is_empty() => Self::Nothing,
            Some("echo") => {
                let begin = usize::from(matches!(texts.first(), Some(&"-n" | &"-e" | &"-ne")));
                Self::of_texts(texts.get(begin..).unwrap_or_default())
            }
            Some("printf") => Self::of_texts(&texts),
            Some("git") if is_version(&texts) => Self::Version,
            Some("openssl") if texts.first() == Some(&"rand") => Self::Noise,
            Some("head" | "tail") if takes_nothing(&texts) => Self::Nothing,
            Some("jq") if texts.contains(&"empty") => Self::Nothing,
            Some("cat" | "tac" | "sort" | "uniq" | "tee" | "head" | "tail" | "dd" | "base64" | "xxd" | "od") => {
                if texts.iter().any(|text| is_noise(text)) {
                    Self::Noise
                } else if operands.peek().is_none() {
                    read
                } else if operands.all(|file| *file == "/dev/null") {
                    Self::Nothing
                } else {
                    Self::Anything
                }
            }
            Some("grep" | "sed" | "awk" | "tr" | "cut" | "jq") if operands.all(|text| !text.contains('/')) => {
                if read == Self::Nothing { read } else { Self::Anything }
            }
            _ => Self::Anything,
        }
    }

    fn read_from(stdin: &Stdin, fed: Self) -> Self {
        match stdin {
            Stdin::Text(text) if text.is_empty() => Self::Nothing,
            Stdin::Inherited => fed,
            Stdin::Text(_) | Stdin::Unknown => Self::Anything,
        }
    }

    fn of_texts(texts: &[&str]) -> Self {
        let is_empty = |text: &&str| text.is_empty() || *text == "%s";
        if texts.iter().all(is_empty) { Self::Nothing } else { Self::Anything }
    }
}

/// Maximum number of remembered words of a command.
const FILES: usize = 64;

/// Returns the words of a command that may be input files. Those of `echo` and `printf` are text.
pub(super) fn read_by(words: &[Word]) -> Vec<String> {
    let Some((name, arguments)) = words.split_first() else { return Vec::new() };
    if matches!(name.literal(), None | Some("echo" | "printf" | "git" | "ls" | "find")) {
        return Vec::new();
    }
    let is_file = |text: &&str| !text.is_empty() && !text.starts_with('-');
    arguments.iter().filter_map(Word::literal).filter(is_file).take(FILES).map(str::to_owned).collect()
}

/// Returns `true` if `git` prints a file from its history.
fn is_version(texts: &[&str]) -> bool {
    matches!(texts.first(), Some(&"show" | &"cat-file")) && texts.iter().skip(1).any(|text| text.contains(':'))
}

/// Returns `true` if `head` or `tail` prints nothing.
fn takes_nothing(texts: &[&str]) -> bool {
    let none = ["-c0", "-n0", "--bytes=0", "--lines=0", "-0"];
    texts.iter().any(|text| none.contains(text))
        || texts.windows(2).any(|pair| matches!(pair, ["-c" | "-n" | "--bytes" | "--lines", "0"]))
}

fn is_noise(text: &str) -> bool {
    let file = text.strip_prefix("if=").unwrap_or(text);
    matches!(file, "/dev/zero" | "/dev/random" | "/dev/urandom")
}

/// Returns `true` if the output of a command cannot replace its input file: ciphertext, or an archive.
pub(super) fn encodes(words: &[Word]) -> bool {
    let Some((name, arguments)) = words.split_first() else { return false };
    let has = |options: &[&str]| arguments.iter().filter_map(Word::literal).any(|text| options.contains(&text));
    match name.literal() {
        Some("openssl") => has(&["enc", "rand"]) && !has(&["-d"]),
        Some("gpg") => !has(&["-d", "--decrypt", "--export"]),
        Some("gzip" | "bzip2" | "xz" | "zstd" | "lz4" | "base64" | "base32" | "xxd" | "age") => {
            !has(&["-d", "-dc", "-cd", "--decode", "--decompress", "-r", "-rp", "-D", "--decrypt"])
        }
        Some("shuf" | "rev" | "tac" | "wc") => true,
        _ => false,
    }
}

/// Remembers the files that a program fills with worthless content.
fn note_worthless(name: &str, command: &Command, arguments: &Arguments, walker: &mut Walker) {
    let files: Vec<Word> = match name {
        "openssl" | "gpg" | "age" if encodes(&command.words) => values_after(command, &["-out", "-o", "--output"]),
        // `touch` does not change an existing file, so a command that moves the file has real content.
        "touch" | "truncate" | "shred" | "fallocate" => arguments.operands().cloned().collect(),
        "split" | "csplit" => {
            let prefix = arguments.operands().last().map_or("x", Word::lead);
            vec![Word::known(&format!("{prefix}*"))]
        }
        _ => return,
    };
    files.iter().for_each(|file| walker.is_worthless(file.plain()));
}

impl Walker {
    /// Remembers a file with worthless content.
    pub(super) fn is_worthless(&mut self, file: &str) {
        if self.worthless.len() < FILES {
            self.worthless.push(file.trim_start_matches("./").to_owned());
        }
    }

    /// Returns `true` if the command has filled a file with worthless content.
    fn holds_nothing(&self, file: &Word) -> bool {
        let text = file.plain().trim_start_matches("./");
        self.worthless.iter().any(|known| match known.strip_suffix('*') {
            Some(prefix) => text.starts_with(prefix),
            None => known == text,
        })
    }
}

/// Records the files whose content a program destroys.
pub(super) fn note(name: &str, command: &Command, arguments: &Arguments, walker: &mut Walker) {
    note_worthless(name, command, arguments, walker);
    let read = OutputContent::read_from(&command.stdin, walker.fed_content);
    let (why, files): (_, Vec<Word>) = match name {
        "tee" | "sponge" if !arguments.surely_has("a", &["append"]) => {
            let is_read =
                |file: &Word| file.literal().is_some_and(|file| walker.fed_words.iter().any(|text| text == file));
            let is_race = name == "tee" && arguments.operands().any(is_read);
            let why = is_race.then_some("empties a file before it is read");
            (read.loss().or(why), arguments.operands().cloned().collect())
        }
        "openssl" => (Some("writes over a file"), values_after(command, &["-out", "-keyout"])),
        "gpg" if arguments.may_have("", &["yes"]) => {
            (Some("writes over a file"), arguments.values("o", &["output"]).cloned().collect())
        }
        "cp" | "mv" | "install" | "ln" => return replaces(name, command, arguments, walker),
        "rm" | "unlink" if !arguments.may_have("rRi", &["recursive", "interactive"]) => {
            let files = walker.file_references(arguments.operands());
            return walker.may_lose("deletes work that git keeps", &command.source_text(), Exemption::Deleted(files));
        }
        "sort" => {
            let content = OutputContent::printed_by(&command.words, &command.stdin, walker.fed_content);
            let written = arguments.values("o", &["output"]);
            let is_empty = content == OutputContent::Nothing || reads_only_nothing(arguments);
            (is_empty.then_some("empties a file"), written.cloned().collect())
        }
        "find" => (Some("writes over a file"), values_after(command, &["-fprint", "-fprint0", "-fprintf", "-fls"])),
        "curl" => (Some("writes a download over a file"), arguments.values("o", &["output"]).cloned().collect()),
        "wget" => {
            (Some("writes a download over a file"), arguments.values("O", &["output-document"]).cloned().collect())
        }
        "fallocate" => {
            let cuts = ["punch-hole", "zero-range", "collapse-range", "dig-holes"];
            let is_cut = arguments.may_have("pzc", &cuts);
            (is_cut.then_some("cuts files off"), arguments.operands().cloned().collect())
        }
        "7z" | "7za" | "7zz" if command.texts().any(|text| text == "-aoa") => {
            (Some("extracts over files"), vec![Word::known(".")])
        }
        "unrar" | "rar" if command.texts().any(|text| text == "-o+") => {
            (Some("extracts over files"), vec![Word::known(".")])
        }
        "cpio" if arguments.may_have("u", &["unconditional"]) => (Some("extracts over files"), vec![Word::known(".")]),
        "unzip" if arguments.may_have("o", &[]) => (Some("extracts over files"), folder(arguments.values("d", &[]))),
        "tar" | "bsdtar" if arguments.may_have("U", &["overwrite", "recursive-unlink", "unlink-first"]) => {
            (Some("extracts over files"), folder(arguments.values("C", &["directory"])))
        }
        "perl" | "ruby" | "awk" | "gawk" => {
            let files = files_edited(name, command, arguments);
            (edits_away(name, command, arguments).then_some("may leave little of a file"), files)
        }
        _ => return,
    };
    let is_file = |file: &Word| !matches!(file.literal(), Some("-" | "/dev/null"));
    let files: Vec<Word> = files.into_iter().filter(is_file).collect();
    if let Some(why) = why.filter(|_| !files.is_empty()) {
        let files = walker.file_references(&files);
        walker.may_lose(why, &command.source_text(), Exemption::New(files));
    }
}

/// Records that one file replaces another.
fn replaces(name: &str, command: &Command, arguments: &Arguments, walker: &mut Walker) {
    let files: Vec<&Word> = arguments.operands().collect();
    let keeps = arguments.may_have("bniu", &["backup", "no-clobber", "interactive", "update"]);
    if let [from, to] = files.as_slice()
        && !keeps
        && (name != "ln" || arguments.may_have("f", &["force"]))
    {
        if walker.holds_nothing(from) {
            let files = vec![walker.file_reference(to)];
            walker.may_lose("writes noise over a file", &command.source_text(), Exemption::New(files));
        }
        let (from, to) = (walker.file_reference(from), walker.file_reference(to));
        walker.may_lose("writes a file over another one", &command.source_text(), Exemption::Copied { from, to });
    }
}

/// Returns the folder that an archive is extracted to.
fn folder<'a>(given: impl Iterator<Item = &'a Word>) -> Vec<Word> {
    let folders: Vec<Word> = given.cloned().collect();
    if folders.is_empty() { vec![Word::known(".")] } else { folders }
}

fn reads_only_nothing(arguments: &Arguments) -> bool {
    let mut files = arguments.operands().peekable();
    files.peek().is_some() && files.all(|file| file.literal() == Some("/dev/null"))
}

fn values_after(command: &Command, options: &[&str]) -> Vec<Word> {
    let words = command.arguments();
    let pairs = words.iter().zip(words.iter().skip(1));
    let given = |option: &Word| option.literal().is_some_and(|text| options.contains(&text));
    pairs.filter(|(option, _)| given(option)).map(|(_, value)| value.clone()).collect()
}

/// Returns `true` if a script that edits files in place keeps only some of their lines.
fn edits_away(name: &str, command: &Command, arguments: &Arguments) -> bool {
    if matches!(name, "awk" | "gawk") {
        return is_inplace_awk(command) && !awk_program(command).is_some_and(|text| awk_keeps(text.plain()));
    }
    // With `-n`, only the printed text remains.
    let mut texts = arguments.values("eE", &[]);
    arguments.may_have("i", &[])
        && texts.next().is_some()
        && (arguments.may_have("n", &[]) || arguments.values("eE", &[]).any(|text| clears_line(text.plain())))
}

fn files_edited(name: &str, command: &Command, arguments: &Arguments) -> Vec<Word> {
    if !matches!(name, "awk" | "gawk") {
        return arguments.operands().cloned().collect();
    }
    let program = awk_program(command).map(|word| word.raw.clone());
    let is_program = |word: &&Word| Some(&word.raw) == program.as_ref();
    let words = command.arguments().iter().skip_while(|word| !is_program(word)).skip(1);
    words.filter(|word| !word.lead().starts_with('-')).cloned().collect()
}

fn is_inplace_awk(command: &Command) -> bool {
    let is_one = |text: &str| {
        ["inplace", "-iinplace", "--include=inplace", "inplace::enable=1"].iter().any(|known| text.ends_with(known))
    };
    command.texts().any(is_one)
}

fn awk_program(command: &Command) -> Option<&Word> {
    let mut words = command.arguments().iter();
    while let Some(word) = words.next() {
        match word.lead() {
            "-i" | "--include" | "-v" | "-F" | "--assign" | "--field-separator" => drop(words.next()),
            text if text.starts_with('-') && word.literal().is_some() => {}
            _ => return Some(word),
        }
    }
    None
}

/// Returns `true` if an `awk` program prints lines, or ends in a condition that is always true.
fn awk_keeps(text: &str) -> bool {
    let end = text.trim_end().strip_suffix('1').map(str::trim_end);
    text.contains("print") || end.is_some_and(|rest| rest.is_empty() || rest.ends_with(['}', ';', '\n']))
}

/// Returns `true` if a program for `perl -p` or `ruby -p` empties every line.
fn clears_line(text: &str) -> bool {
    let plain: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    if plain == "last" || plain.contains("last;") {
        return true;
    }
    let clears = ["$_=\"\"", "$_=''", "$_=undef", "$_=nil", "undef$_", "undef($_)", "$_.clear", "$_.replace(\"\")"];
    let is_always = |at: usize, found: &str| {
        let rest = plain.get(at + found.len()..).unwrap_or_default();
        !rest.starts_with("if") && !rest.starts_with("unless")
    };
    clears.iter().any(|found| plain.match_indices(found).any(|(at, found)| is_always(at, found)))
        || text.trim_start().starts_with('s') && sed::effects(text.trim_start()).contains(&sed::SedEffect::Empties)
}

/// Returns `true` if a command of `ex`, `vim` or `ed` deletes all lines.
pub(super) fn clears_buffer(text: &str) -> bool {
    const WHOLE: &[&str] = &["%", "1,$", "0,$", ",", "1,", "1;$", "g/./", "g/^/", "g/.*/", "g//"];
    text.split(['|', '\n']).any(|command| {
        let command = command.trim().trim_start_matches(['+', ':', '-', 'c']).trim();
        let lower: String = command.chars().filter(|c| !c.is_whitespace()).collect();
        let is_deletion = |range: &&str| {
            let verb = lower.strip_prefix(*range).map(|verb| verb.trim_end_matches('_'));
            matches!(verb, Some("d" | "de" | "del" | "delete" | "s/.*//" | "s/.*//g" | "c" | "change"))
        };
        WHOLE.iter().any(is_deletion) || command.starts_with("norm") && lower.contains("dG")
    })
}
