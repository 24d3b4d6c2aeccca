//! What a sandboxed hook may touch.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a sandboxed hook may touch of the world outside: nothing, unless it is named here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Grant {
    /// Variables of the environment that it can read.
    pub env: Vec<String>,
    /// Folders that it can look into.
    pub files: Vec<FolderGrant>,
    /// Where it can connect to, over TCP: `127.0.0.1:9000`. Addresses only, because others decide what a name stands for.
    #[schemars(with = "Vec<String>")]
    pub network: Vec<SocketAddr>,
}

/// A folder that a sandboxed hook can look into, with all that is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FolderGrant {
    /// The folder. The hook knows it by this path, too, as it is written.
    pub path: String,
    /// Whether it can also write there.
    #[serde(default)]
    pub write: bool,
}

impl Grant {
    /// Whether nothing is granted.
    pub fn is_empty(&self) -> bool {
        self.env.is_empty() && self.files.is_empty() && self.network.is_empty()
    }
}
