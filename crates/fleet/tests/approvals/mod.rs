//! Approval requests of machines, answered by consoles.

mod bridge;
mod failures;
mod forgery;
mod races;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use amplifier_audit::SigningKey;
use amplifier_core::{
    Approval, ApprovalAnswer, ApprovalDecisionEntry, AuditEntry, Coordinator, DecisionBasis, FailureEntry,
    HookRegistry, HookResult, LateAnswerEntry, MemoryAudit, TOOL_PRE, Verdict, data,
};
use amplifier_fleet::{
    Connection, Console, ConsoleKeys, FleetApprovals, FleetApprovalsOptions, FleetName, Replicas, create_streams,
};
use amplifier_link::OpenApproval;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Longer than any operation here, also on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(90);

pub(crate) const MIB: i64 = 1 << 20;

pub(crate) fn name(name: &str) -> FleetName {
    name.parse().unwrap()
}

/// The key of a console, by its name.
pub(crate) fn key(console: &str) -> SigningKey {
    let mut seed = [7; 32];
    seed[..console.len()].copy_from_slice(console.as_bytes());
    SigningKey::from_seed(seed)
}

/// The keys of consoles, as a policy names them.
pub(crate) fn keys(consoles: &[&str]) -> watch::Receiver<ConsoleKeys> {
    let keys = consoles.iter().map(|console| (name(console), key(console).public()));
    watch::channel(keys.collect()).1
}

/// Creates the streams, as soon as the servers have a leader.
pub(crate) async fn streams(connection: &Connection, replicas: Replicas) {
    let mut created = create_streams(connection, replicas, 64 * MIB).await;
    for _ in 0..60 {
        if created.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        created = create_streams(connection, replicas, 64 * MIB).await;
    }
    created.unwrap();
}

/// A session of a machine. Its hook requests an approval before every tool.
pub(crate) struct Session {
    pub(crate) coordinator: Coordinator,
    pub(crate) audit: MemoryAudit,
    pub(crate) approvals: FleetApprovals,
}

impl Session {
    /// A session of the machine that the connection names. The consoles `c0` to `c7` can answer.
    pub(crate) async fn new(connection: &Connection, timeout: Duration) -> Self {
        Self::of_run(connection, "run", timeout).await
    }

    pub(crate) async fn of_run(connection: &Connection, run: &str, timeout: Duration) -> Self {
        let options = FleetApprovalsOptions {
            run: name(run),
            name: Some("deploy".to_owned()),
            workspace: PathBuf::from("/work"),
            consoles: keys(&["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"]),
        };
        let approvals = FleetApprovals::start(connection.clone(), options).await.unwrap();
        let hooks = HookRegistry::new();
        hooks.hook(TOOL_PRE).named("guard").run(move |event| {
            let prompt = format!("Run `{}`?", event.text_at("/tool_input/command").unwrap_or_default());
            HookResult::ask(Approval::new(prompt).options(["Allow once", "Deny"]).timeout(timeout))
        });
        let audit = MemoryAudit::new();
        let coordinator =
            Coordinator::builder(hooks).session_id("s").approvals(approvals.clone()).audit(audit.clone()).build();
        Self { coordinator, audit, approvals }
    }

    /// A tool that waits for an answer.
    pub(crate) fn run(&self, command: &str) -> JoinHandle<Verdict> {
        let session = self.coordinator.clone();
        let data = data! { "tool_name": "Bash", "tool_input": { "command": command } };
        tokio::spawn(async move { session.emit(TOOL_PRE, data).await })
    }

    fn entries<T>(&self, select: impl Fn(AuditEntry) -> Option<T>) -> Vec<T> {
        self.audit.records().into_iter().filter_map(|record| select(record.entry)).collect()
    }

    /// The number, basis and actor of each decision, as recorded.
    pub(crate) fn decisions(&self) -> Vec<(u64, DecisionBasis, Option<String>)> {
        self.entries(|entry| match entry {
            AuditEntry::ApprovalDecision(ApprovalDecisionEntry { id, decision, .. }) => {
                Some((id.unwrap(), decision.basis, decision.by.map(|by| by.name)))
            }
            _ => None,
        })
    }

    /// The actors of late answers, as recorded.
    pub(crate) fn late(&self) -> Vec<String> {
        self.entries(|entry| match entry {
            AuditEntry::LateAnswer(LateAnswerEntry { by, .. }) => Some(by.unwrap().name),
            _ => None,
        })
    }

    /// The recorded failures.
    pub(crate) fn failures(&self) -> Vec<String> {
        self.entries(|entry| match entry {
            AuditEntry::Failure(FailureEntry { error, .. }) => Some(error),
            _ => None,
        })
    }
}

/// A console with the key of its name.
pub(crate) fn console(connection: Connection) -> Console {
    let key = key(connection.name());
    Console::start(connection, key)
}

pub(crate) fn answer(label: &str, by: &str) -> ApprovalAnswer {
    ApprovalAnswer::by(label, by, "console")
}

/// Waits until the condition holds.
pub(crate) async fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let looking = async {
        loop {
            match look() {
                Some(found) => return found,
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    tokio::time::timeout(LIMIT, looking).await.expect("it never happens")
}

/// Waits for an open request.
pub(crate) async fn asked(console: &Console) -> Arc<OpenApproval> {
    until(|| console.open_requests().into_iter().next()).await
}

pub(crate) async fn done(operation: JoinHandle<Verdict>) -> Verdict {
    tokio::time::timeout(LIMIT, operation).await.expect("it does not end").unwrap()
}
