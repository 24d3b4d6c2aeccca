//! The identities of an organisation, on the computer of an administrator.

use std::path::PathBuf;
use std::process::ExitCode;

use amplifier_fleet::FleetName;
use amplifier_fleet::enrol::{FleetRole, Identity, NewOrganisation, Organisation};
use anyhow::Result;
use clap::Args;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::OrganisationFolder;
use crate::commands::output::{print, print_json, print_json_lines, print_text};

/// Create an organisation: its keys, and the configuration of its servers
#[derive(Args, Debug)]
pub(super) struct Init {
    #[command(flatten)]
    folder: OrganisationFolder,
    /// Address of a server, as `tls://HOST:PORT`; once or three times
    #[arg(long = "server", value_name = "ADDRESS", required = true)]
    servers: Vec<String>,
    /// Folder in which each server stores its streams
    #[arg(long, value_name = "FOLDER", default_value = "/var/lib/nats")]
    store: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Init {
    pub(super) fn run(self) -> Result<ExitCode> {
        let folder = &self.folder.organisation;
        let organisation = Organisation::create(folder, &NewOrganisation { servers: self.servers, store: self.store })?;
        let (servers, key) = (organisation.server_folder(), organisation.policy_key_file());
        if self.json {
            return print_json(&json!({ "folder": folder, "servers": servers, "policy_key": key }));
        }
        print_text(&format!(
            "Created {}.\n\n1. Copy `{}` to each server, and run `nats-server --config nats-1.conf` there (2, 3 on the others).\n\
             2. Enrol yourself: amplifier fleet add NAME --role admin, then amplifier fleet join\n\
             3. Create the streams: amplifier fleet streams\n\
             4. Move `{}` to a safe place. It signs policies: amplifier fleet policy publish --key FILE\n",
            folder.display(),
            servers.display(),
            key.display()
        ))
    }
}

/// Add an identity, and print the token with which its machine joins
#[derive(Args, Debug)]
pub(super) struct Add {
    /// Name: letters, digits, `-` and `_`
    name: FleetName,
    /// Roles, with commas between [possible values: machine, console, collector, service, admin]
    #[arg(long, value_name = "ROLES", value_delimiter = ',', default_value = "machine")]
    role: Vec<FleetRole>,
    /// Group whose policy applies
    #[arg(long, value_name = "NAME", default_value = "all")]
    group: FleetName,
    /// Time after which the identity ends, such as `8h`, for example for a CI runner
    #[arg(long, value_name = "DURATION")]
    expires: Option<SignedDuration>,
    #[command(flatten)]
    folder: OrganisationFolder,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Add {
    pub(super) fn run(self) -> Result<ExitCode> {
        let mut organisation = Organisation::open(&self.folder.organisation)?;
        let expires = self.expires.map(|after| Timestamp::now().checked_add(after)).transpose()?;
        let token = organisation.add(self.name.clone(), self.role, self.group, expires)?.to_line()?;
        match self.json {
            true => print_json(&json!({ "name": self.name, "expires": expires, "token": token })),
            false => print(format!("{token}\n")),
        }
    }
}

/// List all identities
#[derive(Args, Debug)]
pub(super) struct ListIdentities {
    #[command(flatten)]
    folder: OrganisationFolder,
    /// Print JSON, one identity per line
    #[arg(long)]
    json: bool,
}

impl ListIdentities {
    pub(super) fn run(self) -> Result<ExitCode> {
        let organisation = Organisation::open(&self.folder.organisation)?;
        if self.json {
            return print_json_lines(organisation.identities());
        }
        print_text(&organisation.identities().iter().map(line).collect::<String>())
    }
}

fn line(Identity { name, roles, group, expires, revoked, .. }: &Identity) -> String {
    let roles: Vec<&str> = roles.iter().map(|role| role.as_str()).collect();
    let state = match (revoked, expires) {
        (Some(time), _) => format!("revoked {time:.0}"),
        (None, Some(time)) => format!("expires {time:.0}"),
        (None, None) => "active".to_owned(),
    };
    format!("{name:<24}  {:<20}  {group:<12}  {state}\n", roles.join(","))
}

/// Revoke an identity
#[derive(Args, Debug)]
pub(super) struct Revoke {
    /// Name
    name: String,
    #[command(flatten)]
    folder: OrganisationFolder,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Revoke {
    pub(super) fn run(self) -> Result<ExitCode> {
        let mut organisation = Organisation::open(&self.folder.organisation)?;
        organisation.revoke(&self.name)?;
        let accounts = organisation.server_folder().join("accounts.conf");
        if self.json {
            return print_json(&json!({ "name": self.name, "accounts": accounts }));
        }
        print_text(&format!(
            "Revoked {}. Servers refuse it after this: copy `{}` to each, and run `nats-server --signal reload` there.\n\
             For a console or collector, publish the policy again: machines know its key from there.\n",
            self.name,
            accounts.display()
        ))
    }
}
