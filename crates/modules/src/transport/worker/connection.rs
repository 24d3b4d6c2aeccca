//! The connection to a running worker.

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

const MAX_PENDING: usize = 1024;

/// Maximum number of logged stderr lines between two answers, and their length in characters.
const MAX_LOGGED_LINES: usize = 100;
const MAX_LOGGED_CHARS: usize = 1000;

const KEPT_STDERR: usize = 8 * 1024;

/// Time for a worker to exit after it closed a pipe.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// Upper bound for time limits that a clock cannot represent.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// The reason for which a connection ended.
pub(super) enum ConnectionEnd {
    Dropped,
    Failed(WorkerFailure),
}

pub(super) enum WorkerFailure {
    Exited,
    ProtocolError(String),
}

pub(super) struct FailedWorker {
    pub(super) why: String,
    pub(super) has_answered: bool,
}

pub(super) struct WorkerConnection {
    process: Process,
    /// The line being written. The next request is taken after that, which limits the queue.
    line: Vec<u8>,
    written: usize,
    answers: PendingAnswers,
    log: StderrLog,
    longest_silence: Duration,
}

impl WorkerConnection {
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

    /// Forwards requests and answers until the connection ends.
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
                    return protocol_error(format!("sent nothing for {:?} while an answer was pending", self.longest_silence));
                }
            }
            if self.answers.pending.len() > MAX_PENDING {
                return protocol_error(format!("had more than {MAX_PENDING} pending answers"));
            }
        }
    }

    /// Starts to write a request, unless its caller is gone.
    fn accept(&mut self, request: WorkerRequest) {
        if !request.reply.is_closed() {
            self.answers.expect(request.id, request.reply);
            (self.line, self.written) = (request.line, 0);
        }
    }

    pub(super) async fn fail(self, failure: WorkerFailure) -> FailedWorker {
        let Self { process, mut answers, mut log, .. } = self;
        let ended = process.end().await;
        if let Some(pipe) = &ended.stderr {
            log.stderr.drain(pipe);
        }
        log.write();
        // Answers from before the exit count, up to the first invalid line.
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

/// Handles a closed pipe. The worker has most likely exited, which is the better message then.
async fn pipe_closed(pipe: &str, ended: impl Future<Output = ()>) -> ConnectionEnd {
    ConnectionEnd::Failed(match timeout(EXIT_TIMEOUT, ended).await {
        Ok(()) => WorkerFailure::Exited,
        Err(_) => WorkerFailure::ProtocolError(format!("closed its {pipe}")),
    })
}

/// The pending answers of a worker.
///
/// INVARIANT: a request stays in `pending` until it is answered, even if its caller is gone: this distinguishes a late answer from one to an unknown
/// request.
struct PendingAnswers {
    pending: HashMap<u64, oneshot::Sender<Result<HookResult, HookError>>>,
    stdout: OutputBuffer,
    /// Number of stdout bytes without a line break, so that a long line in small pieces is searched once.
    searched: usize,
    /// Time of the last answer, or of the first pending request.
    last_answer: Instant,
    has_answered: bool,
}

impl PendingAnswers {
    fn expect(&mut self, id: u64, reply: oneshot::Sender<Result<HookResult, HookError>>) {
        if self.pending.is_empty() {
            self.last_answer = Instant::now();
        }
        self.pending.insert(id, reply);
    }

    /// Reads complete answers from stdout.
    fn take(&mut self) -> Result<(), String> {
        let mut begin = 0;
        while let Some(length) = self.stdout.bytes[self.searched..].iter().position(|byte| *byte == b'\n') {
            let end = self.searched + length;
            let answer = protocol::read_line(&self.stdout.bytes[begin..end])
                .map_err(|error| format!("wrote an invalid answer to stdout: {error}"))?;
            let Entry::Occupied(pending) = self.pending.entry(answer.id) else {
                return Err(format!("answered the unknown request {}", answer.id));
            };
            // A late answer has no receiver.
            let _ = pending.remove().send(answer.result);
            (self.last_answer, self.has_answered) = (Instant::now(), true);
            (begin, self.searched) = (end + 1, end + 1);
        }
        self.stdout.bytes.drain(..begin);
        self.searched = self.stdout.bytes.len();
        if self.stdout.exceeds_limit() {
            return Err("wrote a line to stdout over the size limit".to_owned());
        }
        Ok(())
    }
}

struct StderrLog {
    hook: String,
    stderr: OutputBuffer,
    /// Start of the first line that is not logged yet.
    line_start: usize,
    logged: usize,
}

impl StderrLog {
    /// Logs complete lines, and keeps the end of stderr for errors.
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
