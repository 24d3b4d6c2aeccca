//! `amplifier fleet policy`: the policies of groups.

use std::path::PathBuf;
use std::process::ExitCode;

use amplifier_audit::SigningKey;
use amplifier_fleet::FleetName;
use amplifier_fleet::enrol::{FleetRole, Organisation};
use amplifier_fleet::policies::{BundleArchive, PolicyPointer, PolicyPublisher, history};
use amplifier_host::Home;
use amplifier_modules::bundle::load;
use anyhow::Result;
use clap::{Args, Subcommand};
use jiff::Timestamp;

use super::{OrganisationFolder, membership};
use crate::commands::output::{print_json, print_json_lines, print_text};

/// Publish, list and roll back the policies of groups
#[derive(Subcommand, Debug)]
pub(super) enum Policy {
    Publish(Publish),
    List(ListVersions),
    Rollback(Rollback),
}

impl Policy {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode> {
        match self {
            Self::Publish(publish) => publish.run(home).await,
            Self::List(list) => list.run(home).await,
            Self::Rollback(rollback) => rollback.run(home).await,
        }
    }
}

/// The key that signs, and the consoles and collectors that machines trust.
#[derive(Args, Debug)]
struct Signer {
    #[command(flatten)]
    folder: OrganisationFolder,
    /// Key that signs policies [default: `policy.key` in the folder of the organisation]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
}

impl Signer {
    fn open(&self) -> Result<(Organisation, SigningKey)> {
        let organisation = Organisation::open(&self.folder.organisation)?;
        let file = self.key.clone().unwrap_or_else(|| organisation.policy_key_file());
        Ok((organisation, SigningKey::load(&file)?))
    }
}

/// Publish a folder with `bundle.yaml` as the next version for a group
#[derive(Args, Debug)]
pub(super) struct Publish {
    /// Folder with `bundle.yaml` and all its files
    folder: PathBuf,
    /// Group
    #[arg(long, value_name = "NAME", default_value = "all")]
    group: FleetName,
    /// Time from which the policy applies [default: now]
    #[arg(long, value_name = "TIME")]
    from: Option<Timestamp>,
    #[command(flatten)]
    signer: Signer,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Publish {
    async fn run(self, home: &Home) -> Result<ExitCode> {
        // Machines would refuse it.
        load(&self.folder.join("bundle.yaml"))?;
        let archive = BundleArchive::pack(&self.folder)?;
        let (organisation, key) = self.signer.open()?;
        let connection = membership(home)?.connect().await?;
        let publisher = PolicyPublisher::new(
            &connection,
            &key,
            organisation.keys(FleetRole::Console),
            organisation.keys(FleetRole::Collector),
        );
        let pointer = publisher.publish(&self.group, &archive, self.from.unwrap_or_else(Timestamp::now)).await?;
        print_pointer(&pointer, self.json)
    }
}

/// Publish an earlier version again, as the next one
#[derive(Args, Debug)]
pub(super) struct Rollback {
    /// Group
    group: FleetName,
    /// Version with the content to publish
    #[arg(id = "earlier", value_name = "VERSION")]
    version: u64,
    #[command(flatten)]
    signer: Signer,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Rollback {
    async fn run(self, home: &Home) -> Result<ExitCode> {
        let (organisation, key) = self.signer.open()?;
        let connection = membership(home)?.connect().await?;
        let publisher = PolicyPublisher::new(
            &connection,
            &key,
            organisation.keys(FleetRole::Console),
            organisation.keys(FleetRole::Collector),
        );
        print_pointer(&publisher.roll_back(&self.group, self.version).await?, self.json)
    }
}

/// ListVersions the last versions of a group
#[derive(Args, Debug)]
pub(super) struct ListVersions {
    /// Group
    #[arg(default_value = "all")]
    group: FleetName,
    /// Print JSON, one version per line
    #[arg(long)]
    json: bool,
}

impl ListVersions {
    async fn run(self, home: &Home) -> Result<ExitCode> {
        let fleet = membership(home)?;
        let pointers = history(&fleet.connect().await?, &self.group, &fleet.member().organisation()).await?;
        match self.json {
            true => print_json_lines(&pointers),
            false => print_text(&pointers.iter().map(line).collect::<String>()),
        }
    }
}

fn print_pointer(pointer: &PolicyPointer, as_json: bool) -> Result<ExitCode> {
    match as_json {
        true => print_json(pointer),
        false => print_text(&line(pointer)),
    }
}

fn line(PolicyPointer { group, version, bundle, not_before, .. }: &PolicyPointer) -> String {
    format!("{group} version {version}, from {not_before:.0}: bundle {bundle}\n")
}
