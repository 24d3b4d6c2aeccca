//! Text of others on one line, for people.

use crate::template::is_readable;

/// The text on one line of at most so many characters: spaces in the place of line breaks, without control characters and those
/// that turn the direction of writing. `…` follows what is cut off.
pub(super) fn one_line(text: &str, most: usize) -> String {
    let mut line = String::new();
    let mut length = 0;
    for word in text.split_whitespace() {
        let word = word.chars().filter(|&c| is_readable(c));
        for (at, c) in word.enumerate() {
            let spaces = usize::from(at == 0 && length > 0);
            if length + spaces + 1 > most {
                // Room for the sign that something is missing.
                line.pop();
                line.truncate(line.trim_end().len());
                line.push('…');
                return line;
            }
            line.extend((spaces == 1).then_some(' '));
            line.push(c);
            length += spaces + 1;
        }
    }
    line
}
