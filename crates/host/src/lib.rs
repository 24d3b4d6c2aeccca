#![doc = include_str!("../README.md")]

pub mod anchors;
mod approvals;
mod audit;
pub mod bundles;
mod config;
mod environment;
mod error;
mod git_undo;
pub mod guards;
mod home;
mod machine;
mod mcp_definitions;
mod mode;
mod model;
mod notices;
mod policy;
mod protection;
mod reload;
mod rule_store;
mod server_link;
mod session;
mod trust;

pub use anchors::AnchorConfig;
pub use approvals::ApprovalFanOut;
pub use audit::{close_log, open_log};
pub use bundles::{Bundles, PROJECT_BUNDLE, Project, ProjectTrust, project_bundle};
pub use config::{ApprovalChannel, ApprovalMode, Config, Confirm, Overrides, Setting, Source};
pub use environment::Environment;
pub use error::{Error, Result, UsageError, reasons, usage};
pub use guards::DenyAllApprovals;
pub use home::Home;
pub use machine::{Machine, MachineHandle, workspace_folder};
pub use mcp_definitions::McpDefinitionStore;
pub use mode::ModeSwitch;
pub use model::{ModelChoice, NO_MODEL};
pub use notices::{Notice, Notices};
pub use policy::{Policy, PolicyBuilder};
pub use protection::{ActiveSandbox, ProtectedPaths, ProtectionPlan, SandboxLevel, SandboxSettings};
pub use reload::{BundleReloader, record_change};
pub use rule_store::{ApprovalRuleFiles, ApprovalRuleStore, RuleFile, quoted_path, rule_from_entry};
pub use server_link::{LinkOptions, LinkTarget, RemoteControl, ServerLink};
pub use session::{SessionBuilder, SessionParts, tool_names};
pub use trust::{TrustAnswer, TrustPrompt, TrustRequest, decide as decide_trust, record as record_trust};

pub use futures::future::BoxFuture;
