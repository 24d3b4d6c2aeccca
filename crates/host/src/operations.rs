//! Tool calls as parts that approval rules can name: files that are written, programs that run.

use std::path::{Path, PathBuf};

use amplifier_agent::tool::Workspace;
use amplifier_core::{EventData, EventName, OperationPart, OperationSource, OperationWidth, PortError, TOOL_PRE};
use amplifier_modules::bundle::{ApprovalMode, Confirm};
use amplifier_modules::shell::{ANY_PROGRAM, CommandPart, CommandWidths, command_widths};
use amplifier_modules::tool_words::{self, Vocabulary};

use crate::guards::{CONFIRM, READING_TOOLS, WRITING_TOOLS};
use crate::mode::{ModeSwitch, run_blocking};

/// Describes the tool calls of a workspace for approval rules. Cheap to clone.
///
/// A wide name counts only for an ordinary operation. Hidden files, protected paths and everything outside of the workspace have only their exact
/// names, and so do commands that may lose, send or hide something. A command that cannot be analysed has none.
#[derive(Clone)]
pub struct WorkspaceOperations {
    workspace: Workspace,
    confirm: Confirm,
    mode: Option<ModeSwitch>,
}

impl WorkspaceOperations {
    /// The operations in a workspace. Unless `confirm` is `all`, its requests are not about programs that only read.
    pub fn new(workspace: Workspace, confirm: Confirm) -> Self {
        Self { workspace, confirm, mode: None }
    }

    /// Follows the mode of a session: in `accept-edits`, requests of `confirm` are not about what can be undone.
    #[must_use]
    pub fn mode(self, mode: ModeSwitch) -> Self {
        Self { mode: Some(mode), ..self }
    }

    fn accepts_undoable(&self) -> bool {
        self.mode.as_ref().is_some_and(|mode| mode.current() == ApprovalMode::AcceptEdits)
    }

    fn describe(&self, hook: &str, tool: &str, text: &str) -> Vec<OperationPart> {
        match tool {
            "Bash" => self.command(text, hook),
            _ if WRITING_TOOLS.contains(&tool) => self.file(text).into_iter().map(part).collect(),
            _ if READING_TOOLS.contains(&tool) => Vec::new(),
            _ => vec![part(vec![OperationWidth::new(format!("use {tool}"), format!("the tool `{tool}`"))])],
        }
    }

    /// Returns the names of a write to a file; `None` if the file is outside of the workspace or cannot be named.
    fn file(&self, path: &str) -> Option<Vec<OperationWidth>> {
        let resolved = self.workspace.resolve(path).ok()?;
        let relative = resolved.strip_prefix(self.workspace.root()).ok()?;
        let name = relative.to_str().filter(|name| is_nameable(name))?;
        let is_hidden = relative.components().any(|part| part.as_os_str().as_encoded_bytes().starts_with(b"."));
        let is_ordinary = !is_hidden && self.workspace.protects(&resolved.to_string_lossy()).is_none();
        let mut widths = Vec::new();
        if !resolved.is_dir() {
            widths.push(OperationWidth::new(format!("write {name}"), format!("writes to `{name}`")));
        }
        let folders = relative.ancestors().skip(usize::from(!resolved.is_dir()));
        for folder in folders.filter_map(Path::to_str) {
            let (operation, label) = match folder {
                "" => ("write **".to_owned(), "writes in this workspace".to_owned()),
                folder => (format!("write {folder}/**"), format!("writes below `{folder}`")),
            };
            widths.push(match is_ordinary {
                true => OperationWidth::new(operation, label),
                false => OperationWidth::only_denied(operation),
            });
        }
        Some(widths)
    }

