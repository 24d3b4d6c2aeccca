//! Signed-in browsers and their cookies.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use amplifier_process::files::{Durability, write_atomic};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::secret::{Digest, secret};
use super::tokens::check_private;
use super::{AccessError, Browser, Credential, Identity, Role};

/// Interval at which the last-seen time of a browser is written.
const WRITTEN_EVERY: SignedDuration = SignedDuration::from_mins(10);

/// Signed-in browsers, stored in a file so that they stay signed in after a restart.
#[derive(Debug)]
pub(super) struct BrowserSessions {
    file: PathBuf,
    idle: SignedDuration,
    most: usize,
    // A std lock: nothing awaits while it is held. The file is written under it, so that it never goes back in time.
    sessions: Mutex<Vec<BrowserSession>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct BrowserSession {
    sha256: Digest,
    /// Digest of the page's key. Browsers send cookies to every port of a machine, and the key to this server alone.
    key: Digest,
    name: String,
    role: Role,
    since: Timestamp,
    seen: Timestamp,
    #[serde(skip)]
    written: Option<Timestamp>,
}

impl BrowserSession {
    fn identity(&self) -> Identity {
        let Self { name, role, sha256, .. } = self;
        Identity { name: name.clone(), role: *role, via: "console", credential: Credential::Browser(*sha256) }
    }
}

/// The secrets of a new browser session.
#[derive(Debug)]
pub(crate) struct NewBrowserSession {
    pub(crate) cookie: String,
    pub(crate) key: String,
}

impl BrowserSessions {
    pub(super) fn open(folder: &Path, idle: Duration, most: usize) -> Result<Self, AccessError> {
        let file = folder.join("cookies.json");
        let sessions = match std::fs::read_to_string(&file) {
            Ok(text) => {
                check_private(&file)?;
                read(&text).map_err(|source| AccessError::Unreadable { file: file.clone(), source })?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(AccessError::File { file, source }),
        };
        let idle = SignedDuration::try_from(idle).unwrap_or(SignedDuration::MAX);
        Ok(Self { file, idle, most: most.max(1), sessions: Mutex::new(sessions) })
    }

    pub(super) fn sign_in(&self, name: String, role: Role, now: Timestamp) -> io::Result<NewBrowserSession> {
        let (cookie, key) = (secret()?, secret()?);
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|session| self.is_fresh(session, now));
        if sessions.len() >= self.most {
            let oldest = sessions.iter().enumerate().min_by_key(|(_, session)| session.seen).map(|(at, _)| at);
            oldest.map(|at| sessions.remove(at));
        }
        let (sha256, digest) = (Digest::from_secret(&cookie), Digest::from_secret(&key));
        sessions.push(BrowserSession { sha256, key: digest, name, role, since: now, seen: now, written: Some(now) });
        self.write(&sessions)?;
        Ok(NewBrowserSession { cookie, key })
    }

    /// Returns the user of a cookie if the key matches, and records the browser as seen.
    pub(super) fn identify(&self, cookie: &str, key: &str, now: Timestamp) -> Option<Identity> {
        let key = Digest::from_secret(key);
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let at = find(&sessions, &Digest::from_secret(cookie))?;
        if !self.is_fresh(&sessions[at], now) || !bool::from(sessions[at].key.matches(&key)) {
            return None;
        }
        self.record_seen(&mut sessions, at, now);
        Some(sessions[at].identity())
    }

    /// Returns the user of a signed-in browser. This does not count as activity.
    pub(super) fn by_digest(&self, sha256: &Digest, now: Timestamp) -> Option<Identity> {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let session = &sessions[find(&sessions, sha256)?];
        self.is_fresh(session, now).then(|| session.identity())
    }

    /// Records a signed-in browser as seen.
    pub(super) fn touch(&self, sha256: &Digest, now: Timestamp) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = find(&sessions, sha256).filter(|at| self.is_fresh(&sessions[*at], now)) {
            self.record_seen(&mut sessions, at, now);
        }
    }

    fn record_seen(&self, sessions: &mut [BrowserSession], at: usize, now: Timestamp) {
        let session = &mut sessions[at];
        session.seen = session.seen.max(now);
        if session.written.is_none_or(|written| now.duration_since(written) > WRITTEN_EVERY) {
            session.written = Some(now);
            if let Err(error) = self.write(sessions) {
                tracing::warn!(%error, "browsers may have to sign in again after a restart");
            }
        }
    }

    pub(super) fn sign_out(&self, cookie: &str) -> io::Result<()> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(at) = find(&sessions, &Digest::from_secret(cookie)) else { return Ok(()) };
        sessions.remove(at);
        self.write(&sessions)
    }

    /// Proves to the page with this cookie that the server knows the page's key, without revealing it.
    pub(super) fn prove(&self, cookie: &str, message: &str, now: Timestamp) -> Option<String> {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let session = &sessions[find(&sessions, &Digest::from_secret(cookie))?];
        self.is_fresh(session, now).then(|| session.key.prove(message))
    }

    pub(super) fn has(&self, sha256: &Digest, now: Timestamp) -> bool {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        find(&sessions, sha256).is_some_and(|at| self.is_fresh(&sessions[at], now))
    }

    pub(super) fn list(&self, now: Timestamp) -> Vec<Browser> {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = sessions.iter().filter(|session| self.is_fresh(session, now)).cloned();
        fresh.map(|BrowserSession { name, role, since, seen, .. }| Browser { name, role, since, seen }).collect()
    }

    /// Signs the browsers of this name out, and returns their number.
    pub(super) fn end(&self, name: &str, now: Timestamp) -> io::Result<usize> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|session| self.is_fresh(session, now));
        let before = sessions.len();
        sessions.retain(|session| session.name != name);
        let ended = before - sessions.len();
        if ended > 0 {
            self.write(&sessions)?;
        }
        Ok(ended)
    }

    fn is_fresh(&self, session: &BrowserSession, now: Timestamp) -> bool {
        now.duration_since(session.seen) < self.idle
    }

    fn write(&self, sessions: &[BrowserSession]) -> io::Result<()> {
        write_atomic(&self.file, &serde_json::to_vec(sessions).map_err(io::Error::other)?, Durability::Synced)
    }
}

