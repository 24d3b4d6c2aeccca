//! A worker that runs.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use amplifier_core::{HookError, HookResult};
use amplifier_process::{OutputBuffer, Process, describe, read, write};
use tokio::io::AsyncReadExt;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};

use super::WorkerOptions;
use super::slot::WorkerRequest;
use crate::transport::{head, program, protocol};

/// How many answers a worker may owe.
const MAX_PENDING: usize = 1024;

/// How many lines of stderr are logged between two answers, and how long each may be.
const MAX_LOGGED_LINES: usize = 100;
const MAX_LOGGED_CHARS: usize = 1000;

/// How many bytes of stderr are kept for errors.
const KEPT_STDERR: usize = 8 * 1024;

/// How long a worker that closed a pipe may take to end.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// As good as for ever, for limits that no clock can hold.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// Why a worker is no longer served.
pub(super) enum ConnectionEnd {
    /// The hook was dropped.
    Dropped,
    /// The worker ended, or cannot be trusted any more.
    Failed(WorkerFailure),
}

/// What a worker did.
pub(super) enum WorkerFailure {
    /// It ended.
    Exited,
    /// It broke the protocol.
    ProtocolError(String),
}

/// What became of a worker that is no longer served.
pub(super) struct FailedWorker {
    pub(super) why: String,
    /// Whether it has answered anything.
    pub(super) has_answered: bool,
}

/// A worker that runs.
pub(super) struct Connection {
    process: Process,
    /// The line that is being written. The next request is taken when it is through, so that what waits is bounded.
    line: Vec<u8>,
    written: usize,
    answers: PendingAnswers,
    log: StderrLog,
    longest_silence: Duration,
}

impl Connection {
    pub(super) fn new(process: Process, options: &WorkerOptions) -> Self {
        Self {
            process,
            line: Vec::new(),
            written: 0,
            answers: PendingAnswers {
                pending: HashMap::new(),
                stdout: OutputBuffer::new(options.most_output),
                searched: 0,
                last_answer: Instant::now(),
                has_answered: false,
            },
            log: StderrLog {
                hook: options.name.clone(),
                stderr: OutputBuffer::new(KEPT_STDERR),
                line_start: 0,
                logged: 0,
            },
            longest_silence: options.timeout.saturating_mul(2).min(FOREVER),
        }
    }

    /// Passes requests and answers on.
    pub(super) async fn serve(
        &mut self,
        first: WorkerRequest,
        requests: &mut mpsc::Receiver<WorkerRequest>,
    ) -> ConnectionEnd {
        let protocol_error = |what| ConnectionEnd::Failed(WorkerFailure::ProtocolError(what));
        let mut ended = std::pin::pin!(self.process.wait());
        self.accept(first);
        loop {
            let Self { process: Process { stdin, stdout, stderr, .. }, line, written, answers, log, .. } = self;
            let is_writing = *written < line.len();
            tokio::select! {
                () = &mut ended => return ConnectionEnd::Failed(WorkerFailure::Exited),
                request = requests.recv(), if !is_writing => match request {
                    Some(request) => self.accept(request),
                    None => return ConnectionEnd::Dropped,
                },
                more = write(stdin, &line[*written..]), if is_writing => match more {
                    Ok(more) => *written += more,
                    Err(_) => return pipe_closed("stdin", ended).await,
                },
                read = stdout.read_buf(&mut answers.stdout.bytes), if answers.stdout.is_open => {
                    answers.stdout.record_read(read);
                    match answers.take() {
                        Err(what) => return protocol_error(what),
                        Ok(()) if !answers.stdout.is_open => return pipe_closed("stdout", ended).await,
                        Ok(()) => log.logged = 0,
                    }
                }
                read = read(stderr, &mut log.stderr.bytes), if log.stderr.is_open => {
                    log.stderr.record_read(read);
                    log.write();
                }
                () = sleep_until(answers.last_answer + self.longest_silence), if !answers.pending.is_empty() => {
                    return protocol_error(format!("owed an answer and said nothing for {:?}", self.longest_silence));
                }
            }
            if self.answers.pending.len() > MAX_PENDING {
                return protocol_error(format!("owed more than {MAX_PENDING} answers"));
            }
        }
    }

    /// Begins to write a request, unless nobody waits for its answer any more.
    fn accept(&mut self, request: WorkerRequest) {
        if !request.reply.is_closed() {
            self.answers.expect(request.id, request.reply);
            (self.line, self.written) = (request.line, 0);
        }
    }

