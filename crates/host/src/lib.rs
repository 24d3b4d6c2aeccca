#![doc = include_str!("../README.md")]

pub mod anchors;
mod approval_rule_store;
mod approval_systems;
mod audit;
pub mod bundles;
mod config;
mod environment;
mod error;
#[cfg(feature = "fleet")]
mod fleet;
#[cfg(not(feature = "fleet"))]
#[path = "no_fleet.rs"]
mod fleet;
#[cfg(feature = "fleet")]
mod fleet_services;
mod git_undo;
mod guard_scope;
pub mod guards;
mod home;
mod hook_states;
mod machine;
mod managed;
mod mcp_definitions;
mod mode;
mod model;
mod notices;
mod notify;
mod operations;
mod policy;
mod previews;
mod project_bundle;
mod protection;
mod reload;
mod server_link;
mod session;
mod tool_schemas;
mod trust_prompt;

pub use anchors::AnchorConfig;
pub use approval_rule_store::{ApprovalRuleFiles, ApprovalRuleStore, RuleFile, quoted_path};
pub use approval_systems::{ApprovalFanOut, DenyAllApprovals};
pub use audit::{close_log, open_log};
pub use bundles::Bundles;
pub use config::{ApprovalChannel, ApprovalMode, Config, Confirm, Overrides, Setting, Source};
pub use environment::Environment;
pub use error::{Error, Result, UsageError, reasons, usage};
#[cfg(feature = "fleet")]
pub use fleet::Membership;
pub use guard_scope::{GuardScope, GuardedSessions};

pub use home::Home;
pub use hook_states::HookState;
pub use machine::{Machine, MachineHandle, workspace_folder};
pub use managed::MANAGED_BUNDLE;
pub use mcp_definitions::McpDefinitionStore;
pub use mode::ModeSwitch;
pub use model::{ModelChoice, NO_MODEL};
pub use notices::{Notice, Notices};
pub use notify::NotifyConfig;
pub use operations::{WorkspaceOperations, is_operation};
pub use policy::{Policy, PolicyBuilder};
pub use project_bundle::{PROJECT_BUNDLE, ProjectBundle, ProjectTrust, find_project_bundle_file};
pub use protection::{ActiveSandbox, ProtectedPaths, ProtectionPlan, SandboxLevel, SandboxSettings};
pub use reload::{BundleReloader, record_change};
pub use server_link::{LinkOptions, LinkTarget, RemoteControl, ServerLink};
pub use session::{SessionBuilder, SessionParts};
pub use tool_schemas::tool_schemas;
pub use trust_prompt::{TrustAnswer, TrustPrompt, TrustRequest, decide_trust, record_trust};

pub use futures::future::BoxFuture;
