//! Walk over assignments of variables.

use super::{CommandText, Walker};
use crate::shell::grammar::{Assignment, AssignmentValue};
use crate::shell::word::Word;
use crate::shell::{readonly, subscript, variables};

impl Walker {
    pub(super) fn assignment(&mut self, assignment: &Assignment<'_>) {
        let name = assignment.name;
        let value = match assignment.value {
            AssignmentValue::Scalar(value) => Some(Word::new(value)),
            AssignmentValue::Array(_) => None,
        };
        self.assigned(name);
        match assignment.subscript {
            Some(subscript) => self.subscript(subscript),
            None => self.assigned_value(name, value.as_ref().filter(|_| !assignment.appends)),
        }
        if !readonly::is_harmless_variable(name) {
            let text = value.as_ref().and_then(Word::literal).unwrap_or("…");
            self.record_command_text(CommandText { plain: format!("{name}={text}"), with_path: None });
        }
        if let Some(value) = &value {
            self.expand(value);
        }
        if let AssignmentValue::Array(elements) = &assignment.value {
            for (subscript, value) in elements {
                if let Some(subscript) = subscript {
                    self.subscript(subscript);
                }
                self.word(value);
            }
        }
    }

    /// Walks a subscript: arithmetic, unless the array is associative, which is unknown.
    pub(super) fn subscript(&mut self, index: &str) {
        if !index.bytes().all(|b| b.is_ascii_digit()) {
            self.evaluates();
        }
        self.word(index);
    }

    pub(in crate::shell) fn assigned(&mut self, name: &str) {
        self.forget_listing(name);
        if !readonly::is_harmless_variable(name) {
            self.taint();
        }
    }

    /// Records the new value of a variable; `None` if the value is not a single word.
    pub(in crate::shell) fn assigned_value(&mut self, name: &str, value: Option<&Word>) {
        let text = value.and_then(Word::literal);
        let known = text.map(str::to_owned).or_else(|| {
            let value = value?;
            variables::substituted(&value.raw).or_else(|| self.expand_known(value))
        });
        self.variables.assign(name, known);
        if let Some(value) = value {
            self.holds(value);
        }
        if variables::runs(name, text) {
            self.refuse(format!("programs run the value of the variable `{name}`; leave the variable out"));
        }
    }

    /// Records parts of subscripts and commands in a value that may be evaluated as arithmetic.
    pub(in crate::shell) fn holds(&mut self, value: &Word) {
        let text = value.kept_text();
        self.bracketed |= subscript::opens(&text);
        self.dollars |= subscript::has_command(&text) || subscript::ends_in_dollar(&text);
    }
}