    /// Ends the worker and fails what it still owes.
    pub(super) async fn fail(self, failure: WorkerFailure) -> FailedWorker {
        let Self { process, mut answers, mut log, .. } = self;
        let ended = process.end().await;
        if let Some(pipe) = &ended.stderr {
            log.stderr.drain(pipe);
        }
        log.write();
        // What it answered before it ended counts; after a line that is no answer there is none.
        answers.stdout.drain(&ended.stdout);
        let _ = answers.take();
        let what = match failure {
            WorkerFailure::ProtocolError(what) => format!("the worker {what}"),
            WorkerFailure::Exited => format!("the worker {}", describe(ended.status)),
        };
        let why = program::with_stderr(what, &log.stderr.bytes);
        for (_, reply) in answers.pending {
            let _ = reply.send(Err(HookError::Failed(why.clone())));
        }
        FailedWorker { why, has_answered: answers.has_answered }
    }
}

/// A pipe is closed: by the worker's end, most likely, which is the better thing to tell then.
async fn pipe_closed(pipe: &str, ended: impl Future<Output = ()>) -> ConnectionEnd {
    ConnectionEnd::Failed(match timeout(EXIT_TIMEOUT, ended).await {
        Ok(()) => WorkerFailure::Exited,
        Err(_) => WorkerFailure::ProtocolError(format!("closed its {pipe}")),
    })
}

/// The answers that a worker owes.
///
/// INVARIANT: a request stays in `owed` until it is answered, also when nobody waits for it any more: this is how a late answer is told from
/// one to a question that nobody asked.
struct PendingAnswers {
    pending: HashMap<u64, oneshot::Sender<Result<HookResult, HookError>>>,
    stdout: OutputBuffer,
    /// How much of stdout has no line break: a long line that comes in small pieces is not searched again for each.
    searched: usize,
    /// When the worker last answered, or began to owe something.
    last_answer: Instant,
    /// Whether there was any.
    has_answered: bool,
}

impl PendingAnswers {
    fn expect(&mut self, id: u64, reply: oneshot::Sender<Result<HookResult, HookError>>) {
        if self.pending.is_empty() {
            self.last_answer = Instant::now();
        }
        self.pending.insert(id, reply);
    }

    /// Takes the answers out of what was written.
    fn take(&mut self) -> Result<(), String> {
        let mut begin = 0;
        while let Some(length) = self.stdout.bytes[self.searched..].iter().position(|byte| *byte == b'\n') {
            let end = self.searched + length;
            let answer = protocol::read_line(&self.stdout.bytes[begin..end])
                .map_err(|error| format!("wrote a line to stdout that is no answer: {error}"))?;
            let Entry::Occupied(pending) = self.pending.entry(answer.id) else {
                return Err(format!("answered request {}, which it does not have", answer.id));
            };
            // If nobody waits any more, the answer is late, and nobody gets it.
            let _ = pending.remove().send(answer.result);
            (self.last_answer, self.has_answered) = (Instant::now(), true);
            (begin, self.searched) = (end + 1, end + 1);
        }
        self.stdout.bytes.drain(..begin);
        self.searched = self.stdout.bytes.len();
        if self.stdout.exceeds_limit() {
            return Err("wrote a line to stdout that is longer than it may be".to_owned());
        }
        Ok(())
    }
}

/// What a worker writes to stderr.
struct StderrLog {
    hook: String,
    stderr: OutputBuffer,
    /// Where the line begins that is not logged yet.
    line_start: usize,
    logged: usize,
}

impl StderrLog {
    /// Logs the lines that are complete, and keeps the last of what was written.
    fn write(&mut self) {
        while let Some(length) = self.stderr.bytes[self.line_start..].iter().position(|byte| *byte == b'\n') {
            let line = &self.stderr.bytes[self.line_start..self.line_start + length];
            if self.logged < MAX_LOGGED_LINES {
                tracing::info!(hook = self.hook, "{}", head(line, MAX_LOGGED_CHARS));
            }
            if self.logged == MAX_LOGGED_LINES {
                tracing::info!(hook = self.hook, "more is not logged until the worker answers");
            }
            self.logged = self.logged.saturating_add(1);
            self.line_start += length + 1;
        }
        let surplus = self.stderr.bytes.len().saturating_sub(KEPT_STDERR);
        self.stderr.bytes.drain(..surplus);
        self.line_start = self.line_start.saturating_sub(surplus);
    }
}
