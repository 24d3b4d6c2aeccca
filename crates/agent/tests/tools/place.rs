//! A workspace to work in, with something beside it that is out of bounds.

use std::fs;
use std::path::{Path, PathBuf};

use amplifier_agent::tool::{Tool, ToolError, ToolOutput, Workspace};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) struct Place {
    folder: TempDir,
    pub(crate) workspace: Workspace,
}

impl Place {
    /// An empty workspace, beside a folder `outside` that has a file `secret`.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("inside")).unwrap();
        fs::create_dir(folder.path().join("outside")).unwrap();
        fs::write(folder.path().join("outside/secret"), "secret\n").unwrap();
        let workspace = Workspace::new(folder.path().join("inside")).unwrap();
        Self { folder, workspace }
    }

    /// A workspace with these files.
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let place = Self::new();
        for (name, content) in files {
            place.put(name, content);
        }
        place
    }

    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn link(&self, name: &str, target: impl AsRef<Path>) {
        std::os::unix::fs::symlink(target, self.path(name)).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.workspace.root().join(name)
    }

    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("outside").join(name)
    }

    pub(crate) fn content(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// The names in a folder, sorted.
    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

pub(crate) async fn run(tool: &impl Tool, input: Value) -> Result<ToolOutput, ToolError> {
    let Value::Object(input) = input else { panic!("{input} is no object") };
    tool.run(input).await
}

/// The text that the model reads.
pub(crate) async fn output(tool: &impl Tool, input: Value) -> String {
    run(tool, input).await.unwrap().result["output"].as_str().unwrap().to_owned()
}

/// The word for the failure, and what the model reads of it.
pub(crate) async fn failure(tool: &impl Tool, input: Value) -> (&'static str, String) {
    let error = run(tool, input).await.unwrap_err();
    (error.kind(), error.to_string())
}

pub(crate) fn failed(text: &str) -> (&'static str, String) {
    ("failed", text.to_owned())
}

/// The failure of a tool that was asked for something outside.
pub(crate) fn out_of_bounds(place: &Place, path: &str) -> (&'static str, String) {
    let root = place.workspace.root().display();
    let text = format!("`{path}` is outside the workspace `{root}`: only files within the workspace can be used");
    ("outside_workspace", text)
}

pub(crate) fn file(path: &str) -> Value {
    json!({"file_path": path})
}
