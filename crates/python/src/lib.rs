//! The Python package `amplifier_core`: the kernel, driven over native dicts in the caller's own task.

mod answer;
mod approval;
mod audit;
mod bridge;
mod bundle;
mod channels;
mod clock;
mod confine;
mod coordinator;
mod data;
mod deadlines;
mod emit;
mod encode;
mod event_words;
mod events;
mod fields;
mod hook;
mod log;
mod native;
mod observation;
mod options;
mod outcome;
mod person_wait;
mod ports;
mod provider;
mod registry;
mod result;
mod run;
mod send;
mod server;
mod session;
mod step;
mod threads;
mod timer;
mod tool;
mod trace;
mod trio;

use pyo3::prelude::*;

/// The native part of the package.
#[pymodule]
mod _native {
    use super::*;

    #[pymodule_export]
    use approval::ApprovalRequest;
    #[pymodule_export]
    use approval::{meant, visible};
    #[pymodule_export]
    use audit::AuditLog;
    #[pymodule_export]
    use audit::AuditReport;
    #[pymodule_export]
    use audit::records;
    #[pymodule_export]
    use audit::verify;
    #[pymodule_export]
    use bridge::KernelFuture;
    #[pymodule_export]
    use bundle::Bundle;
    #[pymodule_export]
    use bundle::BundleHook;
    #[pymodule_export]
    use bundle::BundleWatcher;
    #[pymodule_export]
    use bundle::PreparedVersion;
    #[pymodule_export]
    use bundle::Reload;
    #[pymodule_export]
    use bundle::builtin_modules;
    #[pymodule_export]
    use bundle::no_module;
    #[pymodule_export]
    use bundle::session_settings;
    #[pymodule_export]
    use channels::Channels;
    #[pymodule_export]
    use channels::ContributionCollector;
    #[pymodule_export]
    use confine::Protection;
    #[pymodule_export]
    use confine::become_confined;
    #[pymodule_export]
    use coordinator::Coordinator;
    #[pymodule_export]
    use emit::EmitAwaitable;
    #[pymodule_export]
    use observation::ObservedSession;
    #[pymodule_export]
    use observation::observe_session;
    #[pymodule_export]
    use outcome::Outcome;
    #[pymodule_export]
    use provider::RemoteProvider;
    #[pymodule_export]
    use provider::ScriptedProvider;
    #[pymodule_export]
    use registry::HookRegistry;
    #[pymodule_export]
    use registry::Unregister;
    #[pymodule_export]
    use result::HookResult;
    #[pymodule_export]
    use session::AgentSession;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        events::add_to(module)
    }
}
