//! Walk over assignments of variables.

use brush_parser::ast;

use super::{CommandText, Walker};
use crate::shell::word::Word;
use crate::shell::{readonly, subscript, variables};

impl Walker {
    pub(super) fn assignment(&mut self, assignment: &ast::Assignment) {
        match &assignment.name {
            ast::AssignmentName::VariableName(name) => {
                self.assigned(name);
                let value = match &assignment.value {
                    ast::AssignmentValue::Scalar(value) if !assignment.append => Some(Word::new(&value.value)),
                    _ => None,
                };
                self.assigned_value(name, value.as_ref());
            }
            ast::AssignmentName::ArrayElementName(name, index) => {
                self.assigned(name);
                self.subscript(index);
            }
        }
        if let ast::AssignmentName::VariableName(name) | ast::AssignmentName::ArrayElementName(name, _) =
            &assignment.name
            && !readonly::is_harmless_variable(name)
        {
            let value = match &assignment.value {
                ast::AssignmentValue::Scalar(value) => Word::new(&value.value).literal().map(str::to_owned),
                ast::AssignmentValue::Array(_) => None,
            };
            let plain = format!("{name}={}", value.as_deref().unwrap_or("…"));
            self.record_command_text(CommandText { plain, with_path: None });
        }
        match &assignment.value {
            ast::AssignmentValue::Scalar(value) => {
                self.word(&value.value);
            }
            ast::AssignmentValue::Array(elements) => {
                for (index, value) in elements {
                    if let Some(index) = index {
                        self.subscript(&index.value);
                    } else if value.value.starts_with('[') {
                        // `[x]+=1`: the parser does not recognize the subscript.
                        self.evaluates();
                    }
                    self.word(&value.value);
                }
            }
        }
    }

    /// Walks a subscript: arithmetic, unless the array is associative, which is unknown.
    pub(super) fn subscript(&mut self, index: &str) {
        if !index.bytes().all(|b| b.is_ascii_digit()) {
            self.taint();
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
