//! A reader of bash, which refuses whatever it does not fully understand.
//!
//! It reads each character once, with a limited depth. Where bash reads a text in more than one way, depending on its options
//! or on its version, the text is refused.

mod compound;
mod here_document;
mod simple;
mod tree;
mod word;

use self::here_document::PendingDocument;
pub(super) use self::tree::*;

const SYNTAX: &str = "the command does not parse; check its syntax";
const UNCLOSED: &str = "the command does not parse; check its quotes and brackets";
const DEPTH: &str = "the command is nested too deeply; simplify the command";
const CONTINUATION: &str = "a line break after a backslash splits a word; write the word on one line";

/// Maximum depth of the tree.
const DEEPEST: usize = 200;

/// Words that have a meaning at the beginning of a command, and cannot name one.
const RESERVED: [&str; 22] = [
    "!", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in",
    "select", "then", "time", "until", "while", "{", "}",
];
/// Words that end a list.
const CLOSING: [&str; 8] = ["then", "elif", "else", "fi", "do", "done", "esac", "}"];

/// The reason why a text is refused.
type Refusal = &'static str;

/// Reads a whole script.
pub(super) fn read(text: &str) -> Result<List<'_>, Refusal> {
    // Shells differ in both characters.
    if text.contains(['\0', '\r']) || joins_operators(text) {
        return Err(SYNTAX);
    }
    let mut reader = Reader::new(text);
    let list = reader.list()?;
    if reader.at < text.len() {
        return Err(SYNTAX);
    }
    reader.expect_no_documents()?;
    Ok(list)
}

/// Returns `true` if a line break after a backslash may join the characters around it to an operator or an expansion.
fn joins_operators(text: &str) -> bool {
    let bytes = text.as_bytes();
    text.match_indices("\\\n").any(|(at, _)| {
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        let after = bytes.get(at + 2).copied().is_some_and(|byte| is_operator(byte) || matches!(byte, b'-' | b'\\'));
        before == Some(&b'$') || after && before.copied().is_some_and(is_operator)
    })
}

fn is_operator(byte: u8) -> bool {
    matches!(byte, b'|' | b'&' | b';' | b'<' | b'>' | b'(' | b')')
}

/// Returns `true` if this byte ends an unquoted word.
fn ends_word(byte: u8) -> bool {
    is_operator(byte) || matches!(byte, b' ' | b'\t' | b'\n')
}

