//! Parsing with two grammars of bash, which must agree.

use std::ops::ControlFlow;

use tree_sitter::{Node, ParseOptions, Parser};

use super::grammar;

/// Limits for parsing all texts of a command.
pub(super) struct ParseBudget {
    /// Hundreds of steps of tree-sitter, which explores ambiguities; hostile text has many.
    steps: usize,
    bytes: usize,
}

impl Default for ParseBudget {
    fn default() -> Self {
        Self { steps: 100, bytes: 256 << 10 }
    }
}

pub(super) struct ParsedText<'a> {
    pub(super) list: grammar::List<'a>,
    /// The names of all simple commands as tree-sitter reads them, sorted.
    pub(super) names: Vec<String>,
}

/// Parses `text`. An error is the reason why the text is not analysable.
pub(super) fn parse<'a>(text: &'a str, budget: &mut ParseBudget) -> Result<ParsedText<'a>, String> {
    budget.bytes = budget.bytes.checked_sub(text.len()).ok_or(TOO_LONG)?;
    // tree-sitter goes first: it does not recurse and can be interrupted.
    let names = names(text, budget)?;
    Ok(ParsedText { list: grammar::read(text)?, names })
}

const TOO_LONG: &str = "the command takes too long to parse; simplify the command";

fn names(text: &str, budget: &mut ParseBudget) -> Result<Vec<String>, String> {
    // The time of the grammar grows fast for long rows of these. Conflict markers in a text have few.
    let rows = text.split(|c| !matches!(c, '<' | '>')).map(str::len);
    if rows.filter(|length| *length > 3).sum::<usize>() > 256 {
        return Err("the command does not parse; check its redirections".to_owned());
    }

    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).map_err(|error| error.to_string())?;
    let mut patience = |_: &_| match budget.steps.checked_sub(1) {
        Some(left) => {
            budget.steps = left;
            ControlFlow::Continue(())
        }
        None => ControlFlow::Break(()),
    };
    let tree = parser
        .parse_with_options(
            &mut |at, _| text.as_bytes().get(at..).unwrap_or_default(),
            None,
            Some(ParseOptions::new().progress_callback(&mut patience)),
        )
        .ok_or(TOO_LONG)?;
    if tree.root_node().has_error() {
        return Err("the command is not understood; check its syntax, or write it in a simpler way".to_owned());
    }
    let mut names = Vec::new();
    let mut cursor = tree.walk();
    // Iterative, because the depth of the tree depends on the input.
    loop {
        names.extend(name(cursor.node(), text));
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                names.sort_unstable();
                return Ok(names);
            }
        }
    }
}

/// Returns the name of a simple command, if `node` is one.
fn name(node: Node<'_>, text: &str) -> Option<String> {
    let written = match node.kind() {
        "command" => node.child_by_field_name("name")?,
        "declaration_command" | "unset_command" => node.child(0)?,
        "test_command" => node.child(0).filter(|bracket| bracket.kind() == "[")?,
        _ => return None,
    };
    text.get(written.byte_range()).map(str::to_owned)
}
