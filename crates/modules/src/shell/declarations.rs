//! Builtins that declare variables: their assignments and evaluations.

use super::command::Command;
use super::options::Arguments;
use super::walk::Walker;

/// Records the assignments of `export`, `declare` and others. With `-i` and `-n`, values are evaluated.
pub(super) fn note(name: &str, command: &Command, arguments: &Arguments, walker: &mut Walker) {
    if !matches!(name, "export" | "declare" | "local" | "typeset" | "readonly" | "let") {
        return;
    }
    if name == "let" || name != "export" && arguments.may_have("inA", &[]) {
        walker.evaluates();
    }
    for word in command.arguments() {
        if let Some((variable, _)) = word.lead().split_once('=') {
            let value = word.tail(variable.len() + 1);
            walker.assigned_value(variable, Some(&value));
        }
    }
}
