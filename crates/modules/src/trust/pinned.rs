//! Everything that trust in a bundle pins.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use amplifier_audit::Hash;

use super::held::{HeldFile, OnChange};
use super::pin::{pin, place};
use super::words::{Meant, meant};
use super::{Held, Pin, TrustError};
use crate::bundle::{Loaded, McpServer, Placed};

/// Everything that trust in a bundle pins: the bundle, what it includes, and every file that its hooks name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// The bundle.
    pub bundle: PathBuf,
    /// The files by name, which is absolute: the folders of a name are no links.
    pub files: BTreeMap<PathBuf, Pin>,
}

impl Pinned {
    /// One hash for all of it.
    pub fn digest(&self) -> Hash {
        let mut text = Vec::new();
        let mut add = |bytes: &[u8]| {
            // The length before each part, so that no two sets come to the same text.
            text.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
            text.extend_from_slice(bytes);
        };
        add(self.bundle.as_os_str().as_encoded_bytes());
        for (file, Pin { sha256, mode, leads_to }) in &self.files {
            add(file.as_os_str().as_encoded_bytes());
            add(sha256.as_bytes());
            add(&mode.to_be_bytes());
            add(leads_to.as_deref().unwrap_or(Path::new("")).as_os_str().as_encoded_bytes());
        }
        Hash::sha256(&text)
    }
}

impl Loaded {
    /// Pins the bundle, which [`load_pinned`](crate::bundle::load_pinned) has loaded, with every file that its hooks name. From now on, their
    /// programs run only while these files are unchanged.
    ///
    /// # Errors
    /// If a file cannot be pinned: it cannot be read, is a pipe or a device, or has a path that is no text.
    pub fn pin(&mut self) -> Result<Pinned, TrustError> {
        let mut files = self.pins.clone();
        let bundle = self.places().last().unwrap_or_default();
        let bundle = place(&bundle).map_err(|why| TrustError::Pin { file: bundle, why })?;
        // A project has its bundle in a folder of the workspace.
        let workspace = bundle.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
        for placed in self.hooks.iter_mut().filter(|placed| placed.entry.enabled != Some(false)) {
            let held = hold(placed, workspace, &mut files)?;
            placed.held = Some(Arc::new(held));
        }
        for file in
            [&bundle].into_iter().chain(files.iter().flat_map(|(file, pin)| [file].into_iter().chain(&pin.leads_to)))
        {
            if file.to_str().is_none() {
                let why =
                    "its path is no UTF-8 text, so trust in it cannot be written down; please rename it, or its folder";
                let why = io::Error::new(ErrorKind::InvalidFilename, why);
                return Err(TrustError::Pin { file: file.clone(), why });
            }
        }
        Ok(Pinned { bundle, files })
    }
}

impl Loaded {
    /// Every file that the bundle is made of: those that it was read from, and those that its hooks and MCP servers name and are there, seen from the
    /// workspace in which modules run programs, and the current folder, in which servers are started. Tools must not change these. Trust pins those of hooks, and what patterns of modules name.
    ///
    /// # Errors
    /// If a hook or a server names too much to look at.
    pub fn named_files(&self, workspace: &Path, current_dir: &Path) -> Result<BTreeSet<PathBuf>, TrustError> {
        let mut files: BTreeSet<PathBuf> = self.places().collect();
        for placed in &self.hooks {
            files.extend(placed.named_files(workspace)?);
        }
        for (name, server) in &self.tools.mcp {
            files.extend(server.named_files(name, current_dir)?);
        }
        Ok(files)
    }
}

impl McpServer {
    /// The files that the server is made of, and are there: its program, and what its arguments name, seen from the current folder, in which it is
    /// started.
    ///
    /// # Errors
    /// If it names too much to look at.
    pub fn named_files(&self, name: &str, current_dir: &Path) -> Result<BTreeSet<PathBuf>, TrustError> {
        let mut texts = self.args.clone();
        // A name alone is looked for in `PATH`.
        texts.extend(self.command.contains('/').then(|| self.command.clone()));
        Ok(meant(&texts, current_dir, &format!("the MCP server `{name}`"))?.files)
    }
}

impl Placed {
    /// The files that the hook is made of, and are there.
    pub(crate) fn named_files(&self, workspace: &Path) -> Result<BTreeSet<PathBuf>, TrustError> {
        Ok(self.meant(self.entry.made_of(), workspace)?.files)
    }

    /// What texts of the hook mean: relative to the folder of its bundle, or, for programs that run there, to the workspace.
    fn meant(&self, texts: Option<Vec<String>>, workspace: &Path) -> Result<Meant, TrustError> {
        let who = format!("hook `{}`", self.entry.shown_name());
        let texts = texts.ok_or_else(|| TrustError::TooMuch {
            who: who.clone(),
            what: "settings that cannot be written as JSON".to_owned(),
        })?;
        let mut all = meant(&texts, self.folder(), &who)?;
        let Meant { files, absent, special } = meant(&self.entry.mentions_in_workspace(), workspace, &who)?;
        all.files.extend(files);
        all.absent.extend(absent);
        all.special.extend(special);
        Ok(all)
    }
}

/// Pins the files that a hook names.
fn hold(placed: &Placed, workspace: &Path, files: &mut BTreeMap<PathBuf, Pin>) -> Result<Held, TrustError> {
    let folder = placed.folder();
    if let Some(file) = placed.entry.files.iter().map(|file| folder.join(file)).find(|file| file.is_dir()) {
        return Err(TrustError::Pin {
            file,
            why: io::Error::new(ErrorKind::IsADirectory, "it is a folder; name its files"),
        });
    }
    let Meant { files: named, absent, special } = placed.meant(placed.entry.mentions(), workspace)?;
    if let Some((file, what)) = special.into_iter().next() {
        return Err(TrustError::Pin { file, why: io::Error::new(ErrorKind::InvalidInput, what) });
    }
    let mut held = Vec::new();
    for name in named {
        let unpinned = |why| TrustError::Pin { file: name.clone(), why };
        let place = place(&name).map_err(unpinned)?;
        let pin = match files.get(&place) {
            Some(pin) => pin.clone(),
            None => pin(&place).map_err(unpinned)?.0,
        };
        files.insert(place.clone(), pin.clone());
        held.push(HeldFile { name, place, pin });
    }
    Ok(Held::new(held, absent.into_iter().collect(), OnChange::Distrust))
}
