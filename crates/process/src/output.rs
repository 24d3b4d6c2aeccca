//! Output of programs, up to a limit.

use std::ffi::OsString;
use std::io;

use crate::Receiver;
use crate::system;
use crate::system::pipes::read_now;

/// The largest amount that is read from a pipe after the end: the size of the largest pipe.
const MAX_PIPE_BYTES: usize = 1024 * 1024;

/// The output of a process.
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
    /// A buffer with a limit in bytes.
    pub fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit, is_truncated: false, is_open: true }
    }

    /// Sets whether output beyond the limit is discarded.
    #[must_use]
    pub(crate) fn truncated(mut self, is_truncated: bool) -> Self {
        self.is_truncated = is_truncated;
        self
    }

    /// Records the result of a read; zero bytes are the end.
    pub fn record_read(&mut self, read: io::Result<usize>) {
        self.is_open = matches!(read, Ok(1..));
        self.truncate();
    }

    /// Returns `true` if the output exceeds the limit.
    pub fn exceeds_limit(&self) -> bool {
        self.bytes.len() > self.limit
    }

    /// Reads what is left in the pipe.
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

/// Converts bytes from a program or file to a system string; none on Windows if they are not UTF-8.
pub fn os_string(bytes: &[u8]) -> Option<OsString> {
    system::process::os_string(bytes)
}

/// Passes the content of a pipe to `push` until it returns `false`. Does not wait: a process that left the group may hold the pipe open forever.
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
