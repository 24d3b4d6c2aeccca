//! The console of Windows, which has events instead of bytes.

use std::io;
use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, poll, read};

pub(crate) const PATH: &str = "CONOUT$";

/// The bytes for a key without a character; any such key will do.
const KEY_WITHOUT_CHARACTER: &[u8] = b"\x1b[Z";

pub(crate) fn wait_for_input(limit: Duration) -> io::Result<bool> {
    poll(limit)
}

pub(crate) fn read_input(bytes: &mut [u8]) -> io::Result<usize> {
    let Event::Key(key) = read()? else { return Ok(0) };
    let mut buffer = [0; 4];
    let sent = key_bytes(&key, &mut buffer);
    let sent = &sent[..sent.len().min(bytes.len())];
    bytes[..sent.len()].copy_from_slice(sent);
    Ok(sent.len())
}

fn key_bytes<'a>(key: &KeyEvent, buffer: &'a mut [u8; 4]) -> &'a [u8] {
    if key.kind == KeyEventKind::Release {
        return &[];
    }
    match key.code {
        KeyCode::Char('c' | 'C') if key.modifiers.contains(KeyModifiers::CONTROL) => b"\x03",
        KeyCode::Char(_) if key.modifiers.contains(KeyModifiers::CONTROL) => KEY_WITHOUT_CHARACTER,
        KeyCode::Char(character) => character.encode_utf8(buffer).as_bytes(),
        KeyCode::Esc => b"\x1b",
        KeyCode::Enter => b"\r",
        KeyCode::Tab => b"\t",
        KeyCode::Backspace => b"\x7f",
        _ => KEY_WITHOUT_CHARACTER,
    }
}
