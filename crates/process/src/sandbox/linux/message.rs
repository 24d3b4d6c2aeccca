//! What a waiting sandbox and the process that uses it say to each other, over a socket.
//!
//! The sandbox says [`READY`]. It gets a message that names a program, with the three pipes that the program is to have. Then it says how the program ended: [`EXITED`] or
//! [`KILLED`], and a number.

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::io::retry_on_intr;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};

use super::{ErrorContext, SandboxError};

/// The longest message. More need not fit into a socket.
const MAX_MESSAGE_BYTES: usize = 60 * 1024;

/// What a sandbox says when it has done all but start a program.
pub(super) const READY: u8 = b'+';

/// How a program ended.
pub(super) const EXITED: u8 = 0;
pub(super) const KILLED: u8 = 1;

/// Writes the message for a command: its length, and fields that end with a zero byte. None if it is too long, or has a zero byte in it.
pub(super) fn encode(command: &crate::Command) -> Option<Vec<u8>> {
    let folder = command.folder.clone().or_else(|| std::env::current_dir().ok())?;
    let mut fields: Vec<OsString> = vec![folder.into(), command.program.clone()];
    fields.push(command.arguments.len().to_string().into());
    fields.extend(command.arguments.iter().cloned());
    for (name, value) in command.all_variables() {
        fields.extend([name, value]);
    }
    let length = fields.iter().map(|field| field.len() + 1).sum::<usize>();
    let has_zero = fields.iter().any(|field| field.as_bytes().contains(&0));
    if length > MAX_MESSAGE_BYTES || has_zero {
        return None;
    }
    let mut message = u32::try_from(length).ok()?.to_le_bytes().to_vec();
    for field in fields {
        message.extend(field.into_vec());
        message.push(0);
    }
    Some(message)
}

/// Sends a message with the standard input, output and error of the program. It does not wait.
///
/// # Errors
/// If it does not go out as a whole.
pub(super) fn send(socket: impl AsFd, message: &[u8], pipes: [BorrowedFd<'_>; 3]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&pipes));
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    let sent = retry_on_intr(|| rustix::net::sendmsg(&socket, &[IoSlice::new(message)], &mut control, flags))?;
    if sent == message.len() { Ok(()) } else { Err(ErrorKind::WriteZero.into()) }
}

/// Waits for the message, makes its pipes the standard input, output and error of this process, goes to the folder that it names, and gives the program. None if
/// whoever made the sandbox is gone.
pub(super) fn receive(socket: impl AsFd) -> Result<Option<Command>, SandboxError> {
    let invalid = || SandboxError::new("the message with the command is incomplete");
    let Some((message, pipes)) = read(socket).context("the message with the command")? else { return Ok(None) };
    let [stdin, stdout, stderr] = <[OwnedFd; 3]>::try_from(pipes).map_err(|_| invalid())?;
    let redirected = rustix::stdio::dup2_stdin(&stdin)
        .and_then(|()| rustix::stdio::dup2_stdout(&stdout))
        .and_then(|()| rustix::stdio::dup2_stderr(&stderr));
    redirected.context("standard input and output")?;
    let mut fields = message.split(|byte| *byte == 0);
    let mut next = || fields.next().ok_or_else(invalid);
    let (folder, program, number) = (next()?, OsStr::from_bytes(next()?), next()?);
    let number: usize = std::str::from_utf8(number).ok().and_then(|number| number.parse().ok()).ok_or_else(invalid)?;
    let arguments = (0..number).map(|_| next().map(OsStr::from_bytes)).collect::<Result<Vec<_>, _>>()?;
    let mut variables = Vec::new();
    while let Some(name) = fields.next() {
        variables.push((OsStr::from_bytes(name), OsStr::from_bytes(fields.next().ok_or_else(invalid)?)));
    }
    let folder = Path::new(OsStr::from_bytes(folder));
    std::env::set_current_dir(folder).context(format!("the folder `{}`", folder.display()))?;
    let path = variables.iter().find(|(name, _)| *name == "PATH").map(|(_, value)| *value);
    // With its path, so that the standard library need not fork to look for it.
    let mut command = Command::new(find_program(program, path).unwrap_or_else(|| program.into()));
    command.arg0(program).args(arguments).env_clear().envs(variables);
    Ok(Some(command))
}

/// Where a program is found that is named without its path.
fn find_program(program: &OsStr, path: Option<&OsStr>) -> Option<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return None;
    }
    let is_executable =
        |file: &PathBuf| rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok() && file.is_file();
    std::env::split_paths(path?).map(|folder| folder.join(program)).find(is_executable)
}

/// Reads a message, without its length and the last zero byte, and the pipes that come with it; none at the end.
fn read(socket: impl AsFd) -> io::Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
    let (mut message, mut pipes) = (Vec::new(), Vec::new());
    let mut buffer = [0; 16 * 1024];
    loop {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut slices = [IoSliceMut::new(&mut buffer)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let read = retry_on_intr(|| rustix::net::recvmsg(&socket, &mut slices, &mut control, flags))?.bytes;
        for rights in control.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = rights {
                pipes.extend(received);
            }
        }
        message.extend_from_slice(&buffer[..read]);
        let expected = message.first_chunk().map(|length| u32::from_le_bytes(*length) as usize);
        match expected {
            Some(expected) if message.len() == expected + 4 => {
                message.pop();
                return Ok(Some((message.split_off(4), pipes)));
            }
            Some(expected) if expected > MAX_MESSAGE_BYTES || message.len() > expected + 4 => {
                return Err(ErrorKind::InvalidData.into());
            }
            _ if read == 0 && message.is_empty() => return Ok(None),
            _ if read == 0 => return Err(ErrorKind::UnexpectedEof.into()),
            _ => {}
        }
    }
}
