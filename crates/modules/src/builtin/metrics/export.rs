//! Export of metrics to a file and to an OpenTelemetry collector.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use amplifier_core::Clock;
use amplifier_process::files::{AtomicFile, Durability};

use super::store::Store;
use super::{otlp, prometheus};
use crate::builtin::shared::settings::lock;
use crate::transport::Post;

/// Readable for all users, because the collector usually runs as another user.
const MODE: u32 = 0o644;

pub(super) struct Exporter {
    pub(super) store: Arc<Mutex<Store>>,
    pub(super) file: Option<PathBuf>,
    pub(super) otlp: Option<Post>,
    pub(super) service: String,
    pub(super) interval: Duration,
    pub(super) began: SystemTime,
    pub(super) clock: Arc<dyn Clock>,
}

impl Exporter {
    /// Returns `true` if metrics are pushed to a file or a collector.
    pub(super) fn has_destination(&self) -> bool {
        self.file.is_some() || self.otlp.is_some()
    }

    pub(super) async fn export_after_interval(&self) {
        self.clock.sleep(self.interval).await;
        if let Err(error) = self.export().await {
            tracing::warn!(error, "the metrics could not be exported");
        }
    }

    /// Exports now.
    ///
    /// # Errors
    /// If an export failed. A failure of one destination does not stop the other.
    pub(super) async fn export(&self) -> Result<(), String> {
        let (written, sent) = tokio::join!(self.write(), self.send());
        written.and(sent)
    }

    async fn write(&self) -> Result<(), String> {
        let Some(file) = self.file.clone() else { return Ok(()) };
        let text = prometheus::text(&lock(&self.store));
        let shown = file.display().to_string();
        let written = tokio::task::spawn_blocking(move || replace(&file, &text)).await;
        written.unwrap_or_else(|error| Err(error.into())).map_err(|error| format!("`{shown}`: {error}"))
    }

    async fn send(&self) -> Result<(), String> {
        let Some(post) = &self.otlp else { return Ok(()) };
        let request = otlp::request(&lock(&self.store), &self.service, self.began, self.clock.wall());
        let request = serde_json::to_vec(&request).map_err(|error| error.to_string())?;
        post.send(request).await
    }
}

fn replace(file: &Path, text: &str) -> io::Result<()> {
    let mut new = AtomicFile::create_with_mode(file, MODE)?;
    new.write_all(text.as_bytes())?;
    new.replace(Durability::Cached)
}
