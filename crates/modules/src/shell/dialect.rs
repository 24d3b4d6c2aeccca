//! Text that other shells read differently from bash.

#[derive(Clone, Copy, Default, PartialEq)]
pub(super) enum Dialect {
    #[default]
    Bash,
    /// `sh`: dash on Debian, ash on Alpine, bash elsewhere.
    Sh,
}

impl Dialect {
    /// Refuses text that this shell may read differently from bash.
    pub(super) fn admit(self, text: &str) -> Result<(), String> {
        if self == Self::Bash {
            return Ok(());
        }
        first_difference(text).map_or(Ok(()), |construct| {
            Err(format!("`sh` is not bash on every machine, and shells differ in {construct}; use `bash -c`"))
        })
    }
}

/// The construct around the current character.
#[derive(Clone, Copy, PartialEq)]
enum Enclosure {
    Command,
    Quotes,
    Backticks,
}

/// Keywords and builtins of bash that are programs, or missing, in other shells.
const WORDS: [&str; 16] = [
    "[[",
    "function",
    "coproc",
    "select",
    "time",
    "declare",
    "typeset",
    "local",
    "let",
    "source",
    "shopt",
    "mapfile",
    "readarray",
    "pushd",
    "popd",
    "builtin",
];

/// Words before a command.
const BEFORE_COMMANDS: [&str; 10] = ["!", "{", "if", "then", "else", "elif", "do", "while", "until", "in"];

/// Finds the first construct that POSIX shells read differently.
///
/// All of them agree up to that point, so quotes can be followed in the common way.
fn first_difference(text: &str) -> Option<&'static str> {
    let mut scanner =
        Scanner { characters: text.chars().collect(), at: 0, enclosures: vec![Enclosure::Command], begins: true };
    loop {
        match scanner.step() {
            Step::Next => {}
            Step::Differs(construct) => return Some(construct),
            Step::End => return None,
        }
    }
}

enum Step {
    Next,
    Differs(&'static str),
    End,
}

struct Scanner {
    characters: Vec<char>,
    at: usize,
    enclosures: Vec<Enclosure>,
    begins: bool,
}

impl Scanner {
    fn peek(&self, ahead: usize) -> char {
        self.characters.get(self.at + ahead).copied().unwrap_or('\0')
    }

    fn has(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(ahead, c)| self.peek(ahead) == c)
    }

    fn step(&mut self) -> Step {
        let Some(&c) = self.characters.get(self.at) else { return Step::End };
        let enclosure = self.enclosures.last().copied().unwrap_or(Enclosure::Command);
        match c {
            '\\' if self.peek(1) == '\n' => return Step::Differs("lines that are continued"),
            '\\' | '\'' | '"' if enclosure == Enclosure::Backticks => return Step::Differs("quotes in backticks"),
            '\\' => self.at += 1,
            '$' if self.peek(1) == '(' && self.peek(2) != '(' => {
                self.enclosures.push(Enclosure::Command);
                self.at += 2;
                self.begins = true;
                return Step::Next;
            }
            '$' if matches!(self.peek(1), '(' | '[' | '{') => return self.expansion(),
            '`' if enclosure == Enclosure::Backticks => {
                self.enclosures.pop();
            }
            '`' if self.enclosures.contains(&Enclosure::Backticks) => return Step::Differs("brackets in backticks"),
            '`' => {
                self.enclosures.push(Enclosure::Backticks);
                self.at += 1;
                self.begins = true;
                return Step::Next;
            }
            '"' if enclosure == Enclosure::Quotes => {
                self.enclosures.pop();
            }
            '"' => self.enclosures.push(Enclosure::Quotes),
            _ if enclosure == Enclosure::Quotes => {}
            _ => return self.unquoted(c),
        }
        self.begins = false;
        self.at += 1;
        Step::Next
    }

    /// Reads an expansion, which double quotes do not prevent.
    fn expansion(&mut self) -> Step {
        match self.peek(1) {
            '(' => return Step::Differs("arithmetic"),
            '[' => return Step::Differs("`$[…]`"),
            _ => {}
        }
        let rest = self.characters.get(self.at + 2..).unwrap_or_default();
        let Some(end) = rest.iter().position(|&c| c == '}') else { return Step::Differs("this parameter expansion") };
        let inner: String = rest.iter().take(end).collect();
        if !is_portable(&inner) {
            return Step::Differs("this parameter expansion");
        }
        self.at += end + 3;
        self.begins = false;
        Step::Next
    }

