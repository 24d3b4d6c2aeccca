//! Two grammars of bash, which have to agree.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use brush_parser::{ParserOptions, ast};
use tree_sitter::{Node, ParseOptions, Parser};

/// How long the first grammar may take: it explores ambiguities, and hostile text has many.
const PATIENCE: Duration = Duration::from_secs(2);

/// What the two grammars made of a text.
pub(super) struct Parsed {
    /// The syntax tree that is walked.
    pub(super) program: ast::Program,
    /// The names of all simple commands as the other grammar sees them, sorted.
    pub(super) names: Vec<String>,
}

/// Parses `text`, or says why it is not analysable.
pub(super) fn parse(text: &str) -> Result<Parsed, String> {
    // tree-sitter goes first: it needs no stack and can be interrupted.
    let names = names(text)?;
    let options = ParserOptions::default();
    let tokens = brush_parser::uncached_tokenize_str(text, &options.tokenizer_options())
        .map_err(|_| "the command does not parse; check its quotes and brackets".to_owned())?;
    let program = brush_parser::parse_tokens(&tokens, &options)
        .map_err(|_| "the command does not parse; check its syntax".to_owned())?;
    Ok(Parsed { program, names })
}

fn names(text: &str) -> Result<Vec<String>, String> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).map_err(|error| error.to_string())?;
    let begun = Instant::now();
    let mut patience =
        |_: &_| if begun.elapsed() > PATIENCE { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let tree = parser
        .parse_with_options(
            &mut |at, _| text.as_bytes().get(at..).unwrap_or_default(),
            None,
            Some(ParseOptions::new().progress_callback(&mut patience)),
        )
        .ok_or("the command takes too long to parse; write it more simply")?;
    if tree.root_node().has_error() {
        return Err("the command does not parse; check its syntax".to_owned());
    }
    let mut names = Vec::new();
    let mut cursor = tree.walk();
    // Depth first with a cursor: the depth of the tree is the input's, so recursion would be too.
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

/// The name of a simple command, when `node` is one.
fn name(node: Node<'_>, text: &str) -> Option<String> {
    let written = match node.kind() {
        "command" => node.child_by_field_name("name")?,
        "declaration_command" | "unset_command" => node.child(0)?,
        "test_command" => node.child(0).filter(|bracket| bracket.kind() == "[")?,
        _ => return None,
    };
    text.get(written.byte_range()).map(str::to_owned)
}
