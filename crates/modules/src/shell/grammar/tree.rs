//! The syntax tree of a bash script. Words are text as written, with quotes and expansions.

use std::cell::Cell;
use std::rc::Rc;

pub(in crate::shell) type List<'a> = Vec<AndOrList<'a>>;

/// Pipelines that `&&` and `||` connect.
pub(in crate::shell) struct AndOrList<'a> {
    pub(in crate::shell) pipelines: Vec<Pipeline<'a>>,
    /// `true` if `&` follows.
    pub(in crate::shell) is_async: bool,
}

pub(in crate::shell) struct Pipeline<'a> {
    /// `true` if `||` precedes.
    pub(in crate::shell) is_alternative: bool,
    /// `true` if `time` precedes.
    pub(in crate::shell) is_timed: bool,
    pub(in crate::shell) commands: Vec<Command<'a>>,
}

pub(in crate::shell) enum Command<'a> {
    Simple(SimpleCommand<'a>),
    Compound(CompoundCommand<'a>, Vec<Redirection<'a>>),
    Function(Function<'a>),
}

#[derive(Default)]
pub(in crate::shell) struct SimpleCommand<'a> {
    /// The first word.
    pub(in crate::shell) name: Option<&'a str>,
    /// Everything else, in the order of writing.
    pub(in crate::shell) parts: Vec<CommandPart<'a>>,
}

pub(in crate::shell) enum CommandPart<'a> {
    /// An assignment before the name. After the name, assignments are words.
    Assignment(Assignment<'a>),
    Redirection(Redirection<'a>),
    Argument(Argument<'a>),
}

pub(in crate::shell) enum Argument<'a> {
    Word(&'a str),
    /// A word that is exactly one process substitution.
    ProcessSubstitution(List<'a>),
}

pub(in crate::shell) struct Assignment<'a> {
    pub(in crate::shell) name: &'a str,
    pub(in crate::shell) subscript: Option<&'a str>,
    /// `true` for `+=`.
    pub(in crate::shell) appends: bool,
    pub(in crate::shell) value: AssignmentValue<'a>,
}

pub(in crate::shell) enum AssignmentValue<'a> {
    Scalar(&'a str),
    /// The elements, each with its subscript.
    Array(Vec<(Option<&'a str>, &'a str)>),
}

pub(in crate::shell) struct Redirection<'a> {
    pub(in crate::shell) descriptor: Descriptor<'a>,
    pub(in crate::shell) kind: RedirectionKind,
    pub(in crate::shell) target: RedirectionTarget<'a>,
}

/// The text before a redirection operator.
pub(in crate::shell) enum Descriptor<'a> {
    Implied,
    Number(u32),
    /// `{name}`: a variable that receives the number.
    Variable(&'a str),
}

#[derive(Clone, Copy, PartialEq)]
pub(in crate::shell) enum RedirectionKind {
    Read,
    ReadWrite,
    /// `>`, `>|` and `&>`.
    Write,
    /// `>>` and `&>>`.
    Append,
    DuplicateInput,
    DuplicateOutput,
}

pub(in crate::shell) enum RedirectionTarget<'a> {
    File(Argument<'a>),
    HereString(&'a str),
    HereDocument(HereDocument<'a>),
}

pub(in crate::shell) struct HereDocument<'a> {
    /// The text, which follows on later lines: it is set when those are read.
    pub(in crate::shell) body: Rc<Cell<&'a str>>,
    /// `true` if the delimiter has no quotes.
    pub(in crate::shell) expands: bool,
    /// `true` for `<<-`. The body has the tabs.
    pub(in crate::shell) strips_tabs: bool,
}

pub(in crate::shell) enum CompoundCommand<'a> {
    Group(List<'a>),
    Subshell(List<'a>),
    /// The conditions and branches, in the order of writing.
    If(Vec<List<'a>>),
    /// `while` and `until`.
    Loop {
        condition: List<'a>,
        body: List<'a>,
    },
    For {
        variable: &'a str,
        words: Vec<&'a str>,
        body: List<'a>,
    },
    ArithmeticFor {
        expressions: Vec<&'a str>,
        body: List<'a>,
    },
    Case {
        word: &'a str,
        /// The patterns and the commands of each branch.
        branches: Vec<(Vec<&'a str>, List<'a>)>,
    },
    Arithmetic(&'a str),
    /// The operations in `[[ … ]]`, without what connects them.
    Test(Vec<TestOperation<'a>>),
}

pub(in crate::shell) struct TestOperation<'a> {
    /// Empty for a lone operand.
    pub(in crate::shell) operator: &'a str,
    pub(in crate::shell) operands: Vec<&'a str>,
}

pub(in crate::shell) struct Function<'a> {
    pub(in crate::shell) name: &'a str,
    pub(in crate::shell) body: CompoundCommand<'a>,
    pub(in crate::shell) redirections: Vec<Redirection<'a>>,
}
