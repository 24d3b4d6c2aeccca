//! Hooks from configuration: bundles, rules, and programs in any language.

pub mod bundle;
mod condition;
mod rule;
pub mod shell;
mod starter;
mod template;
pub mod transport;

pub use condition::{Condition, ConditionError, Scope, ShellAnalysis, Span};
pub use rule::{ModifyOptions, Pointers, Rule, RuleError, RuleOptions};
pub use starter::{Starter, StarterFile};
pub use template::Template;
