//! `hooks-metrics`: counts and durations of events, for Prometheus and OpenTelemetry.

mod count;
mod export;
mod otlp;
mod prometheus;
mod serve;
mod store;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, SystemTime};

use amplifier_core::{EventData, Hook, HookError, HookResult, Map};
use schemars::JsonSchema;
use serde::Deserialize;

use self::count::Counter;
use self::export::Exporter;
use self::serve::{MetricsServer, ServerState};
use super::shared::session_tree::SessionTree;
use super::shared::settings::{lock, seconds};
use super::{ModuleContext, ModuleHook, options};
use crate::transport::Post;

/// Time limit for the last export at the end of a session.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);

/// Options of `hooks-metrics`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Options {
    /// Path of a file for the textfile collector of Prometheus, replaced atomically; relative to the folder of the bundle.
    file: Option<PathBuf>,
    /// Address and port for scrapes by Prometheus, such as `127.0.0.1:9464`.
    listen: Option<SocketAddr>,
    /// URL of an OpenTelemetry collector (OTLP over HTTP with JSON), such as `http://127.0.0.1:4318/v1/metrics`.
    otlp: Option<String>,
    /// Headers for `otlp`; `${NAME}` in a value stands for an environment variable.
    headers: BTreeMap<String, String>,
    /// Time between two exports to `file` and `otlp`, in seconds.
    interval: f64,
    /// Time limit for one export to `otlp`, in seconds.
    timeout: f64,
    /// The `service.name` attribute of the metrics.
    service: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            file: None,
            listen: None,
            otlp: None,
            headers: BTreeMap::new(),
            interval: 15.0,
            timeout: 4.0,
            service: "amplifier".to_owned(),
        }
    }
}

pub(super) fn make(config: &Map, context: &ModuleContext<'_>) -> Result<Vec<ModuleHook>, String> {
    let Options { file, listen, otlp, headers, interval, timeout, service } = options(config)?;
    if file.is_none() && listen.is_none() && otlp.is_none() {
        return Err("the metrics have no destination; give `file`, `listen` or `otlp`".to_owned());
    }
    if file.as_ref().is_some_and(|file| file.file_name().is_none()) {
        return Err("invalid `file`; give the path of a file".to_owned());
    }
    if !headers.is_empty() && otlp.is_none() {
        return Err("`headers` needs `otlp`".to_owned());
    }
    let timeout = seconds("timeout", timeout)?;
    let otlp = otlp.map(|url| Post::new("hooks-metrics", &url, &headers, timeout)).transpose();
    let clock = context.host.scope.timer().clone();
    let state: Arc<MetricsState> = context.host.module_state(context.who);
    let exporter = Exporter {
        store: state.counter.store.clone(),
        file: file.map(|file| context.folder.join(file)),
        otlp: otlp.map_err(|error| format!("`otlp`: {error}"))?,
        service,
        interval: seconds("interval", interval)?,
        began: *state.began.get_or_init(|| clock.wall()),
        clock,
    };
    let server = Mutex::new(ServerState::new(listen, &lock(&state.server)));
    if context.host.is_trial {
        return Ok(Vec::new());
    }
    let metrics = Metrics { state, exporter: Arc::new(exporter), scheduled: Mutex::default(), server };
    Ok(vec![ModuleHook::observer(&["*"], metrics).priority(100)])
}

/// State that survives a reload: counters must not restart at zero, and a port cannot be bound twice.
#[derive(Default)]
struct MetricsState {
    counter: Counter,
    began: OnceLock<SystemTime>,
    // Std locks, here and below: nothing awaits while one is held.
    server: Mutex<Weak<MetricsServer>>,
    sessions: SessionTree<()>,
}

struct Metrics {
    state: Arc<MetricsState>,
    exporter: Arc<Exporter>,
    scheduled: Mutex<Option<tokio::task::JoinHandle<()>>>,
    server: Mutex<ServerState>,
}

impl Hook for Metrics {
    async fn handle(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        let MetricsState { counter, sessions, .. } = &*self.state;
        counter.count(event, data, self.exporter.clock.nanos());
        match event {
            "session:start" => sessions.begin(data),
            "session:end" => {
                let is_child = sessions.is_child(data);
                sessions.end(data);
                if !is_child {
                    return Ok(self.export_now().await);
                }
            }
            _ => {}
        }
        self.schedule();
        let started = lock(&self.server).start(&counter.store, &self.state.server);
        Ok(match started {
            Some(Ok(address)) => HookResult::proceed().info(format!("the metrics are at http://{address}/metrics")),
            Some(Err(error)) => HookResult::proceed().warning(error),
            None => HookResult::proceed(),
        })
    }
}

impl Metrics {
    /// Schedules an export after the interval, unless one is scheduled.
    fn schedule(&self) {
        let mut scheduled = lock(&self.scheduled);
        // An export ends with its runtime.
        let is_due = scheduled.as_ref().is_none_or(tokio::task::JoinHandle::is_finished);
        if let Ok(runtime) = tokio::runtime::Handle::try_current()
            && is_due
            && self.exporter.has_destination()
        {
            let exporter = self.exporter.clone();
            *scheduled = Some(runtime.spawn(async move { exporter.export_after_interval().await }));
        }
    }

    async fn export_now(&self) -> HookResult {
        let earlier = lock(&self.scheduled).take();
        if let Some(earlier) = earlier {
            // This export includes everything that the scheduled one would have.
            earlier.abort();
        }
        let exported = tokio::time::timeout(EXPORT_TIMEOUT, self.exporter.export()).await;
        match exported.unwrap_or_else(|_| Err(format!("time limit of {EXPORT_TIMEOUT:?} exceeded"))) {
            Ok(()) => HookResult::proceed(),
            Err(error) => HookResult::proceed().warning(format!("the metrics could not be exported: {error}")),
        }
    }
}
