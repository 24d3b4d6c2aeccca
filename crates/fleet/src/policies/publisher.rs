//! Publication of policies by an administrator.

use std::collections::BTreeMap;

use amplifier_audit::{Hash, PublicKey, SigningKey};
use async_nats::HeaderMap;
use bytes::Bytes;
use jiff::Timestamp;

use super::{BundleArchive, PolicyError, PolicyPointer};
use crate::{Connection, FleetError, FleetName, StoredMessage, subjects};

/// The size of a part of an archive: servers accept messages up to 1 MiB.
const PART_BYTES: usize = 512 << 10;

/// The header of the first part with the number of parts.
pub(super) const PARTS: &str = "Amp-Parts";

/// Publishes policies, signed with the organisation's key.
pub struct PolicyPublisher<'a> {
    connection: &'a Connection,
    key: &'a SigningKey,
    consoles: BTreeMap<FleetName, PublicKey>,
    collectors: BTreeMap<FleetName, PublicKey>,
}

impl<'a> PolicyPublisher<'a> {
    /// Publishes on a connection of an administrator. Only answers of `consoles`, and receipts of `collectors`, count on machines.
    pub fn new(
        connection: &'a Connection,
        key: &'a SigningKey,
        consoles: BTreeMap<FleetName, PublicKey>,
        collectors: BTreeMap<FleetName, PublicKey>,
    ) -> Self {
        Self { connection, key, consoles, collectors }
    }

    /// Publishes a bundle as the next version for a group.
    ///
    /// # Errors
    /// If the centre fails, or another administrator publishes at the same time.
    pub async fn publish(
        &self,
        group: &FleetName,
        archive: &BundleArchive,
        not_before: Timestamp,
    ) -> Result<PolicyPointer, PolicyError> {
        self.upload(archive).await?;
        self.point(group, archive.hash(), not_before).await
    }

    /// Publishes the content of an earlier version as the next version.
    ///
    /// # Errors
    /// As [`publish`](Self::publish), and if the version is unknown.
    pub async fn roll_back(&self, group: &FleetName, version: u64) -> Result<PolicyPointer, PolicyError> {
        let published = history(self.connection, group, &self.key.public()).await?;
        let earlier = published.into_iter().find(|policy| policy.version == version);
        let unknown = || PolicyError::NoVersion { group: group.to_string(), version };
        self.point(group, earlier.ok_or_else(unknown)?.bundle, Timestamp::now()).await
    }

    async fn point(
        &self,
        group: &FleetName,
        bundle: Hash,
        not_before: Timestamp,
    ) -> Result<PolicyPointer, PolicyError> {
        let subject = subjects::pointer(group);
        let last = self.connection.last_message(subjects::POLICY, &subject).await?;
        let before = match &last {
            Some(last) => PolicyPointer::verify(&last.payload, &self.key.public())?.version,
            None => 0,
        };
        let (group, version) = (group.clone(), before + 1);
        let (consoles, collectors) = (self.consoles.clone(), self.collectors.clone());
        let pointer = PolicyPointer { group, version, bundle, not_before, consoles, collectors };
        let mut headers = HeaderMap::new();
        let last = last.map_or(0, |last| last.sequence);
        headers.insert("Nats-Expected-Last-Subject-Sequence", last.to_string().as_str());
        self.connection.publish(&subject, headers, pointer.sign(self.key)?.into()).await?;
        Ok(pointer)
    }

    /// Stores the content. Parts that are stored already are stored again: an upload may have been interrupted.
    async fn upload(&self, archive: &BundleArchive) -> Result<(), PolicyError> {
        let (hash, text) = (archive.hash(), Bytes::copy_from_slice(archive.text()));
        let parts = text.len().div_ceil(PART_BYTES);
        for part in 0..parts {
            let mut headers = HeaderMap::new();
            headers.insert(PARTS, parts.to_string().as_str());
            let content = text.slice(part * PART_BYTES..text.len().min((part + 1) * PART_BYTES));
            self.connection.publish(&subjects::bundle_part(hash, part), headers, content).await?;
        }
        Ok(())
    }
}

/// Returns the last versions for a group that the organisation has signed, oldest first.
///
/// # Errors
/// If the centre fails.
pub async fn history(
    connection: &Connection,
    group: &FleetName,
    organisation: &PublicKey,
) -> Result<Vec<PolicyPointer>, PolicyError> {
    let messages = connection.messages(subjects::POLICY, &subjects::pointer(group)).await?;
    let signed = messages.iter().filter_map(|message| PolicyPointer::verify(&message.payload, organisation).ok());
    Ok(signed.collect())
}

/// Downloads the content with a hash.
pub(super) async fn download(connection: &Connection, hash: Hash) -> Result<BundleArchive, PolicyError> {
    /// The parts of the largest archive, in base64.
    const MAX_PARTS: usize = 64;
    let stream = subjects::bundle_stream();
    let part = async |part: usize| -> Result<StoredMessage, PolicyError> {
        let subject = subjects::bundle_part(hash, part);
        connection.last_message(&stream, &subject).await?.ok_or(PolicyError::NoContent { hash })
    };
    let first = part(0).await?;
    let parts = first.headers.get(PARTS).and_then(|parts| parts.as_str().parse().ok());
    let Some(parts) = parts.filter(|parts| (1..=MAX_PARTS).contains(parts)) else {
        let subject = subjects::bundle_part(hash, 0);
        return Err(FleetError::Invalid { subject, cause: "no number of parts".to_owned() }.into());
    };
    let mut text = first.payload.to_vec();
    for number in 1..parts {
        text.extend_from_slice(&part(number).await?.payload);
    }
    BundleArchive::from_text(text, hash)
}
