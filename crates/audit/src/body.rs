//! The body of a record, wherever it is kept.

use std::borrow::Cow;
use std::io::ErrorKind;

use serde::Deserialize;

use crate::Hash;
use crate::error::{AuditError, Doing};
use crate::record::{Blob, Record, blob_file};
use crate::storage::Storage;

/// The body of a record, wherever it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// All of it: a JSON object.
    Whole(Cow<'a, str>),
    /// It was too large for the line, and has been erased since.
    Erased {
        /// How large it was.
        bytes: u64,
    },
    /// It was never kept, because it could not be searched for secrets.
    Withheld {
        /// How large it was.
        bytes: u64,
    },
}

impl<'a> Record<'a> {
    /// All of the body, also if it is too large for the line and stands in a file of its own.
    ///
    /// # Errors
    /// If that file cannot be read, or is not what was recorded.
    pub fn whole_body(&self, storage: &dyn Storage) -> Result<Body<'a>, AuditError> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Withheld {
            #[serde(rename = "withheld")]
            _why: String,
            bytes: u64,
        }
        let text = self.body.get();
        // Nearly all bodies stand in the line, and are not read twice to see that.
        if text.starts_with("{\"withheld\"")
            && let Ok(Withheld { bytes, .. }) = self.body()
        {
            return Ok(Body::Withheld { bytes });
        }
        if !text.starts_with("{\"blob\"") {
            return Ok(Body::Whole(text.into()));
        }
        let Ok((bytes, Some(hash))) = self.body::<Blob<'_>>().map(|blob| (blob.bytes, blob.hash())) else {
            return Ok(Body::Whole(text.into()));
        };
        let file = blob_file(&hash);
        let content = match storage.read(&file, 0) {
            Ok(content) => content,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Body::Erased { bytes }),
            Err(error) => return Err(error).doing("read"),
        };
        match String::from_utf8(content) {
            Ok(content) if Hash::of(content.as_bytes()) == hash => Ok(Body::Whole(content.into())),
            _ => Err(AuditError::Damaged { what: format!("`{file}` is not what was recorded") }),
        }
    }
}
