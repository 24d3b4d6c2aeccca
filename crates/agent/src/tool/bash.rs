//! The `Bash` tool: runs a command.

use std::process::ExitStatus;
use std::time::Duration;

use amplifier_core::{ActionPreview, ComparedWith, Map};
use amplifier_process::{Command, Environment, Process, ProcessExit, bash, drain, ending_signal};
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use super::blocking::blocking;
use super::excerpt::Excerpt;
use super::preview::{changed, preview};
use super::{Tool, ToolError, ToolOutput, Workspace, input};
use crate::provider::ToolSpec;

pub(super) const NAME: &str = "Bash";

const MAX_OUTPUT_BYTES: usize = 64 * 1024;

const DEFAULT_SECONDS: u64 = 120;
const MAX_SECONDS: u64 = 600;

/// Runs a command with `bash`, in the root of the workspace.
///
/// The command has no input. It is killed when its time limit is reached or the caller drops the future. Its descendants are killed with it, even
/// background processes when the command itself ends. Without a sandbox, a process that leaves the process group (`setsid`, `set -m`) and outlives
/// the command survives. Only the [sandbox](Workspace::sandboxed) of the workspace confines the command; everything else is for hooks to decide.
///
/// On Windows, `bash` is the one of [Git for Windows](bash()).
///
/// The command inherits the environment, except variables with `KEY`, `TOKEN`, `SECRET`, `PASSW`, `CREDENTIAL` or `PRIVATE` in their names.
#[derive(Clone, Debug)]
pub struct BashTool {
    workspace: Workspace,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The command.
    command: String,
    /// The time limit in seconds; 120 if not given.
    #[schemars(range(min = 1, max = 600))]
    timeout: Option<u64>,
    /// A short description of the command for the user.
    #[serde(rename = "description")]
    _description: Option<String>,
}

/// The result.
#[derive(Debug, Serialize, JsonSchema)]
struct BashOutput {
    /// Standard output and standard error, in the order of writing; of a long output the head and the tail, for the model.
    output: String,
    /// The exit code, which is 0: any other one is a failure, and in `error`.
    exit_code: i32,
}

impl BashTool {
    /// A tool for this workspace.
    pub fn new(workspace: Workspace) -> Self {
        Self { workspace }
    }
}

impl Tool for BashTool {
    fn spec(&self) -> ToolSpec {
        input::spec::<Input>(
            NAME,
            "Runs a command with bash in the root of the workspace, and gives what it writes to stdout and stderr. \
             Every call starts afresh: folders and variables do not carry over. There is no input. Whatever the command leaves \
             running in the background is ended with it. Of a long output only the head and the tail are given. \
             To read, search and change files use the other tools.",
        )
    }

    fn result_schema(&self) -> Option<Value> {
        Some(input::schema::<BashOutput>())
    }

    fn run(&self, input: Map) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let (command, seconds) = read(input)?;
            self.execute(&command, seconds).await
        })
    }

    /// Runs a command that was accepted because it changes only this version of a file.
    fn run_previewed(&self, input: Map, compared_with: ComparedWith) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let workspace = self.workspace.clone();
            let ComparedWith { path, version } = compared_with;
            let is_same = blocking({
                let path = path.clone();
                move |_| Ok(workspace.version(&workspace.resolve(&path)?) == version)
            });
            if !is_same.await? {
                return Err(changed(&path));
            }
            self.run(input).await
        })
    }

    fn preview(&self, input: &Map) -> Option<ActionPreview> {
        Some(preview(NAME, input, &self.workspace))
    }
}

/// Returns the command and its time limit in seconds.
pub(super) fn read(input: Map) -> Result<(String, u64), ToolError> {
    let Input { command, timeout, .. } = input::read(NAME, input)?;
    let seconds = timeout.unwrap_or(DEFAULT_SECONDS);
    if !(1..=MAX_SECONDS).contains(&seconds) {
        let problem = format!("`timeout` is {seconds}, and must be between 1 and {MAX_SECONDS} seconds");
        return Err(input::invalid(NAME, problem));
    }
    Ok((command, seconds))
}

impl BashTool {
    async fn execute(&self, command: &str, seconds: u64) -> Result<ToolOutput, ToolError> {
        let mut process = self.start(command)?;
        let mut output = Excerpt::new(MAX_OUTPUT_BYTES);
        let in_time = timeout(Duration::from_secs(seconds), take_output(&mut process, &mut output)).await.is_ok();
        let ProcessExit { status, stdout, .. } = process.end().await;
        drain(&stdout, |bytes| {
            output.push(bytes);
            true
        });
        let output = output.into_text();
        let output = output.trim_end();
        match status {
            _ if !in_time => {
                Err(ToolError::Failed(with_ending(output, &format!("ended after {seconds} s: time limit exceeded"))))
            }
            Some(status) if status.success() => {
                let output = if output.is_empty() { "(no output)" } else { output };
                Ok(ToolOutput::new(&BashOutput { output: output.to_owned(), exit_code: 0 }))
            }
            Some(status) => Err(ToolError::Failed(with_ending(output, &describe_exit(status)))),
            None => Err(ToolError::Failed(with_ending(output, "the exit status is unknown"))),
        }
    }

    fn start(&self, command: &str) -> Result<Process, ToolError> {
        let folder = self.workspace.root();
        let start = |bash| {
            let bash = Command::new(bash, Environment::Commands).args(["-c", command]).folder(folder);
            bash.without_input().with_errors_in_output().sandbox(self.workspace.sandbox()).start()
        };
        bash().and_then(start).map_err(|error| {
            let folder = folder.display();
            ToolError::Failed(format!(
                "`bash` cannot be started in `{folder}`: {error}; it must be installed and in `PATH`"
            ))
        })
    }
}

async fn take_output(process: &mut Process, output: &mut Excerpt) {
    let mut ended = std::pin::pin!(process.wait());
    let mut bytes = Vec::with_capacity(16 * 1024);
    let mut is_open = true;
    loop {
        tokio::select! {
            () = &mut ended => return,
            read = process.stdout.read_buf(&mut bytes), if is_open => {
                is_open = matches!(read, Ok(1..));
                output.push(&bytes);
                bytes.clear();
            }
        }
    }
}

fn describe_exit(status: ExitStatus) -> String {
    match (status.code(), ending_signal(status)) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => status.to_string(),
    }
}

fn with_ending(output: &str, end: &str) -> String {
    if output.is_empty() { end.to_owned() } else { format!("{output}\n{end}") }
}
