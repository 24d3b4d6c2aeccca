//! Card numbers in text.

use std::ops::Range;

/// The kind in their markers.
pub(super) const CARD: &str = "card_number";

pub(super) fn cards(text: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut from = 0;
    std::iter::from_fn(move || {
        while let Some(start) = text[from..].iter().position(u8::is_ascii_digit).map(|digit| from + digit) {
            // The digits of `0.4111…` and of `a4111…` are not a card number.
            let inside = match text[..start] {
                [.., number, b'.'] => number.is_ascii_digit(),
                [.., before] => before.is_ascii_alphanumeric(),
                [] => false,
            };
            if !inside && let Some(end) = card_end(text, start) {
                from = end;
                return Some(start..end);
            }
            from = start + text[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        }
        None
    })
}

/// Returns the end of the longest card number that begins here: 13 to 19 digits in one group, or in groups of four or more
/// (the last may have fewer), with the same separator between all of them.
fn card_end(text: &[u8], start: usize) -> Option<usize> {
    let (mut digits, mut count) = ([0; 19], 0);
    let (mut end, mut at, mut separator) = (None, start, None);
    loop {
        let group = text[at..].iter().take(20).take_while(|byte| byte.is_ascii_digit()).count();
        let Some(room) = digits.get_mut(count..count + group) else { return end };
        room.copy_from_slice(&text[at..at + group]);
        count += group;
        at += group;
        let goes_on = match text[at..] {
            [b'.', next, ..] => next.is_ascii_digit(),
            [next, ..] => next.is_ascii_alphanumeric(),
            [] => false,
        };
        if !goes_on && is_card(&digits[..count]) {
            end = Some(at);
        }
        match text[at..] {
            [next @ (b' ' | b'-'), b'0'..=b'9', ..] if group >= 4 && *separator.get_or_insert(next) == next => at += 1,
            _ => return end,
        }
    }
}

/// Returns `true` if an issuer uses such numbers and the check digit is valid (Luhn).
///
/// The issuer matters: one number in ten has a valid check digit, and Unix times begin with a 1, unlike any card.
fn is_card(digits: &[u8]) -> bool {
    let value = |digit: &u8| u32::from(digit - b'0');
    let issuer = digits.iter().take(4).fold(0, |number, digit| number * 10 + value(digit));
    let lengths = match issuer {
        4000..=4999 => &[13, 16, 19][..],
        2221..=2720 | 5100..=5599 => &[16],
        3400..=3499 | 3700..=3799 => &[15],
        3528..=3589 => &[16, 17, 18, 19],
        3000..=3059 | 3095 | 3600..=3699 | 3800..=3999 => &[14, 15, 16, 17, 18, 19],
        5000..=5099 | 5600..=5899 | 6000..=6999 => &[13, 14, 15, 16, 17, 18, 19],
        _ => &[],
    };
    let doubled = |(place, digit)| if place % 2 == 0 { value(digit) } else { value(digit) * 2 };
    let sum = || digits.iter().rev().enumerate().map(doubled).map(|number| number / 10 + number % 10).sum::<u32>();
    lengths.contains(&digits.len()) && sum().is_multiple_of(10)
}

/// Returns `true` if [`cards`] could find a number in a string of this JSON.
pub(super) fn could_hold_card(json: &[u8]) -> bool {
    let in_number = |byte: &u8| matches!(byte, b'0'..=b'9' | b' ' | b'-');
    let mut at = 0;
    // A card number has thirteen bytes or more, so it is enough to check four bytes of every ten.
    while let Some(bytes) = json.get(at..).and_then(<[u8]>::first_chunk) {
        // Its characters are in 0x20..=0x3F, unlike letters. Checking four bytes at once saves time.
        if u32::from_ne_bytes(*bytes) & 0xE0E0_E0E0 != 0x2020_2020 || !bytes.iter().all(in_number) {
            at += 10;
            continue;
        }
        let start = json[..at].iter().rposition(|byte| !in_number(byte)).map_or(0, |before| before + 1);
        let end = json[at..].iter().position(|byte| !in_number(byte)).map_or(json.len(), |after| at + after);
        // The first digits may belong to an escape such as `\u00e9`, so that a number can begin among them.
        let begins = |&place: &usize| place <= start + 4 || !json[place - 1].is_ascii_digit();
        let is_card = |place: usize| json[place].is_ascii_digit() && card_end(json, place).is_some();
        if end - start >= 13 && (start..end).filter(begins).any(is_card) {
            return true;
        }
        at = end.max(at + 10);
    }
    false
}
