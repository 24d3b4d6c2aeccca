//! The daemon: connects to it, and starts it if there is none.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::arguments::DaemonPlace;
use crate::user_folder::user_folder;

/// The socket in the folder.
const SOCKET: &str = "socket";
/// The file that says how the daemon is started: `program=…`, and variables of its environment. `amplifier guard install` writes it.
const START: &str = "start";
/// The file in which a daemon that cannot start leaves the reason.
const ERROR: &str = "error";
/// The most bytes of these files.
const MAX_FILE: u64 = 64 << 10;
/// The time for a start.
const START_LIMIT: Duration = Duration::from_secs(15);
/// The search path of a daemon without an installation.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
const RETRY_INTERVAL: Duration = Duration::from_millis(1);

/// Connects to the daemon, and starts it first if needed.
pub(crate) fn connect(place: &DaemonPlace, deadline: Instant) -> Result<UnixStream, String> {
    let (folder, command) = match place {
        DaemonPlace::Folder(folder) => (folder.clone(), None),
        DaemonPlace::CallingUser(program) => {
            let (folder, home) = user_folder()?;
            (folder, Some(first_start(program, &home)))
        }
    };
    let socket = folder.join(SOCKET);
    // The first daemon of a user creates the folder.
    if command.is_none() || folder.symlink_metadata().is_ok() {
        check_private(&folder)?;
        if let Ok(stream) = UnixStream::connect(&socket) {
            return Ok(stream);
        }
    }
    let limit = deadline.min(Instant::now() + START_LIMIT);
    let mut child = start(&folder, command)?;
    loop {
        match UnixStream::connect(&socket) {
            Ok(stream) => return check_private(&folder).map(|()| stream),
            Err(error) if Instant::now() >= limit => return Err(format!("the daemon does not answer: {error}")),
            Err(_) => {}
        }
        // Another call may have started a daemon; then this one exits with success.
        if let Ok(Some(status)) = child.try_wait()
            && !status.success()
        {
            let reason = read(&folder.join(ERROR)).unwrap_or_else(|_| status.to_string());
            return Err(format!("the daemon cannot start: {}", reason.trim()));
        }
        thread::sleep(RETRY_INTERVAL);
    }
}

/// Another user could put a socket into a folder that is not private, and allow everything.
fn check_private(folder: &Path) -> Result<(), String> {
    let found = fs::symlink_metadata(folder)
        .map_err(|error| format!("the folder `{}` cannot be used: {error}", folder.display()))?;
    let mode = found.permissions().mode();
    match found.is_dir() && mode & 0o077 == 0 {
        true => Ok(()),
        false => Err(format!("the folder `{}` is not private", folder.display())),
    }
}

/// Starts the daemon with the environment of its installation. That of the agent does not count: a repository can set variables of it.
///
/// The daemon begins a session of its own. No output of this program is inherited, because a client waits until all its copies are closed.
fn start(folder: &Path, first_start: Option<Command>) -> Result<Child, String> {
    // The reason of an earlier failure would be misleading. In a folder that cannot be written, a daemon could not even leave one.
    match fs::remove_file(folder.join(ERROR)) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(format!("the daemon cannot start, because `{}` cannot be written: {error}", folder.display()));
        }
        _ => {}
    }
    let file = folder.join(START);
    let mut command = match (read(&file), first_start) {
        (Ok(content), _) => {
            configured_start(&content).ok_or_else(|| format!("`{}` names no program", file.display()))?
        }
        (Err(error), Some(command)) if error.kind() == ErrorKind::NotFound => command,
        (Err(error), _) => {
            return Err(format!("`{}` cannot be read: {error}; run `amplifier guard install` again", file.display()));
        }
    };
    command.args(["guard", "daemon", "--folder"]).arg(folder).current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let program = command.get_program().to_owned();
    command.spawn().map_err(|error| format!("the daemon `{}` cannot be started: {error}", program.display()))
}

/// Returns the program of an installation, with its environment.
fn configured_start(content: &str) -> Option<Command> {
    let lines = || content.lines().filter_map(|line| line.split_once('='));
    let (_, program) = lines().find(|(name, _)| *name == "program")?;
    let mut command = Command::new(program);
    command.env_clear().envs(lines().filter(|(name, _)| *name != "program"));
    Some(command)
}

/// Returns the program for a user without an own installation.
fn first_start(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("HOME", home).env("PATH", USUAL_PATH);
    command
}

fn read(file: &Path) -> io::Result<String> {
    let metadata = fs::symlink_metadata(file)?;
    if !metadata.is_file() || metadata.len() > MAX_FILE {
        return Err(io::Error::new(ErrorKind::InvalidData, "it is not a small file"));
    }
    fs::read_to_string(file)
}
