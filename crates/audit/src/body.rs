//! Bodies of records.

use std::borrow::Cow;
use std::io::ErrorKind;

use serde::Deserialize;

use crate::Hash;
use crate::body_reader::BodyReader;
use crate::error::{AuditError, StorageContext};
use crate::model_request::{CONTINUES, ContinuationBody};
use crate::record::{Blob, Record, blob_file};
use crate::storage::RecordSource;

/// The body of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// The complete body: a JSON object.
    Whole(Cow<'a, str>),
    /// The body was stored outside the line and has been erased, or a record that it continues was.
    Erased {
        /// The size of the body.
        bytes: u64,
    },
    /// The body was never stored, because it could not be searched for secrets.
    Withheld {
        /// The size of the body.
        bytes: u64,
    },
}

/// A body that is stored in a file beside the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlobReference {
    /// The hash of the content.
    pub hash: Hash,
    /// The size of the content.
    pub bytes: u64,
}

impl<'a> Record<'a> {
    /// Returns the reference to the body, if the body is not in the line.
    pub fn blob(&self) -> Option<BlobReference> {
        if !self.body.get().starts_with("{\"blob\":") {
            return None;
        }
        let blob = self.body::<Blob<'_>>().ok()?;
        Some(BlobReference { hash: blob.hash()?, bytes: blob.bytes })
    }

    /// Returns the whole body, also if it is in a separate file or continues an earlier record. To read many records, use [`BodyReader`].
    ///
    /// # Errors
    /// If a part of the body cannot be read or was altered.
    pub fn whole_body(&self, storage: &dyn RecordSource) -> Result<Body<'a>, AuditError> {
        BodyReader::new().read(self, storage)
    }

    /// Returns the length of the whole body according to the line.
    pub fn body_bytes(&self) -> u64 {
        let text = self.body.get();
        let known = match text {
            _ if text.starts_with("{\"blob\"") => self.body::<Blob<'_>>().map(|blob| blob.bytes).ok(),
            _ if text.starts_with(CONTINUES) => {
                self.body::<ContinuationBody>().map(|continued| continued.base.whole).ok()
            }
            _ => None,
        };
        known.unwrap_or(text.len() as u64)
    }
}

/// Returns the stored body of this record, from the line or from a separate file.
pub(crate) fn stored_body<'a>(record: &Record<'a>, storage: &dyn RecordSource) -> Result<Body<'a>, AuditError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Withheld {
        #[serde(rename = "withheld")]
        _why: String,
        bytes: u64,
    }
    let text = record.body.get();
    // Nearly all bodies are in the line, and are not parsed twice to detect that.
    if text.starts_with("{\"withheld\"")
        && let Ok(Withheld { bytes, .. }) = record.body()
    {
        return Ok(Body::Withheld { bytes });
    }
    if !text.starts_with("{\"blob\"") {
        return Ok(Body::Whole(text.into()));
    }
    let Ok((bytes, Some(hash))) = record.body::<Blob<'_>>().map(|blob| (blob.bytes, blob.hash())) else {
        return Ok(Body::Whole(text.into()));
    };
    let file = blob_file(&hash);
    let content = match storage.read(&file, 0) {
        Ok(content) => content,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Body::Erased { bytes }),
        Err(error) => return Err(error).doing("read"),
    };
    match String::from_utf8(content) {
        Ok(content) if Hash::sha256(content.as_bytes()) == hash => Ok(Body::Whole(content.into())),
        _ => Err(AuditError::Damaged { what: format!("`{file}` was altered") }),
    }
}
