//! Requests from the server: sessions, bundle tests and dry runs.

use std::path::PathBuf;
use std::sync::Arc;

use amplifier_audit::Log;
use amplifier_core::HookRegistry;
use amplifier_host::{BoxFuture, Config, Error, Home, Machine, bundles, workspace_folder};
use amplifier_link::{DryRun, DryRunReport, MachineReply, MachineRequest};
use amplifier_modules::bundle::{LoadedBundle, load};
use anyhow::{Result, bail};
use tempfile::TempDir;

use crate::commands::hooks::{self, RegisteredHooks};
use crate::errors::reasons;
use crate::flags::Flags;

/// Returns the machine on which the server starts sessions, configured with `flags`.
pub fn from_flags(flags: &Flags, home: &Home, log: &Log) -> Machine {
    let handler = Arc::new(RequestHandler { flags: flags.clone(), home: home.clone() });
    let loader = handler.clone();
    let load =
        move |workspace: Option<PathBuf>| loader.load(workspace).map_err(|error| Error::Refused(reasons(&error)));
    let other = move |request| -> BoxFuture<'static, MachineReply> {
        let handler = handler.clone();
        Box::pin(async move {
            let reply = handler.handle(request).await;
            reply.unwrap_or_else(|error| MachineReply::Invalid { error: reasons(&error) })
        })
    };
    Machine::new(home, log, load, Box::new(other))
}

struct RequestHandler {
    flags: Flags,
    home: Home,
}

impl RequestHandler {
    fn load(&self, workspace: Option<PathBuf>) -> Result<Config> {
        let mut flags = self.flags.clone();
        flags.workspace = workspace.or(flags.workspace);
        flags.load(&self.home)
    }

    async fn handle(&self, request: MachineRequest) -> Result<MachineReply> {
        match request {
            MachineRequest::TestBundle { bundle } => Ok(MachineReply::Tested { results: self.test(bundle).await? }),
            MachineRequest::DryRun(dry_run) => {
                Ok(MachineReply::Tried { report: Box::new(self.try_out(dry_run).await?) })
            }
            _ => bail!("unknown request"),
        }
    }

    async fn test(&self, bundle: Option<String>) -> Result<serde_json::Value> {
        let config = self.load(None)?;
        let Some(text) = bundle else {
            return hooks::test_results(&hooks::choose_bundle(None, &config, &self.home)?, &config, &self.home).await;
        };
        let (_folder, bundle) = write_bundle(&text)?;
        hooks::test_results(&bundle, &config, &self.home).await
    }

    async fn try_out(&self, dry_run: DryRun) -> Result<DryRunReport> {
        let DryRun { event, data, workspace, bundle } = dry_run;
        let config = self.load(workspace_folder(workspace)?)?;
        let Some(text) = bundle else {
            let RegisteredHooks { hooks, host, warning, .. } = hooks::register_all(&config, &self.home)?;
            return Ok(DryRunReport { report: hooks::dry_run(&hooks, &host, &event, data).await?, warning });
        };
        let (_folder, bundle) = write_bundle(&text)?;
        let hooks = HookRegistry::new();
        let host = bundles::register_alone(&bundle, &config, &self.home, &hooks)?;
        Ok(DryRunReport { report: hooks::dry_run(&hooks, &host, &event, data).await?, warning: None })
    }
}

/// Loads a bundle from its text, by way of a temporary folder that is removed on drop.
fn write_bundle(text: &str) -> Result<(TempDir, LoadedBundle)> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("bundle.yaml");
    std::fs::write(&file, text)?;
    let bundle = load(&file)?;
    Ok((folder, bundle))
}
