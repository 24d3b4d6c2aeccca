//! `amplifier serve`: the server with the console and the API.

use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

use amplifier_core::text::counted;
use amplifier_host::{Home, MachineHandle, NotifyConfig, anchors, open_log};
use amplifier_process::files::{Durability, write_atomic};
use amplifier_process::signals::{Interrupts, Termination};
use amplifier_process::{file_opener, user_name};
use amplifier_server::access::{Access, AccessError, AccessOptions, Role, TokenFiles};
use amplifier_server::client::{self, Address, Client};
use amplifier_server::feed::Feed;
use amplifier_server::{App, Hub, LinkListener, RunningServer, ServeError, Server, ServerOptions, TlsFiles, Webhook};
use anyhow::{Context, Result, anyhow, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::arguments::listen_address;
use super::output::{print_json, print_json_lines};
use crate::errors::reasons;
use crate::flags::Flags;
use crate::server_requests;
use crate::terminal::{EscapeMode, visible};

/// Run the server: answer approval requests and watch sessions in a browser or over an API
///
/// The server listens on this machine only. Browsers sign in with a one-time link. Programs use a token: the owner's is in the file `server/token` next to the audit log,
/// and `amplifier serve token add` creates others. Roles: a viewer reads, an approver also answers approval requests and interrupts, an admin can do everything.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    mut_arg("serve", |arg| arg.hide(true)),
    after_help = "Exit codes: 0 stopped, 1 could not start, 2 wrong usage.\n\nCtrl-C finishes the requests in progress and stops the server. \
                  Sessions outside the server continue, and their approval requests stay open."
)]
pub struct Serve {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    start: StartOptions,
}

