//! Which files questions show.

use std::fs::File;
use std::io;
use std::path::Path;

use amplifier_agent::tool::Workspace;
use amplifier_server::wire::Files;

/// The files of a workspace, as far as people may be shown what is in them: those that tools can change.
#[derive(Clone, Debug)]
pub struct Shown(pub Workspace);

impl Files for Shown {
    fn root(&self) -> &Path {
        self.0.root()
    }

    fn open(&self, path: &str) -> io::Result<File> {
        self.0.open_shown(path)
    }
}
