//! `amplifier approvals watch`: answers open approval requests in this terminal.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use amplifier_core::{ApprovalAnswer, ApprovalError};
use amplifier_host::Home;
use amplifier_link::OpenApproval;
use amplifier_process::signals::{Interrupts, Termination};
use amplifier_server::client::{ApprovalStream, ApprovalUpdate, Client, ClientError};
use amplifier_server::{LinkListenerError, ServeError};
use anyhow::{Result, anyhow, bail};
use clap::Args;
use jiff::Timestamp;
use tokio::time::timeout;

use super::open_requests::OpenRequests;
use crate::commands::serve::OwnServer;
use crate::errors::{reasons, usage};
use crate::terminal::{EndReason, ListedRequest, OpenPrompt, PromptEnd, PromptTerminal, Screen, denial};

/// The attempts to reach a server that is about to start or to end, and the time between them.
const ATTEMPTS: usize = 200;
const PAUSE: Duration = Duration::from_millis(100);

/// Answer open approval requests of all sessions in this terminal
///
/// Shows the requests of sessions that use the server, and those of guarded agents. The keys are those of a conversation; Esc shows the next
/// request. If no server is running, this command runs one until it ends.
#[derive(Args, Debug)]
#[command(
    after_help = "Exit codes: 0 stopped, 1 failed, 2 wrong usage.\n\nCtrl-C ends the command. Requests without an answer stay open."
)]
pub struct Watch {
    /// Print JSON, one line for each request that is opened or closed, and answer none
    #[arg(long)]
    json: bool,
}

impl Watch {
    /// Runs the command.
    ///
    /// # Errors
    /// If there is no terminal, or the server cannot be reached.
    pub async fn run(self, home: &Home) -> Result<ExitCode> {
        let screen = Screen::new();
        if !self.json && !screen.can_ask() {
            return Err(usage("no terminal to ask on; run in a terminal, or print the requests with --json"));
        }
        let mut interrupts = Interrupts::listen()?;
        let mut termination = Termination::listen()?;
        let mut own = None;
        let done = tokio::select! {
            done = follow(self.json, &screen, home, &mut own) => done,
            _ = interrupts.recv() => Ok(()),
            () = termination.recv() => Ok(()),
        };
        if let Some(server) = own {
            server.stop().await;
        }
        done.map(|()| ExitCode::SUCCESS)
    }
}

/// Follows one server after the other, until Ctrl-C at a request.
async fn follow(is_json: bool, screen: &Screen, home: &Home, own: &mut Option<OwnServer>) -> Result<()> {
    let mut open = OpenRequests::default();
    loop {
        let (client, mut stream) = connect(home, own).await?;
        if is_json {
            while let Some(update) = stream.next().await? {
                for change in open.apply(update) {
                    writeln!(std::io::stdout(), "{}", serde_json::to_string(&change)?)?;
                }
            }
            continue;
        }
        let url = &client.address().url;
        let whose = if own.is_some() { "this command runs the server, because there was none" } else { "server" };
        screen.note(&format!("{whose}: {url}\nCtrl-C ends the command; requests stay open."));
        let mut terminal = WatchTerminal { screen, client: &client, stream: &mut stream, open: &mut open };
        if terminal.answer_all().await? == WatchEnd::Interrupt {
            return Ok(());
        }
        screen.note("the server has ended");
    }
}

/// Connects to the running server. If there is none, starts one.
async fn connect(home: &Home, own: &mut Option<OwnServer>) -> Result<(Client, ApprovalStream)> {
    for _ in 0..ATTEMPTS {
        match Client::find(&home.server_folder()) {
            Ok(client) => match client.approvals().await {
                // It is about to end.
                Err(ClientError::Unreachable { .. }) => {}
                stream => return Ok((client, stream?)),
            },
            Err(ClientError::NotRunning) => match OwnServer::start(home).await {
                Ok(server) => {
                    *own = Some(server);
                    continue;
                }
                // It is about to start or to end.
                Err(error) if is_another_running(&error) => {}
                Err(error) => return Err(error),
            },
            Err(error) => return Err(error.into()),
        }
        tokio::time::sleep(PAUSE).await;
    }
    bail!("another server is about to start or to end, and takes too long; try again")
}

fn is_another_running(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(ServeError::Running))
        || matches!(error.downcast_ref(), Some(LinkListenerError::Running(_)))
}

/// The reason why no more requests are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WatchEnd {
    /// Ctrl-C.
    Interrupt,
    /// The server has ended.
    ServerEnd,
}

/// The terminal of a user who answers the requests of one server.
struct WatchTerminal<'a> {
    screen: &'a Screen,
    client: &'a Client,
    stream: &'a mut ApprovalStream,
    open: &'a mut OpenRequests,
}

