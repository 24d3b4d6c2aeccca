//! `hooks-todo-reminder`: reminds the model of its to-do list.

use std::sync::Arc;

use amplifier_core::text::counted;
use amplifier_core::{EventData, Hook, HookError, HookResult, Injection, Map};
use schemars::JsonSchema;
use serde::Deserialize;

use super::shared::per_session::PerSession;
use super::shared::settings::require_exact_names;
use super::shared::todo_list::{self, TodoItem};
use super::{ModuleContext, ModuleHook, options};

/// Options of `hooks-todo-reminder`. A zero disables a reminder.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Options {
    /// The tools that manage the to-do list.
    tools: Vec<String>,
    /// Number of calls to the model without an update before a reminder of open items.
    after_calls: u64,
    /// Number of calls of other tools without an update before a reminder of open items.
    after_tools: u64,
    /// Number of tool calls in a turn without a list before the suggestion to create one.
    without_list: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { tools: vec!["Todo".to_owned()], after_calls: 10, after_tools: 15, without_list: 8 }
    }
}

pub(super) fn make(config: &Map, context: &ModuleContext<'_>) -> Result<Vec<ModuleHook>, String> {
    let options: Options = options(config)?;
    if [options.after_calls, options.after_tools, options.without_list] == [0; 3] {
        return Err("all reminders are disabled; set `after_calls`, `after_tools` or `without_list` above 0".to_owned());
    }
    require_exact_names("tools", &options.tools)?;
    let reminder = Arc::new(Reminder { options, work: context.host.module_state(context.who) });
    Ok(vec![
        ModuleHook::observer(&["execution:start", "tool:post", "session:end"], ActivityObserver(reminder.clone())),
        ModuleHook::gate(&["provider:request"], ReminderInjector(reminder)),
    ])
}

struct Reminder {
    options: Options,
    work: Arc<PerSession<Activity>>,
}

/// Activity since the last update of the list, or the last reminder.
#[derive(Default)]
struct Activity {
    open: usize,
    calls: u64,
    tools: u64,
    /// Tool calls of this turn, while no list exists.
    tools_without_list: u64,
    has_list: bool,
}

impl Activity {
    fn update(&mut self, list: &[TodoItem]) {
        let open = list.iter().filter(|item| item.is_open()).count();
        *self = Self { open, has_list: !list.is_empty(), ..Self::default() };
    }

    /// Returns the reminder for the next call to the model, if one is due.
    fn reminder(&mut self, options: &Options) -> Option<String> {
        let is_reached = |number: u64, limit: u64| limit > 0 && number >= limit;
        let (calls, tools) = (self.calls, self.tools);
        self.calls += 1;
        if self.open > 0 && (is_reached(calls, options.after_calls) || is_reached(tools, options.after_tools)) {
            (self.calls, self.tools) = (1, 0);
            let since = format!("{} and {}", counted(calls, "answer"), counted(tools, "tool call"));
            let open = counted(self.open as u64, "open item");
            return Some(format!(
                "Your to-do list has {open} and was not updated for {since}. Mark what is done as completed, have the item you work on \
                 in progress, and take out what is no longer needed. Do not mention this reminder."
            ));
        }
        if !self.has_list && is_reached(self.tools_without_list, options.without_list) {
            let uses = counted(self.tools_without_list, "tool call");
            self.tools_without_list = 0;
            return Some(format!(
                "This task took {uses} so far, and there is no to-do list. If several steps are left, write them down in one. Do not \
                 mention this reminder."
            ));
        }
        None
    }
}

struct ActivityObserver(Arc<Reminder>);

impl Hook for ActivityObserver {
    async fn handle(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        let Reminder { options, work } = &*self.0;
        match event {
            "session:end" => work.forget(data),
            "execution:start" => work.with(data, |work| work.tools_without_list = 0),
            _ => work.with(data, |work| match todo_list::updated(data, &options.tools) {
                Some(list) => work.update(&list),
                None => {
                    work.tools += 1;
                    work.tools_without_list += 1;
                }
            }),
        }
        Ok(HookResult::proceed())
    }
}

struct ReminderInjector(Arc<Reminder>);

impl Hook for ReminderInjector {
    async fn handle(&self, _event: &str, data: &EventData) -> Result<HookResult, HookError> {
        let Reminder { options, work } = &*self.0;
        let reminder = work.with(data, |work| work.reminder(options));
        Ok(reminder.map_or_else(HookResult::proceed, |text| HookResult::inject(Injection::new(text).ephemeral())))
    }
}
