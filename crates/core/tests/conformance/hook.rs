//! A hook that answers as a case says.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use amplifier_core::{EventData, Hook, HookError, HookRegistry, HookResult, InvalidEventName, Registration};
use serde_json::Value;

use crate::conformance::case;

/// One call of a hook.
pub(super) struct Call {
    pub hook: String,
    pub told: String,
    pub data: EventData,
}

/// The hooks of a case, and how they were called.
#[derive(Clone)]
pub(super) struct Hooks {
    pub registry: HookRegistry,
    pub calls: Arc<Mutex<Vec<Call>>>,
    registrations: Arc<Mutex<HashMap<String, Registration>>>,
}

impl Hooks {
    pub(super) fn new(registry: HookRegistry) -> Self {
        Self { registry, calls: Arc::default(), registrations: Arc::default() }
    }

    pub(super) fn register(&self, hook: &case::Hook) -> Result<(), InvalidEventName> {
        let registration = self
            .registry
            .hook(hook.on.as_str())
            .named(hook.name.as_str())
            .priority(hook.priority)
            .role(hook.role)
            .on_error(hook.on_error)
            .timeout(Duration::from_secs_f64(hook.timeout))
            .handler(ScriptedAnswer { hook: hook.clone(), hooks: self.clone(), called: Mutex::default() })?;
        self.registrations.lock().unwrap().insert(hook.name.clone(), registration);
        Ok(())
    }

    pub(super) fn unregister(&self, name: &str) {
        self.registrations.lock().unwrap()[name].unregister();
    }
}

struct ScriptedAnswer {
    hook: case::Hook,
    hooks: Hooks,
    called: Mutex<usize>,
}

impl ScriptedAnswer {
    fn next_answer(&self) -> Value {
        let mut called = self.called.lock().unwrap();
        *called += 1;
        let answers = &self.hook.answers;
        answers.get(*called - 1).or(answers.last()).unwrap_or(&self.hook.answer).clone()
    }

    async fn act(&self, mut answer: Value, data: &EventData) -> Result<HookResult, HookError> {
        while let Some(seconds) = answer.get("$after") {
            tokio::time::sleep(Duration::from_secs_f64(seconds.as_f64().unwrap())).await;
            answer = answer["answer"].take();
        }
        let Some((key, value)) =
            answer.as_object().and_then(|fields| fields.iter().find(|(key, _)| key.starts_with('$')))
        else {
            return HookResult::from_json(answer);
        };
        match key.as_str() {
            "$raw" => HookResult::from_json(value.clone()),
            "$set" | "$mutate" => {
                let mut view = data.clone();
                for (field, value) in value.as_object().unwrap() {
                    view.insert(field.as_str(), value.clone());
                }
                Ok(if key == "$set" { HookResult::modify(view) } else { HookResult::proceed() })
            }
            "$raise" => Err(HookError::failed(value.as_str().unwrap())),
            "$panic" => panic!("{}", value.as_str().unwrap()),
            "$hang" => std::future::pending().await,
            "$emit" => {
                let data: EventData = serde_json::from_value(answer.get("data").cloned().unwrap_or_default())?;
                self.hooks.registry.emit(value.as_str().unwrap(), data).await?;
                Ok(HookResult::proceed())
            }
            "$register" => {
                self.hooks.register(&serde_json::from_value(value.clone())?)?;
                Ok(HookResult::proceed())
            }
            "$unregister" => {
                self.hooks.unregister(value.as_str().unwrap());
                Ok(HookResult::proceed())
            }
            other => panic!("unknown answer {other}"),
        }
    }
}

impl Hook for ScriptedAnswer {
    async fn handle(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        self.hooks.calls.lock().unwrap().push(Call {
            hook: self.hook.name.clone(),
            told: event.to_owned(),
            data: data.clone(),
        });
        self.act(self.next_answer(), data).await
    }
}
