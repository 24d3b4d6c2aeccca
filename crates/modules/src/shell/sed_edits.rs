//! In-place edits with `sed` that run and write nothing else.

/// Returns `true` for an in-place edit that only substitutes, deletes or prints lines.
pub(super) fn is_plain_edit(arguments: &[&str]) -> bool {
    files_read(arguments).is_some()
}

/// Returns the files that such an edit, or the same without `-i`, reads; `None` for another script or option.
pub(super) fn files_read<'a>(arguments: &[&'a str]) -> Option<Vec<&'a str>> {
    let (mut scripts, mut operands, mut words) = (Vec::new(), Vec::new(), arguments.iter());
    while let Some(word) = words.next() {
        match *word {
            "-i" | "-E" | "-r" | "-n" | "-s" | "-z" => {}
            "-e" => scripts.push(*words.next()?),
            word if word.starts_with('-') => return None,
            word => operands.push(word),
        }
    }
    if scripts.is_empty() {
        scripts.extend(operands.first().copied());
        operands.drain(..operands.len().min(1));
    }
    (!scripts.is_empty() && scripts.into_iter().all(is_plain_script)).then_some(operands)
}

/// Returns `true` for a script of `sed` with only `s`, `d` and `p`, which run and write nothing.
fn is_plain_script(script: &str) -> bool {
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches([' ', ';', '\n']);
        if rest.is_empty() {
            return true;
        }
        let Some(command) = after_address(rest) else { return false };
        let Some(after) = after_command(command) else { return false };
        rest = after.trim_start_matches(' ');
        if !(rest.is_empty() || rest.starts_with([';', '\n'])) {
            return false;
        }
    }
}

fn after_address(script: &str) -> Option<&str> {
    let one = |text: &'_ str| -> Option<usize> {
        if let Some(pattern) = text.strip_prefix('/') {
            return after_pattern(pattern, '/').map(|after| text.len() - after.len());
        }
        Some(text.find(|c: char| !c.is_ascii_digit() && c != '$').unwrap_or(text.len()))
    };
    let first = script.get(one(script)?..)?;
    let second = match first.strip_prefix(',') {
        Some(text) => text.get(one(text)?..)?,
        None => first,
    };
    Some(second.strip_prefix('!').unwrap_or(second).trim_start_matches(' '))
}

fn after_command(command: &str) -> Option<&str> {
    let mut letters = command.chars();
    match letters.next()? {
        'd' | 'p' => Some(letters.as_str()),
        's' => {
            let delimiter = letters.next().filter(|c| !c.is_alphanumeric() && !"\\\n ;".contains(*c))?;
            let replacement = after_pattern(letters.as_str(), delimiter)?;
            let flags = after_replacement(replacement, delimiter)?;
            Some(flags.trim_start_matches(|c: char| c.is_ascii_digit() || "gpIi".contains(c)))
        }
        _ => None,
    }
}

/// Returns the text after a pattern; `None` if a bracket contains the delimiter, which implementations read differently.
fn after_pattern(text: &str, delimiter: char) -> Option<&str> {
    let mut letters = text.chars();
    while let Some(c) = letters.next() {
        match c {
            '\\' => drop(letters.next()?),
            '\n' => return None,
            '[' => {
                let mut is_first = true;
                loop {
                    match letters.next()? {
                        '^' if is_first => continue,
                        ']' if !is_first => break,
                        '\n' | '\\' | '[' => return None,
                        c if c == delimiter => return None,
                        _ => is_first = false,
                    }
                }
            }
            c if c == delimiter => return Some(letters.as_str()),
            _ => {}
        }
    }
    None
}

fn after_replacement(text: &str, delimiter: char) -> Option<&str> {
    let mut letters = text.chars();
    while let Some(c) = letters.next() {
        match c {
            '\\' => drop(letters.next()?),
            '\n' => return None,
            c if c == delimiter => return Some(letters.as_str()),
            _ => {}
        }
    }
    None
}
