//! `amplifier demo`: one session that shows the six capabilities of hooks.

mod captions;

use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use amplifier_agent::provider::{Script, ScriptedProvider, ScriptedResponse};
use amplifier_agent::tool::{Workspace, standard};
use amplifier_agent::{Cancel, Session, TurnEnd};
use amplifier_audit::{Durability, Integrity, Log, Verifier};
use amplifier_core::text::counted;
use amplifier_core::{
    Approval, Event, HookRegistry, HookResult, OnError, PROMPT_SUBMIT, SessionConfig, TOOL_POST, TOOL_PRE, ToolPost,
    ToolPre, session_id,
};
use amplifier_host::Home;
use amplifier_process::files::create_private_folder;
use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;

use self::captions::Captions;
use super::run::{end_reason, exit_code, report};
use crate::errors::reasons;
use crate::signals::{stop_on_ctrl_c, stop_on_termination};
use crate::terminal::{HeadlessApprovals, Screen, TerminalApprovals};

/// Show the capabilities of hooks in a minute, without a key or a network
#[derive(Args, Debug, Default)]
#[command(
    after_help = "The model is scripted. Everything else is real: the tools, the hooks, the approval request, the audit log. The demo runs \
                  in a temporary folder, which is removed afterwards. Its session stays, under the name `demo`: `amplifier sessions show`, \
                  `amplifier hooks trace` and `amplifier serve` show it.\n\n\
                  Exit codes: 0 done, 1 failed, 130 interrupted."
)]
pub struct Demo {
    /// Do not pause between words
    #[arg(long)]
    fast: bool,
}

const TASK: &str = "Clean up, check the settings, write a greeting, and deploy it.";
/// The name of the stored session.
const NAME: &str = "demo";
const SECRET: &str = "sk-live-4f1c9a7be2";

impl Demo {
    /// Runs the command.
    ///
    /// # Errors
    /// If the temporary folder or the audit log cannot be used.
    pub async fn run(self, home: Result<Home>) -> Result<ExitCode> {
        let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
        let workspace = folder.path().join("workspace");
        prepare(&workspace).context("the temporary workspace")?;
        let screen = Screen::new();
        let home = usable_home(home, &screen, folder.path());
        let pace = if self.fast || !std::io::stderr().is_terminal() { 0 } else { 35 };
        let seen = Arc::new(AtomicUsize::new(0));
        let log = Log::at(home.audit_folder(), home.audit_key()).durability(Durability::Group).open()?;

        let within = Workspace::new(&workspace)?;
        let cancel = Cancel::default();
        let captions = Captions::new(&screen);
        let hooks = hooks(&captions, &seen)?;
        stop_on_ctrl_c(&cancel, &screen);
        stop_on_termination(&cancel, &hooks)?;
        let plan = json!({ "workspace": workspace.to_string_lossy(), "approvals": "terminal" });
        let builder = Session::builder(Arc::new(ScriptedProvider::new(script(pace))))
            .hooks(hooks)
            .tools(standard(&within))
            .display(captions.clone())
            .observer(captions.clone())
            .audit(log.clone())
            .store(home.sessions())
            .mount_plan(plan.as_object().cloned().unwrap_or_default())
            .config(SessionConfig { audit_required: true, ..SessionConfig::default() })
            .cancel(cancel.clone());
        let builder = match screen.can_ask() {
            true => builder.approvals(TerminalApprovals::new(screen.clone()).stopping(move || _ = cancel.request())),
            false => builder.approvals(HeadlessApprovals),
        };
        screen.heading("TASK", TASK);
        let session = builder.start().await?;
        let id = session.id().to_owned();
        home.sessions().name(&id, NAME)?;
        let end = session.prompt(TASK).await;
        captions.observer.end_turn()?;
        session.end(end_reason(&end)).await?;
        log.close()?;
        report(&screen, &end);
        if matches!(end, TurnEnd::Answered(_)) {
            show_end(&screen, &home, &workspace, seen.load(Ordering::Relaxed))?;
        }
        if !home.data().starts_with(folder.path()) {
            show_next(&screen, &id);
        }
        Ok(exit_code(&end))
    }
}

/// Returns the home of the user, or a temporary one if the session cannot be stored there.
fn usable_home(home: Result<Home>, screen: &Screen, folder: &Path) -> Home {
    let usable = home.and_then(|home| {
        create_private_folder(home.data()).with_context(|| format!("`{}` is not writable", home.data().display()))?;
        Ok(home)
    });
    usable.unwrap_or_else(|error| {
        screen.note(&format!("the session of the demo is not stored: {}", reasons(&error)));
        Home::at(folder)
    })
}

fn prepare(workspace: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(workspace.join("build"))?;
    std::fs::create_dir_all(workspace.join("production"))?;
    std::fs::write(workspace.join("build/cache.bin"), "0123456789\n")?;
    std::fs::write(workspace.join("settings.env"), format!("TOKEN={SECRET}\nMODE=production\n"))
}

