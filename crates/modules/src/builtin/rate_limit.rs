//! `hooks-rate-limit`: how often tools and models are used.

use std::sync::Arc;
use std::time::Duration;

use amplifier_core::{Approval, Clock, EventData, Hook, HookError, HookResult, Map, Rate, TokenBucket};
use globset::GlobSet;
use schemars::JsonSchema;
use serde::Deserialize;

use super::families::{Families, KINSHIP, Kinship};
use super::settings::{names, own, seconds, some};
use super::{GUARDS, Part, Place, options};

/// What is left for the hook after the longest wait.
const MARGIN: Duration = Duration::from_secs(5);

/// What can be said about it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Options {
    /// The limits; all that apply to a call count.
    limits: Vec<LimitOptions>,
    /// How long a person who is asked has, in seconds.
    timeout: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self { limits: vec![LimitOptions::default()], timeout: 300.0 }
    }
}

/// One limit, for a session together with its sub-agents.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct LimitOptions {
    /// The tools, by name; `*` stands for any text.
    tools: Option<Vec<String>>,
    /// Whether it is for calls to the model, instead of tools.
    model: bool,
    /// How many calls there may be in `per` seconds.
    calls: u32,
    /// The time for `calls`, in seconds.
    per: f64,
    /// How many of them may come at once, after a rest; as many as `calls` unless given.
    burst: Option<u32>,
    /// What happens to a call that is too much: `deny`, `ask` or `wait`.
    action: Action,
    /// How many seconds a call waits at most, with `wait`; if that is not enough, it is denied.
    wait: f64,
}

impl Default for LimitOptions {
    fn default() -> Self {
        Self { tools: None, model: false, calls: 60, per: 60.0, burst: None, action: Action::Wait, wait: 30.0 }
    }
}

/// What happens to a call that is too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Action {
    /// It does not run.
    Deny,
    /// A person decides.
    Ask,
    /// It runs later.
    Wait,
}

pub(super) fn make(config: &Map, place: &Place<'_>) -> Result<Vec<Part>, String> {
    let Options { limits, timeout } = options(config)?;
    some("limits", &limits)?;
    let limits = limits.into_iter().enumerate();
    let limits = limits.map(|(at, one)| Limit::new(one).map_err(|problem| format!("`limits[{at}]`: {problem}")));
    let limits = limits.collect::<Result<Vec<_>, _>>()?;
    let longest = limits.iter().map(|limit| limit.wait).max().unwrap_or_default();
    let mut events = Vec::new();
    if limits.iter().any(|limit| limit.tools.is_some()) {
        events.push("tool:pre");
    }
    if limits.iter().any(|limit| limit.tools.is_none()) {
        events.push("provider:request");
    }
    let buckets: Arc<Families<Vec<TokenBucket>>> = place.host.counted(place.who);
    let limiter = Limiter {
        limits,
        timeout: seconds("timeout", timeout)?,
        clock: place.host.scope.timer().clone(),
        buckets: Arc::clone(&buckets),
    };
    Ok(vec![
        Part::observer(&KINSHIP, Kinship(buckets)),
        // After the guards: what they deny does not count.
        Part::guard(&events, limiter).priority(GUARDS + 50).timeout(longest.saturating_add(MARGIN)),
    ])
}

/// A limit, checked.
struct Limit {
    /// None: calls to the model.
    tools: Option<GlobSet>,
    calls: u32,
    per: Duration,
    rate: Rate,
    action: Action,
    wait: Duration,
}

impl Limit {
    fn new(options: LimitOptions) -> Result<Self, String> {
        let LimitOptions { tools, model, calls, per, burst, action, wait } = options;
        if model && tools.is_some() {
            return Err("`model` does not go with `tools`: write two limits".to_owned());
        }
        if calls == 0 || burst == Some(0) {
            return Err("`calls` and `burst` are 1 or more; to forbid a tool, deny it with a rule".to_owned());
        }
        let tools = if model { None } else { Some(names("tools", &tools.unwrap_or_else(|| own(&["*"])))?) };
        let wait = if action == Action::Wait { seconds("wait", wait)? } else { Duration::ZERO };
        let per = seconds("per", per)?;
        Ok(Self { tools, calls, per, rate: Rate { burst: burst.unwrap_or(calls), every: per / calls }, action, wait })
    }

    fn is_for(&self, event: &str, data: &EventData) -> bool {
        match &self.tools {
            Some(tools) => event == "tool:pre" && tools.is_match(data.text("tool_name").unwrap_or_default()),
            None => event == "provider:request",
        }
    }

    fn told(&self, what: &str) -> String {
        let times = if self.calls == 1 { "once".to_owned() } else { format!("{} times", self.calls) };
        format!("{what} may be used {times} in {} s", self.per.as_secs_f64())
    }
}

struct Limiter {
    limits: Vec<Limit>,
    timeout: Duration,
    clock: Arc<dyn Clock>,
    buckets: Arc<Families<Vec<TokenBucket>>>,
}

/// What is to happen to a call, by all limits together.
enum Ruling<'a> {
    Deny(&'a Limit, Duration),
    /// First it waits, then the person is asked.
    Go {
        wait: Duration,
        ask: Option<&'a Limit>,
    },
}

impl Hook for Limiter {
    /// # Cancel safety
    /// A call that is given up while it waits keeps the room that was set aside for it.
    async fn handle(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        let what = match data.text("tool_name").filter(|_| event == "tool:pre") {
            Some(tool) => format!("`{tool}`"),
            None => "the model".to_owned(),
        };
        let ruling = self.buckets.with(data, |buckets| self.rule(event, data, buckets));
        match ruling {
            Ruling::Deny(limit, after) => {
                let after = after.as_secs_f64();
                Ok(HookResult::deny(format!("{}, and there is room again in {after:.1} s", limit.told(&what))))
            }
            Ruling::Go { wait, ask } => {
                if !wait.is_zero() {
                    self.clock.sleep(wait).await;
                }
                let Some(limit) = ask else { return Ok(HookResult::proceed()) };
                let question = Approval::new(format!("{}, and this is more. Allow it?", capital(&limit.told(&what))));
                Ok(HookResult::ask(question.options(["Allow once", "Allow always", "Deny"]).timeout(self.timeout)))
            }
        }
    }
}

impl Limiter {
    /// Takes the room for a call, unless it is denied.
    fn rule(&self, event: &str, data: &EventData, buckets: &mut Vec<TokenBucket>) -> Ruling<'_> {
        let now = self.clock.sleep_nanos();
        buckets.resize(self.limits.len(), TokenBucket::default());
        let (mut taken, mut longest, mut asks) = (Vec::new(), Duration::ZERO, None);
        for (limit, bucket) in self.limits.iter().zip(buckets.iter_mut()).filter(|(limit, _)| limit.is_for(event, data))
        {
            let after = bucket.wait(limit.rate, now);
            match limit.action {
                _ if after.is_zero() => taken.push((limit, bucket)),
                Action::Ask => asks = asks.or(Some(limit)),
                Action::Wait if after <= limit.wait => {
                    longest = longest.max(after);
                    taken.push((limit, bucket));
                }
                Action::Deny | Action::Wait => return Ruling::Deny(limit, after),
            }
        }
        taken.into_iter().for_each(|(limit, bucket)| bucket.reserve(limit.rate, now));
        Ruling::Go { wait: longest, ask: asks }
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
