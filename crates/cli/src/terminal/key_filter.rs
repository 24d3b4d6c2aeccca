//! Separates keys that a user presses from other terminal input.
//!
//! Any program that can write to a terminal can make the terminal send input: replies to queries for a colour, a setting, its name or its
//! title, and reports of the mouse and the focus. All of these arrive on the same channel as keys, as several bytes at once. A user who
//! answers a prompt presses one key. Therefore a key counts only alone, with silence before and after it, and no part of an escape
//! sequence ever counts.

use std::time::{Duration, Instant};

/// The minimum silence before a key. A held key repeats faster than this.
const SILENCE_BEFORE: Duration = Duration::from_millis(300);
/// The minimum silence after a key.
const SILENCE_AFTER: Duration = Duration::from_millis(50);
/// The minimum silence after Esc: the rest of an escape sequence may arrive late over a slow connection.
const SILENCE_AFTER_ESC: Duration = Duration::from_millis(300);
/// The silence that ends an incomplete escape sequence.
const ABANDONED: Duration = Duration::from_secs(2);

const ESC: u8 = 0x1b;

/// A key that the user pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Character(char),
    /// Esc.
    Escape,
    /// Ctrl-C.
    Interrupt,
}

/// A state machine from bytes and moments of silence to keys.
///
/// INVARIANT: only time reported to [`silent`](Self::silent) counts as silence. Time during which the program did not poll does not,
/// whatever the clock says.
#[derive(Debug)]
pub(super) struct KeyFilter {
    state: ParserState,
    is_pasting: bool,
    last_byte: Instant,
    /// `true` if there was silence before the next byte.
    is_silent: bool,
    /// A key pressed after silence. More silence must follow before it counts.
    candidate: Option<Key>,
    has_ignored: bool,
}

/// The parser's state after the bytes received so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ParserState {
    Ground,
    /// An incomplete multi-byte character. `alone` is `true` if there was silence before its first byte.
    Character {
        missing: u8,
        code: u32,
        alone: bool,
    },
    Escape,
    /// A control sequence, with its last number.
    Control(u32),
    /// OSC, DCS, SOS, PM or APC, up to its terminator.
    Text,
    /// The number of bytes that still belong to the previous sequence.
    Skip(u8),
}

