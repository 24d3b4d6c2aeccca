//! Parsing of untrusted text to a checked expression.

use std::collections::BTreeSet;
use std::thread;

use cel::parser::{ParseErrors, Parser};

use super::error::{ConditionError, Span};
use super::lower::{TOO_DEEP, lower};
use super::node::Node;
use super::syntax_error::explain;

pub(super) const MAX_LENGTH: usize = 2048;
pub(super) const MAX_DEPTH: usize = 24;
/// Maximum nesting of brackets and `?:` for the parser.
const PARSER_DEPTH: u16 = 100;
/// Stack size in bytes: the parser recurses a dozen calls deep for each bracket and operator, so 2 KB of text can need megabytes.
const STACK: usize = 64 << 20;

/// Parses and checks an expression. Returns it with the events whose counts it uses.
pub(super) fn parse(source: &str) -> Result<(Node, BTreeSet<String>), ConditionError> {
    check_size(source)?;
    let compile = || {
        // Brackets were counted before, but only the parser identifies them reliably.
        let parser = Parser::new().max_recursion_depth(PARSER_DEPTH);
        let parsed = parser.parse_with_source_info(source);
        let (expression, info) = parsed.map_err(|errors| syntax_error(source, &errors))?;
        lower(source, &info, expression)
    };
    let failed = |what: &str| ConditionError::new(source, Span::new(0, source.len()), what);
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("condition".into()).stack_size(STACK).spawn_scoped(scope, compile);
        let thread = thread.map_err(|error| failed(&format!("no thread to compile the expression on: {error}")))?;
        // A panic in the parser is reported as an error of the expression.
        thread.join().unwrap_or_else(|_| Err(failed("the expression cannot be read")))
    })
}

fn check_size(source: &str) -> Result<(), ConditionError> {
    if source.len() > MAX_LENGTH {
        let message = format!("the expression has {} bytes, {MAX_LENGTH} are allowed", source.len());
        // Without the source, which is too long to show.
        let error = ConditionError::new("", Span::new(MAX_LENGTH, source.len() - MAX_LENGTH), message);
        return Err(error.with_help(Some("split it into several rules".into())));
    }
    if source.trim().is_empty() {
        return Err(ConditionError::new(source, Span::default(), "the expression is empty"));
    }
    let mut depth = 0_usize;
    for (at, byte) in outside_strings(source) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            let message = format!("brackets are nested deeper than {MAX_DEPTH}");
            return Err(ConditionError::new(source, Span::new(at, 1), message));
        }
    }
    Ok(())
}

/// Returns the bytes of an expression that are outside of string literals, with their offsets.
pub(crate) fn outside_strings(source: &str) -> impl Iterator<Item = (usize, u8)> {
    let bytes = source.as_bytes();
    let (mut quote, mut raw, mut escaped) = (None, false, false);
    bytes.iter().enumerate().filter_map(move |(at, &byte)| match quote {
        Some(_) if escaped => {
            escaped = false;
            None
        }
        Some(_) if byte == b'\\' && !raw => {
            escaped = true;
            None
        }
        Some(open) => {
            if byte == open {
                quote = None;
            }
            None
        }
        None if matches!(byte, b'"' | b'\'') => {
            quote = Some(byte);
            raw = at > 0 && matches!(bytes[at - 1], b'r' | b'R');
            None
        }
        None => Some((at, byte)),
    })
}

/// Returns the first error; later ones are mostly consequences.
fn syntax_error(source: &str, errors: &ParseErrors) -> ConditionError {
    let Some(error) = errors.errors.iter().find(|error| !error.msg.contains("error recovery")) else {
        return ConditionError::new(source, Span::new(0, source.len()), "the expression cannot be read");
    };
    let (line, column) = error.pos;
    let line = usize::try_from(line).unwrap_or_default().saturating_sub(1);
    let column = usize::try_from(column).unwrap_or_default().saturating_sub(1);
    let begin: usize = source.split_inclusive('\n').take(line).map(str::len).sum();
    let rest = &source[begin..];
    let offset = begin + rest.char_indices().nth(column).map_or(rest.len(), |(at, _)| at);
    let length = source[offset..].chars().next().map_or(0, char::len_utf8);
    if error.msg.contains("Recursion limit") {
        return ConditionError::new(source, Span::new(offset, length), TOO_DEEP);
    }
    explain(source, offset, &error.msg)
}