fn is_name(text: &str) -> bool {
    text.bytes().all(is_name_byte) && !text.is_empty() && !text.starts_with(|c: char| c.is_ascii_digit())
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

pub(super) struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    /// Here-documents whose bodies follow after the next newline.
    pending: Vec<PendingDocument<'a>>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, at: 0, depth: 0, pending: Vec::new() }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn text_from(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn starts_with(&self, text: &str) -> bool {
        self.text.as_bytes().get(self.at..).is_some_and(|rest| rest.starts_with(text.as_bytes()))
    }

    /// Skips a text; returns `false` if another one follows.
    fn skip(&mut self, text: &str) -> bool {
        let follows = self.starts_with(text);
        if follows {
            self.at += text.len();
        }
        follows
    }

    fn expect(&mut self, text: &str) -> Result<(), Refusal> {
        if self.skip(text) { Ok(()) } else { Err(SYNTAX) }
    }

    /// Returns `true` if exactly this word follows.
    fn follows(&self, word: &str) -> bool {
        self.starts_with(word) && self.text.as_bytes().get(self.at + word.len()).copied().is_none_or(ends_word)
    }

    fn skip_word(&mut self, word: &str) -> bool {
        self.follows(word) && self.skip(word)
    }

    fn expect_word(&mut self, word: &str) -> Result<(), Refusal> {
        if self.skip_word(word) { Ok(()) } else { Err(SYNTAX) }
    }

    /// Skips blanks, continued lines and a comment.
    fn skip_blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.starts_with("\\\n") => self.at += 2,
                Some(b'#') => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
                _ => return,
            }
        }
    }

    /// Skips blanks and newlines; returns `true` if there is a newline. Here-documents begin after it.
    fn skip_lines(&mut self) -> Result<bool, Refusal> {
        let mut has_newline = false;
        loop {
            self.skip_blanks();
            if !self.skip("\n") {
                return Ok(has_newline);
            }
            has_newline = true;
            self.here_documents()?;
        }
    }

    /// Reads a construct one level deeper.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Refusal>) -> Result<T, Refusal> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(DEPTH);
        }
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Reads commands up to the end, a closing word or bracket, or the end of a branch. The caller checks which one follows.
    fn list(&mut self) -> Result<List<'a>, Refusal> {
        let mut list = List::new();
        self.skip_lines()?;
        while !self.is_closed() {
            let mut pipelines = vec![self.pipeline(false)?];
            loop {
                self.skip_blanks();
                let is_alternative = self.starts_with("||");
                if !self.skip("&&") && !self.skip("||") {
                    break;
                }
                self.skip_lines()?;
                pipelines.push(self.pipeline(is_alternative)?);
            }
            let ends_branch = [";;", ";&"].iter().any(|end| self.starts_with(end));
            let is_async = self.skip("&");
            let is_separated = is_async || !ends_branch && self.skip(";");
            list.push(AndOrList { pipelines, is_async });
            // A closing word needs a separator before it.
            if !(self.skip_lines()? || is_separated || ends_branch || matches!(self.peek(), None | Some(b')'))) {
                return Err(SYNTAX);
            }
        }
        Ok(list)
    }

    /// Reads a list that bash requires to have a command.
    fn filled_list(&mut self) -> Result<List<'a>, Refusal> {
        self.list().and_then(|list| if list.is_empty() { Err(SYNTAX) } else { Ok(list) })
    }

    fn is_closed(&self) -> bool {
        match self.peek() {
            None | Some(b')') => true,
            Some(b';') => self.starts_with(";;") || self.starts_with(";&"),
            Some(_) => CLOSING.iter().any(|word| self.follows(word)),
        }
    }

    fn pipeline(&mut self, is_alternative: bool) -> Result<Pipeline<'a>, Refusal> {
        let mut is_timed = false;
        loop {
            self.skip_blanks();
            if self.skip_word("time") {
                if std::mem::replace(&mut is_timed, true) {
                    return Err(SYNTAX);
                }
                self.skip_blanks();
                self.skip_word("-p");
                self.skip_blanks();
                // `--` is skipped by some versions; other options belong to the program `time`.
                if self.peek() == Some(b'-') {
                    return Err(SYNTAX);
                }
            } else if !self.skip_word("!") {
                break;
            } else if self.peek() == Some(b'(') {
                // A pattern in some shells, a subshell in others.
                return Err(SYNTAX);
            }
        }
        let mut commands = vec![self.command()?];
        loop {
            self.skip_blanks();
            if self.starts_with("||") || !self.skip("|") {
                return Ok(Pipeline { is_alternative, is_timed, commands });
            }
            if self.skip("&") {
                commands.last_mut().ok_or(SYNTAX)?.redirect_error();
            }
            self.skip_lines()?;
            commands.push(self.command()?);
        }
    }

    fn command(&mut self) -> Result<Command<'a>, Refusal> {
        self.skip_blanks();
        if self.skip_word("function") {
            self.skip_blanks();
            let name = self.word(word::Patterns::None)?;
            self.skip_brackets()?;
            return self.function(name);
        }
        match self.compound()? {
            Some(compound) => Ok(Command::Compound(compound, self.redirections()?)),
            None => self.simple(),
        }
    }

    /// Reads a function after its name and brackets.
    fn function(&mut self, name: &'a str) -> Result<Command<'a>, Refusal> {
        let is_plain = name.bytes().all(|byte| is_name_byte(byte) || matches!(byte, b'-' | b'.' | b':' | b'+' | b'@'));
        if name.is_empty() || !is_plain || RESERVED.contains(&name) {
            return Err(SYNTAX);
        }
        self.skip_lines()?;
        let body = self.compound()?.ok_or(SYNTAX)?;
        Ok(Command::Function(Function { name, body, redirections: self.redirections()? }))
    }
}

impl Command<'_> {
    /// Adds the redirection that `|&` stands for.
    fn redirect_error(&mut self) {
        let redirection = Redirection {
            descriptor: Descriptor::Number(2),
            kind: RedirectionKind::DuplicateOutput,
            target: RedirectionTarget::File(Argument::Word("1")),
        };
        match self {
            Self::Simple(simple) => simple.parts.push(CommandPart::Redirection(redirection)),
            Self::Compound(_, redirections) => redirections.push(redirection),
            Self::Function(function) => function.redirections.push(redirection),
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
