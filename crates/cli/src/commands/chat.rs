//! `amplifier chat`: an interactive session.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use amplifier_agent::{Cancel, Session, Store, StoreError, StoredSession, TurnEnd};
use amplifier_core::HookRegistry;
use amplifier_core::text::counted;
use amplifier_host::{ApprovalMode, Home, LinkTarget, Policy, RemoteControl, ServerLink, SessionParts, reasons};
use amplifier_link::{Command, LinkClient};
use amplifier_process::files::{OpenOptionsExt, create_private_folder};
use amplifier_process::signals::Termination;
use anstream::{AutoStream, ColorChoice};
use anyhow::{Context, Result, bail};
use clap::Args;
use reedline::{
    FileBackedHistory, Prompt, PromptEditMode, PromptHistorySearch, PromptHistorySearchStatus, Reedline, Signal,
};

use super::run::report;
use crate::flags::Flags;
use crate::greeting::greet;
use crate::session::{self, TerminalObserver, TerminalSession};
use crate::signals::{stop_on_ctrl_c, stop_on_termination};
use crate::terminal::Screen;
use crate::user::terminal_actor;

/// Start a conversation with the agent
#[derive(Args, Debug)]
#[command(
    after_help = "Ctrl-C once lets the running tool finish, twice stops the turn at once. Ctrl-D ends the session."
)]
pub struct Chat {
    #[command(flatten)]
    flags: Flags,
}

/// The start of a conversation.
pub enum SessionStart {
    /// A new session.
    New,
    /// A stored session.
    Resume(String),
    /// A branch of a stored session, after a turn.
    Fork(String, Option<u64>),
}

impl SessionStart {
    /// Checks that the stored session and the turn exist.
    fn check(&self, store: &Store) -> Result<(), StoreError> {
        let (id, turn) = match self {
            Self::New => return Ok(()),
            Self::Resume(id) => (id, None),
            Self::Fork(id, turn) => (id, *turn),
        };
        let StoredSession { id, turns, .. } = store.find(id)?;
        match turn {
            Some(turn) if turn > turns => Err(StoreError::NoTurn { id, turns, turn }),
            _ => Ok(()),
        }
    }
}

impl Chat {
    /// Runs the command.
    ///
    /// # Errors
    /// If there is no terminal or the session cannot start.
    pub async fn run(self, home: &Home) -> Result<ExitCode> {
        converse(&self.flags, home, SessionStart::New).await
    }
}

/// Runs a conversation until the user ends it.
///
/// # Errors
/// If there is no terminal or the session cannot start.
pub async fn converse(flags: &Flags, home: &Home, begin: SessionStart) -> Result<ExitCode> {
    // A wrong id is wrong with and without a terminal.
    begin.check(&home.sessions())?;
    if !std::io::stdin().is_terminal() {
        bail!("`amplifier chat` needs a terminal; without a terminal, use `amplifier run`");
    }
    let config = flags.load(home)?;
    let screen = Screen::new();
    let cancel = Cancel::default();
    let hooks = HookRegistry::new();
    let target = LinkTarget::Socket { takes_prompts: true };
    let terminal_session = session::build(&config, home, hooks.clone(), &screen, &cancel, &target).await?;
    let TerminalSession { parts, observer, server } = terminal_session;
    let SessionParts { builder, policy, servers, .. } = parts;
    stop_on_ctrl_c(&cancel, &screen);
    stop_on_termination(&cancel, &hooks)?;
    let termination = Termination::listen()?;
    let session = match begin {
        SessionStart::New => builder.start().await?,
        SessionStart::Resume(id) => builder.resume(&id).await?,
        SessionStart::Fork(id, turn) => builder.fork(&id, turn).await?,
    };
    if let Some(server) = &server {
        server.started(&session);
    }
    let remote = RemoteInput::listen(server, &cancel);
    let model = config.model(policy.levels(), home.environment())?.describe();
    greet(&screen, &policy, home, &model, session.id());
    let result = read_prompts(&session, &policy, &screen, &observer, &remote, home, termination).await;
    let reason = if result.is_ok() { "user_exit" } else { "error" };
    remote.close(reason).await;
    session.end(reason).await?;
    drop(servers);
    policy.close().await?;
    result.map(|()| ExitCode::SUCCESS)
}

