use amplifier_audit::PublicKey;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use super::{EnrolError, FleetRole};
use crate::FleetName;

/// All that a machine needs to join, as one line of text. It contains a secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct JoinToken {
    /// The name of the identity.
    pub name: FleetName,
    /// Its roles.
    pub roles: Vec<FleetRole>,
    /// The group whose policy applies.
    pub group: FleetName,
    /// The addresses of the servers.
    pub servers: Vec<String>,
    /// The certificate of the organisation, as PEM, if it signs those of the servers.
    pub certificate: Option<String>,
    /// The JWT.
    pub jwt: String,
    /// The seed of the NKey.
    pub seed: String,
    /// The key that signs policies.
    pub organisation: PublicKey,
}

impl JoinToken {
    /// Returns the token as one line.
    ///
    /// # Errors
    /// Never with the fields of a token.
    pub fn to_line(&self) -> Result<String, EnrolError> {
        let invalid = |error: serde_json::Error| EnrolError::Token { cause: error.to_string() };
        Ok(BASE64_URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).map_err(invalid)?))
    }

    /// Reads a token from its line.
    ///
    /// # Errors
    /// If the text is not a token.
    pub fn from_line(line: &str) -> Result<Self, EnrolError> {
        let cause = |cause: String| EnrolError::Token { cause };
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(line.trim()).map_err(|error| cause(error.to_string()))?;
        serde_json::from_slice(&bytes).map_err(|error| cause(error.to_string()))
    }
}

/// Omits the secret.
impl std::fmt::Debug for JoinToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JoinToken").field("name", &self.name).field("servers", &self.servers).finish_non_exhaustive()
    }
}