/// Reads the file. Browsers of a version without keys have to sign in again.
fn read(text: &str) -> Result<Vec<BrowserSession>, serde_json::Error> {
    let sessions: Vec<Value> = serde_json::from_str(text)?;
    sessions.into_iter().filter(|session| session.get("key").is_some()).map(serde_json::from_value).collect()
}

/// Finds a session in constant time: every entry is compared.
fn find(sessions: &[BrowserSession], digest: &Digest) -> Option<usize> {
    let mut found = None;
    for (at, session) in sessions.iter().enumerate() {
        if bool::from(session.sha256.matches(digest)) {
            found = Some(at);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Duration = Duration::from_secs(12 * 3600);

    fn later(from: Timestamp, by: Duration) -> Timestamp {
        from + SignedDuration::try_from(by).unwrap()
    }

    fn name(found: Option<Identity>) -> Option<String> {
        found.map(|identity| identity.name)
    }

    fn is_in(cookies: &BrowserSessions, NewBrowserSession { cookie, key }: &NewBrowserSession, now: Timestamp) -> bool {
        cookies.identify(cookie, key, now).is_some()
    }

    #[test]
    fn a_cookie_lasts_while_it_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let cookies = BrowserSessions::open(folder.path(), IDLE, 9).unwrap();
        let begun = Timestamp::now();
        let entered = cookies.sign_in("ada".to_owned(), Role::Viewer, begun).unwrap();
        let most = IDLE - Duration::from_secs(1);
        for times in 1..5 {
            let found = cookies.identify(&entered.cookie, &entered.key, later(begun, most * times));
            assert_eq!(name(found).as_deref(), Some("ada"));
        }
        assert!(!is_in(&cookies, &entered, later(begun, most * 4 + IDLE)));
    }

    #[test]
    fn a_cookie_survives_a_restart_and_its_secrets_are_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (first, now) = (BrowserSessions::open(folder.path(), IDLE, 9).unwrap(), Timestamp::now());
        let entered = first.sign_in("ada".to_owned(), Role::Approver, now).unwrap();
        let kept = std::fs::read_to_string(folder.path().join("cookies.json")).unwrap();
        assert!(!kept.contains(&entered.cookie) && !kept.contains(&entered.key), "{kept}");
        let second = BrowserSessions::open(folder.path(), IDLE, 9).unwrap();
        let found = second.identify(&entered.cookie, &entered.key, now);
        assert_eq!(found.map(|found| found.role), Some(Role::Approver));
        second.sign_out(&entered.cookie).unwrap();
        assert!(!is_in(&second, &entered, now));
        assert!(!is_in(&BrowserSessions::open(folder.path(), IDLE, 9).unwrap(), &entered, now));
    }

    #[test]
    fn the_browser_that_was_unseen_longest_gives_way() {
        let folder = tempfile::tempdir().unwrap();
        let cookies = BrowserSessions::open(folder.path(), IDLE, 2).unwrap();
        let begun = Timestamp::now();
        let at = |seconds| later(begun, Duration::from_secs(seconds));
        let first = cookies.sign_in("first".to_owned(), Role::Viewer, at(0)).unwrap();
        let second = cookies.sign_in("second".to_owned(), Role::Viewer, at(1)).unwrap();
        assert!(is_in(&cookies, &first, at(2)));
        let third = cookies.sign_in("third".to_owned(), Role::Viewer, at(3)).unwrap();
        assert_eq!([&first, &second, &third].map(|one| is_in(&cookies, one, at(4))), [true, false, true]);
    }

    #[test]
    fn browsers_that_have_no_key_have_to_enter_again() {
        let (folder, now) = (tempfile::tempdir().unwrap(), Timestamp::now());
        let entered = BrowserSessions::open(folder.path(), IDLE, 9)
            .unwrap()
            .sign_in("ada".to_owned(), Role::Viewer, now)
            .unwrap();
        let file = folder.path().join("cookies.json");
        let mut old: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        old[0].as_object_mut().unwrap().remove("key");
        write_atomic(&file, old.to_string().as_bytes(), Durability::Synced).unwrap();
        assert!(!is_in(&BrowserSessions::open(folder.path(), IDLE, 9).unwrap(), &entered, now));
        old[0].as_object_mut().unwrap().insert("key".to_owned(), "no digest".into());
        write_atomic(&file, old.to_string().as_bytes(), Durability::Synced).unwrap();
        assert!(matches!(BrowserSessions::open(folder.path(), IDLE, 9), Err(AccessError::Unreadable { .. })));
    }
}
