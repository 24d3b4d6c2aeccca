//! Notifications about approval requests, for users who look at no page: Web Push to devices, and webhooks.
//!
//! A request is announced when it opens. Devices are told when it closes, so that they remove the notification. The
//! content is what a viewer sees, and nothing of it allows anything: the request has to be opened first.

mod client;
mod encryption;
mod endpoint;
mod notice;
mod subscriptions;
mod vapid;
mod webhook;

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use amplifier_core::{Clock, DecisionBasis, Digest, Rate, SystemClock};
use amplifier_link::{ApprovalId, DecidedApproval, OpenApproval};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::future::{join, join_all};
use jiff::Timestamp;
use serde_json::Value;
use thiserror::Error;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Semaphore, broadcast};
use tokio::task::{JoinHandle, JoinSet};

use crate::App;
use crate::access::{AccessError, AnswerLink, CallerRates, Identity, Role};
use crate::hub::HubEvent;
use endpoint::PushServices;
use notice::Notice;
pub(crate) use subscriptions::Device;
use subscriptions::{AddError, Devices};
use vapid::VapidKey;
use webhook::WebhookClient;
pub use webhook::{Webhook, WebhookService};

/// Limit of notifications per receiver. A flood of requests needs a rule, and not a phone that rings all night.
const NOTICES: Rate = Rate { burst: 10, every: Duration::from_secs(6) };
/// Limit of requests to other servers at a time.
const AT_ONCE: usize = 16;
/// Limit of announced requests that are remembered. Beyond it, the end of the oldest is not announced.
const REMEMBERED: usize = 10_000;

/// The reason why notifications cannot be sent.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NotifyError {
    /// A file of the server's folder cannot be used.
    #[error(transparent)]
    File(#[from] AccessError),
    /// A webhook is invalid.
    #[error("invalid webhook `{service}` of `{name}`: {problem}")]
    Webhook {
        /// The form of its messages.
        service: WebhookService,
        /// The recipient.
        name: String,
        /// The cause.
        problem: String,
    },
    /// The clients for push services cannot be created.
    #[error("{0}")]
    PushServices(String),
}

/// The sender of notifications. Cheap to clone; clones share state.
#[derive(Clone)]
pub(crate) struct Notifier(Arc<NotifierState>);

struct NotifierState {
    app: App,
    folder: PathBuf,
    webhooks: Vec<WebhookClient>,
    services: PushServices,
    devices: Devices,
    key: OnceLock<VapidKey>,
    rates: CallerRates,
    clock: SystemClock,
    at_once: Semaphore,
    /// URL of the server in links and tokens; set when it listens.
    url: OnceLock<String>,
    // A std lock: nothing awaits while it is held.
    announced: Mutex<HashMap<ApprovalId, Announcement>>,
}

/// A request that receivers were told about.
struct Announcement {
    digest: Digest,
    until: Timestamp,
    /// Push services replace an undelivered message by a later one with the same topic.
    topic: String,
    devices: Vec<Device>,
    /// The end is announced after the beginning was sent.
    sending: JoinHandle<()>,
}

/// The reason why a device is refused.
#[derive(Debug)]
pub(crate) enum DeviceError {
    /// The endpoint or a key is invalid.
    Invalid(String),
    TooMany,
    Failed(io::Error),
}

impl Notifier {
    /// Reads the devices, and checks webhooks and push services.
    pub(crate) fn open(app: App, webhooks: &[Webhook], push_services: &[String]) -> Result<Self, NotifyError> {
        let webhooks = webhooks.iter().map(|webhook| {
            WebhookClient::new(webhook).map_err(|problem| NotifyError::Webhook {
                service: webhook.service,
                name: webhook.name.clone(),
                problem,
            })
        });
        let webhooks = webhooks.collect::<Result<_, _>>()?;
        let folder = app.access.folder().to_owned();
        Ok(Self(Arc::new(NotifierState {
            webhooks,
            services: PushServices::new(push_services).map_err(NotifyError::PushServices)?,
            devices: Devices::open(&folder)?,
            key: OnceLock::new(),
            rates: CallerRates::new(NOTICES),
            clock: SystemClock::new(),
            at_once: Semaphore::new(AT_ONCE),
            url: OnceLock::new(),
            announced: Mutex::default(),
            folder,
            app,
        })))
    }

    /// Announces requests until the returned set is dropped. Links lead to this URL.
    pub(crate) fn start(&self, url: &str) -> JoinSet<()> {
        if self.0.url.set(url.to_owned()).is_ok() && !self.0.webhooks.is_empty() && !is_private(url) {
            tracing::warn!("notifications contain no links: they need TLS, or a server on this machine only");
        }
        let mut task = JoinSet::new();
        task.spawn(self.clone().run(self.0.app.hub.subscribe()));
        task
    }

