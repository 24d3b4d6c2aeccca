#![doc = include_str!("../README.md")]

mod builtin;
pub mod bundle;
mod condition;
mod counters;
mod environment;
mod mistake;
pub mod replay;
mod rule;
pub mod shell;
mod starter;
mod template;
mod tool_schema;
pub mod tool_words;
pub mod transport;
pub mod trust;

pub use builtin::{MODULES, Module, WAITER};
pub use condition::{Condition, ConditionError, Scope, ShellAnalysis, Span};
pub use counters::COUNTER;
pub use environment::{HookEnvironment, SandboxRequest};
pub use rule::{ModifyOptions, Pointers, Rule, RuleError, RuleOptions};
pub use starter::{Starter, StarterFile};
pub use template::Template;
pub use tool_schema::ToolSchema;
