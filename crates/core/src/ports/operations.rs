//! The port that describes operations for approval rules.

use std::future::Future;

use serde::{Deserialize, Serialize};

use super::{BoxFuture, PortError};
use crate::event::{EventData, EventName};

/// Describes operations as parts, so that an approval rule can allow more than one exact operation. The code that knows files and programs provides
/// it; the kernel only compares texts.
///
/// A list of parts describes every operation in the same way.
pub trait OperationSource: Send + Sync + 'static {
    /// Returns the parts of an operation that a hook requests approval for. Without parts, a rule can only answer its exact prompt.
    ///
    /// # Errors
    /// If the operation cannot be described. Nothing given in advance allows it then, because an unknown part may be denied.
    fn parts(
        &self,
        hook: &str,
        event: &EventName,
        data: &EventData,
    ) -> impl Future<Output = Result<Vec<OperationPart>, PortError>> + Send;
}

/// A part of an operation: one file that is written, one program that runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationPart {
    /// The operations that include this part, from narrow to wide.
    pub widths: Vec<OperationWidth>,
}

/// A set of operations that a rule can name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationWidth {
    /// The name in rules: `write src/**`.
    pub operation: String,
    /// A description for people: "writes below `src`".
    pub label: String,
    /// `true` if a rule may allow this part by this name. A rule that denies always counts.
    pub allows: bool,
}

impl OperationWidth {
    /// A width that rules may allow and deny.
    pub fn new(operation: impl Into<String>, label: impl Into<String>) -> Self {
        Self { operation: operation.into(), label: label.into(), allows: true }
    }

    /// A width that rules may only deny, because it is too wide for this operation.
    pub fn only_denied(operation: impl Into<String>) -> Self {
        Self { operation: operation.into(), label: String::new(), allows: false }
    }
}

impl OperationSource for Vec<OperationPart> {
    async fn parts(&self, _hook: &str, _event: &EventName, _data: &EventData) -> Result<Vec<OperationPart>, PortError> {
        Ok(self.clone())
    }
}

pub(crate) trait AnyOperationSource: Send + Sync {
    fn describe<'a>(
        &'a self,
        hook: &'a str,
        event: &'a EventName,
        data: &'a EventData,
    ) -> BoxFuture<'a, Result<Vec<OperationPart>, PortError>>;
}

impl<T: OperationSource> AnyOperationSource for T {
    fn describe<'a>(
        &'a self,
        hook: &'a str,
        event: &'a EventName,
        data: &'a EventData,
    ) -> BoxFuture<'a, Result<Vec<OperationPart>, PortError>> {
        Box::pin(async move { self.parts(hook, event, data).await })
    }
}