    async fn run(self, mut changes: broadcast::Receiver<HubEvent>) {
        self.catch_up();
        loop {
            match changes.recv().await {
                Ok(HubEvent::ApprovalRequested(approval)) => self.announce(&approval),
                Ok(HubEvent::ApprovalClosed { id, decided, .. }) => self.close(&id, &decided),
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => self.catch_up(),
                Err(RecvError::Closed) => return,
            }
        }
    }

    /// Announces what was missed.
    fn catch_up(&self) {
        let known: Vec<ApprovalId> = self.announced().keys().cloned().collect();
        for id in known {
            if let Some(decided) = self.0.app.hub.decision(&id) {
                self.close(&id, &decided);
            }
        }
        for approval in self.0.app.hub.pending_shared() {
            self.announce(&approval);
        }
    }

    fn announce(&self, approval: &Arc<OpenApproval>) {
        let now = Timestamp::now();
        let is_known = |known: &Announcement| known.digest == approval.digest;
        // A session that reconnects announces its requests again. Their links and notifications are still valid.
        if now >= approval.deadline || self.announced().get(&approval.id).is_some_and(is_known) {
            return;
        }
        let devices = self.0.devices.current(&self.0.app.access);
        let devices: Vec<_> = devices.into_iter().filter(|(device, _)| self.has_room(&device.id)).collect();
        let webhooks = 0..self.0.webhooks.len();
        let webhooks: Vec<_> = webhooks.filter(|number| self.has_room(&format!("webhook {number}"))).collect();
        if devices.is_empty() && webhooks.is_empty() {
            return;
        }
        let Ok(topic) = random_topic() else {
            return tracing::error!("a request is not announced: no randomness available");
        };
        let notice = Notice::from_redacted(&self.0.app.hub.redacted(approval, Role::Viewer));
        let seconds = approval.deadline.duration_since(now).as_secs().max(1);
        let (notifier, request, sent_topic) = (self.clone(), approval.clone(), topic.clone());
        let told = devices.iter().map(|(device, _)| device.clone()).collect();
        let sending = tokio::spawn(async move {
            let notifier = &notifier;
            let to_devices = devices.iter().map(async |(device, who)| {
                let link = notifier.link_for_device(&request, device, who);
                notifier.push(device, &notice.opened(link.as_deref()), &sent_topic, seconds).await;
            });
            let to_webhooks = webhooks.into_iter().map(async |number| {
                let webhook = &notifier.0.webhooks[number];
                let link = notifier.link(AnswerLink::new(&request, &webhook.name, None));
                let Ok(_permit) = notifier.0.at_once.acquire().await else { return };
                webhook.send(&notice, link.as_deref()).await;
            });
            join(join_all(to_devices), join_all(to_webhooks)).await;
        });
        let (digest, until) = (approval.digest, approval.deadline);
        let mut announced = self.announced();
        announced.retain(|_, known| now < known.until);
        if announced.len() >= REMEMBERED {
            let oldest = announced.iter().min_by_key(|(_, known)| known.until).map(|(id, _)| id.clone());
            oldest.map(|id| announced.remove(&id));
        }
        announced.insert(approval.id.clone(), Announcement { digest, until, topic, devices: told, sending });
    }

    fn close(&self, id: &ApprovalId, decided: &DecidedApproval) {
        // The session may come back with the same request, and does so within seconds.
        if decided.basis == DecisionBasis::Disconnected {
            return;
        }
        self.0.app.access.end_answer_links(id);
        let Some(Announcement { until, topic, devices, sending, .. }) = self.announced().remove(id) else { return };
        let seconds = until.duration_since(Timestamp::now()).as_secs().max(1);
        let (notifier, message) = (self.clone(), notice::closed(id));
        tokio::spawn(async move {
            // A failed delivery is logged there.
            let _ = sending.await;
            join_all(devices.iter().map(|device| notifier.push(device, &message, &topic, seconds))).await;
        });
    }

    /// Counts a notification. Returns `false` if the receiver gets too many.
    fn has_room(&self, receiver: &str) -> bool {
        self.0.rates.count(receiver, self.0.clock.sleep_nanos()).is_ok()
    }

    /// Returns a link for a device, if its user wants one and may answer.
    fn link_for_device(&self, approval: &OpenApproval, device: &Device, who: &Identity) -> Option<String> {
        let may_answer = device.answers && who.role >= Role::Approver;
        may_answer.then(|| self.link(AnswerLink::new(approval, &who.name, Some(who.credential())))).flatten()
    }

