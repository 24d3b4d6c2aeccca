//! `amplifier audit rotate-key`: a new signing key.

use std::path::PathBuf;
use std::process::ExitCode;

use amplifier_audit::{Log, SigningKey};
use amplifier_host::{Home, open_log};
use anyhow::{Context, anyhow};
use clap::Args;
use serde::Serialize;

use super::reader::LogReader;
use crate::commands::output::{fail, print, print_json};
use crate::flags::Flags;

/// Replace the signing key with a new one and remove the old one, for example if others may have read the old key
///
/// The old key signs the new one in the log, and all records stay unchanged. Running sessions and servers continue with the new key. Give the new
/// public key to everyone who verifies with `--key`, because the old key can still sign a forged log.
///
/// Exit codes: 0 done; 1 failed, or done although the log was tampered with; 2 wrong usage.
#[derive(Args, Debug)]
pub(crate) struct RotateKey {
    /// Folder of the log [default: the log of this installation]
    #[arg(requires = "key_file")]
    folder: Option<PathBuf>,
    /// File with the signing key of the log in that folder
    #[arg(long, value_name = "FILE", requires = "folder")]
    key_file: Option<PathBuf>,
    /// Configuration file with the anchors for checkpoints
    #[arg(long, env = "AMPLIFIER_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print the public keys as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct KeyRotation {
    log: String,
    old_public_key: String,
    public_key: String,
}

impl RotateKey {
    pub(crate) fn run(self, home: anyhow::Result<Home>) -> anyhow::Result<ExitCode> {
        // Read first, because opening would create a missing log.
        let log = match self.folder.zip(self.key_file) {
            Some((folder, key_file)) => {
                LogReader::open(folder.clone())?;
                let context = format!("the audit log `{}`", folder.display());
                Log::at(folder, key_file).open().context(context)?
            }
            None => {
                let home = home?;
                LogReader::open(home.audit_folder())?;
                open_log(&Flags { config: self.config, ..Flags::default() }.load(&home)?, &home)?
            }
        };
        let old = log.status();
        let new = SigningKey::generate()?;
        let public_key = new.public().to_string();
        log.rotate_key(new)?;
        let breach = log.status().breach;
        // Closing also waits for the anchors.
        log.close()?;
        let old_public_key = old.public_key.map(|key| key.to_string()).unwrap_or_default();
        let rotation = KeyRotation { log: old.log, old_public_key, public_key };
        let done = if self.json { print_json(&rotation) } else { print(rotation.to_string()) }?;
        let Some(what) = breach else { return Ok(done) };
        let hint = "run `amplifier audit verify` to see which records are still valid";
        let error = anyhow!("the audit log was tampered with, or its disk is broken: {what}; {hint}");
        Ok(fail(&error, self.json))
    }
}

impl std::fmt::Display for KeyRotation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { log, old_public_key, public_key } = self;
        writeln!(f, "rotated: a new key signs the log {log} from now on; the old key is removed")?;
        writeln!(f, "old public key  {old_public_key}")?;
        writeln!(f, "new public key  {public_key}")?;
        writeln!(f, "verify with the new one: amplifier audit verify --key {public_key}")
    }
}