impl WatchTerminal<'_> {
    /// Shows one request after the other.
    async fn answer_all(&mut self) -> Result<WatchEnd> {
        let mut last: Option<Arc<OpenApproval>> = None;
        let mut waiting = None;
        loop {
            let next = self.open.next(last.as_deref(), Timestamp::now());
            // The agent of a new session becomes known an instant after its request.
            let is_early = next.as_ref().is_some_and(|(listed, at)| listed[*at].is_early(Timestamp::now()));
            let Some((listed, at)) = next.filter(|_| !is_early) else {
                waiting.get_or_insert_with(|| self.screen.spinner("waiting for approval requests"));
                let pause = if is_early { PAUSE } else { Duration::MAX };
                if let Ok(update) = timeout(pause, self.stream.next()).await {
                    match update? {
                        Some(update) => _ = self.apply(update, None),
                        None => return Ok(WatchEnd::ServerEnd),
                    }
                }
                continue;
            };
            waiting = None;
            let shown = &listed[at];
            let request = match shown.request.truncated {
                false => shown.request.clone(),
                true => match self.client.approval(&shown.request.id).await? {
                    Some(whole) => Arc::new(whole),
                    None => {
                        self.open.remove(&shown.request.id);
                        continue;
                    }
                },
            };
            self.screen.open_requests(&listed, at);
            match self.show(request.clone(), &listed).await? {
                RequestEnd::Answer(answer) => self.answer(&request, answer).await,
                RequestEnd::Closed | RequestEnd::Next => {}
                RequestEnd::End(end) => return Ok(end),
            }
            last = Some(request);
        }
    }

    /// Shows a request until it is answered here or elsewhere, or put aside.
    async fn show(&mut self, request: Arc<OpenApproval>, listed: &[ListedRequest]) -> Result<RequestEnd> {
        let others = Arc::new(AtomicUsize::new(listed.len() - 1));
        let left = Duration::try_from(request.deadline.duration_since(Timestamp::now())).unwrap_or_default();
        let terminal = PromptTerminal::List { others: others.clone() };
        let mut prompt = OpenPrompt::show(self.screen, request.clone(), Instant::now().checked_add(left), terminal)?;
        loop {
            tokio::select! {
                end = prompt.end() => return match end {
                    Ok(PromptEnd::Answer(answer)) => Ok(RequestEnd::Answer(Ok(answer))),
                    Ok(PromptEnd::Denial(reason)) => Ok(RequestEnd::Answer(denial(&request, Some(reason)))),
                    Ok(PromptEnd::Next) => Ok(RequestEnd::Next),
                    Ok(PromptEnd::Interrupt) => Ok(RequestEnd::End(WatchEnd::Interrupt)),
                    // The session decides by itself.
                    Err(ApprovalError::TimedOut) => {
                        self.open.remove(&request.id);
                        Ok(RequestEnd::Closed)
                    }
                    Err(error) => Err(error.into()),
                },
                update = self.stream.next() => match update? {
                    None => return Ok(RequestEnd::End(WatchEnd::ServerEnd)),
                    Some(update) => {
                        if let Some(reason) = self.apply(update, Some(&request)) {
                            prompt.close(reason);
                            return Ok(RequestEnd::Closed);
                        }
                        let now = self.open.next(None, Timestamp::now()).map_or(1, |(listed, _)| listed.len());
                        others.store(now.saturating_sub(1), Ordering::Relaxed);
                    }
                }
            }
        }
    }

    /// Applies an update. Returns the reason for removing the shown request, if it is closed.
    fn apply(&mut self, update: ApprovalUpdate, shown: Option<&OpenApproval>) -> Option<EndReason> {
        let mut reason = None;
        for change in self.open.apply(update) {
            let ApprovalUpdate::ApprovalClosed { id, decided } = change else { continue };
            match decided {
                decided if shown.is_some_and(|shown| shown.id == id) => {
                    reason = Some(decided.map_or(EndReason::Withdrawn, |decided| EndReason::Decided(decided.decision)));
                }
                Some(decided) => self.screen.decided_elsewhere(&decided.prompt, &decided.decision),
                None => {}
            }
        }
        reason
    }

    /// Sends an answer. If the session does not take it, says why.
    async fn answer(&mut self, request: &OpenApproval, answer: Result<ApprovalAnswer, ApprovalError>) {
        let answered = match answer {
            Ok(answer) => self.client.answer(request, &answer).await.map_err(anyhow::Error::from),
            Err(_) => Err(anyhow!("the request has no option that denies; press Ctrl-C to leave it open")),
        };
        match answered {
            Ok(_) => self.open.remove(&request.id),
            Err(error) => self.screen.note(&format!("the answer does not count: {}", reasons(&error))),
        }
    }
}

/// The end of a shown request.
enum RequestEnd {
    /// The error says why there is no such answer.
    Answer(Result<ApprovalAnswer, ApprovalError>),
    /// Decided elsewhere, or out of time.
    Closed,
    /// Put aside.
    Next,
    End(WatchEnd),
}
