//! Checkpoints on the stdin of a program.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use amplifier_core::text::visible_line;

use super::{Anchor, AnchorError, Limit, TIME_LIMIT, ended};

/// Runs a program for every checkpoint, with the note on its stdin.
///
/// Exit code 0 says that the note is kept. The program runs without a shell, with the environment and the folder of this process, in a
/// process group of its own. **The group ends with the program**: what it leaves in the background is killed, so that nothing piles up.
///
/// ```
/// use amplifier_audit::{Anchor, CommandAnchor};
/// use std::time::Duration;
///
/// CommandAnchor::new("grep", ["-q", "note"]).time_limit(Duration::from_secs(60)).keep("a note\n")?;
/// # Ok::<(), amplifier_audit::AnchorError>(())
/// ```
pub struct CommandAnchor {
    program: OsString,
    args: Vec<OsString>,
    time_limit: Duration,
    /// Was killed and is still there. No other is started meanwhile, or they would pile up.
    unended: Option<Child>,
}

impl CommandAnchor {
    /// An anchor that runs this program with these arguments.
    pub fn new(program: impl Into<OsString>, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        Self { program: program.into(), args, time_limit: TIME_LIMIT, unended: None }
    }

    /// How long the program may run (10 s unless you say otherwise); then it is killed, with all that it started.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    fn start(&self, group: &ProcessGroup) -> io::Result<Child> {
        Command::new(&self.program)
            .args(&self.args)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(group.id()?)
            .spawn()
    }
}

impl Anchor for CommandAnchor {
    fn keep(&mut self, note: &str) -> Result<(), AnchorError> {
        let program = || self.program.display().to_string();
        let cannot_run = |source| AnchorError::Run { program: program(), source };
        let limit = Limit::starting_now(self.time_limit);
        if let Some(child) = &mut self.unended
            && matches!(child.try_wait(), Ok(None))
        {
            return Err(AnchorError::Unended { program: program() });
        }
        self.unended = None;

        let group = ProcessGroup::start().map_err(|source| AnchorError::Run { program: SHELL.into(), source })?;
        let mut child = self.start(&group).map_err(cannot_run)?;
        let run = run(&mut child, note, &limit);
        drop(group);
        if !matches!(run, Ok((Some(_), _))) && !kill(&mut child) {
            self.unended = Some(child);
        }
        match run {
            Ok((Some(status), _)) if status.success() => Ok(()),
            Ok((Some(status), stderr)) => Err(AnchorError::Exit { program: program(), status, stderr: stderr.text() }),
            Ok((None, stderr)) => Err(AnchorError::TimedOut { limit: self.time_limit, stderr: stderr.text() }),
            Err(error) => Err(cannot_run(error)),
        }
    }

    fn name(&self) -> String {
        format!("command {}", self.program.display())
    }
}

// By hand, because arguments may be secrets.
impl fmt::Debug for CommandAnchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandAnchor").field("program", &self.program).finish_non_exhaustive()
    }
}

/// Hands over the note and waits for the end; `None` is a time-out.
fn run(child: &mut Child, note: &str, limit: &Limit) -> io::Result<(Option<ExitStatus>, Stderr)> {
    let stderr = Stderr::gather(child.stderr.take())?;
    if let Some(mut stdin) = child.stdin.take() {
        let note = ended(note);
        // A thread, because a program that does not read must not hold us up. Nor need it read: its exit code is what counts.
        thread::Builder::new().name("audit-stdin".into()).spawn(move || stdin.write_all(note.as_bytes()))?;
    }
    Ok((wait(child, limit)?, stderr))
}

/// Waits for a process to end; `None` if the limit comes first. std has no such wait, so this looks again and again, ever less often.
fn wait(child: &mut Child, limit: &Limit) -> io::Result<Option<ExitStatus>> {
    let mut pause = Duration::from_millis(1);
    loop {
        let left = limit.left();
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if left.is_zero() {
            return Ok(None);
        }
        thread::sleep(pause.min(left));
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Makes sure that a process is killed and reaped; `false` if the system does not manage that soon.
fn kill(child: &mut Child) -> bool {
    // Whether this worked, the wait tells.
    let _ = child.kill();
    ends_soon(child)
}

fn ends_soon(child: &mut Child) -> bool {
    matches!(wait(child, &Limit::starting_now(Duration::from_secs(1))), Ok(Some(_)))
}

const SHELL: &str = "/bin/sh";

/// A process group that is killed as a whole when this is dropped.
///
/// It is led by a tiny shell that waits for the end of its stdin and then kills its own group. This way
/// - there is no `unsafe`, and no `kill` program is needed;
/// - nothing else can be hit: the system does not reuse the number of a group whose leader is not reaped;
/// - the group also ends when this process is killed.
struct ProcessGroup {
    leader: Child,
}

impl ProcessGroup {
    fn start() -> io::Result<Self> {
        let leader = Command::new(SHELL)
            .args(["-c", "read line; kill -s KILL 0"])
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        Ok(Self { leader })
    }

    fn id(&self) -> io::Result<i32> {
        i32::try_from(self.leader.id()).map_err(io::Error::other)
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        drop(self.leader.stdin.take());
        if !ends_soon(&mut self.leader) {
            // Only a program that stops its whole group, the shell included, leads here.
            kill(&mut self.leader);
        }
    }
}

/// The beginning of what a program writes to stderr. The rest is read too, and forgotten, because a full pipe would stop the program.
struct Stderr(Receiver<Vec<u8>>);

impl Stderr {
    const MOST: usize = 4096;

    fn gather(pipe: Option<impl Read + Send + 'static>) -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel();
        let read = move || {
            let Some(mut pipe) = pipe else { return };
            let mut buffer = [0; Self::MOST];
            let mut room = Self::MOST;
            loop {
                match pipe.read(&mut buffer) {
                    Ok(0) => return,
                    Ok(length) if room > 0 => {
                        let taken = length.min(room);
                        room -= taken;
                        // Nobody listens after a success.
                        let _ = sender.send(buffer[..taken].to_vec());
                    }
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => return,
                }
            }
        };
        thread::Builder::new().name("audit-stderr".into()).spawn(read)?;
        Ok(Self(receiver))
    }

    /// What there is, once the program has ended.
    fn text(&self) -> String {
        // The end comes at once, unless a process left the group and took the pipe along. That one is not waited for.
        let limit = Limit::starting_now(Duration::from_millis(500));
        let mut text = Vec::new();
        while let Ok(more) = self.0.recv_timeout(limit.left()) {
            text.extend(more);
        }
        visible_line(&String::from_utf8_lossy(&text))
    }
}
