//! Devices that receive push messages, stored in the server's folder.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use amplifier_process::files::{Durability, write_atomic};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::encryption::SubscriberKeys;
use crate::access::{Access, AccessError, Credential, Identity, check_private};

/// Limits of devices: of one user, and of all. A user's new device replaces the oldest.
const PER_USER: usize = 10;
const IN_ALL: usize = 200;

/// A device that receives push messages, for as long as the credential is valid that it was added with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Device {
    pub(crate) id: String,
    pub(super) endpoint: String,
    p256dh: String,
    auth: String,
    pub(super) name: String,
    credential: Credential,
    /// `true` if messages contain a link that answers the request without signing in.
    pub(crate) answers: bool,
    since: Timestamp,
}

impl Device {
    /// Creates a device of a user.
    pub(crate) fn new(endpoint: String, p256dh: String, auth: String, answers: bool, who: &Identity) -> Self {
        let digest = Sha256::digest(endpoint.as_bytes());
        Self {
            id: URL_SAFE_NO_PAD.encode(&digest[..16]),
            endpoint,
            p256dh,
            auth,
            name: who.name.clone(),
            credential: who.credential(),
            answers,
            since: Timestamp::now(),
        }
    }

    /// Decodes the keys of the subscription; `None` if one has another form.
    pub(super) fn keys(&self) -> Option<SubscriberKeys> {
        let decode = |text: &str| URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok();
        let public: [u8; 65] = decode(&self.p256dh)?.try_into().ok()?;
        Some(SubscriberKeys { public, auth: decode(&self.auth)?.try_into().ok()? })
    }
}

/// The devices of all users. They are written to a file, so that a restart loses none.
pub(super) struct Devices {
    file: PathBuf,
    // A std lock: nothing awaits while it is held. The file is written under it, so that it never goes back in time.
    devices: Mutex<Arc<Vec<Device>>>,
}

/// The reason why a device cannot be added.
#[derive(Debug)]
pub(super) enum AddError {
    TooMany,
    File(io::Error),
}

impl Devices {
    /// Reads the file in the server's folder, if there is one.
    ///
    /// # Errors
    /// If the file cannot be read, or other users can read it.
    pub(super) fn open(folder: &Path) -> Result<Self, AccessError> {
        let file = folder.join("push.json");
        let devices = match std::fs::read_to_string(&file) {
            Ok(text) => {
                check_private(&file)?;
                serde_json::from_str(&text).map_err(|source| AccessError::Unreadable { file: file.clone(), source })?
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(AccessError::File { file, source }),
        };
        Ok(Self { file, devices: Mutex::new(Arc::new(devices)) })
    }

    /// Adds a device, or replaces the one with the same endpoint.
    pub(super) fn add(&self, device: Device) -> Result<(), AddError> {
        let mut devices = self.lock();
        let mut changed: Vec<Device> = devices.iter().filter(|known| known.id != device.id).cloned().collect();
        let of_user = |known: &Device| known.name == device.name;
        if changed.iter().filter(|known| of_user(known)).count() >= PER_USER {
            // Devices are in the order in which they were added.
            let oldest = changed.iter().position(of_user);
            oldest.map(|at| changed.remove(at));
        }
        if changed.len() >= IN_ALL {
            return Err(AddError::TooMany);
        }
        changed.push(device);
        self.replace(&mut devices, changed).map_err(AddError::File)
    }

    /// Removes devices, and returns `true` if there were any.
    pub(super) fn remove(&self, is_removed: impl Fn(&Device) -> bool) -> io::Result<bool> {
        let mut devices = self.lock();
        let left: Vec<Device> = devices.iter().filter(|device| !is_removed(device)).cloned().collect();
        let has_changed = left.len() < devices.len();
        if has_changed {
            self.replace(&mut devices, left)?;
        }
        Ok(has_changed)
    }

    /// Returns the devices whose users are signed in, and forgets all others.
    pub(super) fn current(&self, access: &Access) -> Vec<(Device, Identity)> {
        let devices = self.lock().clone();
        let identified = |device: &Device| Some((device.clone(), access.identify(&device.credential)?));
        let current: Vec<_> = devices.iter().filter_map(identified).collect();
        if current.len() < devices.len() {
            let is_signed_out = |device: &Device| access.identify(&device.credential).is_none();
            if let Err(error) = self.remove(is_signed_out) {
                tracing::warn!(%error, "devices of signed-out users cannot be removed from the file");
            }
        }
        current
    }

    fn replace(&self, devices: &mut Arc<Vec<Device>>, changed: Vec<Device>) -> io::Result<()> {
        let text = serde_json::to_vec(&changed).map_err(io::Error::other)?;
        *devices = Arc::new(changed);
        write_atomic(&self.file, &text, Durability::Synced)
    }

    fn lock(&self) -> MutexGuard<'_, Arc<Vec<Device>>> {
        self.devices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
