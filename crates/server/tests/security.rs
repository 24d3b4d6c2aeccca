//! Authentication, roles, and limits for slow, numerous or invalid requests.
//!
//! After a change of the API, regenerate its description and the types of its clients:
//! `UPDATE_SCHEMAS=1 cargo test -p amplifier-server --test security up_to_date`.

#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test that cannot go on should say where"
)]

#[path = "security/clients.rs"]
mod clients;
mod common;
#[path = "security/limits.rs"]
mod limits;
#[path = "security/matrix.rs"]
mod matrix;
#[path = "security/nonce.rs"]
mod nonce;
#[path = "security/place.rs"]
mod place;
#[path = "security/queries.rs"]
mod queries;
#[path = "security/secrets.rs"]
mod secrets;
#[path = "security/tls.rs"]
mod tls;
