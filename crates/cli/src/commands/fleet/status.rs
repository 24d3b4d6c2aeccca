//! The state of the machines.

use std::process::ExitCode;

use amplifier_fleet::FleetName;
use amplifier_fleet::policies::{MachineStatus, machine_statuses};
use amplifier_host::Home;
use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::membership;
use crate::commands::output::{print_json_lines, print_text};
use crate::terminal::{EscapeMode, visible};

/// Show all machines: when they were last seen, their policy, and why they refuse a newer one
///
/// Only a console and an administrator may see this.
#[derive(Args, Debug)]
pub(super) struct Status {
    /// Print JSON, one machine per line
    #[arg(long)]
    json: bool,
}

impl Status {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode> {
        let connection = membership(home)?.connect().await?;
        let machines = machine_statuses(&connection).await?;
        if self.json {
            return print_json_lines(machines.into_iter().map(|(name, status)| {
                let mut line = json!(status);
                line["name"] = json!(name);
                line
            }));
        }
        print_text(&machines.iter().map(line).collect::<String>())
    }
}

fn line((name, status): (&FleetName, &MachineStatus)) -> String {
    let MachineStatus { group, version, refused, amplifier, seen, .. } = status;
    let version = version.map_or_else(|| "no policy".to_owned(), |version| format!("version {version}"));
    let refused = refused.as_ref().map(|why| format!("; refuses the newest policy: {why}")).unwrap_or_default();
    let line = format!("{name:<24}  {group:<12}  {version:<12}  seen {seen:.0}, amplifier {amplifier}{refused}");
    // Machines have written it.
    format!("{}\n", visible(&line, EscapeMode::Exact))
}
