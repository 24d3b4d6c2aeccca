//! `hooks-todo-display`: shows the to-do list to the model and to the user.

use std::sync::Arc;

use amplifier_core::{EventData, Hook, HookError, HookResult, Injection, Map};
use schemars::JsonSchema;
use serde::Deserialize;

use super::shared::per_session::PerSession;
use super::shared::settings::require_exact_names;
use super::shared::todo_list::{self, TodoItem};
use super::{ModuleContext, ModuleHook, options};

/// Options of `hooks-todo-display`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Options {
    /// The tools that manage the to-do list.
    tools: Vec<String>,
    /// Show the user the list after a change.
    show: bool,
    /// Maximum number of items to show, open ones first.
    most: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { tools: vec!["Todo".to_owned()], show: true, most: 30 }
    }
}

pub(super) fn make(config: &Map, context: &ModuleContext<'_>) -> Result<Vec<ModuleHook>, String> {
    let options: Options = options(config)?;
    if options.most == 0 {
        return Err("`most` is 0: give it 1 or more".to_owned());
    }
    require_exact_names("tools", &options.tools)?;
    let display = Arc::new(Display { options, lists: context.host.module_state(context.who) });
    Ok(vec![
        ModuleHook::observer(&["tool:post", "session:end"], ListObserver(display.clone())),
        ModuleHook::gate(&["provider:request"], ListInjector(display)),
    ])
}

struct Display {
    options: Options,
    lists: Arc<PerSession<Vec<TodoItem>>>,
}

struct ListObserver(Arc<Display>);

impl Hook for ListObserver {
    async fn handle(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        let Display { options, lists } = &*self.0;
        if event == "session:end" {
            lists.forget(data);
            return Ok(HookResult::proceed());
        }
        let Some(list) = todo_list::updated(data, &options.tools) else { return Ok(HookResult::proceed()) };
        let shown =
            if list.is_empty() { "the list is empty".to_owned() } else { todo_list::readable(&list, options.most) };
        let is_news = lists.with(data, |known| std::mem::replace(known, list.clone()) != list);
        let answer = HookResult::proceed();
        Ok(if is_news && options.show { answer.info(format!("To do:\n{shown}")) } else { answer })
    }
}

/// Shows the model the list while it has open items.
struct ListInjector(Arc<Display>);

impl Hook for ListInjector {
    async fn handle(&self, _event: &str, data: &EventData) -> Result<HookResult, HookError> {
        let Display { options, lists } = &*self.0;
        let shown = lists.with(data, |list| {
            let is_open = list.iter().any(TodoItem::is_open);
            is_open.then(|| todo_list::readable(list, options.most))
        });
        let Some(list) = shown else { return Ok(HookResult::proceed()) };
        let text = format!("Your to-do list now (do not mention this reminder):\n{list}");
        Ok(HookResult::inject(Injection::new(text).ephemeral()))
    }
}