impl KeyFilter {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            state: ParserState::Ground,
            is_pasting: false,
            last_byte: now,
            is_silent: false,
            candidate: None,
            has_ignored: false,
        }
    }

    /// Requires silence again and clears the ignored flag.
    pub(super) fn restart(&mut self, now: Instant) {
        (self.last_byte, self.is_silent, self.candidate, self.has_ignored) = (now, false, None, false);
    }

    /// Returns `true` if a key would be considered now.
    pub(super) fn is_ready(&self) -> bool {
        self.is_silent && self.is_at_ground()
    }

    /// Returns `true` if keys were ignored since the last one that counted.
    pub(super) fn has_ignored(&self) -> bool {
        self.has_ignored
    }

    /// Processes the next byte. Only Ctrl-C counts at once, because it never allows anything.
    pub(super) fn byte(&mut self, byte: u8, now: Instant) -> Option<Key> {
        let alone = self.is_ready();
        let is_after_silence = std::mem::take(&mut self.is_silent);
        self.last_byte = now;
        if matches!(self.candidate.take(), Some(Key::Character(_))) {
            self.has_ignored = true;
        }
        if byte == 0x03 {
            return Some(Key::Interrupt);
        }
        self.state = match (self.state, byte) {
            (_, ESC) => {
                // Also in the middle of a sequence: Esc allows nothing, and the user must be able to leave.
                self.candidate = is_after_silence.then_some(Key::Escape);
                ParserState::Escape
            }
            (ParserState::Skip(1), _) => ParserState::Ground,
            (ParserState::Skip(left), _) => ParserState::Skip(left - 1),
            // CAN and SUB end any sequence.
            (ParserState::Control(_) | ParserState::Text, 0x18 | 0x1a) | (ParserState::Text, 0x07) => {
                ParserState::Ground
            }
            (ParserState::Text, _) => ParserState::Text,
            (ParserState::Escape, _) => escape(byte),
            (ParserState::Control(number), b'0'..=b'9') => {
                ParserState::Control(number.saturating_mul(10).saturating_add(u32::from(byte - b'0')))
            }
            (ParserState::Control(_), 0x20..=0x3f) => ParserState::Control(0),
            (ParserState::Control(number), _) => self.control(number, byte),
            (ParserState::Character { missing, code, alone }, 0x80..=0xbf) => {
                let code = code << 6 | u32::from(byte & 0x3f);
                match missing {
                    1 => self.character(char::from_u32(code), alone),
                    _ => ParserState::Character { missing: missing - 1, code, alone },
                }
            }
            (ParserState::Ground | ParserState::Character { .. }, 0xc2..=0xdf) => {
                ParserState::Character { missing: 1, code: u32::from(byte & 0x1f), alone }
            }
            (ParserState::Ground | ParserState::Character { .. }, 0xe0..=0xef) => {
                ParserState::Character { missing: 2, code: u32::from(byte & 0x0f), alone }
            }
            (ParserState::Ground | ParserState::Character { .. }, 0xf0..=0xf4) => {
                ParserState::Character { missing: 3, code: u32::from(byte & 0x07), alone }
            }
            (ParserState::Ground | ParserState::Character { .. }, _) => {
                self.character(Some(char::from(byte)).filter(|_| byte < 0xa0), alone)
            }
        };
        None
    }

    /// Records that nothing arrived until `now` and returns the key that counts because of that.
    pub(super) fn silent(&mut self, now: Instant) -> Option<Key> {
        let silence = now.saturating_duration_since(self.last_byte);
        let needed = if self.candidate == Some(Key::Escape) { SILENCE_AFTER_ESC } else { SILENCE_AFTER };
        let key = self.candidate.take_if(|_| silence >= needed);
        if key.is_some() {
            self.has_ignored = false;
        }
        if silence >= ABANDONED {
            (self.state, self.is_pasting) = (ParserState::Ground, false);
        }
        self.is_silent = silence >= SILENCE_BEFORE;
        key
    }

    fn is_at_ground(&self) -> bool {
        self.state == ParserState::Ground && !self.is_pasting
    }

    fn character(&mut self, character: Option<char>, alone: bool) -> ParserState {
        match character {
            // Equivalent to Esc and another character.
            Some(character @ '\u{80}'..='\u{9f}') => {
                return u8::try_from(character).map_or(ParserState::Ground, |byte| escape(byte - 0x40));
            }
            Some(character) if !character.is_control() && !self.is_pasting => match alone {
                true => self.candidate = Some(Key::Character(character)),
                false => self.has_ignored = true,
            },
            _ => {}
        }
        ParserState::Ground
    }

    /// Handles the last byte of a control sequence.
    fn control(&mut self, number: u32, last: u8) -> ParserState {
        match (number, last) {
            (200, b'~') => self.is_pasting = true,
            (201, b'~') => self.is_pasting = false,
            // The oldest form of a mouse report: three arbitrary bytes follow.
            (0, b'M') => return ParserState::Skip(3),
            _ => {}
        }
        ParserState::Ground
    }
}

