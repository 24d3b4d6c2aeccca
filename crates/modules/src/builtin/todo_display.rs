//! `hooks-todo-display`: keeps the list of what is to be done before the eyes of the model and of the person.

use std::sync::Arc;

use amplifier_core::{EventData, Hook, HookError, HookResult, Injection, Map};
use schemars::JsonSchema;
use serde::Deserialize;

use super::sessions::Sessions;
use super::settings::exact;
use super::todo::{self, Item};
use super::{Part, Place, options};

/// What can be said about it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Options {
    /// The tools that keep such a list.
    tools: Vec<String>,
    /// Whether the person sees the list when it has changed.
    show: bool,
    /// So many items are shown at most, open ones first.
    most: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { tools: vec!["Todo".to_owned()], show: true, most: 30 }
    }
}

pub(super) fn make(config: &Map, place: &Place<'_>) -> Result<Vec<Part>, String> {
    let options: Options = options(config)?;
    if options.most == 0 {
        return Err("`most` is 0: give it 1 or more".to_owned());
    }
    exact("tools", &options.tools)?;
    let display = Arc::new(Display { options, lists: place.host.counted(place.who) });
    Ok(vec![
        Part::observer(&["tool:post", "session:end"], Listener(display.clone())),
        Part::gate(&["provider:request"], Teller(display)),
    ])
}

struct Display {
    options: Options,
    lists: Arc<Sessions<Vec<Item>>>,
}

/// Hears what becomes of the list.
struct Listener(Arc<Display>);

impl Hook for Listener {
    async fn handle(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        let Display { options, lists } = &*self.0;
        if event == "session:end" {
            lists.forget(data);
            return Ok(HookResult::proceed());
        }
        let Some(list) = todo::updated(data, &options.tools) else { return Ok(HookResult::proceed()) };
        let shown = if list.is_empty() { "the list is empty".to_owned() } else { todo::readable(&list, options.most) };
        let is_news = lists.of(data, |known| std::mem::replace(known, list.clone()) != list);
        let answer = HookResult::proceed();
        Ok(if is_news && options.show { answer.info(format!("To do:\n{shown}")) } else { answer })
    }
}

/// Tells the model, for as long as there is something to do.
struct Teller(Arc<Display>);

impl Hook for Teller {
    async fn handle(&self, _event: &str, data: &EventData) -> Result<HookResult, HookError> {
        let Display { options, lists } = &*self.0;
        let shown = lists.of(data, |list| {
            let is_open = list.iter().any(Item::is_open);
            is_open.then(|| todo::readable(list, options.most))
        });
        let Some(list) = shown else { return Ok(HookResult::proceed()) };
        let text = format!("Your to-do list now (do not mention this reminder):\n{list}");
        Ok(HookResult::inject(Injection::new(text).ephemeral()))
    }
}
