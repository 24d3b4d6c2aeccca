//! Requests as the hook program sends them.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::Result;

const NONCE: &str = "00112233445566778899aabbccddeeff";

/// Sends a payload, and checks that the answer allows.
pub(crate) fn ask(socket: &Path, payload: &str) -> Result<()> {
    let mut stream = UnixStream::connect(socket)?;
    let request = format!(
        "amplifier-guard 1\nclient claude\nevent PreToolUse\ndeadline 25000\nnonce {NONCE}\nfolder 2f\nlength {}\n\n{payload}",
        payload.len()
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let expected = format!("amplifier-guard 1 {NONCE} 0 0 0\n");
    if answer == expected { Ok(()) } else { Err(format!("the daemon does not allow the call: {answer}").into()) }
}

/// Reads a request to its end, and returns its nonce.
pub(crate) fn read(stream: &mut UnixStream) -> Result<String> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 8192];
    loop {
        let read = stream.read(&mut buffer)?;
        bytes.extend_from_slice(&buffer[..read]);
        let text = std::str::from_utf8(&bytes)?;
        let header = text.find("\n\n");
        let length = header.and_then(|end| text[..end].split("length ").nth(1)?.parse::<usize>().ok());
        let is_whole = header.zip(length).is_some_and(|(end, length)| bytes.len() >= end + 2 + length);
        if is_whole || read == 0 {
            break;
        }
    }
    let text = String::from_utf8(bytes)?;
    let nonce = text.lines().find_map(|line| line.strip_prefix("nonce "));
    Ok(nonce.ok_or("a request without a nonce")?.to_owned())
}