    fn unquoted(&mut self, c: char) -> Step {
        if let Some(construct) = self.operator() {
            return Step::Differs(construct);
        }
        match c {
            '\'' => {
                self.begins = false;
                self.at += 1;
                while !matches!(self.peek(0), '\'' | '\0') {
                    self.at += 1;
                }
            }
            '\n' | ';' | '|' | '&' | '(' => {
                if c == '(' {
                    self.enclosures.push(Enclosure::Command);
                }
                self.begins = true;
            }
            // A pattern of `case` ends with a bracket, too.
            ')' => {
                if self.enclosures.len() > 1 && self.enclosures.last() == Some(&Enclosure::Command) {
                    self.enclosures.pop();
                }
                self.begins = true;
            }
            ' ' | '\t' | '<' | '>' => {}
            '#' if self.at == 0 || self.characters.get(self.at - 1).is_some_and(|&c| ends_word(c)) => {
                while !matches!(self.peek(0), '\n' | '\0') {
                    self.at += 1;
                }
                return Step::Next;
            }
            _ => return self.word(),
        }
        self.at += 1;
        Step::Next
    }

    fn word(&mut self) -> Step {
        let start = self.at;
        while !ends_word(self.peek(0)) && !matches!(self.peek(0), '"' | '\'' | '\\' | '$') {
            let next = self.peek(1);
            let is_group = self.at == start && matches!(next, ' ' | '\t' | '\n' | '\0') || next == '}';
            if self.peek(0) == '{' && !is_group {
                return Step::Differs("braces");
            }
            self.at += 1;
        }
        let word: String = self.characters.get(start..self.at).unwrap_or_default().iter().collect();
        if word.contains("+=") || word.contains("]=") {
            return Step::Differs("assignments");
        }
        if self.begins && WORDS.contains(&word.as_str()) {
            return Step::Differs("keywords and builtins");
        }
        // The bracket behind a pattern looks like the end of the brackets around it.
        if self.begins && word == "case" && self.enclosures.len() > 1 {
            return Step::Differs("`case` in brackets");
        }
        // `f()` begins a function; any other bracket belongs to an array or a pattern.
        if !word.is_empty() && self.peek(0) == '(' && self.peek(1) != ')' {
            return Step::Differs("arrays and patterns with brackets");
        }
        self.begins = self.begins && word.contains('=') || BEFORE_COMMANDS.contains(&word.as_str());
        if self.at == start {
            self.begins = false;
            self.at += 1;
        }
        Step::Next
    }

    fn operator(&self) -> Option<&'static str> {
        const OPERATORS: [(&str, &str); 9] = [
            ("$'", "`$'…'`"),
            ("$\"", "`$\"…\"`"),
            ("((", "`((…))`"),
            ("&>", "`&>`"),
            ("|&", "`|&`"),
            ("<(", "process substitutions"),
            (">(", "process substitutions"),
            ("<<", "here-documents"),
            (";&", "`;&`"),
        ];
        if let Some((_, construct)) = OPERATORS.iter().find(|(operator, _)| self.has(operator)) {
            return Some(construct);
        }
        if self.has(">&") || self.has("<&") {
            let is_plain = matches!(self.peek(2), '0'..='9' | '-') && ends_word(self.peek(3));
            return (!is_plain).then_some("descriptors");
        }
        None
    }
}

/// Returns `true` if this character ends an unquoted word.
fn ends_word(c: char) -> bool {
    matches!(c, '\0' | ' ' | '\t' | '\n' | ';' | '|' | '&' | '(' | ')' | '<' | '>' | '`')
}

/// Returns `true` if `${inner}` is an expansion of POSIX without quotes, and without expansions other than plain variables.
fn is_portable(inner: &str) -> bool {
    let name = inner.strip_prefix('#').filter(|name| !name.is_empty()).unwrap_or(inner);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let special = usize::from(name.starts_with(['@', '*', '#', '?', '-', '$', '!']));
    let ends = if special > 0 { special } else { name.find(|c| !is_name(c)).unwrap_or(name.len()) };
    let rest = name.get(ends..).unwrap_or_default();
    let word = match rest.strip_prefix(':') {
        Some(word) => word.strip_prefix(['-', '+', '=', '?']),
        None => rest.strip_prefix(['-', '+', '=', '?', '%', '#']),
    };
    let is_plain =
        |c: char| is_name(c) || matches!(c, ' ' | '.' | '/' | ':' | '-' | '*' | '?' | '%' | '#' | ',' | '=' | '@');
    ends > 0 && (rest.is_empty() || word.is_some_and(|word| word.chars().all(is_plain)))
}
