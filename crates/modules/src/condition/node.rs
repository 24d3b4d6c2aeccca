//! The tree of a checked expression.

use globset::GlobSet;
use regex::Regex;
use serde_json::Value;

use super::Span;

#[derive(Debug)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) span: Span,
}

#[derive(Debug)]
pub(super) enum Kind {
    Constant(Value),
    Event,
    Data,
    Field(String),
    HasField(String),
    /// The current item of a surrounding loop; loops are counted from the outside.
    Item(usize),
    Select(Box<Node>, String),
    Has(Box<Node>, String),
    Index(Box<[Node; 2]>),
    Not(Box<Node>),
    Negate(Box<Node>),
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    If(Box<[Node; 3]>),
    Binary(Operator, Box<[Node; 2]>),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
    Loop(Box<Loop>),
    Call(Function, Vec<Node>),
    Matches(Box<Node>, Regex),
    /// Number of times an event has happened in the session, with any tool or with one.
    SessionCount(String, Option<Box<Node>>),
    /// The path, and the patterns as written and compiled.
    PathMatches(Box<Node>, Vec<String>, GlobSet),
    /// The patterns of files that a tool call changes.
    Changes(Vec<String>),
}

#[derive(Debug)]
pub(super) struct Loop {
    pub(super) range: Node,
    pub(super) body: LoopBody,
}

#[derive(Debug)]
pub(super) enum LoopBody {
    All(Node),
    Exists(Node),
    ExistsOne(Node),
    /// `map` and `filter`: an optional test, and the new item.
    Collect {
        filter: Option<Node>,
        make: Node,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
}

impl Operator {
    pub(super) fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::In => "in",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Changes,
    Contains,
    Date,
    EndsWith,
    HasSecret,
    Hour,
    InWorkspace,
    Int,
    LowerAscii,
    Matches,
    Minute,
    PathMatches,
    SessionCount,
    SessionMinutes,
    Shell,
    Size,
    StartsWith,
    String,
    Turn,
    Weekday,
    Workspace,
}

impl Function {
    /// Every function with its name and number of arguments. `a.f(b)` is `f(a, b)`.
    pub(super) const ALL: [(&str, Self, usize); 21] = [
        ("changes", Self::Changes, 1),
        ("contains", Self::Contains, 2),
        ("date", Self::Date, 0),
        ("endsWith", Self::EndsWith, 2),
        ("has_secret", Self::HasSecret, 1),
        ("hour", Self::Hour, 0),
        ("in_workspace", Self::InWorkspace, 1),
        ("int", Self::Int, 1),
        ("lowerAscii", Self::LowerAscii, 1),
        ("matches", Self::Matches, 2),
        ("minute", Self::Minute, 0),
        ("path_matches", Self::PathMatches, 2),
        // The tool is optional.
        ("session_count", Self::SessionCount, 2),
        ("session_minutes", Self::SessionMinutes, 0),
        ("shell", Self::Shell, 1),
        ("size", Self::Size, 1),
        ("startsWith", Self::StartsWith, 2),
        ("string", Self::String, 1),
        ("turn", Self::Turn, 0),
        ("weekday", Self::Weekday, 0),
        ("workspace", Self::Workspace, 0),
    ];
}

/// The fields of `shell(command)`.
pub(super) const SHELL_FIELDS: [&str; 13] = [
    "analysable",
    "programs",
    "commands",
    "writes",
    "deletes",
    "network",
    "hosts",
    "sends",
    "runs_download",
    "force_push",
    "destructive",
    "readonly",
    "why",
];
