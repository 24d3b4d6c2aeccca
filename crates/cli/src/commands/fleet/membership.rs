//! The membership of this machine.

use std::io::Read;
use std::process::ExitCode;

use amplifier_fleet::enrol::{JoinToken, Member, MemberReaders};
use amplifier_fleet::policies::PolicyChange;
use amplifier_fleet::{FleetError, Replicas, create_streams};
use amplifier_host::Home;
use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::json;

use super::config_file::set_fleet;
use super::membership;
use crate::commands::exit::Exit;
use crate::commands::output::{print_json, print_text};
use crate::flags::Flags;

/// The error code of servers for a stream that is larger than the space on their disks.
const NO_STORAGE: u64 = 10_047;

/// Join an organisation with a token, which is read from standard input unless it is given
#[derive(Args, Debug)]
pub(super) struct Join {
    /// Token that `add` has printed. Other users can see the arguments of a running command
    token: Option<String>,
    /// Join for all users of this machine, who cannot leave; as the administrator
    #[arg(long)]
    system: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Join {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode> {
        let token = match self.token {
            Some(token) => token,
            None => {
                let mut text = String::new();
                std::io::stdin().take(1 << 20).read_to_string(&mut text).context("the token")?;
                text
            }
        };
        let token = JoinToken::from_line(&token)?;
        let member = match self.system {
            true => Member::join(&home.system_fleet_folder(), token, MemberReaders::AllUsers)?,
            false => {
                let member = Member::join(&home.fleet_folder(), token, MemberReaders::Owner)?;
                set_fleet(&home.config_file(), Some(&member.servers().join(",")))?;
                member
            }
        };
        // The machine has joined, also if no server answers now.
        let policy = fetch_policy(home).await;
        let (name, group) = (member.name(), member.group());
        if self.json {
            let error = policy.as_ref().err().map(crate::errors::reasons);
            let policy = policy.ok().map(|policy| policy.text);
            return print_json(&json!({ "name": name, "group": group, "policy": policy, "error": error }));
        }
        let policy = policy
            .map_or_else(|error| format!("no policy yet: {}", crate::errors::reasons(&error)), |policy| policy.text);
        print_text(&format!("Joined as {name}, in the group {group}; {policy}\n"))
    }
}

/// Leave the organisation
#[derive(Args, Debug)]
pub(super) struct Leave {
    /// End the membership of all users; as the administrator
    #[arg(long)]
    system: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Leave {
    pub(super) fn run(self, home: &Home) -> Result<ExitCode> {
        let folder = if self.system { home.system_fleet_folder() } else { home.fleet_folder() };
        let member = Member::load(&folder)?.context("this machine has not joined")?;
        let name = member.name().clone();
        if !self.system {
            set_fleet(&home.config_file(), None)?;
        }
        member.leave()?;
        match self.json {
            true => print_json(&json!({ "name": name })),
            false => print_text(&format!("Left; revoke the identity, too: amplifier fleet revoke {name}\n")),
        }
    }
}

/// Create the streams at the centre, as an administrator
#[derive(Args, Debug)]
pub(super) struct Streams {
    /// Size of the stream of records, in GiB; when it is full, records wait on their machines
    #[arg(long, value_name = "GIB", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    records: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Streams {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode> {
        let fleet = membership(home)?;
        let connection = fleet.connect().await?;
        let replicas = if fleet.member().servers().len() == 1 { Replicas::One } else { Replicas::Three };
        let created = create_streams(&connection, replicas, i64::from(self.records) << 30).await;
        if let Err(FleetError::Refused { code: NO_STORAGE, .. }) = created {
            bail!(
                "the servers have less free space than {} GiB for records; choose a smaller stream, with `--records`",
                self.records
            );
        }
        created?;
        match self.json {
            true => print_json(&json!({ "created": true })),
            false => print_text("The streams exist.\n"),
        }
    }
}

/// Fetch the newest policy now
#[derive(Args, Debug)]
pub(super) struct Sync {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Sync {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode> {
        let FetchedPolicy { text, is_refused } = fetch_policy(home).await?;
        if is_refused {
            bail!("{text}");
        }
        match self.json {
            true => print_json(&json!({ "policy": text })),
            false => print_text(&format!("{text}\n")),
        }?;
        Ok(Exit::Done.into())
    }
}

struct FetchedPolicy {
    text: String,
    is_refused: bool,
}

async fn fetch_policy(home: &Home) -> Result<FetchedPolicy> {
    let fleet = membership(home)?;
    let config = Flags::default().load(home)?;
    let follower = fleet.follower(fleet.connect().await?, &config);
    let change = follower.refresh().await?;
    let is_refused = matches!(change, PolicyChange::Refused(_));
    let text = match change {
        PolicyChange::Refused(why) => format!("the policy is refused: {why}"),
        PolicyChange::Later(time) => format!("a newer policy applies from {time}"),
        PolicyChange::Activated(active) => format!("policy version {} is active", active.pointer.version),
        PolicyChange::None => match fleet.policy().pointer()? {
            Some(pointer) => format!("policy version {} is active", pointer.version),
            None => "the group has no policy".to_owned(),
        },
    };
    Ok(FetchedPolicy { text, is_refused })
}
