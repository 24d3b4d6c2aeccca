//! Authentication and roles.
//!
//! A request is authenticated by a token (`Authorization: Bearer …`), or by the cookie and key that a browser received
//! through a one-time link. `guard` identifies the caller before any route; the extractors [`Viewer`], [`Approver`] and
//! [`Admin`] require a role. A route without one of them is public.

mod answer_links;
mod browsers;
mod codes;
mod extract;
pub(crate) mod guard;
mod link_form;
mod rates;
mod secret;
mod tokens;

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use amplifier_core::{Actor, Clock, Rate, SystemClock, words};
use amplifier_link::ApprovalId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use extract::{Admin, Approver, Public, Viewer};
use guard::ClientConnection;
pub use tokens::{Token, TokenFiles};

use crate::server::Holder;
pub(crate) use answer_links::AnswerLink;
use answer_links::AnswerLinks;
use browsers::BrowserSessions;
pub(crate) use browsers::NewBrowserSession;
use codes::SignInCodes;
pub(crate) use link_form::LinkVisitor;
pub(crate) use rates::CallerRates;
use secret::Digest;
use tokens::Tokens;
pub(crate) use tokens::check_private;

words! {
    /// Permissions of a user. Each role includes those before it.
    #[derive(PartialOrd, Ord, utoipa::ToSchema)]
    pub enum Role("role") {
        /// May read.
        Viewer = "viewer",
        /// May answer approval requests and interrupt sessions.
        Approver = "approver",
        /// May do everything.
        Admin = "admin",
    }
}

/// The user who sends a request.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Name in records of answers.
    pub name: String,
    /// Role.
    pub role: Role,
    /// Channel: `console` or `api`.
    pub via: &'static str,
    credential: Credential,
}

/// The credential of a user, as a hash of its secret.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Credential {
    Owner(Digest),
    Token(Digest),
    Browser(Digest),
}

/// A signed-in browser.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Browser {
    /// Name in records of its answers.
    pub name: String,
    /// Role.
    pub role: Role,
    /// Sign-in time.
    #[schema(value_type = String, format = DateTime)]
    pub since: Timestamp,
    /// Time of the last request.
    #[schema(value_type = String, format = DateTime)]
    pub seen: Timestamp,
}

impl Identity {
    /// Returns the user as the kernel and the audit log know them.
    pub fn actor(&self) -> Actor {
        Actor { name: self.name.clone(), via: self.via.to_owned() }
    }

    pub(crate) fn credential(&self) -> Credential {
        self.credential.clone()
    }
}

/// Options of access control.
#[derive(Clone, Debug)]
pub struct AccessOptions {
    /// Name of the server's owner, for the owner's token.
    pub owner: String,
    /// Lifetime of a one-time code.
    pub code_lifetime: Duration,
    /// Time without requests after which a browser is signed out.
    pub idle_limit: Duration,
    /// Limit of signed-in browsers.
    pub browsers: usize,
    /// Request limit per user.
    pub requests: Rate,
    /// Limit of attempts with wrong tokens, cookies or codes.
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

/// The reason why tokens cannot be read or changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AccessError {
    /// A file or folder cannot be used.
    #[error("`{file}`: {source}")]
    File {
        /// The path.
        file: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file has invalid content.
    #[error("cannot read `{file}`: {source}; fix the file, or delete it")]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The cause.
        source: serde_json::Error,
    },
    /// Other users can read a file with secrets.
    #[error("other users can read `{0}`, so its secrets are exposed; delete the file, and a new one is created")]
    Exposed(PathBuf),
    /// A token is too short.
    #[error("invalid token in `{0}`; delete the file, and a new one is created")]
    ShortToken(PathBuf),
    /// The name has a token already.
    #[error("token `{0}` already exists; choose another name, or revoke that token first")]
    NameTaken(String),
    /// No token has this name.
    #[error("unknown token `{0}`; see `amplifier serve token list`")]
    NoToken(String),
    /// The name is invalid.
    #[error("invalid name; expected 1 to 64 characters: letters, digits, spaces and `.` `_` `-` `@` `+` `'`")]
    NoName,
}