    fn link(&self, link: AnswerLink) -> Option<String> {
        let url = self.0.url.get().filter(|url| is_private(url))?;
        match self.0.app.access.add_answer_link(link) {
            Ok(secret) => Some(format!("{url}/answer?code={secret}")),
            Err(error) => {
                tracing::error!(%error, "a notification has no link");
                None
            }
        }
    }

    /// Sends a message to a device. A device that the push service does not know any more is forgotten.
    async fn push(&self, device: &Device, message: &Value, topic: &str, seconds: i64) {
        let Ok(_permit) = self.0.at_once.acquire().await else { return };
        match self.send(device, message, topic, seconds).await {
            Ok(200..=299) => {}
            Ok(404 | 410) => {
                if let Err(error) = self.0.devices.remove(|known| known.id == device.id) {
                    tracing::warn!(%error, "a device cannot be removed");
                }
            }
            Ok(status) => tracing::warn!(status, "a push service refused a notification"),
            Err(error) => tracing::warn!(error, "a notification cannot be sent"),
        }
    }

    /// Sends a message, and returns the status. The body of the response is not read.
    async fn send(&self, device: &Device, message: &Value, topic: &str, seconds: i64) -> Result<u16, String> {
        let (url, client) = self.0.services.check(&device.endpoint)?;
        let keys = device.keys().ok_or("invalid keys")?;
        let body = encryption::encrypt(&keys, message.to_string().as_bytes());
        let body = body.map_err(|_| "the message cannot be encrypted".to_owned())?;
        // Contact of the server's operator, as push services ask for; they know the server's address anyway.
        let contact = self.0.url.get().map(String::as_str).filter(|url| url.starts_with("https:"));
        let key = self.key().map_err(|error| error.to_string())?;
        let authorization = key.authorization(&url.origin().ascii_serialization(), contact, Timestamp::now());
        let request = client
            .post(url)
            .header("authorization", authorization.map_err(|error| error.to_string())?)
            .header("ttl", seconds)
            .header("urgency", "high")
            .header("topic", topic)
            .header("content-encoding", "aes128gcm")
            .header("content-type", "application/octet-stream")
            .body(body);
        // The address of a device is a secret.
        request.send().await.map(|response| response.status().as_u16()).map_err(|error| error.without_url().to_string())
    }

    /// Returns the public key that browsers subscribe with. The first call creates the key.
    pub(crate) fn public_key(&self) -> Result<String, AccessError> {
        self.key().map(VapidKey::public)
    }

    fn key(&self) -> Result<&VapidKey, AccessError> {
        if let Some(key) = self.0.key.get() {
            return Ok(key);
        }
        let key = VapidKey::open(&self.0.folder)?;
        Ok(self.0.key.get_or_init(|| key))
    }

    /// Adds a device of a user.
    pub(crate) fn add_device(&self, device: Device) -> Result<Device, DeviceError> {
        let invalid = |problem: String| DeviceError::Invalid(problem);
        self.0.services.check(&device.endpoint).map_err(|problem| invalid(format!("invalid `endpoint`: {problem}")))?;
        let keys = device.keys().filter(|keys| encryption::encrypt(keys, b"").is_ok());
        keys.ok_or_else(|| invalid("invalid `p256dh` or `auth`; send them as the browser has them".to_owned()))?;
        self.0.devices.add(device.clone()).map_err(|error| match error {
            AddError::TooMany => DeviceError::TooMany,
            AddError::File(error) => DeviceError::Failed(error),
        })?;
        Ok(device)
    }

    /// Returns the devices of a user.
    pub(crate) fn devices_of(&self, name: &str) -> Vec<Device> {
        let current = self.0.devices.current(&self.0.app.access);
        current.into_iter().map(|(device, _)| device).filter(|device| device.name == name).collect()
    }

    /// Removes a device of a user. Returns `false` if the user has no such device.
    pub(crate) fn remove_device(&self, id: &str, name: &str) -> io::Result<bool> {
        self.0.devices.remove(|device| device.id == id && device.name == name)
    }

    /// Forgets the devices of users who are signed out by now.
    pub(crate) fn forget_signed_out(&self) {
        self.0.devices.current(&self.0.app.access);
    }

    fn announced(&self) -> MutexGuard<'_, HashMap<ApprovalId, Announcement>> {
        self.0.announced.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns `true` if nobody on the way can read what is sent to this URL: it has TLS, or leads to this machine.
fn is_private(url: &str) -> bool {
    let local = ["http://127.0.0.1:", "http://localhost:", "http://[::1]:"];
    url.starts_with("https:") || local.iter().any(|local| url.starts_with(local))
}

/// Returns a new topic: 24 characters, which tell the push service nothing.
fn random_topic() -> Result<String, getrandom::Error> {
    let mut random = [0; 18];
    getrandom::fill(&mut random)?;
    Ok(URL_SAFE_NO_PAD.encode(random))
}
