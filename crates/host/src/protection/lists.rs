//! Built-in lists of protected and hidden paths, which the configuration of the user can change.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use amplifier_process::files;

use crate::environment::Environment;

/// Files below the home folder that run code later, or contain credentials.
const READ_ONLY: [&str; 60] = [
    // Shells and sessions read these when they start.
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".inputrc",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".config/fish",
    ".config/nushell",
    ".config/environment.d",
    ".pam_environment",
    ".xprofile",
    ".xinitrc",
    ".xsession",
    ".xsessionrc",
    ".tmux.conf",
    ".config/tmux",
    ".screenrc",
    // Services start these.
    ".config/systemd/user",
    ".local/share/systemd/user",
    ".config/autostart",
    ".config/autostart-scripts",
    ".config/plasma-workspace",
    ".local/share/dbus-1/services",
    // Git runs the programs that its configuration names.
    ".gitconfig",
    ".config/git",
    // Credentials.
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker/config.json",
    ".config/gcloud",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".config/doctl",
    ".config/op",
    ".config/sops",
    ".git-credentials",
    ".netrc",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".gem/credentials",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".terraform.d/credentials.tfrc.json",
    ".pgpass",
    ".my.cnf",
    ".local/share/keyrings",
];

/// System files that run code later. Root could change them.
const READ_ONLY_SYSTEM: [&str; 8] = [
    "/var/spool/cron",
    "/var/spool/at",
    "/etc/crontab",
    "/etc/cron.d",
    "/etc/cron.hourly",
    "/etc/cron.daily",
    "/etc/cron.weekly",
    "/etc/cron.monthly",
];

/// Browser profiles below the home folder, which contain the cookie of the console.
const BROWSERS: [&str; 34] = [
    ".mozilla",
    ".librewolf",
    ".waterfox",
    ".zen",
    ".config/mozilla",
    ".config/librewolf",
    ".config/google-chrome",
    ".config/google-chrome-beta",
    ".config/google-chrome-unstable",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/microsoft-edge-beta",
    ".config/microsoft-edge-dev",
    ".config/vivaldi",
    ".config/vivaldi-snapshot",
    ".config/opera",
    ".config/opera-beta",
    ".config/thorium",
    ".local/share/epiphany",
    ".local/share/falkon",
    ".local/share/qutebrowser",
    "snap/chromium",
    "snap/firefox",
    "snap/brave",
    "snap/opera",
    ".var/app/org.mozilla.firefox",
    ".var/app/org.chromium.Chromium",
    ".var/app/com.google.Chrome",
    ".var/app/com.brave.Browser",
    ".var/app/com.microsoft.Edge",
    ".var/app/com.vivaldi.Vivaldi",
    ".var/app/io.gitlab.librewolf-community",
    ".var/app/app.zen_browser.zen",
];

pub(super) struct UserFolders {
    pub(super) home: PathBuf,
    config: Option<PathBuf>,
    data: Option<PathBuf>,
}

impl UserFolders {
    pub(super) fn find(environment: &Environment) -> Option<Self> {
        let home = environment.home()?.to_owned();
        Some(Self { home, config: environment.path("XDG_CONFIG_HOME"), data: environment.path("XDG_DATA_HOME") })
    }

    pub(super) fn read_only(&self) -> Vec<PathBuf> {
        let system = READ_ONLY_SYSTEM.into_iter().map(PathBuf::from);
        READ_ONLY.iter().flat_map(|path| self.at(path)).chain(system).collect()
    }

    /// Returns the hidden paths: browser profiles, and sockets that allow typing into a terminal or starting a program outside of the sandbox.
    pub(super) fn hidden(&self, environment: &Environment) -> Vec<PathBuf> {
        let browsers = BROWSERS.iter().flat_map(|path| self.at(path));
        let variable = |name: &str| environment.path(name);
        let user = files::user();
        // `TMUX` is the socket, the process and the session of the server, with commas between them.
        let tmux = environment.variable("TMUX").and_then(OsStr::to_str);
        let tmux = tmux.and_then(|tmux| Some(PathBuf::from(tmux.split(',').next()?)));
        let tmux = tmux.filter(|socket| socket.is_absolute());
        let folder = variable("TMUX_TMPDIR").unwrap_or_else(|| "/tmp".into());
        let tmux = tmux.into_iter().chain(user.map(|user| folder.join(format!("tmux-{user}"))));
        let screen = variable("SCREENDIR").into_iter().chain([self.home.join(".screen"), "/run/screen".into()]);
        let runtime = variable("XDG_RUNTIME_DIR").or_else(|| Some(format!("/run/user/{}", user?).into()));
        let service = |name| runtime.as_ref().map(|runtime: &PathBuf| runtime.join(name));
        let services = ["bus", "systemd", "kitty"].into_iter().filter_map(service);
        browsers.chain(tmux).chain(screen).chain(services).collect()
    }

    /// Returns a path below the home folder and its equivalents in the XDG folders.
    fn at(&self, path: &str) -> impl Iterator<Item = PathBuf> {
        let moved = |folder: &Option<PathBuf>, prefix: &str| {
            folder.as_ref().and_then(|folder| Some(folder.join(Path::new(path).strip_prefix(prefix).ok()?)))
        };
        let elsewhere = [moved(&self.config, ".config"), moved(&self.data, ".local/share")];
        [self.home.join(path)].into_iter().chain(elsewhere.into_iter().flatten())
    }
}
