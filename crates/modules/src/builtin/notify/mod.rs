//! `hooks-notify`: notifies the user outside of the agent.

mod send;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use amplifier_core::text::{EscapeMode, truncate_chars, visible};
use amplifier_core::{EventData, EventPattern, Hook, HookError, HookResult, Map};
use amplifier_process::sandbox::Sandbox;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::send::NotificationChannels;
use super::shared::background::{Background, PendingTasks};
use super::shared::session_tree::{SESSION_EVENTS, SessionTree};
use super::shared::settings::{require_some, seconds, strings};
use super::{ModuleContext, ModuleHook, options};
use crate::bundle::{Confinement, OneOrMany};
use crate::condition::Scope;
use crate::transport::{Post, Program};

/// Longest message, in characters.
const LONGEST: usize = 500;

/// Options of `hooks-notify`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Options {
    /// The events that cause a notification; patterns allowed.
    events: Vec<String>,
    /// Shortest duration of a turn for a notification about `prompt:complete`, in seconds.
    after: f64,
    /// Show notifications on the desktop, if `notify-send` is installed.
    desktop: bool,
    /// Ring the terminal bell.
    bell: bool,
    /// Program that receives the notification as JSON on its standard input: a shell command line, or a list of program and
    /// arguments.
    command: Option<OneOrMany>,
    /// Sandbox of `command`, or `false` for none. Default: the sandbox of the agent's commands.
    confine: Option<Confinement>,
    /// URL of a server that receives the notification as JSON, by POST.
    webhook: Option<String>,
    /// Headers for `webhook`; `${NAME}` in a value stands for an environment variable.
    headers: BTreeMap<String, String>,
    /// Time limit for each channel, in seconds.
    timeout: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            events: strings(&["user:notification", "prompt:complete", "approval:required"]),
            after: 30.0,
            desktop: true,
            bell: false,
            command: None,
            confine: None,
            webhook: None,
            headers: BTreeMap::new(),
            timeout: 5.0,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Notification {
    event: String,
    title: String,
    message: String,
    session_id: Option<String>,
    timestamp: Option<String>,
}

pub(super) fn make(config: &Map, context: &ModuleContext<'_>) -> Result<Vec<ModuleHook>, String> {
    let Options { events, after, desktop, bell, command, confine, webhook, headers, timeout } = options(config)?;
    require_some("events", &events)?;
    let timeout = seconds("timeout", timeout)?;
    let after = Duration::try_from_secs_f64(after)
        .map_err(|_| format!("`after` is {after}: give a number of seconds, 0 or more"))?;
    if !headers.is_empty() && webhook.is_none() {
        return Err("`headers` needs a `webhook`".to_owned());
    }
    let program = |command: OneOrMany| match command {
        OneOrMany::One(line) if !line.trim().is_empty() => Ok(Program::line(line)),
        OneOrMany::Many(words) if words.first().is_some_and(|program| !program.is_empty()) => Ok(Program::new(words)),
        _ => Err("`command` is empty: name a program".to_owned()),
    };
    if confine.is_some() && command.is_none() {
        return Err("`confine` needs a `command`".to_owned());
    }
    let sandbox = match confine {
        _ if command.is_none() => Ok(Sandbox::default()),
        Some(Confinement::To(confine)) => context.host.sandbox_for(&confine),
        Some(Confinement::Off(_)) if context.is_own => Ok(Sandbox::default()),
        Some(Confinement::Off(_)) | None => context.host.default_sandbox(&[]),
    };
    let sandbox = sandbox.map_err(|why| format!("`confine`: the sandbox cannot be created: {why}"))?;
    let command = command.map(program).transpose()?;
    let command =
        command.map(|program| program.sandbox(sandbox).folder(context.folder).pinned_files(context.held.clone()));
    let webhook = webhook.map(|url| Post::new("hooks-notify", &url, &headers, timeout)).transpose();
    let webhook = webhook.map_err(|error| format!("`webhook`: {error}"))?;
    if !desktop && !bell && command.is_none() && webhook.is_none() {
        return Err("no channel is enabled; enable `desktop` or `bell`, or give a `command` or a `webhook`".to_owned());
    }
    if context.host.is_trial {
        return Ok(Vec::new());
    }
    let reports_approvals =
        events.iter().any(|event| event.parse().is_ok_and(|event: EventPattern| event.matches("approval:required")));
    let desktop = desktop.then(|| send::desktop(context.host)).transpose()?;
    let channels = Arc::new(NotificationChannels { desktop, bell, command, webhook, timeout });
    let notifier = Arc::new(Notifier {
        after,
        reports_approvals,
        scope: context.host.scope.clone(),
        sessions: context.host.module_state(context.who),
        unfinished: context.host.unfinished.clone(),
        background: Background::new(&context.host.unfinished, move |notification| {
            let channels = channels.clone();
            Box::pin(async move { channels.send(&notification).await })
        }),
    });
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    Ok(vec![
        ModuleHook::observer(&events, NotificationHook(notifier.clone())),
        // Last, so that it also waits for notifications about the end of the session.
        ModuleHook::observer(&SESSION_EVENTS, SessionObserver(notifier)).priority(100),
    ])
}

