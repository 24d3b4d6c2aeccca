//! Kinds and severities of mistakes in bundles.

use amplifier_core::words;

words! {
    /// Severity of a finding.
    #[derive(PartialOrd, Ord)]
    pub enum Severity("severity") {
        /// Probably a mistake; sessions use the bundle.
        Warning = "warning",
        /// A mistake.
        Error = "error",
    }
}

words! {
    /// Kind of a mistake in a bundle. The words are stable.
    pub enum MistakeCode("code") {
        /// The file cannot be read.
        File = "file",
        /// The file is empty.
        Empty = "empty",
        /// Invalid YAML.
        Yaml = "yaml",
        /// An unknown key.
        UnknownKey = "unknown-key",
        /// A value that the key cannot have.
        Value = "value",
        /// A key that does not fit the kind of hook, or a missing one.
        Hook = "hook",
        /// An include that cannot be used.
        Include = "include",
        /// An invalid rule.
        Rule = "rule",
        /// An invalid expression.
        Expression = "expression",
        /// An unknown event.
        UnknownEvent = "unknown-event",
        /// An unknown tool.
        UnknownTool = "unknown-tool",
        /// A field that the value does not have.
        UnknownField = "unknown-field",
        /// Values of types that do not fit.
        Type = "type",
        /// A condition that is never true.
        NeverTrue = "never-true",
        /// A setting without an effect.
        NoEffect = "no-effect",
        /// An invalid test.
        Test = "test",
        /// A program that cannot be started.
        Program = "program",
        /// A program that loads code which the agent can write.
        WorkspaceCode = "workspace-code",
        /// Two hooks with one name.
        DuplicateName = "duplicate-name",
        /// A mistake in a disabled hook.
        Disabled = "disabled",
    }
}
