//! Resources of a sandboxed hook.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Resources that a sandboxed hook can access; none by default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Grant {
    /// Readable environment variables.
    pub env: Vec<String>,
    /// Accessible folders.
    pub files: Vec<FolderGrant>,
    /// TCP addresses to connect to, such as `127.0.0.1:9000`. No host names, because their resolution is outside the user's control.
    #[schemars(with = "Vec<String>")]
    pub network: Vec<SocketAddr>,
}

/// A folder that a sandboxed hook can access, with its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FolderGrant {
    /// The folder. The hook uses this path unchanged.
    pub path: String,
    /// `true` for write access.
    #[serde(default)]
    pub write: bool,
}

impl Grant {
    /// `true` if nothing is granted.
    pub fn is_empty(&self) -> bool {
        self.env.is_empty() && self.files.is_empty() && self.network.is_empty()
    }
}
