//! `hooks-rate-limit`: limits for calls of tools and models.

use std::sync::Arc;
use std::time::Duration;

use amplifier_core::{Approval, Clock, EventData, Hook, HookError, HookResult, Map, Rate, TokenBucket};
use globset::GlobSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shared::session_tree::{SESSION_EVENTS, SessionTree, SessionTreeObserver};
use super::shared::settings::{name_globs, require_some, seconds, strings};
use super::{GUARDS, ModuleContext, ModuleHook, options};

/// Time for the hook in addition to the longest wait.
const MARGIN: Duration = Duration::from_secs(5);

/// Options of `hooks-rate-limit`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Options {
    /// The limits; all that match a call apply.
    limits: Vec<LimitOptions>,
    /// Time limit for an approval, in seconds.
    timeout: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self { limits: vec![LimitOptions::default()], timeout: 300.0 }
    }
}

/// One limit for a session, including its sub-agents.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct LimitOptions {
    /// Names of tools; `*` matches any text. Default: all tools.
    tools: Option<Vec<String>>,
    /// Apply the limit to calls to the model instead of tools.
    model: bool,
    /// Number of calls allowed in `per` seconds.
    calls: u32,
    /// Period for `calls`, in seconds.
    per: f64,
    /// Number of calls allowed at once after a pause. Default: `calls`.
    burst: Option<u32>,
    /// Action for a call beyond the limit: `deny`, `ask` or `wait`.
    action: LimitAction,
    /// Longest delay of a call with `wait`, in seconds; a call that would wait longer is denied.
    wait: f64,
}

impl Default for LimitOptions {
    fn default() -> Self {
        Self { tools: None, model: false, calls: 60, per: 60.0, burst: None, action: LimitAction::Wait, wait: 30.0 }
    }
}

/// Action for a call beyond the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum LimitAction {
    /// Deny the call.
    Deny,
    /// Request approval.
    Ask,
    /// Delay the call.
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
    let buckets: Arc<SessionTree<Vec<TokenBucket>>> = context.host.module_state(context.who);
    let limiter = Limiter {
        limits,
        timeout: seconds("timeout", timeout)?,
        clock: context.host.scope.timer().clone(),
        buckets: Arc::clone(&buckets),
    };
    Ok(vec![
        ModuleHook::observer(&SESSION_EVENTS, SessionTreeObserver(buckets)),
        // After the guards: a call that they deny does not count.
        ModuleHook::guard(&events, limiter).priority(GUARDS + 50).timeout(longest.saturating_add(MARGIN)),
    ])
}

struct RateLimit {
    /// The tools; `None` for calls to the model.
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
            return Err("`model` and `tools` exclude each other; write two limits".to_owned());
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

enum LimitDecision<'a> {
    Deny(&'a RateLimit, Duration),
    /// Wait, then request approval if required.
    Go {
        wait: Duration,
        ask: Option<&'a RateLimit>,
    },
}

impl Hook for Limiter {
    /// # Cancel safety
    /// A call that is cancelled while it waits still uses up its reserved capacity.
    async fn handle(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        let what = match data.text("tool_name").filter(|_| event == "tool:pre") {
            Some(tool) => format!("`{tool}`"),
            None => "the model".to_owned(),
        };
        let decision = self.buckets.with(data, |buckets| self.decide(event, data, buckets));
        match decision {
            LimitDecision::Deny(limit, after) => {
                let after = after.as_secs_f64();
                Ok(HookResult::deny(format!("{}; the next call is possible in {after:.1} s", limit.describe(&what))))
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
    /// Reserves capacity for a call, unless the call is denied.
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
