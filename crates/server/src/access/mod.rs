//! Who may do what.
//!
//! A request is somebody's by a token (`Authorization: Bearer …`), or by the cookie and the key that a browser got through a one-time link. `guard` finds out whose before
//! the routes are looked at; the extractors [`Viewer`], [`Approver`] and [`Admin`] refuse what that person may not do. A route that takes none of
//! them is open to everybody.

mod browsers;
mod codes;
mod extract;
pub(crate) mod guard;
mod rates;
mod secret;
mod tokens;

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use amplifier_core::{Actor, Clock, Rate, SystemClock, words};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use extract::{Admin, Approver, Public, Viewer};
pub use tokens::{Token, TokenFiles};

use crate::server::Holder;
use browsers::BrowserSessions;
pub(crate) use browsers::NewBrowserSession;
use codes::SignInCodes;
use rates::CallerRates;
use secret::Digest;
use tokens::Tokens;

words! {
    /// What somebody may do. Each role may do what those before it may.
    #[derive(PartialOrd, Ord, utoipa::ToSchema)]
    pub enum Role("role") {
        /// Look.
        Viewer = "viewer",
        /// Answer questions, and interrupt.
        Approver = "approver",
        /// Everything.
        Admin = "admin",
    }
}

/// Who makes a request.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The name that answers are recorded under.
    pub name: String,
    /// What they may do.
    pub role: Role,
    /// From where: `console` or `api`.
    pub via: &'static str,
    credential: Credential,
}

/// What somebody got in with.
#[derive(Clone, Debug)]
enum Credential {
    /// The owner's token.
    Owner,
    /// A token that was given to them.
    Token(Digest),
    /// A browser that is in, by its cookie.
    Browser(Digest),
}

/// A browser that is in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Browser {
    /// The name that its answers are recorded under.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// When it came in.
    #[schema(value_type = String, format = DateTime)]
    pub since: Timestamp,
    /// When it last asked for something.
    #[schema(value_type = String, format = DateTime)]
    pub seen: Timestamp,
}

impl Identity {
    /// The same, as the kernel and the audit log know it.
    pub fn actor(&self) -> Actor {
        Actor { name: self.name.clone(), via: self.via.to_owned() }
    }
}

/// What can be set.
#[derive(Clone, Debug)]
pub struct AccessOptions {
    /// The name of the person whose server this is: that of the owner's token.
    pub owner: String,
    /// How long a one-time code can be used.
    pub code_lifetime: Duration,
    /// How long a browser stays in without a request.
    pub idle_limit: Duration,
    /// How many browsers are in at most.
    pub browsers: usize,
    /// How many requests somebody may make.
    pub requests: Rate,
    /// How often somebody may try a token, a cookie or a code that is wrong.
    pub failures: Rate,
}

impl Default for AccessOptions {
    fn default() -> Self {
        Self {
            owner: "owner".to_owned(),
            code_lifetime: Duration::from_secs(10 * 60),
            idle_limit: Duration::from_secs(12 * 60 * 60),
            browsers: 1000,
            requests: Rate { burst: 2000, every: Duration::from_millis(2) },
            failures: Rate { burst: 20, every: Duration::from_secs(1) },
        }
    }
}

/// Why tokens cannot be used or changed.
#[derive(Debug, Error)]
pub enum AccessError {
    /// A file or folder.
    #[error("`{file}`: {source}")]
    File {
        /// Which.
        file: PathBuf,
        /// What is wrong with it.
        source: io::Error,
    },
    /// A file that holds something else.
    #[error("`{file}` cannot be read: {source}; mend it, or delete it and start anew")]
    Unreadable {
        /// Which.
        file: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A file with secrets that others can read.
    #[error("others can read `{0}`, so what it holds is no secret: delete it, and a new one is made")]
    Exposed(PathBuf),
    /// A token that is too short to be one.
    #[error("`{0}` holds no token: delete it, and a new one is made")]
    ShortToken(PathBuf),
    /// A name that a token has already.
    #[error("there is a token `{0}` already; choose another name, or take that one back first")]
    NameTaken(String),
    /// A name that no token has.
    #[error("there is no token `{0}`; `amplifier serve token list` shows those there are")]
    NoToken(String),
    /// A name that cannot be used.
    #[error("a name has 1 to 64 characters, none of which is invisible")]
    NoName,
}

/// Checks a name: it is shown to people and stands in the audit log.
pub(crate) fn check_name(name: &str) -> Result<&str, AccessError> {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '.' | '_' | '-' | '@' | '+' | '\'');
    let fits = (1..=64).contains(&name.chars().count()) && name.trim() == name && name.chars().all(is_plain);
    fits.then_some(name).ok_or(AccessError::NoName)
}

/// Who may do what. A handle.
#[derive(Clone, Debug)]
pub struct Access(Arc<AccessState>);

#[derive(Debug)]
struct AccessState {
    folder: PathBuf,
    owner: String,
    tokens: Tokens,
    codes: SignInCodes,
    browsers: BrowserSessions,
    requests: CallerRates,
    failures: CallerRates,
    clock: SystemClock,
}

