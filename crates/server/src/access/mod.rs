//! Who may do what.
//!
//! A request is somebody's by a token (`Authorization: Bearer …`) or by the cookie that a one-time link set. `guard` finds out whose before
//! the routes are looked at; the extractors [`Viewer`], [`Approver`] and [`Admin`] refuse what that person may not do. A route that takes none of
//! them is open to everybody.

mod codes;
mod cookies;
mod extract;
pub(crate) mod guard;
mod rates;
mod secret;
mod tokens;

use std::fmt::{self, Display};
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use amplifier_core::Answerer;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub(crate) use extract::Staying;
pub use extract::{Admin, Anyone, Approver, Viewer};
pub use rates::Rate;
pub(crate) use secret::write_private;
pub use tokens::{Token, TokenFiles};

use codes::Codes;
use cookies::Cookies;
use rates::Rates;
use secret::Digest;
use tokens::Tokens;

/// What somebody may do. Each role may do what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Look.
    Viewer,
    /// Answer questions, and interrupt.
    Approver,
    /// Everything.
    Admin,
}

impl Role {
    /// All roles, those that may do least first.
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Approver, Self::Admin];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Approver => "approver",
            Self::Admin => "admin",
        }
    }
}

impl Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Role {
    type Err = AccessError;

    fn from_str(text: &str) -> Result<Self, AccessError> {
        Self::ALL.into_iter().find(|role| role.as_str() == text).ok_or_else(|| AccessError::NoRole(text.to_owned()))
    }
}

/// Who makes a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The name that answers are recorded under.
    pub name: String,
    /// What they may do.
    pub role: Role,
    /// From where: `console` or `api`.
    pub via: &'static str,
}

impl Identity {
    /// The same, as the kernel and the audit log know it.
    pub fn answerer(&self) -> Answerer {
        Answerer { name: self.name.clone(), via: self.via.to_owned() }
    }
}

/// What somebody shows to be let in, so that it can be looked at again while they stay. The secret itself is not kept.
#[derive(Clone, Debug)]
pub(crate) enum Credential {
    Token(Digest),
    Cookie(Digest),
}

impl Credential {
    pub(crate) fn token(token: &str) -> Self {
        Self::Token(Digest::of(token))
    }

    pub(crate) fn cookie(cookie: &str) -> Self {
        Self::Cookie(Digest::of(cookie))
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
            requests: Rate { burst: 2000, per_second: 500 },
            failures: Rate { burst: 20, per_second: 1 },
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
    /// A word that is no role.
    #[error("`{0}` is no role; there are viewer, approver and admin")]
    NoRole(String),
}

/// Checks a name: it is shown to people and stands in the audit log.
pub(crate) fn check_name(name: &str) -> Result<&str, AccessError> {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '.' | '_' | '-' | '@' | '+' | '\'');
    let fits = (1..=64).contains(&name.chars().count()) && name.trim() == name && name.chars().all(is_plain);
    fits.then_some(name).ok_or(AccessError::NoName)
}

/// Who may do what. A handle.
#[derive(Clone, Debug)]
pub struct Access(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    folder: PathBuf,
    owner: String,
    tokens: Tokens,
    codes: Codes,
    cookies: Cookies,
    requests: Rates,
    failures: Rates,
}

impl Access {
    /// What that folder says. It is made if it is not there, with a token for the owner.
    ///
    /// # Errors
    /// If it cannot be read or made, or others can read what is in it.
    pub fn open(folder: &Path, options: AccessOptions) -> Result<Self, AccessError> {
        let files = TokenFiles::at(folder)?;
        let AccessOptions { owner, code_lifetime, idle_limit, browsers, requests, failures } = options;
        Ok(Self(Arc::new(Shared {
            folder: folder.to_owned(),
            owner: owner.clone(),
            tokens: Tokens::open(files, owner)?,
            codes: Codes::new(code_lifetime),
            cookies: Cookies::open(folder.join("cookies.json"), idle_limit, browsers)?,
            requests: Rates::new(requests),
            failures: Rates::new(failures),
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
        let made = self.0.codes.make(name, role, Instant::now());
        made.map_err(|source| AccessError::File { file: self.0.folder.clone(), source })
    }

    /// How long a code can be used.
    pub fn code_lifetime(&self) -> Duration {
        self.0.codes.lifetime()
    }

    /// Uses a code up, and gives the value of a cookie; none if it is not valid.
    pub(crate) fn enter(&self, code: &str) -> io::Result<Option<String>> {
        let Some((name, role)) = self.0.codes.take(code, Instant::now()) else { return Ok(None) };
        self.0.cookies.enter(name, role, Timestamp::now()).map(Some)
    }

    /// Ends a cookie.
    pub(crate) fn leave(&self, cookie: &str) -> io::Result<()> {
        self.0.cookies.leave(cookie)
    }

    /// Who uses that.
    pub(crate) fn user(&self, credential: &Credential) -> Option<Identity> {
        match credential {
            Credential::Token(token) => self.0.tokens.identify(token),
            Credential::Cookie(cookie) => self.0.cookies.identify(cookie, Timestamp::now()),
        }
    }

    /// The same, without counting as use: a page that is only open does not keep a browser in.
    pub(crate) fn holder(&self, credential: &Credential) -> Option<Identity> {
        match credential {
            Credential::Token(token) => self.0.tokens.identify(token),
            Credential::Cookie(cookie) => self.0.cookies.holder(cookie, Timestamp::now()),
        }
    }

    /// Counts a request of somebody who is known.
    fn count(&self, who: &Identity) -> Result<(), Duration> {
        self.0.requests.count(&format!("{}:{}", who.via, who.name), Instant::now())
    }

    /// Counts a secret that was wrong. Only wrong ones are slowed down: secrets have 256 bits, so nobody guesses one at any rate, and
    /// somebody else on the machine must not be able to lock the owner out.
    pub(crate) fn count_failure(&self, peer: IpAddr) -> Result<(), Duration> {
        self.0.failures.count(&peer.to_string(), Instant::now())
    }
}