/// Reads prompts until the user ends the session or the program is terminated.
async fn read_prompts(
    session: &Session,
    policy: &Policy,
    screen: &Screen,
    observer: &TerminalObserver,
    remote: &RemoteInput,
    home: &Home,
    mut termination: Termination,
) -> Result<()> {
    let history = line_history(home).context("the line history")?;
    let is_colourful = AutoStream::choice(&std::io::stderr()) != ColorChoice::Never;
    let editor = Reedline::create().with_history(history).with_ansi_colors(is_colourful);
    let mut editor = match remote.is_served() {
        true => editor.with_break_signal(remote.shared.interrupts.clone()),
        false => editor,
    };
    loop {
        match remote.next() {
            Some(RemoteInputEvent::End) => return Ok(()),
            Some(RemoteInputEvent::Prompt(prompt)) => {
                screen.note(&format!("> {prompt}"));
                screen.note("(from the server)");
                run_turn(session, screen, observer, remote, &prompt).await?;
                continue;
            }
            None => {}
        }
        remote.set_idle(true);
        let prompt = LinePrompt(policy.mode().current());
        let reading = tokio::task::spawn_blocking(move || {
            let signal = editor.read_line(&prompt);
            (editor, signal)
        });
        let (returned, signal) = tokio::select! {
            biased;
            () = termination.recv() => {
                // The editor still reads and does not restore the terminal. An error means that the terminal is closed.
                let _ = crossterm::terminal::disable_raw_mode();
                return Ok(());
            }
            read = reading => read?,
        };
        editor = returned;
        remote.set_idle(false);
        let line = match signal? {
            Signal::Success(line) => line,
            Signal::CtrlD => return Ok(()),
            // The line is discarded; no turn runs.
            _ => continue,
        };
        match line.trim() {
            "" => {}
            "/exit" | "/quit" => return Ok(()),
            command if command.starts_with('/') => {
                run_slash_command(session, policy, screen, command).await;
                remote.set_mode(policy.mode().current());
            }
            prompt => run_turn(session, screen, observer, remote, prompt).await?,
        }
    }
}

async fn run_turn(
    session: &Session,
    screen: &Screen,
    observer: &TerminalObserver,
    remote: &RemoteInput,
    prompt: &str,
) -> Result<()> {
    let end = session.prompt(prompt).await;
    observer.end_turn().context("the answer cannot be written to standard output")?;
    report(screen, &end);
    if matches!(end, TurnEnd::Answered(_)) && !remote.is_over() {
        session.notify("awaiting_input", "the agent has answered").await;
    }
    Ok(())
}

/// Input from the server, if connected.
struct RemoteInput {
    shared: Arc<InputQueue>,
    client: Option<LinkClient>,
    link: Option<RemoteControl>,
}

#[derive(Default)]
struct InputQueue {
    /// Interrupts the line editor, which keeps the text typed so far.
    interrupts: Arc<AtomicBool>,
    // A std lock: nothing awaits while it is held.
    prompts: Mutex<VecDeque<String>>,
    is_over: AtomicBool,
}

enum RemoteInputEvent {
    Prompt(String),
    End,
}

impl RemoteInput {
    fn listen(server: Option<ServerLink>, cancel: &Cancel) -> Self {
        let shared = Arc::new(InputQueue::default());
        let client = server.as_ref().map(|server| server.client.clone());
        let queue = shared.clone();
        let link = server.map(|server| server.control(cancel, move |command| queue.push(command)));
        Self { shared, client, link }
    }

    fn is_served(&self) -> bool {
        self.link.is_some()
    }

    fn is_over(&self) -> bool {
        self.shared.is_over.load(Ordering::SeqCst)
    }

