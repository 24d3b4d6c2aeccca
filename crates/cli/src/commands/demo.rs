//! `amplifier demo`: one session that shows the six capabilities of hooks.

use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use amplifier_agent::provider::{Script, ScriptedProvider, ScriptedResponse};
use amplifier_agent::tool::{Workspace, standard};
use amplifier_agent::{Cancel, Session};
use amplifier_audit::{Durability, Log, Verifier};
use amplifier_core::text::counted;
use amplifier_core::{
    Approval, Event, HookRegistry, HookResult, OnError, PROMPT_SUBMIT, SessionConfig, TOOL_POST, TOOL_PRE, ToolPost,
    ToolPre,
};
use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;

use super::run::{exit_code, report};
use crate::session::TerminalObserver;
use crate::signals::{stop_on_ctrl_c, stop_on_termination};
use crate::terminal::{HeadlessApprovals, Screen, TerminalApprovals, TerminalDisplay};

/// Show the capabilities of hooks in a minute, without a key or a network
#[derive(Args, Debug, Default)]
#[command(
    after_help = "The model is scripted. Everything else is real: the tools, the hooks, the approval request, the audit log. The demo runs \
                  in a temporary folder, which is removed afterwards."
)]
pub struct Demo {
    /// Do not pause between words
    #[arg(long)]
    fast: bool,
}

const TASK: &str = "Clean up, check the settings, write a greeting, and deploy it.";
const SECRET: &str = "sk-live-4f1c9a7be2";

impl Demo {
    /// Runs the command.
    ///
    /// # Errors
    /// If the temporary folder cannot be used.
    pub async fn run(self) -> Result<ExitCode> {
        let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
        let workspace = folder.path().join("workspace");
        prepare(&workspace).context("the temporary workspace")?;
        let screen = Screen::new();
        let pace = if self.fast || !std::io::stderr().is_terminal() { 0 } else { 35 };
        let seen = Arc::new(AtomicUsize::new(0));
        let log = Log::at(folder.path().join("audit"), folder.path().join("audit.key"))
            .durability(Durability::Group)
            .open()?;

        let within = Workspace::new(&workspace)?;
        let cancel = Cancel::default();
        let observer = TerminalObserver::new(screen.clone());
        let hooks = hooks(&screen, &seen)?;
        stop_on_ctrl_c(&cancel, &screen);
        stop_on_termination(&cancel, &hooks)?;
        let builder = Session::builder(Arc::new(ScriptedProvider::new(script(pace))))
            .hooks(hooks)
            .tools(standard(&within))
            .display(TerminalDisplay::new(screen.clone()))
            .observer(observer.clone())
            .audit(log.clone())
            .config(SessionConfig { audit_required: true, ..SessionConfig::default() })
            .cancel(cancel.clone());
        let builder = match screen.can_ask() {
            true => builder.approvals(TerminalApprovals::new(screen.clone())),
            false => builder.approvals(HeadlessApprovals),
        };
        screen.heading("TASK", TASK);
        let session = builder.start().await?;
        let end = session.prompt(TASK).await;
        observer.end_turn()?;
        session.end("complete").await?;
        log.close()?;
        report(&screen, &end);
        show_end(&screen, folder.path(), &workspace, seen.load(Ordering::Relaxed))?;
        Ok(exit_code(&end))
    }
}

fn prepare(workspace: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(workspace.join("build"))?;
    std::fs::create_dir_all(workspace.join("production"))?;
    std::fs::write(workspace.join("build/cache.bin"), "0123456789\n")?;
    std::fs::write(workspace.join("settings.env"), format!("TOKEN={SECRET}\nMODE=production\n"))
}

