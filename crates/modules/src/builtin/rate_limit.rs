//! `hooks-rate-limit`: how often tools and models are used.

use std::sync::Arc;
use std::time::Duration;

use amplifier_core::{Approval, Clock, EventData, Hook, HookError, HookResult, Map, Rate, TokenBucket};
use globset::GlobSet;
use schemars::JsonSchema;
use serde::Deserialize;

use super::session_tree::{SESSION_EVENTS, SessionTree, SessionTreeObserver};
use super::settings::{name_globs, require_some, seconds, strings};
use super::{GUARDS, ModuleContext, ModuleHook, options};

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
    action: LimitAction,
    /// How many seconds a call waits at most, with `wait`; if that is not enough, it is denied.
    wait: f64,
}

impl Default for LimitOptions {
    fn default() -> Self {
        Self { tools: None, model: false, calls: 60, per: 60.0, burst: None, action: LimitAction::Wait, wait: 30.0 }
    }
}

/// What happens to a call that is too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum LimitAction {
    /// It does not run.
    Deny,
    /// A person decides.
    Ask,
    /// It runs later.
    Wait,
}

pub(super) fn make(config: &Map, context: &ModuleContext<'_>) -> Result<Vec<ModuleHook>, String> {
    let Options { limits, timeout } = options(config)?;
    require_some("limits", &limits)?;
    let limits = limits.into_iter().enumerate();
    let limits = limits.map(|(at, one)| RateLimit::new(one).map_err(|problem| format!("`limits[{at}]`: {problem}")));
    let limits = limits.collect::<Result<Vec<_>, _>>()?;
    let longest = limits.iter().map(|limit| limit.wait).max().unwrap_or_default();
    let mut events = Vec::new();
    if limits.iter().any(|limit| limit.tools.is_some()) {
        events.push("tool:pre");
    }
    if limits.iter().any(|limit| limit.tools.is_none()) {
        events.push("provider:request");
    }
    let buckets: Arc<SessionTree<Vec<TokenBucket>>> = context.host.counted(context.who);
    let limiter = Limiter {
        limits,
        timeout: seconds("timeout", timeout)?,
        clock: context.host.scope.timer().clone(),
        buckets: Arc::clone(&buckets),
    };
    Ok(vec![
        ModuleHook::observer(&SESSION_EVENTS, SessionTreeObserver(buckets)),
        // After the guards: what they deny does not count.
        ModuleHook::guard(&events, limiter).priority(GUARDS + 50).timeout(longest.saturating_add(MARGIN)),
    ])
}

/// A limit, checked.
struct RateLimit {
    /// None: calls to the model.
    tools: Option<GlobSet>,
    calls: u32,
    per: Duration,
    rate: Rate,
    action: LimitAction,
    wait: Duration,
}

impl RateLimit {
    fn new(options: LimitOptions) -> Result<Self, String> {
        let LimitOptions { tools, model, calls, per, burst, action, wait } = options;
        if model && tools.is_some() {
            return Err("`model` does not go with `tools`: write two limits".to_owned());
        }
        if calls == 0 || burst == Some(0) {
            return Err("`calls` and `burst` are 1 or more; to forbid a tool, deny it with a rule".to_owned());
        }
        let tools = if model { None } else { Some(name_globs("tools", &tools.unwrap_or_else(|| strings(&["*"])))?) };
        let wait = if action == LimitAction::Wait { seconds("wait", wait)? } else { Duration::ZERO };
        let per = seconds("per", per)?;
        Ok(Self { tools, calls, per, rate: Rate { burst: burst.unwrap_or(calls), every: per / calls }, action, wait })
    }

    fn is_for(&self, event: &str, data: &EventData) -> bool {
        match &self.tools {
            Some(tools) => event == "tool:pre" && tools.is_match(data.text("tool_name").unwrap_or_default()),
            None => event == "provider:request",
        }
    }

    fn describe(&self, what: &str) -> String {
        let times = if self.calls == 1 { "once".to_owned() } else { format!("{} times", self.calls) };
        format!("{what} may be used {times} in {} s", self.per.as_secs_f64())
    }
}

struct Limiter {
    limits: Vec<RateLimit>,
    timeout: Duration,
    clock: Arc<dyn Clock>,
    buckets: Arc<SessionTree<Vec<TokenBucket>>>,
}

/// What is to happen to a call, by all limits together.
enum LimitDecision<'a> {
    Deny(&'a RateLimit, Duration),
    /// First it waits, then the person is asked.
    Go {
        wait: Duration,
        ask: Option<&'a RateLimit>,
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
        let decision = self.buckets.with(data, |buckets| self.decide(event, data, buckets));
        match decision {
            LimitDecision::Deny(limit, after) => {
                let after = after.as_secs_f64();
                Ok(HookResult::deny(format!("{}, and there is room again in {after:.1} s", limit.describe(&what))))
            }
            LimitDecision::Go { wait, ask } => {
                if !wait.is_zero() {
                    self.clock.sleep(wait).await;
                }
                let Some(limit) = ask else { return Ok(HookResult::proceed()) };
                let approval =
                    Approval::new(format!("{}, and this is more. Allow it?", capitalize(&limit.describe(&what))));
                Ok(HookResult::ask(approval.options(["Allow once", "Allow always", "Deny"]).timeout(self.timeout)))
            }
        }
    }
}

impl Limiter {
    /// Takes the room for a call, unless it is denied.
    fn decide(&self, event: &str, data: &EventData, buckets: &mut Vec<TokenBucket>) -> LimitDecision<'_> {
        let now = self.clock.sleep_nanos();
        buckets.resize(self.limits.len(), TokenBucket::default());
        let (mut taken, mut longest, mut asks) = (Vec::new(), Duration::ZERO, None);
        for (limit, bucket) in self.limits.iter().zip(buckets.iter_mut()).filter(|(limit, _)| limit.is_for(event, data))
        {
            let after = bucket.wait(limit.rate, now);
            match limit.action {
                _ if after.is_zero() => taken.push((limit, bucket)),
                LimitAction::Ask => asks = asks.or(Some(limit)),
                LimitAction::Wait if after <= limit.wait => {
                    longest = longest.max(after);
                    taken.push((limit, bucket));
                }
                LimitAction::Deny | LimitAction::Wait => return LimitDecision::Deny(limit, after),
            }
        }
        taken.into_iter().for_each(|(limit, bucket)| bucket.reserve(limit.rate, now));
        LimitDecision::Go { wait: longest, ask: asks }
    }
}

fn capitalize(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