    fn next(&self) -> Option<RemoteInputEvent> {
        if self.is_over() {
            return Some(RemoteInputEvent::End);
        }
        self.shared.prompts.lock().unwrap_or_else(PoisonError::into_inner).pop_front().map(RemoteInputEvent::Prompt)
    }

    fn set_idle(&self, idle: bool) {
        if let Some(client) = &self.client {
            client.set_idle(idle);
        }
    }

    fn set_mode(&self, mode: ApprovalMode) {
        if let Some(client) = &self.client {
            client.set_mode(mode.as_str());
        }
    }

    async fn close(self, reason: &str) {
        if let Some(link) = self.link {
            link.close(reason).await;
        }
    }
}

impl InputQueue {
    fn push(&self, command: Command) {
        match command {
            Command::Prompt(text) => self.prompts.lock().unwrap_or_else(PoisonError::into_inner).push_back(text),
            Command::End => self.is_over.store(true, Ordering::SeqCst),
            Command::Interrupt => return,
        }
        self.interrupts.store(true, Ordering::SeqCst);
    }
}

/// Opens the line history. Lines may contain secrets, so only the owner can read the file.
fn line_history(home: &Home) -> Result<Box<FileBackedHistory>> {
    let file = home.line_history();
    create_private_folder(home.data())?;
    OpenOptions::new().create(true).append(true).owner_only().open(&file)?;
    Ok(Box::new(FileBackedHistory::with_file(1_000, file)?))
}

const HELP: &str = "\
/help      list these commands
/hooks     list the registered hooks
/history   print the conversation
/tokens    print the number of tokens used
/compact   summarize the conversation
/mode      show or change the approval mode: /mode plan
/exit      end the session (also Ctrl-D)";

async fn run_slash_command(session: &Session, policy: &Policy, screen: &Screen, command: &str) {
    match command {
        command if command.split_whitespace().next() == Some("/mode") => {
            screen.note(&change_mode(session, policy, command.split_whitespace().nth(1)));
        }
        "/help" => screen.note(HELP),
        "/hooks" => screen.note(&super::hooks::table(&session.coordinator().hooks().list_handlers())),
        "/tokens" => screen.note(&counted(session.tokens(), "token")),
        "/history" => {
            for message in session.history() {
                let role = format!("{:?}", message.role).to_lowercase();
                let calls: Vec<&str> = message.tool_calls.iter().map(|call| call.name.as_str()).collect();
                let calls = if calls.is_empty() { String::new() } else { format!(" [{}]", calls.join(", ")) };
                screen.note(&format!("{role}{calls}: {}", message.content));
            }
        }
        "/compact" => match session.compact().await {
            Ok(()) => screen.note(&format!("the conversation now has {}", counted(session.history().len(), "message"))),
            Err(end) => screen.note(&end.text()),
        },
        other => screen.note(&format!("unknown command `{other}`; see /help")),
    }
}

/// Changes the approval mode, and returns the message.
fn change_mode(session: &Session, policy: &Policy, mode: Option<&str>) -> String {
    let Some(mode) = mode else {
        let allowed: Vec<&str> = policy.mode().allowed().map(ApprovalMode::as_str).collect();
        return format!("mode: {}; allowed: {}", policy.mode().current(), allowed.join(", "));
    };
    let changed = match mode.parse::<ApprovalMode>() {
        Ok(mode) => policy.set_mode(session.id(), mode, &terminal_actor()).map_err(|error| reasons(&error)),
        Err(unknown) => Err(unknown.to_string()),
    };
    match changed {
        Ok(()) => format!("mode: {}", policy.mode().current()),
        Err(error) => error,
    }
}

/// The prompt of the line editor. It names the approval mode, unless that is `ask`.
struct LinePrompt(ApprovalMode);

impl Prompt for LinePrompt {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        "".into()
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        "".into()
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> Cow<'_, str> {
        match self.0 {
            ApprovalMode::Ask => "> ".into(),
            mode => format!("{mode}> ").into(),
        }
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        "· ".into()
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        let failing = if matches!(search.status, PromptHistorySearchStatus::Failing) { "no match for " } else { "" };
        format!("({failing}{}) ", search.term).into()
    }
}
