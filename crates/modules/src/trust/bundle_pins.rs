//! The files that trust in a bundle covers.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use amplifier_audit::Hash;

use super::pin::{pin, resolve_parent};
use super::recheck::{OnChange, PinnedPath};
use super::references::{ReferencedFiles, find_references};
use super::{Pin, PinnedFiles, TrustError};
use crate::bundle::{HookDefinition, LoadedBundle, McpServer};

/// The pins of a bundle, its includes, and every file that its hooks name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundlePins {
    /// Path of the bundle.
    pub bundle: PathBuf,
    /// Pins by absolute path, with links among the folders resolved.
    pub files: BTreeMap<PathBuf, Pin>,
}

impl BundlePins {
    /// Returns one hash of all pins.
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

impl LoadedBundle {
    /// Pins a bundle from [`load_pinned`](crate::bundle::load_pinned), with every file that its hooks name. Their programs run only while these files
    /// are unchanged.
    ///
    /// # Errors
    /// If a file is unreadable, is a pipe or a device, or has a path that is not UTF-8.
    pub fn pin(&mut self) -> Result<BundlePins, TrustError> {
        let mut files = self.pins.clone();
        let bundle = self.paths().last().unwrap_or_default();
        let bundle = resolve_parent(&bundle).map_err(|why| TrustError::Pin { file: bundle, why })?;
        // A project has its bundle in a folder of the workspace.
        let workspace = bundle.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
        for definition in self.hooks.iter_mut().filter(|definition| definition.entry.enabled != Some(false)) {
            let pinned = pin_hook_files(definition, workspace, &mut files)?;
            definition.pinned_files = Some(Arc::new(pinned));
        }
        for file in
            [&bundle].into_iter().chain(files.iter().flat_map(|(file, pin)| [file].into_iter().chain(&pin.leads_to)))
        {
            if file.to_str().is_none() {
                let why = "the path is not UTF-8, so trust in the file cannot be stored; rename the file or its folder";
                let why = io::Error::new(ErrorKind::InvalidFilename, why);
                return Err(TrustError::Pin { file: file.clone(), why });
            }
        }
        Ok(BundlePins { bundle, files })
    }
}

impl LoadedBundle {
    /// Returns every file of the bundle: those it was read from, and existing ones that its hooks and MCP servers name, relative to the workspace in
    /// which modules run programs, and to the current folder, in which servers start. Tools must not change these. Trust pins the files of hooks, and
    /// those that match patterns of modules.
    ///
    /// # Errors
    /// If a hook or a server names too many files.
    pub fn named_files(&self, workspace: &Path, current_dir: &Path) -> Result<BTreeSet<PathBuf>, TrustError> {
        let mut files: BTreeSet<PathBuf> = self.paths().collect();
        for definition in &self.hooks {
            files.extend(definition.named_files(workspace)?);
        }
        for (name, server) in &self.tools.mcp {
            files.extend(server.named_files(name, current_dir)?);
        }
        Ok(files)
    }
}

impl McpServer {
    /// Returns the existing files of the server: its program, and those that its arguments name, relative to the current folder, in which the server
    /// starts.
    ///
    /// # Errors
    /// If the server names too many files.
    pub fn named_files(&self, name: &str, current_dir: &Path) -> Result<BTreeSet<PathBuf>, TrustError> {
        let mut texts = self.args.clone();
        // A name without a path is found in `PATH`.
        texts.extend(self.command.contains('/').then(|| self.command.clone()));
        Ok(find_references(&texts, current_dir, &format!("the MCP server `{name}`"))?.files)
    }
}

impl HookDefinition {
    /// Returns the existing files of the hook.
    pub(crate) fn named_files(&self, workspace: &Path) -> Result<BTreeSet<PathBuf>, TrustError> {
        Ok(self.references(self.entry.own_path_candidates(), workspace)?.files)
    }

    /// Returns the files that texts of the hook refer to, relative to the folder of its bundle, or, for programs that run there, to the workspace.
    fn references(&self, texts: Option<Vec<String>>, workspace: &Path) -> Result<ReferencedFiles, TrustError> {
        let owner = format!("hook `{}`", self.entry.shown_name());
        let texts = texts.ok_or_else(|| TrustError::NotJson { owner: owner.clone() })?;
        let mut all = find_references(&texts, self.folder(), &owner)?;
        let ReferencedFiles { files, absent, special } =
            find_references(&self.entry.workspace_path_candidates(), workspace, &owner)?;
        all.files.extend(files);
        all.absent.extend(absent);
        all.special.extend(special);
        Ok(all)
    }
}

fn pin_hook_files(
    definition: &HookDefinition,
    workspace: &Path,
    files: &mut BTreeMap<PathBuf, Pin>,
) -> Result<PinnedFiles, TrustError> {
    let folder = definition.folder();
    if let Some(file) = definition.entry.files.iter().map(|file| folder.join(file)).find(|file| file.is_dir()) {
        return Err(TrustError::Pin {
            file,
            why: io::Error::new(ErrorKind::IsADirectory, "the path is a folder; name its files"),
        });
    }
    let ReferencedFiles { files: named, absent, special } =
        definition.references(definition.entry.path_candidates(), workspace)?;
    if let Some((file, what)) = special.into_iter().next() {
        return Err(TrustError::Pin { file, why: io::Error::new(ErrorKind::InvalidInput, what) });
    }
    let mut pinned = Vec::new();
    for name in named {
        let unpinned = |why| TrustError::Pin { file: name.clone(), why };
        let location = resolve_parent(&name).map_err(unpinned)?;
        let pin = match files.get(&location) {
            Some(pin) => pin.clone(),
            None => pin(&location).map_err(unpinned)?.0,
        };
        files.insert(location.clone(), pin.clone());
        pinned.push(PinnedPath { name, location, pin });
    }
    Ok(PinnedFiles::new(pinned, absent.into_iter().collect(), OnChange::Distrust))
}