    /// Returns the parts of a command. Each can also be allowed by the name of the whole command.
    fn command(&self, command: &str, hook: &str) -> Vec<OperationPart> {
        let Some(CommandWidths { parts, folders, only_whole }) = command_widths(command) else { return Vec::new() };
        // A wide name ends like this.
        let is_exact = !command.ends_with('*') && is_printable(command);
        let whole = is_exact.then(|| OperationWidth::new(format!("run {command}"), format!("exactly `{command}`")));
        let is_placed = self.is_placed(&folders);
        let only_whole = only_whole || !is_placed;
        let widths = |part: &CommandPart| match part {
            // Another hook may ask because of what is read.
            CommandPart::Reads { program, paths } => match hook == CONFIRM && !only_whole {
                true => self.read(program, paths.as_deref(), &folders),
                false => vec![Vec::new()],
            },
            CommandPart::Program { allowed, names, paths, operands } => {
                let is_inside = |path: &String| self.is_inside(path) && (folders.is_empty() || path.starts_with('/'));
                let stays = |operand: &String| self.stays_inside(operand, &folders);
                let counts = !only_whole && paths.iter().all(is_inside) && operands.iter().all(stays);
                let is_allowed = |name: &&String| !counts || !allowed.contains(name);
                let allowed_names = allowed.iter().filter(|_| counts).enumerate();
                let allowed_names = allowed_names.map(|(at, name)| program_width(name, at > 0));
                let others =
                    names.iter().filter(is_allowed).map(|name| OperationWidth::only_denied(program_operation(name)));
                vec![allowed_names.chain(others).collect()]
            }
            CommandPart::Writes(None) | CommandPart::Creates(None) => vec![Vec::new()],
            CommandPart::Writes(Some(paths)) | CommandPart::Creates(Some(paths)) => {
                paths.iter().map(|path| self.written(path, only_whole)).collect()
            }
        };
        let is_meant = |part: &&CommandPart| {
            let is_read = matches!(part, CommandPart::Reads { .. });
            hook != CONFIRM
                || (self.confirm == Confirm::All || !is_read)
                    && !(self.accepts_undoable() && is_placed && self.is_undoable_part(part, &folders))
        };
        let parts = parts.iter().filter(is_meant);
        let mut described: Vec<OperationPart> = Vec::new();
        for widths in parts.flat_map(widths) {
            let part = part(whole.iter().cloned().chain(widths).collect());
            if !described.contains(&part) {
                described.push(part);
            }
        }
        if described.is_empty() {
            described.push(part(whole.into_iter().collect()));
        }
        described
    }

    /// Returns the names of what a program reads: files of the workspace, and temporary ones.
    fn read(&self, program: &str, paths: Option<&[String]>, folders: &[String]) -> Vec<Vec<OperationWidth>> {
        let (temporary, others): (Vec<String>, Vec<String>) =
            paths.unwrap_or_default().iter().cloned().partition(|path| is_temporary(path));
        if !self.reads_inside(program, paths.map(|_| others.as_slice()), folders) {
            return vec![Vec::new()];
        }
        let inside = OperationWidth::new("read **", "commands that only read files of this workspace");
        let mut parts = vec![vec![inside]];
        if !temporary.is_empty() {
            parts.push(vec![OperationWidth::new("read /tmp/**", "commands that only read temporary files")]);
        }
        parts
    }

    /// Returns the names of a file that a command writes.
    fn written(&self, path: &str, only_whole: bool) -> Vec<OperationWidth> {
        const EXPANDED: [char; 11] = ['$', '`', '*', '?', '[', '{', '(', '\\', '\'', '"', '…'];
        if path.contains(EXPANDED) || path.starts_with('~') {
            return Vec::new();
        }
        let widths = match self.file(path) {
            Some(widths) => widths,
            None if is_temporary(path) => {
                vec![OperationWidth::new("write /tmp/**", "writes of commands to temporary files")]
            }
            None => Vec::new(),
        };
        match only_whole {
            true => widths.into_iter().map(|width| OperationWidth::only_denied(width.operation)).collect(),
            false => widths,
        }
    }

