//! Simple commands, assignments and redirections.

use super::word::{Bracket, Patterns};
use super::{
    Argument, Assignment, AssignmentValue, Command, CommandPart, Descriptor, RESERVED, Reader, Redirection,
    RedirectionKind, RedirectionTarget, Refusal, SYNTAX, SimpleCommand, ends_word, is_name, is_name_byte,
};

/// Commands that assign their arguments.
const DECLARATIONS: [&str; 5] = ["declare", "export", "local", "readonly", "typeset"];

/// Operators of redirections, longer ones first.
const OPERATORS: [(&str, RedirectionKind); 10] = [
    ("&>>", RedirectionKind::Append),
    ("&>", RedirectionKind::Write),
    (">>", RedirectionKind::Append),
    (">|", RedirectionKind::Write),
    (">&", RedirectionKind::DuplicateOutput),
    (">", RedirectionKind::Write),
    ("<>", RedirectionKind::ReadWrite),
    ("<&", RedirectionKind::DuplicateInput),
    ("<<", RedirectionKind::Read),
    ("<", RedirectionKind::Read),
];

impl<'a> Reader<'a> {
    /// Reads a simple command, or a function that begins with its name.
    pub(super) fn simple(&mut self) -> Result<Command<'a>, Refusal> {
        let mut simple = SimpleCommand::default();
        loop {
            self.skip_blanks();
            if !self.opens_process()
                && let Some(redirection) = self.redirection()?
            {
                simple.parts.push(CommandPart::Redirection(redirection));
            } else if let Some(name) = simple.name {
                match self.argument(name)? {
                    Argument::Word("") => return Ok(Command::Simple(simple)),
                    argument => simple.parts.push(CommandPart::Argument(argument)),
                }
            } else if let Some(assignment) = self.assignment()? {
                let is_array = matches!(assignment.value, AssignmentValue::Array(_));
                if is_array && matches!(simple.parts.last(), Some(CommandPart::Redirection(_))) {
                    return Err(SYNTAX);
                }
                simple.parts.push(CommandPart::Assignment(assignment));
            } else {
                let name = self.word(Patterns::None)?;
                if name.is_empty() && !simple.parts.is_empty() {
                    return Ok(Command::Simple(simple));
                }
                if simple.parts.is_empty() && self.skip_brackets()? {
                    return self.function(name);
                }
                // The program `time` is not the reserved word, which a pipeline begins with.
                if name.is_empty() || RESERVED.contains(&name) && name != "time" || name.starts_with(['<', '>']) {
                    return Err(SYNTAX);
                }
                simple.name = Some(name);
            }
        }
    }

    /// Skips the brackets of a function, if they follow.
    pub(super) fn skip_brackets(&mut self) -> Result<bool, Refusal> {
        self.skip_blanks();
        let follows = self.skip("(");
        if follows {
            self.skip_blanks();
            self.expect(")")?;
        }
        Ok(follows)
    }

    /// Reads an argument of a command; an empty word if none follows.
    fn argument(&mut self, command: &str) -> Result<Argument<'a>, Refusal> {
        let start = self.at;
        let argument = self.word_or_process(Patterns::Extended)?;
        let is_array = |word: &str| {
            let name = word.strip_suffix('=').map(|word| word.strip_suffix('+').unwrap_or(word));
            name.is_some_and(is_name) && DECLARATIONS.contains(&command)
        };
        match argument {
            Argument::Word(word) if self.peek() == Some(b'(') && is_array(word) => {
                self.array()?;
                let word = self.text_from(start);
                // Quotes in a comment would be taken for quotes of the word.
                if word.contains('#') && word.contains('\n') { Err(SYNTAX) } else { Ok(Argument::Word(word)) }
            }
            argument => Ok(argument),
        }
    }

    fn word_or_process(&mut self, patterns: Patterns) -> Result<Argument<'a>, Refusal> {
        let start = self.at;
        if self.opens_process() {
            let list = self.process_substitution()?;
            self.expect_one_line(self.text_from(start))?;
            let is_continued = self.starts_with("\\\n");
            if is_continued {
                self.expect_end_of_word()?;
            }
            if is_continued || self.peek().is_none_or(ends_word) && !self.opens_process() {
                return Ok(Argument::ProcessSubstitution(list));
            }
        }
        Ok(Argument::Word(self.word_from(start, patterns)?))
    }

    fn assignment(&mut self) -> Result<Option<Assignment<'a>>, Refusal> {
        let start = self.at;
        self.at += self.rest().bytes().take_while(|byte| is_name_byte(*byte)).count();
        let name = self.text_from(start);
        let subscript = if is_name(name) { self.subscript()? } else { None };
        let appends = self.skip("+=");
        if !is_name(name) || !appends && !self.skip("=") {
            self.at = start;
            // A pattern, or something that this reader does not know.
            return if subscript.is_some() { Err(SYNTAX) } else { Ok(None) };
        }
        let value = if self.peek() == Some(b'(') && subscript.is_none() {
            AssignmentValue::Array(self.array()?)
        } else {
            AssignmentValue::Scalar(self.word(Patterns::None)?)
        };
        Ok(Some(Assignment { name, subscript, appends, value }))
    }

    /// Reads `[…]`, if it follows.
    fn subscript(&mut self) -> Result<Option<&'a str>, Refusal> {
        let start = self.at + 1;
        if !self.skip("[") {
            return Ok(None);
        }
        self.nested(|reader| reader.bracketed(Bracket::Subscript))?;
        let subscript = self.text_from(start).strip_suffix(']').unwrap_or_default();
        if subscript.is_empty() || subscript.contains('\n') { Err(SYNTAX) } else { Ok(Some(subscript)) }
    }

    /// Reads the elements of an array, each with its subscript, and the brackets around them.
    fn array(&mut self) -> Result<Vec<(Option<&'a str>, &'a str)>, Refusal> {
        let start = self.at;
        let pending = std::mem::take(&mut self.pending);
        let mut elements = Vec::new();
        self.expect("(")?;
        loop {
            self.skip_lines()?;
            if self.skip(")") {
                break;
            }
            let element = self.at;
            let subscript = self.subscript()?;
            if subscript.is_some() && (self.skip("+=") || self.skip("=")) {
                elements.push((subscript, self.word(Patterns::None)?));
                continue;
            }
            if subscript.is_some_and(|pattern| pattern.contains([' ', '\t'])) {
                return Err(SYNTAX);
            }
            match self.word_from(element, Patterns::Extended)? {
                "" => return Err(SYNTAX),
                word => elements.push((None, word)),
            }
        }
        self.pending = pending;
        self.expect_one_line(self.text_from(start))?;
        if self.peek().is_none_or(ends_word) { Ok(elements) } else { Err(SYNTAX) }
    }

    /// Reads the redirections after a compound command.
    pub(super) fn redirections(&mut self) -> Result<Vec<Redirection<'a>>, Refusal> {
        let mut redirections = Vec::new();
        loop {
            self.skip_blanks();
            match self.redirection()? {
                Some(redirection) => redirections.push(redirection),
                None => return Ok(redirections),
            }
        }
    }

    fn redirection(&mut self) -> Result<Option<Redirection<'a>>, Refusal> {
        let descriptor = self.descriptor()?;
        let Some((operator, kind)) = OPERATORS.into_iter().find(|(operator, _)| self.skip(operator)) else {
            return Ok(None);
        };
        let is_document = operator == "<<" && !self.starts_with("<");
        let is_text = operator == "<<" && self.skip("<");
        let strips_tabs = is_document && self.skip("-");
        self.skip_blanks();
        self.expect_no_descriptor()?;
        let duplicates = matches!(kind, RedirectionKind::DuplicateInput | RedirectionKind::DuplicateOutput);
        let target = if is_document {
            RedirectionTarget::HereDocument(self.here_document(strips_tabs)?)
        } else {
            match self.word_or_process(Patterns::Extended)? {
                Argument::Word("") => return Err(SYNTAX),
                // A descriptor is closed, and a word begins after the hyphen.
                Argument::Word(word) if duplicates && word.starts_with('-') && word.len() > 1 => return Err(SYNTAX),
                Argument::Word(word) if is_text => RedirectionTarget::HereString(word),
                Argument::ProcessSubstitution(_) if is_text => return Err(SYNTAX),
                argument => RedirectionTarget::File(argument),
            }
        };
        Ok(Some(Redirection { descriptor, kind, target }))
    }

    /// Refuses a word that may be the descriptor of a redirection, where there is none.
    pub(super) fn expect_no_descriptor(&mut self) -> Result<(), Refusal> {
        if matches!(self.descriptor()?, Descriptor::Implied) { Ok(()) } else { Err(SYNTAX) }
    }

    /// Reads the descriptor before `<` or `>`, if there is one.
    fn descriptor(&mut self) -> Result<Descriptor<'a>, Refusal> {
        let end = self.rest().bytes().position(ends_word).unwrap_or_default();
        let (word, after) = self.rest().split_at_checked(end).unwrap_or_default();
        let variable = word.strip_prefix('{').and_then(|word| word.strip_suffix('}'));
        if !after.starts_with(['<', '>']) {
            return Ok(Descriptor::Implied);
        }
        let descriptor = if !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()) {
            Descriptor::Number(word.parse().map_err(|_| SYNTAX)?)
        } else if let Some(variable) = variable.filter(|variable| is_name(variable)) {
            Descriptor::Variable(variable)
        } else if variable.is_some_and(|variable| variable.contains('[')) {
            return Err(SYNTAX);
        } else {
            return Ok(Descriptor::Implied);
        };
        self.at += end;
        Ok(descriptor)
    }
}