struct Notifier {
    after: Duration,
    /// `true` if `approval:required` is already reported, so that the same approval is not reported twice.
    reports_approvals: bool,
    scope: Arc<Scope>,
    sessions: Arc<SessionTree<()>>,
    unfinished: Arc<PendingTasks>,
    background: Background<Notification>,
}

/// Tracks sub-agents, and waits for pending notifications at the end of a session.
struct SessionObserver(Arc<Notifier>);

impl Hook for SessionObserver {
    async fn handle(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        let Notifier { sessions, unfinished, .. } = &*self.0;
        if event == "session:start" {
            sessions.begin(data);
            return Ok(HookResult::proceed());
        }
        if !sessions.is_child(data) {
            unfinished.settle().await;
        }
        sessions.end(data);
        Ok(HookResult::proceed())
    }
}

struct NotificationHook(Arc<Notifier>);

impl Hook for NotificationHook {
    async fn handle(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        if let Some(notification) = self.0.notification(event, data) {
            self.0.background.push(notification);
        }
        Ok(HookResult::proceed())
    }
}

impl Notifier {
    fn notification(&self, event: &str, data: &EventData) -> Option<Notification> {
        let text = |field: &str| data.text(field).unwrap_or_default();
        let (title, message) = match event {
            "prompt:complete" => {
                let took = Duration::from_millis(data["duration_ms"].as_u64().unwrap_or_default());
                // The response of a sub-agent is for the agent, not for the user.
                if took < self.after || self.sessions.is_child(data) {
                    return None;
                }
                (format!("Amplifier has answered after {} s", took.as_secs()), text("response"))
            }
            "approval:required" => ("Amplifier requests approval".to_owned(), text("prompt")),
            "user:notification" => {
                let kind = text("notification_type");
                if self.reports_approvals && kind == "approval_required" {
                    return None;
                }
                (format!("Amplifier: {}", kind.replace('_', " ")), text("message"))
            }
            other => {
                let said = ["message", "reason", "prompt", "tool_name"].into_iter().find_map(|field| data.text(field));
                (format!("Amplifier: {other}"), said.unwrap_or_default())
            }
        };
        let mut message = serde_json::Value::from(message);
        // Redacted before it is truncated: no rule recognizes half a secret.
        self.scope.redact(&mut message);
        let message = message.as_str().unwrap_or_default();
        Some(Notification {
            event: event.to_owned(),
            title: visible(&title, EscapeMode::Prose),
            message: visible(&truncate_chars(message, LONGEST), EscapeMode::Stream),
            session_id: data.session_id().map(str::to_owned),
            timestamp: data.timestamp().map(str::to_owned),
        })
    }
}