fn hooks(screen: &Screen, seen: &Arc<AtomicUsize>) -> Result<HookRegistry> {
    let hooks = HookRegistry::new();

    let meter = seen.clone();
    hooks.hook("*").named("meter").observer().run(move |_| {
        meter.fetch_add(1, Ordering::Relaxed);
    })?;
    hooks.hook(PROMPT_SUBMIT).named("policy").run(|event| {
        let noise = format!("checked {} against 4 lists", counted(event.prompt().len(), "character"));
        HookResult::proceed().info("the prompt is within policy").with_output(noise).suppress_output()
    });
    let (guard, redact, linter, production) = (screen.clone(), screen.clone(), screen.clone(), screen.clone());
    hooks.hook(TOOL_PRE).named("guard").on_error(OnError::Deny).run(move |event: Event<ToolPre>| {
        let command = event.text_at("/tool_input/command").unwrap_or_default();
        command.contains("rm -rf").then(|| {
            guard.heading("BLOCK", "a guard denies, and the model reads the reason");
            HookResult::deny("deleting recursively is not allowed here")
        })
    });
    hooks.hook(TOOL_POST).named("redact").on_error(OnError::Deny).run(move |event: Event<ToolPost>| {
        let output = event.text_at("/tool_result/output")?;
        output.contains(SECRET).then(|| {
            redact.heading("MODIFY", "a secret is redacted: the model, the transcript and the record never contain it");
            HookResult::set("tool_result", json!({ "output": output.replace(SECRET, "[redacted]") }))
        })
    });
    hooks.hook(TOOL_POST).named("linter").run(move |event: Event<ToolPost>| {
        let content = event.text_at("/tool_input/content").or(event.text_at("/tool_input/new_string"))?;
        let line = content.lines().position(|line| line.contains("pritn"))? + 1;
        linter.heading("INJECT", "a linter adds context, and the model corrects itself within the turn");
        let problem = format!("greet.py line {line}: undefined name `pritn`; did you mean `print`?");
        Some(HookResult::inject(problem).warning("1 problem in greet.py"))
    });
    hooks.hook(TOOL_PRE).named("production-guard").on_error(OnError::Deny).run(move |event: Event<ToolPre>| {
        let path = event.text_at("/tool_input/file_path")?;
        path.starts_with("production/").then(|| {
            production.heading("ASK", "the user decides within a time limit; no answer denies");
            let question = Approval::new(format!("Write to `{path}`?")).options(["Allow once", "Allow always", "Deny"]);
            HookResult::ask(question.timeout(Duration::from_secs(30))).because("production files need approval")
        })
    });
    Ok(hooks)
}

fn script(pace: u64) -> Script {
    let program = "def greet(name):\n    pritn(f\"Hello, {name}!\")\n\ngreet(\"world\")\n";
    let mut script = Script::new([
        ScriptedResponse::text("I clear the build folder first.").calling("Bash", json!({ "command": "rm -rf build" })),
        ScriptedResponse::text("That is not allowed, so the folder stays. Now the settings.")
            .calling("Read", json!({ "file_path": "settings.env" })),
        ScriptedResponse::text("The settings are there, and the token is hidden from me. I write the greeting.")
            .calling("Write", json!({ "file_path": "greet.py", "content": program })),
        ScriptedResponse::text("The linter is right: a typing error. I correct it and try it out.")
            .calling("Edit", json!({ "file_path": "greet.py", "old_string": "pritn", "new_string": "print" }))
            .calling("Bash", json!({ "command": "cat greet.py | head -2" })),
        ScriptedResponse::text("It looks right. I deploy it.").calling(
            "Write",
            json!({ "file_path": "production/greet.py", "content": program.replace("pritn", "print") }),
        ),
        ScriptedResponse {
            when: Some("Denied by hook".to_owned()),
            ..ScriptedResponse::text(
                "The deployment was not allowed. Everything else is done: the greeting is in greet.py.",
            )
        },
        ScriptedResponse::text(
            "Everything is done, but for the build folder, which I may not delete: greet.py is deployed.",
        ),
    ]);
    script.answers.iter_mut().for_each(|answer| answer.delay_ms = pace);
    script
}

fn show_end(screen: &Screen, folder: &Path, workspace: &Path, seen: usize) -> Result<()> {
    let report = Verifier::new().folder(folder.join("audit"))?;
    let deployed = if workspace.join("production/greet.py").exists() { "deployed" } else { "not deployed" };
    let sound = if report.is_sound() { "sound: nothing was changed, removed or added" } else { "NOT SOUND" };
    screen.heading("OBSERVE", &format!("a meter saw {} and changed none", counted(seen, "event")));
    screen.heading("CONTROL", "the policy hook was noisy; you saw one clean line of it");
    screen.heading(
        "RECORD",
        &format!("{}, hash-chained and signed; the log is {sound}", counted(report.records, "record")),
    );
    screen.note(&format!(
        "\nResult: build/ still exists, greet.py is {deployed}, and the token never reached the model.\n\n\
         Next:  amplifier chat      start a conversation with your own model (`amplifier doctor` checks the setup)\n       \
         amplifier events    list the events and the effects of actions\n       \
         amplifier --help    list all commands"
    ));
    Ok(())
}