impl Access {
    /// What that folder says. It is made if it is not there, with a token for the owner.
    ///
    /// # Errors
    /// If it cannot be read or made, or others can read what is in it.
    pub fn open(folder: &Path, options: AccessOptions) -> Result<Self, AccessError> {
        let files = TokenFiles::at(folder)?;
        let AccessOptions { owner, code_lifetime, idle_limit, browsers, requests, failures } = options;
        Ok(Self(Arc::new(AccessState {
            folder: folder.to_owned(),
            owner: owner.clone(),
            tokens: Tokens::open(files, owner)?,
            codes: SignInCodes::new(code_lifetime),
            browsers: BrowserSessions::open(folder, idle_limit, browsers)?,
            requests: CallerRates::new(requests),
            failures: CallerRates::new(failures),
            clock: SystemClock::new(),
        })))
    }

    /// The folder that everything is kept in.
    pub fn folder(&self) -> &Path {
        &self.0.folder
    }

    /// The name of the person whose server this is.
    pub fn owner(&self) -> &str {
        &self.0.owner
    }

    /// A code that lets one browser in, once.
    ///
    /// # Errors
    /// If the name cannot be used, or there is no randomness.
    pub fn code(&self, name: &str, role: Role) -> Result<String, AccessError> {
        let name = check_name(name)?;
        let made = self.0.codes.create(name, role, Instant::now());
        made.map_err(|source| AccessError::File { file: self.0.folder.clone(), source })
    }

    /// How long a code can be used.
    pub fn code_lifetime(&self) -> Duration {
        self.0.codes.lifetime()
    }

    /// Uses a code up, and gives a cookie and a key; none if it is not valid.
    pub(crate) fn sign_in(&self, code: &str) -> io::Result<Option<NewBrowserSession>> {
        let Some((name, role)) = self.0.codes.redeem(code, Instant::now()) else { return Ok(None) };
        self.0.browsers.sign_in(name, role, Timestamp::now()).map(Some)
    }

    /// Ends a cookie.
    pub(crate) fn sign_out(&self, cookie: &str) -> io::Result<()> {
        self.0.browsers.sign_out(cookie)
    }

    /// Whether somebody who got in is still in: their token was not taken back, their browser has not left and was not ended.
    ///
    /// Asking is not being seen: whoever does nothing for too long is out, even while something is sent to them.
    pub fn is_signed_in(&self, who: &Identity) -> bool {
        match &who.credential {
            Credential::Owner => true,
            Credential::Token(sha256) => self.0.tokens.has(sha256, who.role),
            Credential::Browser(sha256) => self.0.browsers.has(sha256, Timestamp::now()),
        }
    }

    /// The same for somebody who does something, which counts as being seen.
    pub(crate) fn touch(&self, who: &Identity) -> bool {
        if let Credential::Browser(sha256) = &who.credential {
            self.0.browsers.touch(sha256, Timestamp::now());
        }
        self.is_signed_in(who)
    }

    /// The browsers that are in.
    pub(crate) fn browsers(&self) -> Vec<Browser> {
        self.0.browsers.list(Timestamp::now())
    }

    /// Ends the browsers of that name, and the links that were made for it and not used. Says how many browsers there were.
    pub(crate) fn end_browsers(&self, name: &str) -> io::Result<usize> {
        self.0.codes.revoke(name);
        self.0.browsers.end(name, Timestamp::now())
    }

    /// Proves to the page with that cookie that this is the server that let it in; nothing for a cookie that nobody has.
    pub(crate) fn prove(&self, cookie: &str, message: &str) -> Option<String> {
        self.0.browsers.prove(cookie, message, Timestamp::now())
    }

    /// Whose token that is.
    fn by_token(&self, token: &str) -> Option<Identity> {
        self.0.tokens.identify(token)
    }

    /// Whose cookie that is, if the key is the one that goes with it.
    fn by_cookie(&self, cookie: &str, key: &str) -> Option<Identity> {
        self.0.browsers.identify(cookie, key, Timestamp::now())
    }

    /// Whose connections are counted together: those of one name and role, with tokens and in browsers.
    pub(crate) fn holder(&self, who: &Identity) -> Holder {
        let is_owner = who.role == Role::Admin && who.name == self.0.owner;
        Holder { person: format!("{}:{}", who.role, who.name), is_owner }
    }

    /// Counts a request of somebody who is known, or a message over a WebSocket.
    pub(crate) fn count(&self, who: &Identity) -> Result<(), Duration> {
        self.0.requests.count(&format!("{}:{}", who.via, who.name), self.0.clock.sleep_nanos())
    }

    /// Counts a secret that was wrong. Only wrong ones are slowed down: secrets have 256 bits, so nobody guesses one at any rate, and
    /// somebody else on the machine must not be able to lock the owner out.
    pub(crate) fn count_failure(&self, peer: IpAddr) -> Result<(), Duration> {
        self.0.failures.count(&peer.to_string(), self.0.clock.sleep_nanos())
    }
}
