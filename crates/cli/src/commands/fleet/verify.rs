//! Mirrors, compared with receipts.

use std::path::PathBuf;
use std::process::ExitCode;

use amplifier_fleet::enrol::FleetRole;
use amplifier_fleet::records::{CollectorKey, MirrorReport, read_receipts, verify_mirrors};
use amplifier_host::{Home, Membership};
use anyhow::{Result, bail};
use clap::Args;
use serde_json::{Value, json};

use super::membership;
use crate::commands::exit::Exit;
use crate::commands::output::{print_json_lines, print_text};

/// Verify the mirrors of a collector, and compare them with the receipts of all collectors
///
/// Exit codes: 0 all mirrors are sound, 1 one is not or cannot be checked, 2 wrong usage.
#[derive(Args, Debug)]
pub(super) struct Verify {
    /// Folder of the mirrors [default: the one of `amplifier serve --fleet`]
    #[arg(long, value_name = "FOLDER")]
    mirrors: Option<PathBuf>,
    /// Do not ask the centre for the receipts of other collectors
    #[arg(long)]
    offline: bool,
    /// Print JSON, one mirror per line
    #[arg(long)]
    json: bool,
}

impl Verify {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode> {
        let fleet = membership(home)?;
        let folder = self.mirrors.unwrap_or_else(|| home.mirror_folder());
        let collectors = collectors(&fleet)?;
        let others = match self.offline {
            true => Vec::new(),
            false => read_receipts(&fleet.connect().await?, &folder, &collectors).await?,
        };
        let reports = verify_mirrors(&folder, &collectors, &others)?;
        if reports.is_empty() {
            bail!(
                "no mirrors in `{}`; a server with `--fleet` and the role `collector` creates them",
                folder.display()
            );
        }
        let is_sound = reports.iter().all(MirrorReport::is_sound);
        match self.json {
            true => print_json_lines(reports.iter().map(line))?,
            false => print_text(&reports.iter().map(ToString::to_string).collect::<String>())?,
        };
        Ok(if is_sound { Exit::Done } else { Exit::Failed }.into())
    }
}

/// Returns the collectors of the policy, and this one.
fn collectors(fleet: &Membership) -> Result<Vec<CollectorKey>> {
    let member = fleet.member();
    let mut keys = fleet.policy().pointer()?.map(|pointer| pointer.collectors).unwrap_or_default();
    if member.roles().contains(&FleetRole::Collector) {
        keys.insert(member.name().clone(), member.signing_key()?.public());
    }
    Ok(keys.into_iter().map(|(name, key)| CollectorKey { name, key }).collect())
}

fn line(report: &MirrorReport) -> Value {
    let sizes = |receipts: &[amplifier_fleet::records::Receipt]| -> Value {
        receipts
            .iter()
            .map(|receipt| json!({ "collector": receipt.collector, "size": receipt.checkpoint.size }))
            .collect()
    };
    json!({
        "machine": report.machine,
        "log": report.log,
        "sound": report.is_sound(),
        "size": report.report.size,
        "receipts": sizes(&report.receipts),
        "ahead": sizes(&report.ahead),
        "problems": report.problems,
        "report": report.report,
    })
}
