//! The JWTs of NATS: an operator vouches for accounts, and an account for its users.

use amplifier_audit::Hash;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jiff::Timestamp;
use nkeys::KeyPair;
use serde_json::{Map, Value, json};

use super::EnrolError;

/// Returns the JWT of an operator, whose servers know the account for their own messages.
pub(super) fn operator(operator: &KeyPair, system_account: &str) -> Result<String, EnrolError> {
    let nats = json!({ "type": "operator", "version": 2, "system_account": system_account });
    encode(operator, &operator.public_key(), "amplifier", None, nats)
}

/// Returns the JWT of an account. JetStream is off in the account for the servers' own messages. Users in `revoked` are refused if their JWT is not newer
/// than the time.
pub(super) fn account(
    operator: &KeyPair,
    account: &str,
    name: &str,
    has_jetstream: bool,
    revoked: &[(String, Timestamp)],
) -> Result<String, EnrolError> {
    let mut limits = json!({
        "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true, "conn": -1, "leaf": -1,
    });
    if has_jetstream {
        for limit in ["disk_storage", "streams", "consumer", "max_ack_pending"] {
            limits[limit] = (-1).into();
        }
    }
    let revoked: Map<_, Value> = revoked.iter().map(|(user, time)| (user.clone(), time.as_second().into())).collect();
    let mut nats =
        json!({ "type": "account", "version": 2, "limits": limits, "default_permissions": { "pub": {}, "sub": {} } });
    if !revoked.is_empty() {
        nats["revocations"] = Value::Object(revoked);
    }
    encode(operator, account, name, None, nats)
}

/// Returns the JWT of a user with these permissions, until it expires.
pub(super) fn user(
    account: &KeyPair,
    user: &str,
    name: &str,
    expires: Option<Timestamp>,
    permissions: Value,
) -> Result<String, EnrolError> {
    let mut nats = json!({ "type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1 });
    if let (Value::Object(nats), Value::Object(permissions)) = (&mut nats, permissions) {
        nats.extend(permissions);
    }
    encode(account, user, name, expires, nats)
}

fn encode(
    issuer: &KeyPair,
    subject: &str,
    name: &str,
    expires: Option<Timestamp>,
    nats: Value,
) -> Result<String, EnrolError> {
    let mut claims = json!({
        "iat": Timestamp::now().as_second(), "iss": issuer.public_key(), "sub": subject, "name": name, "nats": nats,
    });
    if let Some(expires) = expires {
        claims["exp"] = expires.as_second().into();
    }
    // An identifier of these claims; servers only compare it.
    claims["jti"] = Hash::sha256(claims.to_string().as_bytes()).to_string().into();
    let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(&json!({ "typ": "JWT", "alg": "ed25519-nkey" })), part(&claims));
    let signature = issuer.sign(signed.as_bytes()).map_err(|error| EnrolError::Key(error.to_string()))?;
    Ok(format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature)))
}
