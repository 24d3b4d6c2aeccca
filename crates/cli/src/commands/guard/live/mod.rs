//! The live canary: the installed client, with a model on loopback that asks for a call which the guard must deny.

mod model;
mod wire;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use amplifier_audit::{Folder, Record, read_lines_backwards};
use amplifier_guard::Client;
use amplifier_process::{Command, Environment};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use self::model::ScriptedModel;
use super::install::random;

/// The time for a client to start, call the tool and end.
const LIMIT: Duration = Duration::from_secs(180);
/// The most bytes of a client's output that are kept.
const MAX_OUTPUT: usize = 64 << 10;
const PROGRAM: &str = "amplifier-guard-canary";

/// The call that the model asks for.
pub(super) struct LiveCall {
    /// A text in the prompt, by which the model knows the main request.
    pub(super) nonce: String,
    /// The name of the client's shell tool.
    pub(super) tool: &'static str,
    pub(super) input: Value,
}

/// Runs the client in a folder, with its settings there. The guard has to deny the call, and one of the logs has to have the denial.
///
/// # Errors
/// If the client cannot be tested, the call was not denied, or no log has a denial of it.
pub(super) fn test(client: Client, folder: &Path, logs: &[PathBuf]) -> Result<()> {
    let nonce = random();
    let place = tempfile::tempdir()?;
    let proof = place.path().join("ran");
    // The guard denies commands that change the policy. If this one runs, it leaves the proof, and has no other effect.
    let line = format!("touch '{}'; amplifier guard {PROGRAM} {nonce}", proof.display());
    let (tool, input) = shell_call(client, &line).with_context(|| format!("{client} has no scripted model"))?;
    let model = ScriptedModel::start(LiveCall { nonce: nonce.clone(), tool, input })?;
    let url = model.url();
    let command = command(client, &url, &format!("{nonce}: do what the model says")).folder(folder);
    let completed = command.with_truncated_output().without_input().run_blocking(b"", LIMIT, MAX_OUTPUT);
    let completed = completed.with_context(|| format!("`{client}` cannot be started"))?;
    let output = [&completed.stdout.bytes, &completed.stderr.bytes].map(|bytes| String::from_utf8_lossy(bytes));
    let mut output = output.iter().flat_map(|text| text.lines()).filter(|line| !line.trim().is_empty());
    let end = output.next_back().unwrap_or_default().to_owned();
    if proof.exists() {
        bail!("the tool ran: {client} does not wait for the hook; run `amplifier guard status`");
    }
    if !model.was_called() {
        bail!("{client} did not ask the scripted model; its settings may name another one: {end}");
    }
    if !model.has_result() {
        bail!("{client} ended without the result of the call: {end}");
    }
    match logs.iter().any(|log| is_denied(log, &nonce)) {
        true => Ok(()),
        false => bail!("the tool did not run, but no audit log has a denial by the guard"),
    }
}