fn hooks(captions: &Captions, seen: &Arc<AtomicUsize>) -> Result<HookRegistry> {
    let hooks = HookRegistry::new();

    let meter = seen.clone();
    hooks.hook("*").named("meter").observer().run(move |_| {
        meter.fetch_add(1, Ordering::Relaxed);
    })?;
    hooks.hook(PROMPT_SUBMIT).named("policy").run(|event| {
        let noise = noise_about(event.prompt());
        HookResult::proceed().info("the prompt is within policy").with_output(noise).suppress_output()
    });
    let [guard, redact, linter, production] = [(); 4].map(|()| captions.clone());
    hooks.hook(TOOL_PRE).named("guard").on_error(OnError::Deny).run(move |event: Event<ToolPre>| {
        let command = event.text_at("/tool_input/command").unwrap_or_default();
        command.contains("rm -rf").then(|| {
            guard.before("BLOCK", "a guard denies, and the model reads the reason");
            HookResult::deny("deleting recursively is not allowed here")
        })
    });
    hooks.hook(TOOL_POST).named("redact").on_error(OnError::Deny).run(move |event: Event<ToolPost>| {
        let output = event.text_at("/tool_result/output")?;
        output.contains(SECRET).then(|| {
            redact.after("MODIFY", "a secret is redacted: the model, the transcript and the record never contain it");
            HookResult::set("tool_result", json!({ "output": output.replace(SECRET, "[redacted]") }))
        })
    });
    hooks.hook(TOOL_POST).named("linter").run(move |event: Event<ToolPost>| {
        let content = event.text_at("/tool_input/content").or(event.text_at("/tool_input/new_string"))?;
        let line = content.lines().position(|line| line.contains("pritn"))? + 1;
        linter.after("INJECT", "a linter adds context, and the model corrects itself within the turn");
        let problem = format!("greet.py line {line}: undefined name `pritn`; did you mean `print`?");
        Some(HookResult::inject(problem).warning("1 problem in greet.py"))
    });
    hooks.hook(TOOL_PRE).named("production-guard").on_error(OnError::Deny).run(move |event: Event<ToolPre>| {
        let path = event.text_at("/tool_input/file_path")?;
        path.starts_with("production/").then(|| {
            production.before("ASK", "the user decides within a time limit; no answer denies");
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
        ScriptedResponse::text("The linter is right: a typing error. I correct it.")
            .calling("Edit", json!({ "file_path": "greet.py", "old_string": "pritn", "new_string": "print" })),
        ScriptedResponse::text("I look at it once more.")
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

/// Returns the output of the noisy hook.
fn noise_about(prompt: &str) -> String {
    format!("checked {} against 4 lists", counted(prompt.len(), "character"))
}

fn show_end(screen: &Screen, home: &Home, workspace: &Path, seen: usize) -> Result<()> {
    let report = Verifier::new().folder(home.audit_folder())?;
    let deployed = if workspace.join("production/greet.py").exists() { "deployed" } else { "not deployed" };
    let sound = match report.integrity() {
        Integrity::Sound => "sound: nothing was changed, removed or added",
        Integrity::Unsound => "NOT SOUND; see `amplifier audit verify`",
        // Another session may write at this moment.
        Integrity::Unreadable => "unreadable at this moment; see `amplifier audit verify`",
    };
    screen.heading("OBSERVE", &format!("a meter saw {} and changed none", counted(seen, "event")));
    let noise = noise_about(TASK);
    screen.heading("CONTROL", &format!("the policy hook also printed \"{noise}\"; only its message was shown"));
    screen.heading(
        "RECORD",
        &format!("{}, hash-chained and signed; the log is {sound}", counted(report.records, "record")),
    );
    screen.note(&format!(
        "\nResult: build/ still exists, greet.py is {deployed}, and the token never reached the model."
    ));
    Ok(())
}

/// Shows commands to go on with, as the user can type them here.
fn show_next(screen: &Screen, session: &str) {
    let (program, id) = (program_name(), session_id::short(session));
    let look = [
        (format!("sessions show {id}"), "the conversation"),
        (format!("hooks trace {id}"), "every event and answer"),
        ("serve".to_owned(), "both in a browser"),
    ];
    let go_on = [
        ("init".to_owned(), "a policy for your project"),
        ("hooks new rule my-hooks".to_owned(), "a hook with its tests"),
        ("chat".to_owned(), "an agent with your model"),
    ];
    let widest = look.iter().chain(&go_on).map(|(command, _)| command.len()).max().unwrap_or_default();
    let line = |(command, purpose): &(String, &str)| format!("  {program} {command:<widest$}  {purpose}");
    let (look, go_on) = (look.each_ref().map(line).join("\n"), go_on.each_ref().map(line).join("\n"));
    screen.note(&format!("\nLook at this session:\n{look}\n\nGo on:\n{go_on}"));
}

/// Returns the name that starts this program in a shell.
fn program_name() -> String {
    let name = std::env::args().next().unwrap_or_default();
    // A shell finds a name without a folder, and a path like the one that was typed.
    if Path::new(&name).is_absolute() || name.is_empty() { "amplifier".to_owned() } else { name }
}
