//! `amplifier`: an agent with hooks around every step.

use std::ffi::OsStr;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use amplifier::commands::approvals::{Approvals, ApprovalsCommand};
use amplifier::commands::audit::Audit;
use amplifier::commands::chat::{Chat, SessionStart, converse};
use amplifier::commands::completions::Completions;
use amplifier::commands::demo::Demo;
use amplifier::commands::doctor::Doctor;
use amplifier::commands::events::Events;
use amplifier::commands::exit::{Exit, checked};
#[cfg(feature = "fleet")]
use amplifier::commands::fleet::Fleet;
use amplifier::commands::guard::Guard;
use amplifier::commands::hooks::Hooks;
use amplifier::commands::init::Init;
use amplifier::commands::man::Man;
use amplifier::commands::output::{error_line, fail, is_closed_pipe};
use amplifier::commands::run::Run;
use amplifier::commands::serve::Serve;
use amplifier::commands::sessions::SessionsCommand;
use amplifier::commands::tools::Tools;
use amplifier::flags::Flags;
use amplifier::launcher::environment;
use amplifier_host::{Bundles, Home, ModelChoice, NO_MODEL};
use anyhow::{Context, Result};
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use tracing_subscriber::EnvFilter;

/// An agent with hooks around every step: they observe, block, modify, inject, ask, and control output.
#[derive(Parser)]
#[command(name = "amplifier", version, propagate_version = true)]
struct Amplifier {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    Demo(Demo),
    Run(Run),
    Chat(Chat),
    Sessions(SessionsCommand),
    Serve(Serve),
    Hooks(Hooks),
    Guard(Guard),
    #[cfg(feature = "fleet")]
    Fleet(Fleet),
    Init(Init),
    Events(Events),
    Tools(Tools),
    Audit(Audit),
    Approvals(Approvals),
    Doctor(Doctor),
    Completions(Completions),
    Man(Man),
}

fn main() -> ExitCode {
    if let Some(code) = amplifier::launcher::launch(std::env::args_os()) {
        return code;
    }
    // Before any key is read. A failure is not fatal, because only the protection of memory is weaker.
    if let Err(error) = amplifier_process::forbid_core_dumps() {
        _ = writeln!(anstream::stderr(), "amplifier: cannot disable core dumps, which could contain keys: {error}");
    }
    let parsed = without_empty_variables(Amplifier::command()).try_get_matches();
    let parsed = parsed.and_then(|matches| Ok((Amplifier::from_arg_matches(&matches)?, matches)));
    let (Amplifier { command }, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return fail_to_parse(&error),
    };
    match command.map_or_else(run_default, run) {
        Ok(code) => code,
        // The reader has closed the pipe, as `head` does.
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => fail(&error, wants_json(&matches)),
    }
}

/// Prints the help or the error of a command line. The error is JSON if it is for a program.
fn fail_to_parse(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() || std::env::args_os().all(|argument| argument != "--json") {
        error.exit();
    }
    let text = error.render().to_string();
    let text = text.split("\n\nUsage:").next().unwrap_or_default().trim_start_matches("error: ").trim();
    // Output may fail; the exit code is the result.
    _ = writeln!(std::io::stderr(), "{}", error_line(text, Exit::Usage));
    Exit::Usage.into()
}

/// Treats an empty environment variable as unset. An empty flag is still an error.
fn without_empty_variables(command: clap::Command) -> clap::Command {
    let is_empty = |name: &OsStr| std::env::var_os(name).is_some_and(|value| value.is_empty());
    command
        .mut_args(|arg| if arg.get_env().is_some_and(is_empty) { arg.env(None::<&str>) } else { arg })
        .mut_subcommands(without_empty_variables)
}

/// Returns `true` if the command was called with `--json`.
fn wants_json(matches: &ArgMatches) -> bool {
    match matches.subcommand() {
        Some((_, command)) => wants_json(command),
        None => matches.try_get_one::<bool>("json").is_ok_and(|json| json == Some(&true)),
    }
}

/// Runs `amplifier` without a command: a conversation if a model is configured, else the demonstration.
fn run_default() -> Result<ExitCode> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        Amplifier::command().print_help()?;
        return Ok(Exit::Usage.into());
    }
    let flags = Flags::default();
    let home = Home::find(environment())?;
    let config = flags.load(&home)?;
    if config.model(&Bundles::find(&config, &home)?.levels(), home.environment())? == ModelChoice::Unconfigured {
        writeln!(anstream::stderr(), "Welcome: {NO_MODEL}.\n\nHere is the demonstration.")?;
        return block_on(Demo::default().run(Ok(home)));
    }
    block_on(converse(&flags, &home, SessionStart::New))
}

fn run(command: Command) -> Result<ExitCode> {
    let home = || -> Result<Home> { Ok(Home::find(environment())?) };
    match command {
        Command::Demo(demo) => block_on(demo.run(home())),
        Command::Run(run) => block_on(run.run(&home()?)),
        Command::Chat(chat) => block_on(chat.run(&home()?)),
        Command::Serve(serve) => block_on(serve.run(&home()?)),
        Command::Sessions(sessions) => block_on(sessions.run(&home()?)),
        Command::Hooks(hooks) => block_on(hooks.run(home())),
        Command::Guard(guard) => match guard.run_alone()? {
            Ok(code) => Ok(code),
            Err(guard) => block_on(guard.run(&home()?)),
        },
        #[cfg(feature = "fleet")]
        Command::Fleet(fleet) => block_on(fleet.run(&home()?)),
        Command::Init(init) => init.run(&home()?),
        Command::Events(events) => events.run(),
        Command::Tools(tools) => tools.run(),
        Command::Audit(audit) => audit.run(home()),
        Command::Approvals(Approvals { command: ApprovalsCommand::Watch(watch) }) => block_on(watch.run(&home()?)),
        Command::Approvals(Approvals { command: ApprovalsCommand::Rules(rules) }) => rules.run(&home()?),
        Command::Doctor(doctor) => checked(home().and_then(|home| doctor.run(&home))),
        Command::Completions(completions) => completions.run(Amplifier::command()),
        Command::Man(man) => man.run(Amplifier::command()),
    }
}

/// Runs an asynchronous command. Other commands finish faster without a runtime.
fn block_on(command: impl Future<Output = Result<ExitCode>>) -> Result<ExitCode> {
    init_logs()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(command);
    // Does not wait for the thread that reads the terminal: the user may never press another key.
    runtime.shutdown_background();
    result
}

/// Sends logs to standard error, filtered by `AMPLIFIER_LOG`: `info`, `amplifier_agent=debug`.
fn init_logs() -> Result<()> {
    let filter = std::env::var("AMPLIFIER_LOG").unwrap_or_else(|_| "off".to_owned());
    let filter = EnvFilter::builder().parse(filter).context("invalid log filter in AMPLIFIER_LOG")?;
    // The crate logs provider responses, which may contain a key.
    let filter = filter.add_directive("genai=off".parse()?);
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    Ok(())
}