/// Checks a name, which is shown to users and stored in the audit log.
pub(crate) fn check_name(name: &str) -> Result<&str, AccessError> {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '.' | '_' | '-' | '@' | '+' | '\'');
    let fits = (1..=64).contains(&name.chars().count()) && name.trim() == name && name.chars().all(is_plain);
    fits.then_some(name).ok_or(AccessError::NoName)
}

/// Tokens, signed-in browsers and rate limits. Cheap to clone; clones share state.
#[derive(Clone, Debug)]
pub struct Access(Arc<AccessState>);

#[derive(Debug)]
struct AccessState {
    folder: PathBuf,
    owner: String,
    tokens: Tokens,
    codes: SignInCodes,
    browsers: BrowserSessions,
    links: AnswerLinks,
    requests: CallerRates,
    failures: CallerRates,
    clock: SystemClock,
}

impl Access {
    /// Opens the folder, and creates it with a token for the owner if it is missing.
    ///
    /// # Errors
    /// If the folder cannot be read or created, or other users can read its files.
    pub fn open(folder: &Path, options: AccessOptions) -> Result<Self, AccessError> {
        let files = TokenFiles::at(folder)?;
        let AccessOptions { owner, code_lifetime, idle_limit, browsers, requests, failures } = options;
        Ok(Self(Arc::new(AccessState {
            folder: folder.to_owned(),
            owner: owner.clone(),
            tokens: Tokens::open(files, owner)?,
            codes: SignInCodes::new(code_lifetime),
            browsers: BrowserSessions::open(folder, idle_limit, browsers)?,
            links: AnswerLinks::default(),
            requests: CallerRates::new(requests),
            failures: CallerRates::new(failures),
            clock: SystemClock::new(),
        })))
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.0.folder
    }

    /// Returns the owner's name.
    pub fn owner(&self) -> &str {
        &self.0.owner
    }

    /// Creates a code that signs one browser in, once.
    ///
    /// # Errors
    /// If the name is invalid, or the system has no randomness.
    pub fn code(&self, name: &str, role: Role) -> Result<String, AccessError> {
        let name = check_name(name)?;
        let made = self.0.codes.create(name, role, Instant::now());
        made.map_err(|source| AccessError::File { file: self.0.folder.clone(), source })
    }

    /// Returns the lifetime of a code.
    pub fn code_lifetime(&self) -> Duration {
        self.0.codes.lifetime()
    }

    /// Redeems a code, and returns a new browser session; `None` if the code is invalid.
    pub(crate) fn sign_in(&self, code: &str) -> io::Result<Option<NewBrowserSession>> {
        let Some((name, role)) = self.0.codes.redeem(code, Instant::now()) else { return Ok(None) };
        self.0.browsers.sign_in(name, role, Timestamp::now()).map(Some)
    }

    /// Signs the browser of this cookie out.
    pub(crate) fn sign_out(&self, cookie: &str) -> io::Result<()> {
        self.0.browsers.sign_out(cookie)
    }

    /// Returns `true` if the credential is still valid: the token was not revoked, and the browser was not signed out.
    ///
    /// This does not count as activity: an idle browser is signed out even while it receives data.
    pub fn is_signed_in(&self, who: &Identity) -> bool {
        match &who.credential {
            Credential::Owner(sha256) => self.0.tokens.owner(sha256).is_some(),
            Credential::Token(sha256) => self.0.tokens.has(sha256, who.role),
            Credential::Browser(sha256) => self.0.browsers.has(sha256, Timestamp::now()),
        }
    }

    /// Returns the same as [`is_signed_in`](Self::is_signed_in), and counts as activity.
    pub(crate) fn touch(&self, who: &Identity) -> bool {
        if let Credential::Browser(sha256) = &who.credential {
            self.0.browsers.touch(sha256, Timestamp::now());
        }
        self.is_signed_in(who)
    }

    /// Returns the signed-in browsers.
    pub(crate) fn browsers(&self) -> Vec<Browser> {
        self.0.browsers.list(Timestamp::now())
    }

    /// Signs the browsers of this name out and revokes unused links for it. Returns the number of browsers.
    pub(crate) fn end_browsers(&self, name: &str) -> io::Result<usize> {
        self.0.codes.revoke(name);
        self.0.links.end(|link| link.name == name);
        self.0.browsers.end(name, Timestamp::now())
    }