#[derive(Args, Debug)]
struct StartOptions {
    /// Address to listen on; an address that other machines can reach needs TLS
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7878", value_parser = listen_address, allow_negative_numbers = true)]
    listen: SocketAddr,
    /// Additional host name for browsers; can be repeated, and links use the first
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// TLS certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Key of the TLS certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Listen on the network without TLS: others can then read and change all traffic
    #[arg(long)]
    insecure: bool,
    /// Work for the fleet, as far as the roles of this identity permit: show the approval requests of all machines, and collect their records
    #[cfg(feature = "fleet")]
    #[arg(long)]
    fleet: bool,
    /// Open the console in a browser
    #[arg(long)]
    open: bool,
    /// Print one line of JSON at startup, with the address and a one-time link
    #[arg(long)]
    json: bool,
    /// Flags for sessions that run in the server.
    #[command(flatten)]
    flags: Flags,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Create a sign-in link for a browser, valid once within ten minutes
    Link {
        /// User name recorded with answers [default: yours]
        #[arg(long)]
        name: Option<String>,
        /// Role of the browser
        #[arg(long, default_value = "admin", value_parser = role())]
        role: Role,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List signed-in browsers; sign them out
    Browsers {
        #[command(subcommand)]
        command: Option<BrowserCommand>,
        /// Print JSON, one browser per line
        #[arg(long)]
        json: bool,
    },
    /// List, create and revoke tokens for programs
    Token {
        #[command(subcommand)]
        command: TokenCommand,
    },
}

#[derive(Subcommand, Debug)]
enum TokenCommand {
    /// Create a token and print it; the token is not stored and cannot be shown again
    Add {
        /// User name recorded with answers
        name: String,
        /// Role of the token
        #[arg(long, default_value = "viewer", value_parser = role())]
        role: Role,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List all tokens, without their secrets
    List {
        /// Print JSON, one token per line
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token and sign out the browsers of that name; a running server rejects them at once
    Revoke {
        /// Name as shown by `list`
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Subcommand, Debug)]
enum BrowserCommand {
    /// Sign out the browsers of a name, and revoke its unused links
    Revoke {
        /// Name as shown in the list
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

fn role() -> impl TypedValueParser<Value = Role> {
    PossibleValuesParser::new(Role::ALL.map(Role::as_str)).try_map(|name| name.parse::<Role>())
}

impl Serve {
    /// Runs the command.
    ///
    /// # Errors
    /// If the server cannot start or cannot be reached.
    pub async fn run(self, home: &Home) -> Result<ExitCode> {
        let folder = home.server_folder();
        match self.command {
            None => self.start.run(home).await,
            Some(Command::Link { name, role, json }) => create_link(&folder, name, role, json).await,
            Some(Command::Browsers { command: None, json }) => list_browsers(&folder, json).await,
            Some(Command::Browsers { command: Some(BrowserCommand::Revoke { name, json }), .. }) => {
                sign_out(&folder, &name, json).await
            }
            Some(Command::Token { command }) => run_token_command(&folder, command).await,
        }
    }
}

impl StartOptions {
    async fn run(self, home: &Home) -> Result<ExitCode> {
        // Before anything starts that must be shut down in order.
        let mut interrupts = Interrupts::listen()?;
        let mut termination = Termination::listen()?;
        let (as_json, open) = (self.json, self.open);
        let owner = owner_name();
        let server = self.start(home, &owner).await?;
        let running = &server.running;
        let link = running.link(&owner, Role::Admin)?;
        {
            let mut out = std::io::stdout().lock();
            if as_json {
                let line = json!({ "url": running.url, "address": running.address.to_string(), "link": link, "pid": std::process::id() });
                writeln!(out, "{line}")?;
            } else {
                writeln!(
                    out,
                    "The console is at {}\n\nTo sign in, open this link within ten minutes; the link works once:\n\n  {link}\n",
                    running.url
                )?;
                writeln!(out, "For another link: amplifier serve link\nCtrl-C ends the server.")?;
            }
            out.flush()?;
        }
        let page = home.server_folder().join("open.html");
        if open && let Err(error) = open_browser(&page, &link) {
            writeln!(anstream::stderr(), "cannot open a browser: {}", reasons(&error))?;
        }
        tokio::select! {
            _ = interrupts.recv() => {}
            () = termination.recv() => {}
        }
        let _ = fs::remove_file(page);
        server.stop().await;
        Ok(ExitCode::SUCCESS)
    }

    async fn start(self, home: &Home, owner: &str) -> Result<OwnServer> {
        let mut options = ServerOptions::new(self.listen);
        options.hosts = self.host;
        options.insecure = self.insecure;
        options.tls = self.tls_cert.zip(self.tls_key).map(|(certificate, key)| TlsFiles { certificate, key });
        if self.insecure && options.tls.is_none() && !self.listen.ip().is_loopback() {
            let warning = "WARNING: anyone on the network between you and this server can read all traffic, take the token \
                           or cookie from it, and answer approval requests as you. Use --tls-cert and --tls-key.";
            writeln!(anstream::stderr(), "{warning}")?;
        }
        let access = AccessOptions { owner: owner.to_owned(), ..AccessOptions::default() };
        let config = self.flags.load(home)?;
        options.webhooks = config.notify.iter().map(|notify| webhook(notify, owner)).collect::<Result<_>>()?;
        options.push_services = config.push_services.clone();
        let log = open_log(&config, home)?;
        let machine = server_requests::from_flags(&self.flags, home, &log);
        let hub = Hub::new();
        let app = App {
            hub: hub.clone(),
            feed: Feed::with_anchors(&home.audit_folder(), log.status().public_key, anchors::files(&config.anchors))?,
            access: Access::open(&home.server_folder(), access)?,
            log,
        };
        let machine = machine.connect(hub.machine_pipes(), hub.pipes());
        let listen = self.listen;
        let running = Server::start(app, options).await.map_err(|error| match error {
            ServeError::Listen { source, .. } if source.kind() == std::io::ErrorKind::AddrInUse => {
                anyhow!(
                    "`{listen}` is in use by another program; choose another port: amplifier serve --listen {}:{}",
                    listen.ip(),
                    next_port(listen.port())
                )
            }
            error => error.into(),
        })?;
        #[cfg(feature = "fleet")]
        let centre = match self.fleet {
            true => Some(super::fleet::CentreWork::start(&config, home, &hub).await?),
            false => None,
        };
        let link = LinkListener::open(&home.server_folder(), hub)?;
        Ok(OwnServer {
            running,
            link,
            machine,
            #[cfg(feature = "fleet")]
            _centre: centre,
        })
    }
}

/// A server in this process.
pub(crate) struct OwnServer {
    running: RunningServer,
    link: LinkListener,
    machine: MachineHandle,
    #[cfg(feature = "fleet")]
    _centre: Option<super::fleet::CentreWork>,
}

impl OwnServer {
    /// Starts a server for this machine, on a free port.
    ///
    /// # Errors
    /// If the server cannot start, also because there is another one.
    pub(crate) async fn start(home: &Home) -> Result<Self> {
        let options = StartOptions {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            host: Vec::new(),
            tls_cert: None,
            tls_key: None,
            insecure: false,
            #[cfg(feature = "fleet")]
            fleet: false,
            open: false,
            json: false,
            flags: Flags::default(),
        };
        options.start(home, &owner_name()).await
    }

    /// Ends the server in order.
    pub(crate) async fn stop(self) {
        // Requests in progress need the sessions. Then the server's own sessions end, and all others wait for a new server.
        self.running.stop().await;
        self.machine.end().await;
        drop(self.link);
    }
}

/// Returns the webhook of a configured receiver. The links of one without a name are for the owner.
fn webhook(notify: &NotifyConfig, owner: &str) -> Result<Webhook> {
    let NotifyConfig { service, url, name, chat, headers } = notify.expand()?;
    let service = service.parse().with_context(|| format!("`service` of the notification {notify}"))?;
    Ok(Webhook { service, url, name: name.unwrap_or_else(|| owner.to_owned()), chat, headers })
}

fn next_port(port: u16) -> u16 {
    port.checked_add(1).unwrap_or(7878)
}

fn owner_name() -> String {
    // Names are displayed and recorded, so unusual ones are not used.
    let is_plain = |name: &String| {
        (1..=64).contains(&name.len())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
    };
    user_name().filter(is_plain).unwrap_or_else(|| "owner".to_owned())
}

/// Opens a link in a browser. Command arguments are visible to all users of the machine, so the browser gets a file with a redirect that
/// only the owner can read.
fn open_browser(page: &Path, link: &str) -> Result<()> {
    let html = format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<title>Amplifier</title>\n<meta http-equiv=\"refresh\" content=\"0; url={link}\">\n"
    );
    write_atomic(page, html.as_bytes(), Durability::Cached)?;
    let program = file_opener();
    let spawned = std::process::Command::new(program)
        .arg(page)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut child = spawned.with_context(|| format!("`{program}`"))?;
    // Reaps the process.
    std::thread::spawn(move || child.wait());
    Ok(())
}

async fn create_link(folder: &Path, name: Option<String>, role: Role, as_json: bool) -> Result<ExitCode> {
    let client = Client::find(folder)?;
    let Address { owner, .. } = client.address();
    let link = client.link(name.as_deref().unwrap_or(owner), role).await?;
    if as_json {
        return print_json(&link);
    }
    let left = link.expires_at.duration_since(Timestamp::now()) + SignedDuration::from_secs(59);
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", visible(&link.url, EscapeMode::Exact))?;
    writeln!(anstream::stderr(), "The link works once, within {}.", counted(left.as_mins(), "minute"))?;
    Ok(ExitCode::SUCCESS)
}

async fn list_browsers(folder: &Path, as_json: bool) -> Result<ExitCode> {
    let browsers = client::browsers(folder).await?;
    if as_json {
        return print_json_lines(&browsers);
    }
    let mut out = std::io::stdout().lock();
    if browsers.is_empty() {
        writeln!(out, "No browser is signed in.")?;
    }
    for browser in browsers {
        let name = visible(&browser.name, EscapeMode::Exact);
        writeln!(out, "{name:<24}  {:<8}  since {:.0}  last seen {:.0}", browser.role, browser.since, browser.seen)?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn sign_out(folder: &Path, name: &str, as_json: bool) -> Result<ExitCode> {
    let shown = visible(name, EscapeMode::Exact);
    match client::end_browsers(folder, name).await? {
        0 => bail!("no browser of `{shown}` is signed in; unused links for `{shown}` no longer work"),
        ended if as_json => return print_json(&json!({ "name": name, "browsers": ended })),
        ended => writeln!(std::io::stdout(), "Signed out {} of `{shown}`.", counted(ended, "browser"))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Revokes a token and signs out the browsers of the same name, because access is revoked for the person.
async fn revoke_token(folder: &Path, name: &str, as_json: bool) -> Result<ExitCode> {
    let revoked = match TokenFiles::at(folder)?.revoke(name) {
        Err(AccessError::NoToken(_)) => None,
        done => Some(done?),
    };
    let shown = visible(name, EscapeMode::Exact);
    let mut out = std::io::stdout();
    if revoked.is_some() && !as_json {
        writeln!(out, "Revoked the token of `{shown}`.")?;
    }
    match client::end_browsers(folder, name).await.context("cannot sign out the browsers of that name")? {
        0 if revoked.is_none() => return Err(AccessError::NoToken(name.to_owned()).into()),
        browsers if as_json => {
            return print_json(&json!({ "name": name, "token": revoked.is_some(), "browsers": browsers }));
        }
        0 => {}
        ended => writeln!(out, "Signed out {} of `{shown}`.", counted(ended, "browser"))?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn run_token_command(folder: &Path, command: TokenCommand) -> Result<ExitCode> {
    let files = TokenFiles::at(folder)?;
    let mut out = std::io::stdout();
    match command {
        TokenCommand::Revoke { name, json } => return revoke_token(folder, &name, json).await,
        TokenCommand::Add { name, role, json } => {
            let token = files.add(&name, role)?;
            if json {
                return print_json(&json!({ "name": name, "role": role, "token": token.to_string() }));
            }
            writeln!(out, "{token}")?;
            writeln!(anstream::stderr(), "The token of `{name}` ({role}) is not shown again.")?;
        }
        TokenCommand::List { json: true } => {
            let tokens = files.list()?;
            let lines =
                tokens.iter().map(|token| json!({ "name": token.name, "role": token.role, "since": token.since }));
            return print_json_lines(lines);
        }
        TokenCommand::List { json: false } => {
            let tokens = files.list()?;
            if tokens.is_empty() {
                writeln!(out, "No tokens except the owner's, in `{}`.", folder.join("token").display())?;
            }
            for token in tokens {
                let name = visible(&token.name, EscapeMode::Exact);
                writeln!(out, "{name:<24}  {:<8}  since {:.0}", token.role, token.since)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
