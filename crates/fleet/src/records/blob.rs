//! Large contents, in pieces by hash: bodies of records that are not in their lines, and lines that are too long for a message.

use amplifier_audit::Hash;
use async_nats::HeaderMap;
use bytes::{Bytes, BytesMut};

use crate::records::chunk::header;
use crate::{Connection, FleetError, FleetName, subjects};

/// The size of a piece.
const PIECE: usize = 512 << 10;

/// The largest content: its size comes from another machine.
const MAX_BYTES: usize = 256 << 20;

const PIECES: &str = "Amp-Pieces";
const ERASED: &str = "Amp-Erased";

/// The content of a blob at the centre.
pub(crate) enum StoredBlob {
    Content(Bytes),
    /// The machine itself no longer has the content.
    Erased,
    /// No piece, not every piece, or pieces of something else.
    Missing,
}

/// The blobs of a log at the centre.
pub(crate) struct Blobs<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) machine: &'a FleetName,
    pub(crate) log: &'a FleetName,
}

impl Blobs<'_> {
    /// Stores a content; `None` says that it was erased.
    pub(crate) async fn send(&self, hash: &Hash, content: Option<Bytes>) -> Result<(), FleetError> {
        let mut headers = HeaderMap::new();
        let Some(content) = content else {
            headers.insert(ERASED, "true");
            return self.store(hash, 0, headers, Bytes::new()).await;
        };
        let pieces = content.len().div_ceil(PIECE).max(1);
        headers.insert(PIECES, pieces.to_string().as_str());
        for piece in 0..pieces {
            let end = content.len().min((piece + 1) * PIECE);
            self.store(hash, piece, headers.clone(), content.slice(piece * PIECE..end)).await?;
        }
        Ok(())
    }

    async fn store(&self, hash: &Hash, piece: usize, headers: HeaderMap, bytes: Bytes) -> Result<(), FleetError> {
        let subject = subjects::blob(self.machine, self.log, &hash.to_string(), piece);
        self.connection.publish(&subject, headers, bytes).await.map(|_| ())
    }

    /// Reads a content, and checks its hash.
    pub(crate) async fn read(&self, hash: &Hash) -> Result<StoredBlob, FleetError> {
        let mut content = BytesMut::new();
        let mut piece = 0;
        loop {
            let subject = subjects::blob(self.machine, self.log, &hash.to_string(), piece);
            let Some(message) = self.connection.last_message(subjects::BLOBS, &subject).await? else {
                return Ok(StoredBlob::Missing);
            };
            if header(&message.headers, ERASED).is_some() {
                return Ok(StoredBlob::Erased);
            }
            content.extend_from_slice(&message.payload);
            piece += 1;
            let pieces = header(&message.headers, PIECES).and_then(|pieces| pieces.parse().ok()).unwrap_or(0);
            if content.len() > MAX_BYTES {
                return Ok(StoredBlob::Missing);
            }
            if piece >= pieces {
                break;
            }
        }
        let is_whole = Hash::sha256(&content) == *hash;
        Ok(if is_whole { StoredBlob::Content(content.freeze()) } else { StoredBlob::Missing })
    }
}
