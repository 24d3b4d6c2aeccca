//! Sessions connected to a server, which receives approval requests and sends commands.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use amplifier_agent::{Cancel, Session, SessionBuilder};
use amplifier_audit::Log;
use amplifier_core::{ApprovalAnswer, ApprovalError, ApprovalSystem, OpenRequest};
use amplifier_host::{
    ApprovalFanOut, ApprovalMode, Home, LinkOptions, LinkTarget, Notice, Notices, RemoteControl, ServerLink,
};
use amplifier_link::{Command, LinkClient, ReloadResult, ReloadStatus};
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};

use crate::ports::{PyApprovals, within};
use crate::threads;

/// The time that the session's loop has to reload the bundle. The server waits slightly longer.
const RELOAD: Duration = Duration::from_secs(4);

/// The server of a session that has not started.
pub(crate) struct ServerOptions {
    pub(crate) home: Home,
    pub(crate) workspace: PathBuf,
    pub(crate) log: Log,
    /// Runs commands on the session's loop, with `end()` and `reload(reply)`. Does not keep the session alive.
    pub(crate) commands: Arc<Py<PyAny>>,
    /// The maximum time for an answer, regardless of the hook.
    pub(crate) longest: Option<Duration>,
    pub(crate) mode: ApprovalMode,
}

impl ServerOptions {
    /// Connects to the server, and sends approval requests both there and to the session's own approval system. Needs a tokio runtime.
    pub(crate) fn connect(
        self,
        builder: SessionBuilder,
        own: Option<PyApprovals>,
        cancel: &Cancel,
    ) -> (SessionBuilder, ServerConnection) {
        let Self { home, workspace, log, commands, longest, mode } = self;
        let reloading = commands.clone();
        let notices = Notices::new(|Notice { text, .. }| tracing::warn!("{text}"));
        let options = LinkOptions { home, workspace, log, notices, reload: Some(Arc::new(move || reload(&reloading))) };
        let link = ServerLink::open(options, &LinkTarget::Socket { takes_prompts: false }, own.is_some());
        let client = link.client.clone();
        client.set_mode(mode.as_str());
        let server = ServerApprovals { client: client.clone(), longest };
        let builder = match own {
            Some(own) => builder.approvals(ApprovalFanOut::new(own, server)),
            None => builder.approvals(server),
        };
        let control = link.control(cancel, move |command| {
            if command == Command::End {
                end(&commands);
            }
        });
        (builder, ServerConnection { client, control })
    }
}

/// A session that is connected to its server, or waits for one.
pub(crate) struct ServerConnection {
    client: LinkClient,
    control: RemoteControl,
}

impl ServerConnection {
    pub(crate) fn started(&self, session: &Session) {
        self.control.started(session);
        self.client.set_idle(true);
    }

    /// Returns the client, which says whether the session is idle.
    pub(crate) fn client(&self) -> LinkClient {
        self.client.clone()
    }

    /// Closes the link after the session.
    pub(crate) async fn close(self, reason: &str) {
        self.control.close(reason).await;
    }
}

struct ServerApprovals {
    client: LinkClient,
    longest: Option<Duration>,
}

impl ApprovalSystem for ServerApprovals {
    async fn request_approval(&self, request: Arc<OpenRequest>) -> Result<ApprovalAnswer, ApprovalError> {
        let timeout = request.timeout;
        within(self.longest, timeout, self.client.request_approval(request)).await.ok_or(ApprovalError::TimedOut)?
    }
}

fn end(commands: &Arc<Py<PyAny>>) {
    let commands = commands.clone();
    threads::with_python(move |py| {
        if let Err(error) = commands.call_method0(py, "end") {
            error.write_unraisable(py, None);
        }
    });
}

/// Reloads the bundle on the loop of the session, and waits for the result.
fn reload(commands: &Arc<Py<PyAny>>) -> ReloadResult {
    let (tell, told) = channel();
    let commands = commands.clone();
    threads::with_python(move |py| {
        let reply = move |arguments: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| -> PyResult<()> {
            let (status, message): (String, Option<String>) = arguments.extract()?;
            let result = match status.as_str() {
                "changed" => ReloadStatus::Changed,
                "unchanged" => ReloadStatus::Unchanged,
                "no_answer" => ReloadStatus::NoAnswer,
                _ => ReloadStatus::Refused,
            };
            // The caller may have stopped waiting; the server then reported a timeout.
            drop(tell.send(ReloadResult { result, message }));
            Ok(())
        };
        let asked = PyCFunction::new_closure(py, None, None, reply)
            .and_then(|reply| commands.call_method1(py, "reload", (reply,)));
        if let Err(error) = asked {
            error.write_unraisable(py, None);
        }
    });
    told.recv_timeout(RELOAD).unwrap_or_else(|_| ReloadResult {
        result: ReloadStatus::NoAnswer,
        message: Some(
            "the event loop of the session did not answer in time; the bundle is reloaded when it runs again"
                .to_owned(),
        ),
    })
}
