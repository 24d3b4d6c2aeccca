//! Authentication, roles, and limits for slow, numerous or invalid requests.
//!
//! After a change of the API, regenerate its description and the types of its clients:
//! `UPDATE_SCHEMAS=1 cargo test -p amplifier-server --test all up_to_date`.

#![cfg(unix)]

mod answer_link;
mod clients;
mod limits;
mod matrix;
mod nonce;
mod place;
mod push;
mod queries;
mod receiver;
mod secrets;
mod tls;
mod webhook;