/// Returns the state after Esc and `byte`.
fn escape(byte: u8) -> ParserState {
    match byte {
        b'[' => ParserState::Control(0),
        b']' | b'P' | b'X' | b'^' | b'_' => ParserState::Text,
        b'N' | b'O' => ParserState::Skip(1),
        0x20..=0x2f => ParserState::Escape,
        _ => ParserState::Ground,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Milliseconds, and the bytes that arrive then.
    type Arrival<'a> = (u64, &'a [u8]);

    /// The keys that count if these bytes arrive, with the milliseconds at which they count.
    fn counted_at(arrivals: &[Arrival]) -> Vec<(u64, Key)> {
        let begin = Instant::now();
        let mut filter = KeyFilter::new(begin);
        let end = arrivals.last().map_or(0, |(at, _)| at + 3_000);
        let mut keys = Vec::new();
        for at in (0..end).step_by(5) {
            let now = begin + Duration::from_millis(at);
            let bytes: Vec<u8> =
                arrivals.iter().filter(|(time, _)| *time == at).flat_map(|(_, bytes)| bytes.iter().copied()).collect();
            let key = match bytes.is_empty() {
                true => filter.silent(now),
                false => bytes.iter().filter_map(|byte| filter.byte(*byte, now)).last(),
            };
            keys.extend(key.map(|key| (at, key)));
        }
        keys
    }

    fn counted(arrivals: &[Arrival]) -> Vec<Key> {
        counted_at(arrivals).into_iter().map(|(_, key)| key).collect()
    }

    /// The bytes one by one, that many milliseconds apart, from the first second on.
    fn in_pieces(bytes: &[u8], apart: u64) -> Vec<Arrival<'_>> {
        (0..).map(|index| 1_000 + index * apart).zip(bytes.chunks(1)).collect()
    }

    /// Replies and unsolicited reports of terminals.
    const REPLIES: [&[u8]; 24] = [
        b"\x1b]11;rgb:1111/1111/1111\x1b\\",
        b"\x1b]10;rgb:1111/1111/1111\x07",
        b"\x1b]4;1;rgb:1111/1111/1111\x1b\\",
        b"\x1b]52;c;MTEx\x07",
        b"\x1b]l1\x1b\\",
        b"\x1b]L1\x1b\\",
        b"\x1bP1$r1 q\x1b\\",
        b"\x1bP1$r0;1m\x1b\\",
        b"\x1bP1+r544e=31\x1b\\",
        b"\x1bP>|tmux 1.1\x1b\\",
        b"\x1bP!|00000001\x1b\\",
        b"\x1b_G1;OK\x1b\\",
        b"\x1b[?1;2c",
        b"\x1b[>41;351;1c",
        b"\x1b[1;1R",
        b"\x1b[?2026;1$y",
        b"\x1b[8;11;11t",
        b"\x1b[1;1;1;1;1;1x",
        b"\x1b[I",
        b"\x1b[<0;1;1M",
        b"\x1b[M 11",
        b"\x1bO1",
        b"\x9d11;rgb:1111/1111/1111\x9c",
        b"\xc2\x9d11;rgb:1111/1111/1111\xc2\x9c",
    ];

    #[test]
    fn a_key_counts_only_with_silence_before_and_after_it() {
        use Key::{Character, Interrupt};
        let one = Character('1');
        let cases: &[(&str, &[Arrival], &[Key])] = &[
            ("alone", &[(1_000, b"1")], &[one]),
            ("just after enough silence", &[(305, b"1")], &[one]),
            ("too early", &[(295, b"1")], &[]),
            ("too early, then again", &[(295, b"1"), (600, b"1")], &[one]),
            ("two at once", &[(1_000, b"11")], &[]),
            ("the second too soon", &[(1_000, b"1"), (1_045, b"1")], &[]),
            ("the second late enough for the first", &[(1_000, b"1"), (1_055, b"2")], &[one]),
            ("the second after silence", &[(1_000, b"1"), (1_400, b"2")], &[one, Character('2')]),
            ("Enter behind it", &[(1_000, b"1\r")], &[]),
            ("Enter alone", &[(1_000, b"\r")], &[]),
            ("Enter too soon before it", &[(1_000, b"\r"), (1_200, b"1")], &[]),
            ("a word", &[(1_000, b"y"), (1_120, b"e"), (1_240, b"s")], &[Character('y')]),
            ("a character of several bytes", &[(1_000, "ä".as_bytes())], &[Character('ä')]),
            ("its bytes one by one", &[(1_000, b"\xc3"), (1_020, b"\xa4")], &[Character('ä')]),
            ("two such characters", &[(1_000, "äö".as_bytes())], &[]),
            ("bytes that are no character", &[(1_000, b"\xff"), (1_500, b"\xb1")], &[]),
            ("Esc alone", &[(1_000, b"\x1b")], &[Key::Escape]),
            ("Esc too early, then again", &[(200, b"\x1b"), (600, b"\x1b")], &[Key::Escape]),
            ("Alt and a key", &[(1_000, b"\x1b1")], &[]),
            ("Alt and a key, apart", &[(1_000, b"\x1b"), (1_250, b"1")], &[]),
            ("a key too soon after Alt", &[(1_000, b"\x1bx"), (1_200, b"1")], &[]),
            ("an arrow", &[(1_000, b"\x1b[A")], &[]),
            ("a function key", &[(1_000, b"\x1b[11~"), (2_000, b"\x1bOP")], &[]),
            ("a key with the keyboard protocol of kitty", &[(1_000, b"\x1b[49u")], &[]),
            ("pasted", &[(1_000, b"\x1b[200~1\x1b[201~")], &[]),
            ("pasted slowly", &[(1_000, b"\x1b[200~"), (1_500, b"1"), (2_000, b"\x1b[201~")], &[]),
            ("after a paste", &[(1_000, b"\x1b[200~1\x1b[201~"), (1_305, b"1")], &[one]),
            ("pasted without marks", &[(1_000, b"1 and more")], &[]),
            ("Ctrl-C, however it comes", &[(5, b"\x03"), (1_000, b"\x1b]1\x03")], &[Interrupt, Interrupt]),
            ("a string that never ends", &[(1_000, b"\x1b]11;"), (1_400, b"1"), (2_000, b"1")], &[]),
            ("long after it", &[(1_000, b"\x1b]11;"), (3_005, b"1")], &[one]),
            ("a string that is cut off", &[(1_000, b"\x1b]11;\x18"), (1_305, b"1")], &[one]),
        ];
        for (what, arrivals, expected) in cases {
            assert_eq!(counted(arrivals), *expected, "{what}");
        }
    }

    #[test]
    fn no_reply_of_a_terminal_counts_however_it_is_split() {
        for reply in REPLIES {
            let shown = String::from_utf8_lossy(reply);
            for apart in [0, 5, 20, 45, 100, 200, 295] {
                assert_eq!(counted(&in_pieces(reply, apart)), [], "{shown:?}, {apart} ms apart");
            }
            // In two pieces, with any pause between them. An Esc counts if nothing follows in time.
            for split in 1..reply.len() {
                for pause in [20, 60, 290, 310, 500, 1_500] {
                    let keys = counted(&[(1_000, &reply[..split]), (1_000 + pause, &reply[split..])]);
                    let expected =
                        if split == 1 && reply[0] == ESC && pause > 300 { vec![Key::Escape] } else { vec![] };
                    assert_eq!(keys, expected, "{shown:?} at {split}, {pause} ms");
                }
            }
        }
    }

    #[test]
    fn held_keys_typing_and_replies_without_escape_sequences_never_count() {
        let repeated: Vec<Arrival> = (0..200).map(|index| (index * 30, &b"1"[..])).collect();
        assert_eq!(counted(&repeated), []);
        assert_eq!(counted(&in_pieces(b"PuTTY 1.1", 45)), []);
        let typed: Vec<Arrival> = (0..40).map(|index| (index * 250, &b"1"[..])).collect();
        assert_eq!(counted(&typed), []);
    }

    #[test]
    fn the_rest_of_a_reply_does_not_count_at_the_next_question() {
        let begin = Instant::now();
        let at = |milliseconds| begin + Duration::from_millis(milliseconds);
        let mut filter = KeyFilter::new(begin);
        assert_eq!(filter.silent(at(300)), None);
        assert_eq!(filter.byte(ESC, at(1_000)), None);
        assert_eq!(filter.silent(at(1_300)), Some(Key::Escape));
        filter.restart(at(1_310));
        for (time, byte) in [(1_650, b']'), (2_000, b'1'), (2_400, b'1')] {
            assert_eq!(filter.byte(byte, at(time)), None);
            assert_eq!(filter.silent(at(time + 310)), None, "{time}");
        }
    }

    #[test]
    fn unpolled_time_is_not_silence() {
        let begin = Instant::now();
        let at = |milliseconds| begin + Duration::from_millis(milliseconds);
        let mut filter = KeyFilter::new(begin);
        filter.byte(b'x', at(0));
        filter.byte(b'1', at(5_000));
        assert_eq!(filter.silent(at(6_000)), None);
        assert!(filter.has_ignored());
        filter.byte(b'1', at(6_500));
        assert_eq!(filter.silent(at(6_549)), None);
        assert_eq!(filter.silent(at(6_550)), Some(Key::Character('1')));
        assert!(!filter.has_ignored());
    }

    #[test]
    fn an_answer_is_taken_within_half_a_second() {
        assert_eq!(counted_at(&[(1_000, b"1")]), [(1_050, Key::Character('1'))]);
        assert_eq!(counted_at(&[(1_000, b"\x1b")]), [(1_300, Key::Escape)]);
    }
}
