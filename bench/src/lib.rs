//! What the benchmarks share: payloads, hooks, and the floors they are compared with.

use std::future::Future;
use std::pin::Pin;

use amplifier_core::{EventData, Hook, HookError, HookRegistry, HookResult, Map, Outcome, TOOL_PRE};
use futures::FutureExt;
use serde_json::{Value, json};

pub type Answer = Result<HookResult, HookError>;

/// A hook that has nothing to say: what is measured is what stands around it.
pub struct Quiet;

impl Hook for Quiet {
    async fn handle(&self, _event: &str, _data: &EventData) -> Answer {
        Ok(HookResult::proceed())
    }
}

/// A hook that changes one field.
struct Counting(usize);

impl Hook for Counting {
    async fn handle(&self, _event: &str, _data: &EventData) -> Answer {
        Ok(HookResult::set("turn", self.0))
    }
}

/// The floor: the same hook, called through a boxed future or directly, over a plain map.
pub trait Plain: Send + Sync {
    fn boxed<'a>(&'a self, event: &'a str, data: &'a Map) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;
    fn direct(&self, event: &str, data: &Map) -> Answer;
}

impl Plain for Quiet {
    fn boxed<'a>(&'a self, _event: &'a str, _data: &'a Map) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
        Box::pin(async { Ok(HookResult::proceed()) })
    }

    fn direct(&self, _event: &str, _data: &Map) -> Answer {
        Ok(HookResult::proceed())
    }
}

pub fn plain_hooks(count: usize) -> Vec<Box<dyn Plain>> {
    (0..count).map(|_| Box::new(Quiet) as Box<dyn Plain>).collect()
}

/// A loop of boxed async calls: what a hand-written hook layer does at least.
pub async fn boxed_loop(hooks: &[Box<dyn Plain>], data: Map) -> Map {
    for hook in hooks {
        if hook.boxed("tool:pre", &data).await.is_err() {
            break;
        }
    }
    data
}

/// A loop of direct calls: no async, no boxes.
pub fn direct_loop(hooks: &[Box<dyn Plain>], data: Map) -> Map {
    for hook in hooks {
        if hook.direct("tool:pre", &data).is_err() {
            break;
        }
    }
    data
}

pub fn registry(count: usize) -> HookRegistry {
    let hooks = HookRegistry::new();
    for _ in 0..count {
        hooks.hook(TOOL_PRE).named("quiet").handler(Quiet);
    }
    hooks
}

pub fn registry_of_closures(count: usize) -> HookRegistry {
    let hooks = HookRegistry::new();
    for _ in 0..count {
        hooks.on(TOOL_PRE, |_| async { HookResult::proceed() });
    }
    hooks
}

pub fn registry_of_modifiers(count: usize) -> HookRegistry {
    let hooks = HookRegistry::new();
    for turn in 0..count {
        hooks.hook(TOOL_PRE).named("counting").handler(Counting(turn));
    }
    hooks
}

/// The payloads, by the size of what is in them.
#[derive(Clone, Copy, PartialEq)]
pub enum Payload {
    FiveKeys,
    Text(usize),
    Tree(usize),
}

impl Payload {
    pub const ALL: [Self; 4] = [Self::FiveKeys, Self::Text(1_000), Self::Text(100_000), Self::Tree(100_000)];
    pub const HOOKS: [usize; 5] = [0, 1, 3, 10, 100];

    pub fn name(self) -> String {
        match self {
            Self::FiveKeys => "5 keys".to_owned(),
            Self::Text(bytes) => format!("{} KB text", bytes / 1_000),
            Self::Tree(bytes) => format!("{} KB tree", bytes / 1_000),
        }
    }

    /// Builds it anew, as a caller does before each emission.
    pub fn build(self) -> Map {
        let mut map = Map::new();
        map.insert("tool_name".into(), "Write".into());
        map.insert("tool_call_id".into(), "call-1".into());
        map.insert("turn".into(), 3.into());
        map.insert("ok".into(), true.into());
        let input = match self {
            Self::FiveKeys => Value::Object(Map::new()),
            Self::Text(bytes) => json!({ "content": "x".repeat(bytes) }),
            Self::Tree(bytes) => {
                json!({ "rows": (0..bytes / 20).map(|row| json!([row, "a cell"])).collect::<Vec<_>>() })
            }
        };
        map.insert("tool_input".into(), input);
        map
    }
}

/// Runs a future that never waits.
pub fn at_once<T>(future: impl Future<Output = T>) -> T {
    match future.now_or_never() {
        Some(value) => value,
        None => unreachable!("the benchmark's hooks answer at once"),
    }
}

pub fn emit(hooks: &HookRegistry, data: Map) -> Outcome {
    at_once(hooks.emit(TOOL_PRE, data))
}
