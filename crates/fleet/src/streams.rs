//! The streams of a centre.

use std::time::Duration;

use async_nats::jetstream::context::CreateStreamErrorKind;
use async_nats::jetstream::stream::{Config, DiscardPolicy, StorageType};
use async_nats::jetstream::{self};

use crate::{Connection, FleetError, subjects};

const DAY: Duration = Duration::from_hours(24);

/// The copies that a cluster keeps of each message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replicas {
    /// A single server.
    One,
    /// Three servers, one of which may fail.
    Three,
}

/// Creates the streams of a centre, or checks that existing ones have the same settings. Only an administrator may do this.
///
/// `audit_bytes` limits the stream of records, and that of their large bodies; a full stream refuses new ones, which then wait on their machines.
///
/// # Errors
/// If a stream cannot be created, or exists with other settings.
pub async fn create_streams(connection: &Connection, replicas: Replicas, audit_bytes: i64) -> Result<(), FleetError> {
    let context = jetstream::new(connection.client().clone());
    for config in streams(replicas, audit_bytes) {
        let subject = config.name.clone();
        let refused = |error: jetstream::context::CreateStreamError| FleetError::Refused {
            subject: subject.clone(),
            code: match error.kind() {
                CreateStreamErrorKind::JetStream(refusal) => refusal.error_code().0,
                _ => 0,
            },
            description: error.to_string(),
        };
        context.create_stream(config).await.map_err(refused)?;
    }
    Ok(())
}

fn streams(replicas: Replicas, audit_bytes: i64) -> Vec<Config> {
    let stream = |name: &str, subjects: &str| Config {
        name: name.to_owned(),
        subjects: vec![subjects.to_owned()],
        storage: StorageType::File,
        num_replicas: match replicas {
            Replicas::One => 1,
            Replicas::Three => 3,
        },
        allow_direct: true,
        ..Config::default()
    };
    let last_only = |name: &str, subjects: &str| Config { max_messages_per_subject: 1, ..stream(name, subjects) };
    vec![
        Config {
            deny_delete: true,
            deny_purge: true,
            discard: DiscardPolicy::New,
            max_bytes: audit_bytes,
            max_age: 30 * DAY,
            ..stream(subjects::AUDIT, "audit.>")
        },
        Config {
            discard: DiscardPolicy::New,
            max_bytes: audit_bytes,
            max_age: 30 * DAY,
            ..last_only(subjects::BLOBS, "blob.>")
        },
        // No age limit: an idle log resumes from its receipt.
        last_only(subjects::RECEIPT, "receipt.>"),
        Config { max_age: DAY, ..last_only(subjects::ASK, "ask.>") },
        Config {
            discard: DiscardPolicy::New,
            discard_new_per_subject: true,
            deny_delete: true,
            deny_purge: true,
            max_age: DAY,
            ..last_only(subjects::ANSWER, "answer.>")
        },
        // The settings of buckets: older servers cannot create one through the client.
        Config {
            max_messages_per_subject: 16,
            allow_rollup: true,
            deny_delete: true,
            discard: DiscardPolicy::New,
            ..stream(subjects::POLICY, "$KV.policy.>")
        },
        Config {
            allow_rollup: true,
            deny_delete: true,
            discard: DiscardPolicy::New,
            ..last_only(subjects::STATUS, "$KV.status.>")
        },
        Config {
            allow_rollup: true,
            discard: DiscardPolicy::New,
            subjects: vec![format!("$O.{}.C.>", subjects::BUNDLES), format!("$O.{}.M.>", subjects::BUNDLES)],
            ..stream(&subjects::bundle_stream(), "")
        },
    ]
}