    /// Returns `true` if a command stays in the workspace: it enters at most one folder, or folders by their absolute paths.
    fn is_placed(&self, folders: &[String]) -> bool {
        let is_named = folders.len() <= 1 || folders.iter().all(|folder| folder.starts_with('/'));
        is_named && folders.iter().all(|folder| self.workspace.resolve(folder).is_ok())
    }

    /// Returns `true` for a command that loses nothing: it reads files of the workspace, or creates folders there.
    fn is_undoable(&self, command: &str) -> bool {
        let Some(CommandWidths { parts, folders, only_whole: false }) = command_widths(command) else { return false };
        let is_undoable = |part: &CommandPart| self.is_undoable_part(part, &folders);
        !parts.is_empty() && self.is_placed(&folders) && parts.iter().all(is_undoable)
    }

    fn is_undoable_part(&self, part: &CommandPart, folders: &[String]) -> bool {
        let is_ordinary = |path: &String| self.written(path, false).last().is_some_and(|width| width.allows);
        match part {
            CommandPart::Reads { program, paths } => self.reads_inside(program, paths.as_deref(), folders),
            CommandPart::Creates(Some(paths)) => {
                paths.iter().all(|path| is_ordinary(path) && self.workspace.resolve(path).is_ok())
            }
            CommandPart::Creates(None) | CommandPart::Writes(_) | CommandPart::Program { .. } => false,
        }
    }

    /// Returns the only file that a command changes, if the mode may accept the change of a version of it.
    pub(crate) fn edited_file(&self, command: &str) -> Option<String> {
        let widths = self.accepts_undoable().then(|| command_widths(command)).flatten()?;
        let file = changed_file(&widths)?;
        let is_accepted =
            |part: &CommandPart| matches!(part, CommandPart::Writes(_)) || self.is_undoable_part(part, &[]);
        widths.parts.iter().all(is_accepted).then_some(file)
    }

    /// Returns `true` if the mode accepts a command without a request.
    pub(crate) fn accepts(&self, command: &str) -> bool {
        self.accepts_undoable() && self.is_undoable(command)
    }

    /// Returns `true` if a program reads only files of the workspace that are not protected.
    fn reads_inside(&self, program: &str, paths: Option<&[String]>, folders: &[String]) -> bool {
        let Some(paths) = paths else { return false };
        // Without a repository here, git reads that of a folder above.
        let has_repository = program != "git" || self.workspace.root().join(".git").exists();
        // What a pattern may match is below the folder before it.
        let is_readable = |path: &String| match self.workspace.resolve(folder_of_pattern(path)) {
            // Programs without a path read the whole workspace, too.
            Ok(resolved) if resolved == self.workspace.root() => true,
            Ok(resolved) => self.workspace.protects(&resolved.to_string_lossy()).is_none(),
            Err(_) => path == "/dev/null",
        };
        let all_readable = |path: &String| match folders {
            [] => is_readable(path),
            _ if path.starts_with('/') => is_readable(path),
            [folder] => is_readable(&format!("{folder}/{path}")),
            _ => false,
        };
        let is_cd = program == "cd";
        has_repository && paths.iter().all(|path| if is_cd { is_readable(path) } else { all_readable(path) })
    }

    /// Returns `true` unless the text is a path that leads out of the workspace from the folder of the command, also through a link.
    fn stays_inside(&self, operand: &str, folders: &[String]) -> bool {
        match folders {
            _ if operand.starts_with('/') => self.is_inside(operand),
            [] => self.workspace.resolve(operand).is_ok(),
            [folder] => self.workspace.resolve(&format!("{folder}/{operand}")).is_ok(),
            _ => false,
        }
    }

    fn is_inside(&self, path: &str) -> bool {
        let is_expanded = path.starts_with('~') || path.contains('$');
        !is_expanded && (path == "/dev/null" || self.workspace.resolve(path).is_ok() || is_temporary(path))
    }
}

