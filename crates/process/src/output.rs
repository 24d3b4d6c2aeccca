//! What a program writes, up to a limit.

use std::ffi::OsString;
use std::io;

use crate::Receiver;
use crate::system;
use crate::system::pipes::read_now;

/// How much is read of what is still in a pipe at the end: as much as fits into the largest.
const MAX_PIPE_BYTES: usize = 1024 * 1024;

/// What a process wrote to one of its outputs.
#[derive(Debug)]
pub struct OutputBuffer {
    /// The bytes.
    pub bytes: Vec<u8>,
    limit: usize,
    is_truncated: bool,
    /// `true` until the process closes the output.
    pub is_open: bool,
}

impl OutputBuffer {
    /// For so many bytes.
    pub fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit, is_truncated: false, is_open: true }
    }

    /// Forgets what goes beyond the limit.
    #[must_use]
    pub(crate) fn truncated(mut self, is_truncated: bool) -> Self {
        self.is_truncated = is_truncated;
        self
    }

    /// Takes in the result of a read: nothing read is the end.
    pub fn record_read(&mut self, read: io::Result<usize>) {
        self.is_open = matches!(read, Ok(1..));
        self.truncate();
    }

    /// `true` if there was more than the limit.
    pub fn exceeds_limit(&self) -> bool {
        self.bytes.len() > self.limit
    }

    /// Takes what is in the pipe.
    pub fn drain(&mut self, pipe: &Receiver) {
        let Self { bytes, limit, .. } = self;
        drain(pipe, |more| {
            bytes.extend_from_slice(more);
            bytes.len() <= *limit
        });
        self.truncate();
    }

    fn truncate(&mut self) {
        if self.is_truncated {
            self.bytes.truncate(self.limit);
        }
    }
}

/// Bytes that a program wrote or a file holds, as a word for the system. None on Windows if they are not UTF-8.
pub fn os_string(bytes: &[u8]) -> Option<OsString> {
    system::process::os_string(bytes)
}

/// Gives what is in a pipe to a function that says whether it wants more, and does not wait: a process that left the group may hold the pipe open for ever.
pub fn drain(pipe: &Receiver, mut push: impl FnMut(&[u8]) -> bool) {
    let mut bytes = [0; 16 * 1024];
    let mut left = MAX_PIPE_BYTES;
    while let Ok(read @ 1..) = read_now(pipe, &mut bytes) {
        left = left.saturating_sub(read);
        if !push(&bytes[..read]) || left == 0 {
            break;
        }
    }
}
