//! Terminals on Unix.

use std::io;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

pub(crate) const PATH: &str = "/dev/tty";

pub(crate) fn wait_for_input(limit: Duration) -> io::Result<bool> {
    let stdin = io::stdin();
    let mut stdin = [PollFd::new(&stdin, PollFlags::IN)];
    match rustix::event::poll(&mut stdin, Some(&Timespec::try_from(limit).map_err(io::Error::other)?)) {
        // An interruption says nothing about the available input.
        Err(Errno::INTR) => return wait_for_input(Duration::ZERO),
        result => result?,
    };
    if stdin[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
        return Err(io::Error::other("the terminal is closed"));
    }
    Ok(stdin[0].revents().contains(PollFlags::IN))
}

pub(crate) fn read_input(bytes: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::io::read(io::stdin(), bytes)?)
}
