//! Untrusted text on one line.

use crate::template::is_readable;

/// Returns the text on one line of at most `most` characters: line breaks become spaces; control characters and characters that
/// change the direction of writing are removed. `…` marks a truncated text.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let mut line = String::new();
    let mut length = 0;
    for word in text.split_whitespace() {
        let word = word.chars().filter(|&c| is_readable(c));
        for (at, c) in word.enumerate() {
            let spaces = usize::from(at == 0 && length > 0);
            if length + spaces + 1 > most {
                // Room for `…`.
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