    /// Proves to the page with this cookie that this is the server that signed it in; `None` for an unknown cookie.
    pub(crate) fn prove(&self, cookie: &str, message: &str) -> Option<String> {
        self.0.browsers.prove(cookie, message, Timestamp::now())
    }

    /// Returns the user of a stored credential, with the current name and role; `None` if it is no longer valid.
    pub(crate) fn identify(&self, credential: &Credential) -> Option<Identity> {
        match credential {
            Credential::Owner(sha256) => self.0.tokens.owner(sha256),
            Credential::Token(sha256) => self.0.tokens.by_digest(sha256),
            Credential::Browser(sha256) => self.0.browsers.by_digest(sha256, Timestamp::now()),
        }
    }

    /// Creates a link that answers one approval request, and returns its secret.
    pub(crate) fn add_answer_link(&self, link: AnswerLink) -> io::Result<String> {
        self.0.links.add(link, Timestamp::now())
    }

    /// Returns an unused answer link. Showing its request does not use it.
    pub(crate) fn find_answer_link(&self, secret: &str) -> Option<AnswerLink> {
        self.0.links.find(secret, Timestamp::now()).filter(|link| self.is_valid(link))
    }

    /// Returns an unused answer link, and marks it as used.
    pub(crate) fn claim_answer_link(&self, secret: &str) -> Option<AnswerLink> {
        self.0.links.claim(secret, Timestamp::now()).filter(|link| self.is_valid(link))
    }

    /// Returns the answer link of a secret that was right once: a used, expired or withdrawn one, too.
    pub(crate) fn known_answer_link(&self, secret: &str) -> Option<AnswerLink> {
        self.0.links.find_any(secret)
    }

    /// Makes an answer link usable again, because the answer did not count.
    pub(crate) fn release_answer_link(&self, secret: &str) {
        self.0.links.release(secret);
    }

    /// Ends the answer links of a request.
    pub(crate) fn end_answer_links(&self, request: &ApprovalId) {
        self.0.links.end(|link| link.request == *request);
    }

    /// Returns `true` if the recipient of a link is still signed in, where the link depends on that.
    fn is_valid(&self, link: &AnswerLink) -> bool {
        let is_approver = |credential| self.identify(credential).is_some_and(|who| who.role >= Role::Approver);
        link.credential.as_ref().is_none_or(is_approver)
    }

    /// Records that the device of a link is in use: an answer is use, as in the console.
    pub(crate) fn touch_by_link(&self, link: &AnswerLink) {
        if let Some(Credential::Browser(sha256)) = &link.credential {
            self.0.browsers.touch(sha256, Timestamp::now());
        }
    }

    /// Counts a request with an answer link.
    pub(crate) fn count_link(&self, link: &AnswerLink) -> Result<(), Duration> {
        self.0.requests.count(&format!("link:{}", link.name), self.0.clock.sleep_nanos())
    }

    fn by_token(&self, token: &str) -> Option<Identity> {
        self.0.tokens.identify(token)
    }

    /// Returns the user of a cookie if the key matches.
    fn by_cookie(&self, cookie: &str, key: &str) -> Option<Identity> {
        self.0.browsers.identify(cookie, key, Timestamp::now())
    }

    /// Returns the key under which connections are counted: name and role, for tokens and browsers together.
    pub(crate) fn holder(&self, who: &Identity) -> Holder {
        let is_owner = who.role == Role::Admin && who.name == self.0.owner;
        Holder { person: format!("{}:{}", who.role, who.name), is_owner }
    }

    /// Counts a request or a WebSocket message of a user.
    pub(crate) fn count(&self, who: &Identity) -> Result<(), Duration> {
        self.0.requests.count(&format!("{}:{}", who.via, who.name), self.0.clock.sleep_nanos())
    }

    /// Counts a wrong secret from a connection. Only wrong ones are limited: secrets have 256 bits, so guessing fails at
    /// any rate, and another user of the machine must not be able to lock the owner out.
    pub(crate) fn count_wrong_secret(&self, connection: Option<&ClientConnection>) -> Result<(), Duration> {
        let peer = connection.map_or(IpAddr::from([0, 0, 0, 0]), |connection| connection.peer);
        self.0.failures.count(&peer.to_string(), self.0.clock.sleep_nanos())
    }
}
