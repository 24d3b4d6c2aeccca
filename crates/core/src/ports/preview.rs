//! What an operation would change, found by the code that will run it.

use std::future::Future;

use serde::{Deserialize, Serialize};

use super::{BoxFuture, PortError};
use crate::event::{EventData, EventName};

/// The field of an operation's data that says what its preview was compared with. The kernel sets it before a person is asked, so that the digest
/// of the request covers it; whoever runs the operation reads it as a [`ComparedWith`].
pub const COMPARED_WITH: &str = "compared_with";

/// Makes previews of operations that a person is asked about. It belongs to whoever runs them.
pub trait PreviewSource: Send + Sync + 'static {
    /// The preview of an operation with this data, which no hook changes any more; `None` if the data says all.
    ///
    /// # Errors
    /// If it cannot be made. The operation is denied then.
    fn preview(
        &self,
        event: &EventName,
        data: &EventData,
    ) -> impl Future<Output = Result<Option<ActionPreview>, PortError>> + Send;
}

/// The file that an operation would change, as it is when the person is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionPreview {
    /// Which file it is, and the version of its content.
    pub compared_with: ComparedWith,
    /// What is in it.
    pub before: FileBefore,
}

/// The file that a preview was compared with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparedWith {
    /// The path, with links followed.
    pub path: String,
    /// The version of its content: `sha256:` and the digest, `missing`, or `unreadable`.
    pub version: String,
}

/// What is in a file before it is changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileBefore {
    /// There is no such file.
    Missing,
    /// All of it.
    Content(Vec<u8>),
    /// More than can be shown: the number of bytes.
    TooLarge(u64),
    /// It cannot be read, and why.
    Unreadable(String),
}

pub(crate) trait AnyPreviewSource: Send + Sync {
    fn make<'a>(
        &'a self,
        event: &'a EventName,
        data: &'a EventData,
    ) -> BoxFuture<'a, Result<Option<ActionPreview>, PortError>>;
}

impl<T: PreviewSource> AnyPreviewSource for T {
    fn make<'a>(
        &'a self,
        event: &'a EventName,
        data: &'a EventData,
    ) -> BoxFuture<'a, Result<Option<ActionPreview>, PortError>> {
        Box::pin(async move { self.preview(event, data).await })
    }
}
