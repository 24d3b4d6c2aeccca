//! Scripts of `sed`, read far enough to find the commands that run programs and write files.

/// What a command of a script does beside editing.
#[derive(Debug, PartialEq)]
pub(super) enum Effect<'a> {
    Writes(&'a str),
    /// Runs this command, or what is read where it is empty.
    Runs(&'a str),
}

/// The effects of a script.
pub(super) fn effects(script: &str) -> Vec<Effect<'_>> {
    let mut reader = Reader { rest: script, effects: Vec::new() };
    while !reader.rest.is_empty() {
        reader.command();
    }
    reader.effects
}

struct Reader<'a> {
    rest: &'a str,
    effects: Vec<Effect<'a>>,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = self.rest.get(c.len_utf8()..).unwrap_or_default();
        Some(c)
    }

    /// The rest of the line.
    fn line(&mut self) -> &'a str {
        let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
        self.rest = rest;
        line.trim()
    }

    /// Skips a text up to an unescaped delimiter.
    fn skip_to(&mut self, delimiter: char) {
        let mut in_class = false;
        while let Some(c) = self.next() {
            match c {
                '\\' => drop(self.next()),
                '[' => in_class = true,
                ']' => in_class = false,
                c if c == delimiter && (!in_class || c == '\n') => return,
                _ => {}
            }
        }
    }

    /// Reads addresses, and the command that follows them.
    fn command(&mut self) {
        let Some(c) = self.next() else { return };
        match c {
            '/' => self.skip_to('/'),
            '\\' => {
                if let Some(delimiter) = self.next() {
                    self.skip_to(delimiter);
                }
            }
            's' | 'y' => {
                let Some(delimiter) = self.next() else { return };
                self.skip_to(delimiter);
                self.skip_replacement(delimiter);
                self.flags();
            }
            'e' => {
                let text = self.line();
                self.effects.push(Effect::Runs(text));
            }
            'w' | 'W' => {
                let file = self.line();
                self.effects.push(Effect::Writes(file));
            }
            'b' | 't' | 'T' => {
                let end = self.rest.find([';', '\n', '}']).unwrap_or(self.rest.len());
                self.rest = self.rest.get(end..).unwrap_or_default();
            }
            'a' | 'i' | 'c' | 'r' | 'R' | ':' | '#' => drop(self.line()),
            _ => {}
        }
    }

    /// Brackets mean nothing in what is put in place.
    fn skip_replacement(&mut self, delimiter: char) {
        while let Some(c) = self.next() {
            if c == '\\' {
                self.next();
            } else if c == delimiter {
                return;
            }
        }
    }

    fn flags(&mut self) {
        while let Some(c) = self.rest.chars().next() {
            match c {
                'g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9' => drop(self.next()),
                'e' => {
                    self.next();
                    self.effects.push(Effect::Runs(""));
                }
                'w' => {
                    self.next();
                    let file = self.line();
                    self.effects.push(Effect::Writes(file));
                }
                _ => return,
            }
        }
    }
}