/// Returns `true` if a log has a denied call with the nonce.
fn is_denied(log: &Path, nonce: &str) -> bool {
    let mut is_denied = false;
    let read = read_lines_backwards(&Folder::new(log), |line| {
        let record = Record::parse(line)?;
        let text = record.body.get();
        let body = || serde_json::from_str::<Value>(text).unwrap_or_default();
        is_denied |= text.contains(nonce) && body().get("denied_by").is_some_and(Value::is_string);
        Ok(if is_denied { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    });
    read.is_ok() && is_denied
}

/// Returns the client's call of a shell command; none for a client whose model cannot be replaced.
fn shell_call(client: Client, line: &str) -> Option<(&'static str, Value)> {
    let described = json!({ "command": line, "description": "a test of the guard" });
    match client {
        Client::Claude => Some(("Bash", described)),
        Client::Codex => Some(("exec_command", json!({ "cmd": line }))),
        Client::Gemini => Some(("run_shell_command", described)),
        Client::Copilot | Client::Opencode => Some(("bash", described)),
        Client::Cursor => None,
    }
}

/// Returns the command of one run without a terminal, in which only the guard denies. No setting of the user changes.
fn command(client: Client, url: &str, prompt: &str) -> Command {
    let api = format!("{url}/v1");
    let (arguments, variables): (Vec<String>, Vec<(&str, String)>) = match client {
        Client::Claude => (
            words(&["-p", prompt, "--permission-mode", "bypassPermissions", "--model", "claude-sonnet-4-5"]),
            vec![
                ("ANTHROPIC_BASE_URL", url.to_owned()),
                ("ANTHROPIC_API_KEY", "scripted".to_owned()),
                // As root, the mode that asks nothing needs this.
                ("IS_SANDBOX", "1".to_owned()),
                ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
                ("DISABLE_AUTOUPDATER", "1".to_owned()),
            ],
        ),
        Client::Codex => {
            let provider = format!(
                "model_providers.scripted={{ name = \"scripted\", base_url = {}, wire_api = \"responses\", \
                 env_key = \"SCRIPTED_KEY\", request_max_retries = 0, stream_max_retries = 0 }}",
                Value::from(api)
            );
            let choice = "model_provider=\"scripted\"";
            let start = words(&["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]);
            let settings = words(&["-c", &provider, "-c", choice, "-c", "model=\"gpt-5.5\"", prompt]);
            ([start, settings].concat(), vec![("SCRIPTED_KEY", "scripted".to_owned())])
        }
        Client::Gemini => (
            words(&["-p", prompt, "--approval-mode", "yolo", "--skip-trust", "-m", "gemini-2.5-flash"]),
            vec![
                ("GOOGLE_GEMINI_BASE_URL", url.to_owned()),
                ("GEMINI_API_KEY", "scripted".to_owned()),
                // For users who have not chosen a way to sign in: without these, the address alone is an unknown way.
                ("GOOGLE_GENAI_USE_VERTEXAI", "true".to_owned()),
                ("GOOGLE_VERTEX_BASE_URL", url.to_owned()),
                ("GOOGLE_API_KEY", "scripted".to_owned()),
                ("GEMINI_CLI_NO_RELAUNCH", "true".to_owned()),
            ],
        ),
        Client::Copilot => (
            words(&["-p", prompt, "--allow-all-tools", "--allow-all-paths", "--no-auto-update"]),
            vec![
                ("COPILOT_OFFLINE", "true".to_owned()),
                ("COPILOT_PROVIDER_BASE_URL", api),
                ("COPILOT_PROVIDER_WIRE_API", "responses".to_owned()),
                ("COPILOT_PROVIDER_API_KEY", "scripted".to_owned()),
                ("COPILOT_MODEL", "gpt-5.4".to_owned()),
            ],
        ),
        Client::Opencode | Client::Cursor => {
            let model =
                json!({ "name": "scripted", "tool_call": true, "limit": { "context": 200_000, "output": 8000 } });
            let provider = json!({
                "npm": "@ai-sdk/openai-compatible", "name": "scripted",
                "options": { "baseURL": api, "apiKey": "scripted" }, "models": { "scripted": model },
            });
            let settings = json!({
                "provider": { "scripted": provider }, "model": "scripted/scripted", "small_model": "scripted/scripted",
                "autoupdate": false, "share": "disabled", "permission": "allow",
            });
            (
                words(&["run", "--auto", "-m", "scripted/scripted", prompt]),
                vec![
                    ("OPENCODE_CONFIG_CONTENT", settings.to_string()),
                    ("OPENCODE_DISABLE_AUTOUPDATE", "1".to_owned()),
                    ("OPENCODE_DISABLE_MODELS_FETCH", "1".to_owned()),
                ],
            )
        }
    };
    let command = Command::new(client.as_str(), Environment::Commands).args(arguments);
    variables.into_iter().fold(command, |command, (name, value)| command.variable(name, value))
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
