//! The list of open approval requests.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use amplifier_core::{ActionPreview, ApprovalDecision, session_id};
use amplifier_link::OpenApproval;
use jiff::{SignedDuration, Timestamp};

use super::decision::describe_basis;
use super::line::{BOLD, CYAN, DIM, GREEN, PLAIN, RED, StyledLine, YELLOW};
use super::prompt::format_remaining;
use super::screen::Screen;
use crate::session::excerpt;

/// The largest width of the agent, of the folder and of the tool.
const COLUMN: usize = 24;
/// The time within which the agent of a new session becomes known.
const AGENT_LIMIT: SignedDuration = SignedDuration::from_secs(1);

/// One open request in a list.
#[derive(Clone, Debug)]
pub(crate) struct ListedRequest {
    pub(crate) request: Arc<OpenApproval>,
    /// The agent program of the session with its version, once it is known.
    pub(crate) agent: Option<String>,
    /// The time that is left for an answer.
    pub(crate) left: Duration,
}

impl ListedRequest {
    /// Returns `true` if the agent is about to become known.
    pub(crate) fn is_early(&self, now: Timestamp) -> bool {
        self.agent.is_none() && now.duration_since(self.request.created_at) < AGENT_LIMIT
    }

    fn agent(&self) -> &str {
        self.agent.as_deref().unwrap_or("agent")
    }

    /// Returns the cells of the row: agent, folder, tool, and its operation.
    fn cells(&self) -> [StyledLine; 4] {
        let OpenApproval { workspace, request, .. } = &*self.request;
        let folder =
            Path::new(workspace).file_name().map_or_else(|| workspace.clone(), |name| name.to_string_lossy().into());
        let ActionPreview { title, target, body, .. } = &request.preview;
        let operation = target.as_ref().or(body.first().map(|row| &row.text)).unwrap_or(&request.prompt);
        [
            StyledLine::new().exact(CYAN, self.agent()),
            StyledLine::new().exact(PLAIN, folder),
            StyledLine::new().exact(BOLD, title),
            StyledLine::new().exact(PLAIN, excerpt(operation)),
        ]
    }
}

impl Screen {
    /// Shows the open requests and marks one. Details of its session follow.
    pub(crate) fn open_requests(&self, requests: &[ListedRequest], marked: usize) {
        let mut rows = vec![StyledLine::new()];
        if requests.len() > 1 {
            rows.push(StyledLine::new().exact(BOLD, format!("{} open approval requests", requests.len())));
            rows.extend(table(requests, marked));
            rows.push(StyledLine::new());
        }
        if let Some(listed) = requests.get(marked) {
            let request = &listed.request;
            let session = session_id::short(&request.session);
            let line = StyledLine::new().exact(CYAN, listed.agent()).exact(DIM, "  session ").exact(PLAIN, session);
            let line = line.exact(DIM, "  in ").exact(PLAIN, &request.workspace);
            rows.push(match &request.machine {
                Some(machine) => line.exact(DIM, "  on ").exact(PLAIN, machine),
                None => line,
            });
        }
        self.print_rows(rows);
    }

    /// Shows the decision on a request that was not on the screen.
    pub(crate) fn decided_elsewhere(&self, prompt: &str, decision: &ApprovalDecision) {
        let (style, word) = if decision.granted { (GREEN, "✓ allowed ") } else { (RED, "✗ denied ") };
        let line = StyledLine::new().exact(style, word).exact(DIM, describe_basis(decision));
        self.print_rows(vec![line.exact(DIM, ": ").exact(DIM, excerpt(prompt))]);
    }
}

fn table(requests: &[ListedRequest], marked: usize) -> Vec<StyledLine> {
    let cells: Vec<[StyledLine; 4]> = requests.iter().map(ListedRequest::cells).collect();
    let width = |column: usize| cells.iter().map(|row| row[column].width()).max().unwrap_or_default().min(COLUMN);
    let widths = [width(0), width(1), width(2)];
    let row = |(number, (row, request)): (usize, (&[StyledLine; 4], &ListedRequest))| {
        let mark = if number == marked { "▸ " } else { "  " };
        let left = StyledLine::new().exact(YELLOW, mark).exact(DIM, format!("{:>6}  ", format_remaining(request.left)));
        let line = row[..3].iter().zip(widths).fold(left, |line, (cell, width)| {
            let cell = cell.truncate(width);
            let space = " ".repeat(width.saturating_sub(cell.width()) + 2);
            line.then(&cell).exact(PLAIN, space)
        });
        line.then(&row[3])
    };
    cells.iter().zip(requests).enumerate().map(row).collect()
}
