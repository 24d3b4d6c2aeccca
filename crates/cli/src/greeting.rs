//! The first lines of a conversation.

use std::path::Path;

use amplifier_core::session_id;
use amplifier_core::text::counted;
use amplifier_host::{Home, Policy};

use crate::terminal::Screen;

/// Shows the model, the folder, the policy and the mode of a session.
pub(crate) fn greet(screen: &Screen, policy: &Policy, home: &Home, model: &str, session: &str) {
    let user = home.environment().home();
    screen.fact("model", model);
    screen.fact("folder", &shorten(policy.workspace().root(), user));
    screen.fact("policy", &describe_policy(policy, user));
    screen.fact("mode", &format!("{}; sandbox: {}", policy.mode().current(), policy.sandbox().level.as_str()));
    screen.fact("session", session_id::short(session));
    screen.note("/help lists the commands, Ctrl-D ends the session");
}

/// Returns the bundles with their numbers of hooks, and the setting `confirm`.
fn describe_policy(policy: &Policy, user: Option<&Path>) -> String {
    let confirm = format!("confirm: {}", policy.config().confirm);
    let bundles = policy.levels().bundles().map(|(scope, bundle)| {
        let file = bundle.files.last().map(|file| shorten(file, user)).unwrap_or_default();
        format!("{} in {file} ({scope})", counted(bundle.hooks.len(), "hook"))
    });
    let bundles: Vec<String> = bundles.collect();
    match bundles.is_empty() {
        true => format!("no bundle, `amplifier init` creates one; {confirm}"),
        false => format!("{}; {confirm}", bundles.join(", ")),
    }
}

/// Returns a path with `~` for the user's folder.
fn shorten(path: &Path, user: Option<&Path>) -> String {
    match user.and_then(|user| path.strip_prefix(user).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_the_user_is_a_tilde() {
        let short = |path: &str| shorten(Path::new(path), Some(Path::new("/home/ann")));
        assert_eq!([short("/home/ann/app"), short("/home/ann"), short("/srv/x")], ["~/app", "~", "/srv/x"]);
    }
}
