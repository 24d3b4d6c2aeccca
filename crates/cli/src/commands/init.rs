//! `amplifier init`: a starter bundle.

use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use amplifier_host::{Config, Home, PROJECT_BUNDLE};
use amplifier_modules::Starter;
use amplifier_modules::bundle::BundleScope;
use amplifier_process::files::{AtomicFile, Durability, create_private_folder};
use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::json;

use super::output::print_json;
use crate::flags::Flags;

/// Create a starter bundle: guards for production, destructive commands and secrets
#[derive(Args, Debug)]
#[command(mut_args(Flags::hide_all_but_workspace))]
pub struct Init {
    /// Create the bundle for all your projects
    #[arg(long)]
    user: bool,
    /// Print JSON: the file and its scope
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    flags: Flags,
}

impl Init {
    /// Runs the command.
    ///
    /// # Errors
    /// If the bundle already exists or cannot be written.
    pub fn run(self, home: &Home) -> Result<ExitCode> {
        let config = self.flags.load(home)?;
        let file = if self.user { home.user_bundle() } else { find_project_bundle(&config)? };
        let path = file.display();
        let folder = file.parent().context("the bundle has no folder")?;
        // A project's files are readable by everyone who works on it.
        let created = if self.user { create_private_folder(folder) } else { std::fs::create_dir_all(folder) };
        created.with_context(|| format!("`{}`", folder.display()))?;
        let [starter] = Starter::Project.files() else { bail!("the starter bundle is missing") };
        // Atomic, and never replaces an existing file, not even a dangling link.
        let mut new = AtomicFile::create_with_mode(&file, if self.user { 0o600 } else { 0o644 })?;
        new.write_all(starter.text.as_bytes())?;
        match new.create_new(Durability::Synced) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                bail!("`{path}` already exists; edit or remove the file")
            }
            written => written.with_context(|| format!("`{path}`"))?,
        }
        if self.json {
            let scope = if self.user { BundleScope::User } else { BundleScope::Project };
            return print_json(&json!({ "file": file.to_string_lossy(), "scope": scope.as_str() }));
        }
        let next = if self.user {
            "Use it:    active in every session from now on"
        } else {
            "Use it:    amplifier hooks trust"
        };
        writeln!(
            std::io::stdout(),
            "{path}\n\nTry it:    amplifier hooks test {path}\nChange it: with any editor; `amplifier events` and `amplifier tools` list the names for rules\n{next}"
        )?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns the path of the project's bundle. A linked folder is an error, because the file would be written elsewhere.
fn find_project_bundle(config: &Config) -> Result<PathBuf> {
    let workspace = &config.workspace;
    let file = workspace.canonicalize().with_context(|| format!("`{}`", workspace.display()))?.join(PROJECT_BUNDLE);
    if let Some(folder) = file.parent().filter(|folder| folder.is_symlink()) {
        bail!("`{}` is a link; remove the link, or write the bundle by hand", folder.display());
    }
    Ok(file)
}
