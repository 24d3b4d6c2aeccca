//! The protocol between a prepared sandbox and the process that uses it, over a socket.
//!
//! The sandbox sends [`READY`], receives a message with a program and its three pipes, and finally sends the exit: [`EXITED`] or [`KILLED`], and a
//! number.

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

/// The longest message, which is sure to fit into a socket.
const MAX_MESSAGE_BYTES: usize = 60 * 1024;

/// The sandbox is ready to start a program.
pub(super) const READY: u8 = b'+';

/// The kind of exit.
pub(super) const EXITED: u8 = 0;
pub(super) const KILLED: u8 = 1;

/// Encodes a command: the length, and zero-terminated fields. None if the command is too long or contains a zero byte.
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

/// Sends a message with the standard streams of the program, without waiting.
///
/// # Errors
/// If the message is not sent completely.
pub(super) fn send(socket: impl AsFd, message: &[u8], pipes: [BorrowedFd<'_>; 3]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&pipes));
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    let sent = retry_on_intr(|| rustix::net::sendmsg(&socket, &[IoSlice::new(message)], &mut control, flags))?;
    if sent == message.len() { Ok(()) } else { Err(ErrorKind::WriteZero.into()) }
}

/// Receives the message, installs its pipes as standard streams, enters its folder, and returns the program. None if the sender has ended.
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
    // An absolute path, so that the standard library need not fork for the lookup.
    let mut command = Command::new(find_program(program, path).unwrap_or_else(|| program.into()));
    command.arg0(program).args(arguments).env_clear().envs(variables);
    Ok(Some(command))
}

fn find_program(program: &OsStr, path: Option<&OsStr>) -> Option<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return None;
    }
    let is_executable =
        |file: &PathBuf| rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok() && file.is_file();
    std::env::split_paths(path?).map(|folder| folder.join(program)).find(is_executable)
}

/// Reads a message, without its length and the last zero byte, and its pipes; none at the end.
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
