//! The guard, installed in a home folder of its own.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use crate::{Result, requests};

/// Ten rules, of which half look into shell commands.
const RULES: &str = r#"hooks:
  - { rule: no-force-push, on: tool:pre, when: 'tool_name == "Bash" && shell(tool_input.command).force_push', deny: no }
  - { rule: no-downloads, on: tool:pre, when: 'tool_name == "Bash" && shell(tool_input.command).runs_download', deny: no }
  - { rule: no-uploads, on: tool:pre, when: 'tool_name == "Bash" && shell(tool_input.command).network && tool_input.command.contains("-T")', deny: no }
  - { rule: no-sudo, on: tool:pre, when: 'tool_name == "Bash" && "sudo" in shell(tool_input.command).programs', deny: no }
  - { rule: no-shutdown, on: tool:pre, when: 'tool_name == "Bash" && tool_input.command.contains("shutdown")', deny: no }
  - { rule: no-secrets, on: tool:pre, when: 'tool_name == "Write" && tool_input.file_path.endsWith(".env")', deny: no }
  - { rule: no-generated, on: tool:pre, when: 'tool_name == "Edit" && tool_input.file_path.contains("/generated/")', deny: no }
  - { rule: no-keys, on: tool:pre, when: 'tool_name == "Read" && tool_input.file_path.endsWith(".pem")', deny: no }
  - { rule: no-production, on: tool:pre, when: 'tool_name == "Bash" && tool_input.command.matches("(^|[ /])prod(uction)?([ /]|$)")', deny: no }
  - { rule: no-agents, on: tool:pre, when: 'tool_name == "Task" && tool_input.prompt.contains("delete")', deny: no }
"#;

pub(crate) struct Installation {
    home: PathBuf,
    repository: PathBuf,
    line: String,
    durability: String,
}

impl Installation {
    /// Installs the guard for Claude Code, with a log of this durability.
    pub(crate) fn new(programs: &Path, folder: &Path, durability: &str) -> Result<Self> {
        let (home, user, repository) = (folder.join("home"), folder.join("user"), folder.join("repo"));
        for folder in [&home, &user.join(".claude"), &repository.join(".git")] {
            fs::create_dir_all(folder)?;
        }
        fs::write(home.join("bundle.yaml"), RULES)?;
        fs::write(home.join("config.toml"), format!("audit = \"{durability}\"\n"))?;
        let installed = Command::new(programs.join("amplifier"))
            .args(["guard", "install", "claude"])
            .current_dir(&repository)
            .env("AMPLIFIER_HOME", &home)
            .env("HOME", &user)
            .output()?;
        if !installed.status.success() {
            return Err(format!("the guard cannot be installed: {}", String::from_utf8_lossy(&installed.stdout)).into());
        }
        let settings: Value = serde_json::from_str(&fs::read_to_string(user.join(".claude/settings.json"))?)?;
        let line = settings.pointer("/hooks/PreToolUse/0/hooks/0/command").and_then(Value::as_str);
        let line = line.ok_or("no hook is installed")?.to_owned();
        Ok(Self { home, repository, line, durability: durability.to_owned() })
    }

    pub(crate) fn durability(&self) -> &str {
        &self.durability
    }

    /// The line that the client runs.
    pub(crate) fn line(&self) -> &str {
        &self.line
    }

    /// The hook program with its arguments, without the shell around it.
    pub(crate) fn hook_words(&self) -> Vec<String> {
        let call = self.line.split("; ").find(|part| part.starts_with('"')).unwrap_or_default();
        call.split(' ').map(|word| word.trim_matches('"').to_owned()).collect()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.home.join("guard/socket")
    }

    /// The payload of a call in the first session. No two calls have the same id.
    pub(crate) fn payload(&self, number: usize, contender: usize) -> String {
        self.payload_of("session-1", number, contender)
    }

    pub(crate) fn payload_of(&self, session: &str, number: usize, contender: usize) -> String {
        // The analysis of the last commands is remembered, so no two calls have the same command.
        let command = format!("git status --short && cargo test --workspace 2>&1 | tail -n {number}{contender}");
        json!({
            "session_id": session, "transcript_path": "/home/user/.claude/projects/repo/session-1.jsonl",
            "cwd": self.repository, "prompt_id": "prompt-1", "permission_mode": "default",
            "hook_event_name": "PreToolUse", "tool_name": "Bash",
            "tool_input": { "command": command, "description": "Run the tests" },
            "tool_use_id": format!("toolu_{contender}_{number}"),
        })
        .to_string()
    }

    /// The bytes that a call adds to the audit log.
    pub(crate) fn record_size(&self) -> Result<u64> {
        let size = || -> Result<u64> {
            let files = fs::read_dir(self.home.join("audit"))?.flatten();
            Ok(files.filter_map(|file| Some(file.metadata().ok()?.len())).sum())
        };
        const CALLS: u64 = 10;
        let call = |number| requests::ask(&self.socket(), &self.payload(number, 99));
        // The first call also starts the session.
        call(0)?;
        let before = size()?;
        (1..=CALLS as usize).try_for_each(call)?;
        Ok((size()? - before) / CALLS)
    }

    /// The process id of the daemon.
    pub(crate) fn daemon(&self) -> Result<u32> {
        self.find_daemon().ok_or_else(|| "no daemon is running".into())
    }

    fn find_daemon(&self) -> Option<u32> {
        let folder = self.home.join("guard").display().to_string();
        let is_daemon = |id: &u32| {
            let line = fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default();
            line.contains("\0daemon\0") && line.contains(&folder)
        };
        let processes = fs::read_dir("/proc").ok()?.flatten();
        processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).find(is_daemon)
    }

    /// Kills the daemon, and waits for its end.
    pub(crate) fn end_daemon(&self) -> Result<()> {
        if let Some(id) = self.find_daemon() {
            Command::new("kill").args(["-9", &id.to_string()]).status()?;
        }
        while UnixStream::connect(self.socket()).is_ok() {
            sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

impl Drop for Installation {
    fn drop(&mut self) {
        _ = self.end_daemon();
    }
}
