//! The Python package `amplifier_core`: the kernel, driven over native dicts in the caller's own task.

mod answer;
mod approval;
mod bridge;
mod clock;
mod coordinator;
mod data;
mod emitting;
mod encode;
mod events;
mod fields;
mod hook;
mod log;
mod outcome;
mod ports;
mod registry;
mod result;
mod run;
mod step;
mod timer;

use pyo3::prelude::*;

/// The part of the package that is written in Rust.
#[pymodule]
mod _native {
    use super::*;

    #[pymodule_export]
    use approval::ApprovalRequest;
    #[pymodule_export]
    use bridge::Driven;
    #[pymodule_export]
    use coordinator::Coordinator;
    #[pymodule_export]
    use emitting::Emitting;
    #[pymodule_export]
    use outcome::Outcome;
    #[pymodule_export]
    use registry::HookRegistry;
    #[pymodule_export]
    use registry::Unregister;
    #[pymodule_export]
    use result::HookResult;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        events::add_to(module)
    }
}
