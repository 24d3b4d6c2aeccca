//! Settings files of other agents on disk: read, shown and written as a whole, or not at all.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use amplifier_guard::settings::Scope;
use amplifier_process::files::{AtomicFile, Durability, mode, permissions, read_regular_text};
use amplifier_process::follow_links;
use anyhow::{Context, Result, bail};
use similar::TextDiff;

use crate::commands::output::stdout;
use crate::terminal::{EscapeMode, visible};

/// The largest settings file.
const MAX_SETTINGS: u64 = 8 << 20;

/// One changed file. An empty content is that of a missing file.
#[derive(Clone)]
pub(super) struct SettingsChange {
    pub(super) file: PathBuf,
    pub(super) before: String,
    pub(super) after: String,
}

impl SettingsChange {
    /// Shows the change.
    pub(super) fn show(&self) -> Result<()> {
        let mut out = stdout();
        let name = self.file.display().to_string();
        let diff = TextDiff::from_lines(self.before.as_str(), self.after.as_str());
        let text = diff.unified_diff().header(&name, &name).to_string();
        for line in text.lines() {
            writeln!(out, "{}", visible(line, EscapeMode::Exact))?;
        }
        Ok(out.flush()?)
    }

    fn reversed(self) -> Self {
        Self { before: self.after, after: self.before, ..self }
    }

    /// Writes a file atomically, with its mode, and reads it back. A link stays a link.
    fn write(&self, scope: Scope) -> Result<()> {
        let file = resolve(&self.file)?;
        if read(&file)? != self.before {
            bail!("it changed meanwhile; try again");
        }
        if self.after.is_empty() {
            return Ok(fs::remove_file(&file)?);
        }
        if let Some(folder) = file.parent() {
            create_folders(folder, scope)?;
        }
        let new_mode = if scope == Scope::System { 0o644 } else { 0o600 };
        let mode = fs::metadata(&file).map_or(new_mode, |metadata| mode(&metadata) & 0o777);
        // Every user has to read the settings of the system.
        let mode = if scope == Scope::System { mode | 0o444 } else { mode };
        let mut new = AtomicFile::create_with_mode(&file, mode)?;
        new.write_all(self.after.as_bytes())?;
        new.replace(Durability::Synced)?;
        if let Some(permissions) = permissions(mode).filter(|_| scope == Scope::System) {
            // The mask of this process has limited the mode of the new file.
            fs::set_permissions(&file, permissions)?;
        }
        if read(&file)? != self.after {
            bail!("it has another content after writing");
        }
        Ok(())
    }
}

/// Writes all changes. If one fails, the earlier ones are undone.
pub(super) fn write(changes: &[SettingsChange], scope: Scope) -> Result<()> {
    for (at, change) in changes.iter().enumerate() {
        let Err(error) = change.write(scope) else { continue };
        let mut error = error.context(format!("`{}` cannot be written", change.file.display()));
        for earlier in changes[..at].iter().rev() {
            if let Err(problem) = earlier.clone().reversed().write(scope) {
                error = error.context(format!("`{}` cannot be restored: {problem:#}", earlier.file.display()));
            }
        }
        return Err(error);
    }
    Ok(())
}

/// Reads a settings file; a missing one is empty.
pub(super) fn read(file: &Path) -> Result<String> {
    match read_regular_text(&resolve(file)?, MAX_SETTINGS) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        text => text.with_context(|| format!("`{}` cannot be read", file.display())),
    }
}

/// Returns the target of links, also of one to a file that does not exist yet.
fn resolve(file: &Path) -> Result<PathBuf> {
    let root = Path::new(std::path::MAIN_SEPARATOR_STR);
    follow_links(root, file).with_context(|| format!("`{}` cannot be read", file.display()))
}

/// Creates missing folders. Those of the system are open to every user, whatever the mask of this process is.
fn create_folders(folder: &Path, scope: Scope) -> Result<()> {
    let missing: Vec<&Path> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
    fs::create_dir_all(folder)?;
    for folder in missing.into_iter().filter(|_| scope == Scope::System) {
        if let Some(permissions) = permissions(0o755) {
            fs::set_permissions(folder, permissions)?;
        }
    }
    Ok(())
}