impl OperationSource for WorkspaceOperations {
    async fn parts(&self, hook: &str, event: &EventName, data: &EventData) -> Result<Vec<OperationPart>, PortError> {
        let Some(tool) = data.text("tool_name").filter(|_| *event == TOOL_PRE.name()) else { return Ok(Vec::new()) };
        // A rule for the whole tool would allow every command of Amplifier's shell.
        let words = tool_words::find(Vocabulary::Amplifier, tool).filter(|words| words.fields.is_empty());
        let tool = words.map_or(tool, |words| words.ours).to_owned();
        let field = if tool == "Bash" { "/tool_input/command" } else { "/tool_input/file_path" };
        let text = data.text_at(field).unwrap_or_default().to_owned();
        let (operations, hook) = (self.clone(), hook.to_owned());
        let described = run_blocking(move || operations.describe(&hook, &tool, &text)).await;
        described.ok_or_else(|| "the operation cannot be described".into())
    }
}

/// Returns the file that a command changes, if it changes only one and runs no program of its own.
pub(crate) fn edited_file(command: &str) -> Option<String> {
    changed_file(&command_widths(command)?)
}

/// Returns `true` if a text begins like the name of an operation: `run cargo test *`, `write src/**`.
pub fn is_operation(text: &str) -> bool {
    let (kind, name) = text.split_once(' ').unwrap_or_default();
    matches!(kind, "run" | "write" | "read" | "use") && !name.is_empty()
}

fn changed_file(widths: &CommandWidths) -> Option<String> {
    let CommandWidths { parts, folders, only_whole: false } = widths else { return None };
    let mut changes = parts.iter().filter(|part| !matches!(part, CommandPart::Reads { .. }));
    match (changes.next(), changes.next()) {
        (Some(CommandPart::Writes(Some(paths))), None) if folders.is_empty() => match paths.as_slice() {
            [path] => Some(path.clone()),
            _ => None,
        },
        _ => None,
    }
}

fn part(widths: Vec<OperationWidth>) -> OperationPart {
    OperationPart { widths }
}

fn program_width(name: &str, is_program: bool) -> OperationWidth {
    let label = match is_program {
        true if name == ANY_PROGRAM => "ordinary commands of all development tools".to_owned(),
        true => format!("ordinary `{name}` commands"),
        // A tool without commands of its own.
        false if !name.contains([' ', '/']) => format!("ordinary `{name}` commands"),
        false => format!("`{name}` with any arguments"),
    };
    OperationWidth::new(program_operation(name), label)
}

fn program_operation(name: &str) -> String {
    match name {
        ANY_PROGRAM => "run **".to_owned(),
        name => format!("run {name} *"),
    }
}

/// Returns `true` if a name cannot be taken for that of a folder.
fn is_nameable(name: &str) -> bool {
    !name.contains('*') && is_printable(name)
}

fn is_printable(text: &str) -> bool {
    !text.is_empty() && !text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t'))
}

/// Returns the folders before the first one with a pattern; the path itself without a pattern.
fn folder_of_pattern(path: &str) -> &str {
    let Some(at) = path.find(['*', '?', '[']) else { return path };
    let end = path.get(..at).and_then(|before| before.rfind('/')).unwrap_or_default();
    match path.get(..end) {
        Some("") if path.starts_with('/') => "/",
        Some("") | None => ".",
        Some(folder) => folder,
    }
}

fn is_temporary(path: &str) -> bool {
    let path = Path::new(path);
    // The folder is resolved, so that no link in it leads elsewhere.
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    let temporary = [PathBuf::from("/tmp"), std::env::temp_dir()].map(|folder| folder.canonicalize().unwrap_or(folder));
    let is_link = path.symlink_metadata().is_ok_and(|file| file.is_symlink());
    !is_link && path.is_absolute() && folder.is_some_and(|folder| temporary.iter().any(|root| folder.starts_with(root)))
}
