//! One-time links that answer one approval request.
//!
//! A link is a secret for one request with one digest. It is stored as a hash and in memory only. It ends with its first
//! answer, with the request, at the deadline, or when the server stops. The hash stays for an hour after the deadline:
//! the secret of an ended link is no guess.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use amplifier_core::Digest as DataDigest;
use amplifier_link::{ApprovalId, OpenApproval};
use jiff::{SignedDuration, Timestamp};

use super::Credential;
use super::secret::{Digest, secret};

/// Limit of links; a new one replaces the oldest.
const MOST: usize = 10_000;

/// Time after the deadline during which a secret is known.
const KNOWN: SignedDuration = SignedDuration::from_hours(1);

/// The links of all open requests.
#[derive(Debug, Default)]
pub(super) struct AnswerLinks {
    // A std lock: nothing awaits while it is held.
    links: Mutex<Vec<StoredLink>>,
}

#[derive(Debug)]
struct StoredLink {
    sha256: Digest,
    state: LinkState,
    link: AnswerLink,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkState {
    Open,
    /// An answer is on its way, so that a second one is refused.
    Claimed,
    Ended,
}

/// The request that a link answers, and its recipient.
#[derive(Clone, Debug)]
pub(crate) struct AnswerLink {
    pub(crate) request: ApprovalId,
    pub(crate) digest: DataDigest,
    /// Name of the recipient, which is recorded with the answer.
    pub(crate) name: String,
    /// Credential of the recipient's device. The link ends with it.
    pub(crate) credential: Option<Credential>,
    until: Timestamp,
}

impl AnswerLink {
    /// Creates a link for this request.
    pub(crate) fn new(approval: &OpenApproval, name: &str, credential: Option<Credential>) -> Self {
        let (request, until) = (approval.id.clone(), approval.deadline);
        Self { request, digest: approval.digest, name: name.to_owned(), credential, until }
    }

    /// Returns `true` if the link is for this request: the same id, and the same data.
    pub(crate) fn is_for(&self, approval: &OpenApproval) -> bool {
        self.request == approval.id && self.digest == approval.digest
    }
}

impl AnswerLinks {
    /// Stores a link, and returns its secret. Links whose secret is no longer known are removed.
    pub(super) fn add(&self, link: AnswerLink, now: Timestamp) -> io::Result<String> {
        let secret = secret()?;
        let mut links = self.lock();
        links.retain(|stored| now.duration_since(stored.link.until) < KNOWN);
        if links.len() >= MOST {
            links.remove(0);
        }
        links.push(StoredLink { sha256: Digest::from_secret(&secret), state: LinkState::Open, link });
        Ok(secret)
    }

    /// Returns an unused link.
    pub(super) fn find(&self, secret: &str, now: Timestamp) -> Option<AnswerLink> {
        let links = self.lock();
        open_position(&links, secret, now).map(|at| links[at].link.clone())
    }

    /// Returns a link with this secret, also if it has ended.
    pub(super) fn find_any(&self, secret: &str) -> Option<AnswerLink> {
        let links = self.lock();
        position(&links, secret).map(|at| links[at].link.clone())
    }

    /// Returns an unused link, and marks it as used.
    pub(super) fn claim(&self, secret: &str, now: Timestamp) -> Option<AnswerLink> {
        let mut links = self.lock();
        let stored = open_position(&links, secret, now).and_then(|at| links.get_mut(at))?;
        stored.state = LinkState::Claimed;
        Some(stored.link.clone())
    }

    /// Makes a link usable again after an answer that did not count.
    pub(super) fn release(&self, secret: &str) {
        let mut links = self.lock();
        let stored = position(&links, secret).and_then(|at| links.get_mut(at));
        if let Some(stored) = stored.filter(|stored| stored.state == LinkState::Claimed) {
            stored.state = LinkState::Open;
        }
    }

    /// Ends the links that match.
    pub(super) fn end(&self, is_ended: impl Fn(&AnswerLink) -> bool) {
        for stored in self.lock().iter_mut().filter(|stored| is_ended(&stored.link)) {
            stored.state = LinkState::Ended;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<StoredLink>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn open_position(links: &[StoredLink], secret: &str, now: Timestamp) -> Option<usize> {
    position(links, secret).filter(|at| links[*at].state == LinkState::Open && now < links[*at].link.until)
}

/// Finds a link in constant time: every entry is compared.
fn position(links: &[StoredLink], secret: &str) -> Option<usize> {
    let digest = Digest::from_secret(secret);
    let mut found = None;
    for (at, stored) in links.iter().enumerate() {
        if bool::from(stored.sha256.matches(&digest)) {
            found = Some(at);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(number: u64, until: Timestamp) -> AnswerLink {
        let request = ApprovalId::new("s-1", "run", number);
        let digest = "00".repeat(32).parse().unwrap();
        AnswerLink { request, digest, name: "ada".to_owned(), credential: None, until }
    }

    #[test]
    fn a_link_is_used_once_and_again_only_if_the_answer_did_not_count() {
        let (links, now) = (AnswerLinks::default(), Timestamp::now());
        let secret = links.add(link(1, now + SignedDuration::from_secs(60)), now).unwrap();
        assert!(links.find(&secret, now).is_some());
        assert!(links.claim(&secret, now).is_some());
        assert!(links.claim(&secret, now).is_none() && links.find(&secret, now).is_none());
        links.release(&secret);
        assert!(links.claim(&secret, now).is_some());
        links.end(|link| link.request.number == 1);
        links.release(&secret);
        assert!(links.find(&secret, now).is_none());
        assert!(links.find_any(&secret).is_some() && links.find_any("guess").is_none());
        let later = now + SignedDuration::from_secs(60) + KNOWN;
        links.add(link(2, later + KNOWN), later).unwrap();
        assert!(links.find_any(&secret).is_none());
    }

    #[test]
    fn a_link_ends_at_the_deadline() {
        let (links, now) = (AnswerLinks::default(), Timestamp::now());
        let until = now + SignedDuration::from_secs(60);
        let secret = links.add(link(1, until), now).unwrap();
        assert!(links.find(&secret, until - SignedDuration::from_millis(1)).is_some());
        assert!(links.find(&secret, until).is_none());
    }

    #[test]
    fn the_oldest_link_gives_way() {
        let (links, now) = (AnswerLinks::default(), Timestamp::now());
        let until = now + SignedDuration::from_secs(60);
        let secrets: Vec<String> = (0..=3).map(|number| links.add(link(number, until), now).unwrap()).collect();
        for number in 4..=MOST as u64 {
            links.lock().push(StoredLink {
                sha256: Digest::from_secret(""),
                state: LinkState::Open,
                link: link(number, until),
            });
        }
        links.add(link(0, until), now).unwrap();
        assert!(links.find(&secrets[0], now).is_none());
        assert!(links.find(&secrets[3], now).is_some());
    }
}
