//! Cookies: browsers that are in.

use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::secret::{Digest, secret, write_private};
use super::{AccessError, Identity, Role};

/// How often the time that a browser was last seen is written down.
const WRITTEN_EVERY: SignedDuration = SignedDuration::from_mins(10);

/// Browsers that are in, kept in a file, so that they stay in when the server starts anew.
#[derive(Debug)]
pub(super) struct Cookies {
    file: PathBuf,
    idle: SignedDuration,
    most: usize,
    // A std lock: nothing awaits while it is held. The file is written under it, so that it never goes back in time.
    visits: Mutex<Vec<Visit>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Visit {
    sha256: Digest,
    name: String,
    role: Role,
    seen: Timestamp,
    #[serde(skip)]
    written: Option<Timestamp>,
}

impl Visit {
    fn identity(&self) -> Identity {
        Identity { name: self.name.clone(), role: self.role, via: "console" }
    }
}

impl Cookies {
    pub(super) fn open(file: PathBuf, idle: Duration, most: usize) -> Result<Self, AccessError> {
        let visits = match std::fs::read_to_string(&file) {
            Ok(text) => {
                serde_json::from_str(&text).map_err(|source| AccessError::Unreadable { file: file.clone(), source })?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(AccessError::File { file, source }),
        };
        let idle = SignedDuration::try_from(idle).unwrap_or(SignedDuration::MAX);
        Ok(Self { file, idle, most: most.max(1), visits: Mutex::new(visits) })
    }

    /// Lets a browser in: the value of its cookie.
    pub(super) fn enter(&self, name: String, role: Role, now: Timestamp) -> io::Result<String> {
        let cookie = secret()?;
        let mut visits = self.visits.lock().unwrap_or_else(PoisonError::into_inner);
        visits.retain(|visit| self.is_fresh(visit, now));
        if visits.len() >= self.most {
            let oldest = visits.iter().enumerate().min_by_key(|(_, visit)| visit.seen).map(|(at, _)| at);
            oldest.map(|at| visits.remove(at));
        }
        visits.push(Visit { sha256: Digest::of(&cookie), name, role, seen: now, written: Some(now) });
        self.write(&visits)?;
        Ok(cookie)
    }

    /// Whose cookie that is. Being used keeps it fresh.
    pub(super) fn identify(&self, cookie: &Digest, now: Timestamp) -> Option<Identity> {
        let mut visits = self.visits.lock().unwrap_or_else(PoisonError::into_inner);
        let at = find(&visits, cookie)?;
        if !self.is_fresh(&visits[at], now) {
            return None;
        }
        let visit = &mut visits[at];
        visit.seen = visit.seen.max(now);
        let identity = visit.identity();
        if visit.written.is_none_or(|written| now.duration_since(written) > WRITTEN_EVERY) {
            visit.written = Some(now);
            if let Err(error) = self.write(&visits) {
                tracing::warn!(%error, "a restart may ask browsers to enter again");
            }
        }
        Some(identity)
    }

    /// The same, without counting as use.
    pub(super) fn holder(&self, cookie: &Digest, now: Timestamp) -> Option<Identity> {
        let visits = self.visits.lock().unwrap_or_else(PoisonError::into_inner);
        let visit = visits.get(find(&visits, cookie)?)?;
        self.is_fresh(visit, now).then(|| visit.identity())
    }

    /// Ends a cookie.
    pub(super) fn leave(&self, cookie: &str) -> io::Result<()> {
        let mut visits = self.visits.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(at) = find(&visits, &Digest::of(cookie)) else { return Ok(()) };
        visits.remove(at);
        self.write(&visits)
    }

    fn is_fresh(&self, visit: &Visit, now: Timestamp) -> bool {
        now.duration_since(visit.seen) < self.idle
    }

    fn write(&self, visits: &[Visit]) -> io::Result<()> {
        write_private(&self.file, &serde_json::to_string(visits).map_err(io::Error::other)?)
    }
}

/// Every visit is looked at, in the same way.
fn find(visits: &[Visit], cookie: &Digest) -> Option<usize> {
    let mut found = None;
    for (at, visit) in visits.iter().enumerate() {
        if bool::from(visit.sha256.is(cookie)) {
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

    #[test]
    fn a_cookie_lasts_while_it_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let cookies = Cookies::open(folder.path().join("cookies.json"), IDLE, 9).unwrap();
        let begun = Timestamp::now();
        let cookie = cookies.enter("ada".to_owned(), Role::Viewer, begun).unwrap();
        let most = IDLE - Duration::from_secs(1);
        for times in 1..5 {
            assert_eq!(
                name(cookies.identify(&Digest::of(&cookie), later(begun, most * times))).as_deref(),
                Some("ada")
            );
        }
        assert_eq!(name(cookies.identify(&Digest::of(&cookie), later(begun, most * 4 + IDLE))), None);
    }

    #[test]
    fn a_cookie_survives_a_restart_and_its_secret_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cookies.json");
        let (first, now) = (Cookies::open(file.clone(), IDLE, 9).unwrap(), Timestamp::now());
        let cookie = first.enter("ada".to_owned(), Role::Approver, now).unwrap();
        assert!(!std::fs::read_to_string(&file).unwrap().contains(&cookie));
        let second = Cookies::open(file.clone(), IDLE, 9).unwrap();
        assert_eq!(second.identify(&Digest::of(&cookie), now).map(|found| found.role), Some(Role::Approver));
        second.leave(&cookie).unwrap();
        assert!(second.identify(&Digest::of(&cookie), now).is_none());
        assert!(Cookies::open(file, IDLE, 9).unwrap().identify(&Digest::of(&cookie), now).is_none());
    }

    #[test]
    fn the_browser_that_was_unseen_longest_gives_way() {
        let folder = tempfile::tempdir().unwrap();
        let cookies = Cookies::open(folder.path().join("cookies.json"), IDLE, 2).unwrap();
        let begun = Timestamp::now();
        let at = |seconds| later(begun, Duration::from_secs(seconds));
        let first = cookies.enter("first".to_owned(), Role::Viewer, at(0)).unwrap();
        let second = cookies.enter("second".to_owned(), Role::Viewer, at(1)).unwrap();
        assert!(cookies.identify(&Digest::of(&first), at(2)).is_some());
        let third = cookies.enter("third".to_owned(), Role::Viewer, at(3)).unwrap();
        let known = [&first, &second, &third].map(|cookie| cookies.identify(&Digest::of(cookie), at(4)).is_some());
        assert_eq!(known, [true, false, true]);
    }
}
