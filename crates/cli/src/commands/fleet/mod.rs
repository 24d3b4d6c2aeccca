//! `amplifier fleet`: many machines with one policy, over NATS.

mod centre;
mod check;
mod config_file;
mod identities;
mod membership;
mod policy;
mod query;
mod status;
mod verify;

use std::path::PathBuf;
use std::process::ExitCode;

use amplifier_host::{Home, Membership};
use anyhow::Result;
use clap::{Args, Subcommand};

pub(crate) use self::centre::CentreWork;
pub(crate) use self::check::check;
use crate::errors::usage;
use crate::flags::Flags;

/// Enrol machines of an organisation, give them one policy, and verify and search their records
///
/// Exit codes: 0 done, 1 failed, refused or a mirror is not sound, 2 wrong usage.
#[derive(Args, Debug)]
pub struct Fleet {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Init(identities::Init),
    Add(identities::Add),
    List(identities::ListIdentities),
    Revoke(identities::Revoke),
    Join(membership::Join),
    Leave(membership::Leave),
    Streams(membership::Streams),
    Status(status::Status),
    Sync(membership::Sync),
    Verify(verify::Verify),
    Query(query::RecordQuery),
    #[command(subcommand)]
    Policy(policy::Policy),
}

impl Fleet {
    /// Runs the command.
    ///
    /// # Errors
    /// If a file cannot be used, or the centre fails.
    pub async fn run(self, home: &Home) -> Result<ExitCode> {
        match self.command {
            Command::Init(init) => init.run(),
            Command::Add(add) => add.run(),
            Command::List(list) => list.run(),
            Command::Revoke(revoke) => revoke.run(),
            Command::Join(join) => join.run(home).await,
            Command::Leave(leave) => leave.run(home),
            Command::Streams(streams) => streams.run(home).await,
            Command::Status(status) => status.run(home).await,
            Command::Sync(sync) => sync.run(home).await,
            Command::Verify(verify) => verify.run(home).await,
            Command::Query(query) => query.run(home),
            Command::Policy(policy) => policy.run(home).await,
        }
    }
}

/// The folder of an organisation.
#[derive(Args, Debug)]
struct OrganisationFolder {
    /// Folder of the organisation, as `init` has created it
    #[arg(long, value_name = "FOLDER", default_value = "organisation")]
    organisation: PathBuf,
}

/// Returns the membership of this machine.
fn membership(home: &Home) -> Result<Membership> {
    let config = Flags::default().load(home)?;
    Membership::find(&config, home)?.ok_or_else(|| usage("this machine has not joined; run `amplifier fleet join`"))
}
