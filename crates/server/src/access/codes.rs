//! One-time codes of sign-in links.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Role;
use super::secret::{Digest, secret};

/// Limit of unused codes; a new one replaces the oldest.
const MOST: usize = 64;

/// Unused codes. They are stored in memory only: a restart ends them.
#[derive(Debug)]
pub(super) struct SignInCodes {
    lifetime: Duration,
    // A std lock: nothing awaits while it is held.
    waiting: Mutex<Vec<PendingCode>>,
}

#[derive(Debug)]
struct PendingCode {
    digest: Digest,
    name: String,
    role: Role,
    until: Instant,
}

impl SignInCodes {
    pub(super) fn new(lifetime: Duration) -> Self {
        Self { lifetime, waiting: Mutex::default() }
    }

    pub(super) fn lifetime(&self) -> Duration {
        self.lifetime
    }

    pub(super) fn create(&self, name: &str, role: Role, now: Instant) -> io::Result<String> {
        let code = secret()?;
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|code| now < code.until);
        if waiting.len() >= MOST {
            waiting.remove(0);
        }
        let until = now + self.lifetime;
        waiting.push(PendingCode { digest: Digest::from_secret(&code), name: name.to_owned(), role, until });
        Ok(code)
    }

    pub(super) fn revoke(&self, name: &str) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).retain(|code| code.name != name);
    }

    pub(super) fn redeem(&self, code: &str, now: Instant) -> Option<(String, Role)> {
        let digest = Digest::from_secret(code);
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = None;
        for (at, code) in waiting.iter().enumerate() {
            if bool::from(code.digest.matches(&digest)) {
                found = Some(at);
            }
        }
        let PendingCode { name, role, until, .. } = waiting.remove(found?);
        (now < until).then_some((name, role))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFETIME: Duration = Duration::from_secs(600);

    #[test]
    fn a_code_works_once() {
        let (codes, now) = (SignInCodes::new(LIFETIME), Instant::now());
        let code = codes.create("ada", Role::Viewer, now).unwrap();
        assert_eq!(codes.redeem(&code, now), Some(("ada".to_owned(), Role::Viewer)));
        assert_eq!(codes.redeem(&code, now), None);
    }

    #[test]
    fn a_code_works_for_ten_minutes() {
        let (codes, now) = (SignInCodes::new(LIFETIME), Instant::now());
        let code = codes.create("ada", Role::Viewer, now).unwrap();
        assert_eq!(codes.redeem(&code, now + LIFETIME), None);
        let code = codes.create("ada", Role::Viewer, now).unwrap();
        assert!(codes.redeem(&code, now + LIFETIME - Duration::from_millis(1)).is_some());
    }

    #[test]
    fn the_oldest_code_gives_way() {
        let (codes, now) = (SignInCodes::new(LIFETIME), Instant::now());
        let made: Vec<String> = (0..=MOST).map(|_| codes.create("ada", Role::Viewer, now).unwrap()).collect();
        assert_eq!(codes.redeem(&made[0], now), None);
        assert!(made[1..].iter().all(|code| codes.redeem(code, now).is_some()));
    }
}
