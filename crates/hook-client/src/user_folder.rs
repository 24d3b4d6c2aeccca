//! The folder of the calling user's daemon, for hooks of all users.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const USERS: &str = "/etc/passwd";
const LOOKUP: &str = "/usr/bin/getent";

/// Returns the folder of the calling user's daemon, and the user's home folder.
///
/// The user database decides. The environment does not count: a repository can set variables of it.
///
/// # Errors
/// If the home folder of the user is unknown.
pub fn user_folder() -> Result<(PathBuf, PathBuf), String> {
    let user = user()?;
    let users = fs::read_to_string(USERS).unwrap_or_default();
    let home = match home_in(&users, &user) {
        Some(home) => Some(home),
        // Users of a directory service are not in the file.
        None => {
            let mut lookup = Command::new(LOOKUP);
            let output = lookup.args(["passwd", &user]).env_clear().stdin(Stdio::null()).stderr(Stdio::null()).output();
            output.ok().and_then(|output| home_in(&String::from_utf8_lossy(&output.stdout), &user))
        }
    };
    let home = home.ok_or_else(|| format!("the home folder of the user {user} is unknown"))?;
    Ok((home.join(".local/share/amplifier/guard"), home))
}

/// Returns the number of the effective user.
fn user() -> Result<String, String> {
    let status = fs::read_to_string("/proc/self/status");
    let status = status.map_err(|error| format!("the user is unknown: `/proc/self/status`: {error}"))?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    let effective = numbers.and_then(|numbers| numbers.split_whitespace().nth(1));
    effective.map(str::to_owned).ok_or_else(|| "the user is unknown: `/proc/self/status` has no `Uid`".to_owned())
}

/// Returns the home folder in a list of users.
fn home_in(users: &str, user: &str) -> Option<PathBuf> {
    let mut homes = users.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        (fields.get(2) == Some(&user)).then(|| fields.get(5).map(PathBuf::from)).flatten()
    });
    homes.next().filter(|home| home.is_absolute() && home.parent().is_some())
}
