//! A place where commands can do no harm, and where every change is seen.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// Set inside of the sandbox.
const MARK: &str = "SHELL_FUZZ_INSIDE";
/// How long a command may take. What waits for input or sleeps is of no interest.
const PATIENCE: Duration = Duration::from_millis(1_500);
/// The folders in which changes are looked for; in the root itself, only names.
const WATCHED: [&str; 3] = ["/work", "/home", "/tmp"];

/// Makes the root and changes to it. Everything is in memory, but for the programs.
const SETUP: &str = r#"
set -eu
root=$1 program=$2
mount -t tmpfs -o size=64m,mode=755 tmpfs "$root"
cd "$root"
mkdir proc dev tmp home work
for folder in usr etc bin sbin lib lib32 lib64 nix opt; do
    if [ -L "/$folder" ]; then
        cp -P "/$folder" .
    elif [ -d "/$folder" ]; then
        mkdir "$folder"
        mount --bind "/$folder" "$folder"
        mount -o remount,bind,ro "$folder"
    fi
done
for device in null zero urandom; do
    : > "dev/$device"
    mount --bind "/dev/$device" "dev/$device"
done
ln -s /proc/self/fd dev/fd
mount -t proc proc proc 2>/dev/null || mount --rbind /proc proc
: > program
mount --bind "$program" program
mount -o remount,bind,ro program
ulimit -f 20000
ulimit -c 0
exec chroot . /program
"#;

/// A shell, and how it is started.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Shell {
    Bash,
    Posix,
    Dash,
    Ash,
}

impl Shell {
    /// What runs a command as it is.
    pub(crate) const BASH: &'static [Self] = &[Self::Bash];
    /// What may be meant by `sh`.
    pub(crate) const SH: &'static [Self] = &[Self::Dash, Self::Ash, Self::Posix];

    fn words(self) -> &'static [&'static str] {
        match self {
            Self::Bash => &["bash", "-c"],
            Self::Posix => &["bash", "--posix", "-c"],
            Self::Dash => &["dash", "-c"],
            Self::Ash => &["busybox", "ash", "-c"],
        }
    }
}

pub(crate) fn is_inside() -> bool {
    std::env::var_os(MARK).is_some()
}

/// Runs this program once more, in a sandbox.
pub(crate) fn enter() -> Result<(), String> {
    let root = tempfile::tempdir().map_err(|error| error.to_string())?;
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let can = Command::new("unshare").args(["-Urmpfn", "true"]).stderr(Stdio::null()).status();
    if !can.is_ok_and(|status| status.success()) {
        return Err(
            "`unshare -Urmpfn true` fails: this test needs Linux, util-linux and user namespaces, and was not run"
                .into(),
        );
    }
    let mut command = Command::new("unshare");
    command.args(["-Urmpfn", "--kill-child", "sh", "-c", SETUP, "sh"]).arg(root.path()).arg(program);
    command.env_clear();
    for name in ["SHELL_FUZZ_SECONDS", "SHELL_FUZZ_SEED"] {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    command.env(MARK, "1").env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin").env("HOME", "/home");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the run in the sandbox ended with {status}")),
        Err(error) => Err(error.to_string()),
    }
}

/// A file as it has to stay: what it is, and when it was changed.
#[derive(Clone, Debug, PartialEq)]
struct State {
    mode: u32,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

type States = BTreeMap<PathBuf, State>;

/// What is written back after a change.
enum Content {
    Folder,
    File(Vec<u8>, u32),
}

pub(crate) struct Sandbox {
    files: Vec<(PathBuf, Content)>,
    before: std::cell::RefCell<States>,
    shells: Vec<Shell>,
}

impl Sandbox {
    /// Makes the files that commands may change.
    pub(crate) fn new() -> Self {
        prepare();
        let mut files = Vec::new();
        for folder in WATCHED {
            collect(Path::new(folder), &mut files);
        }
        let shells = Shell::BASH.iter().chain(Shell::SH).copied();
        let shells: Vec<Shell> = shells
            .filter(|shell| {
                let (program, options) = shell.words().split_first().unwrap();
                Command::new(program).args(options).arg("exit 7").status().is_ok_and(|status| status.code() == Some(7))
            })
            .collect();
        assert!(
            shells.contains(&Shell::Bash) && shells.contains(&Shell::Dash),
            "bash and dash have to be installed: {shells:?}"
        );
        let sandbox = Self { files, before: std::cell::RefCell::default(), shells };
        sandbox.restore();
        sandbox
    }

    pub(crate) fn has(&self, shell: Shell) -> bool {
        self.shells.contains(&shell)
    }

    /// Runs a command, and says what it changed. A change counts if it happens once more, in folders that are as they were.
    pub(crate) fn change_by(&self, shell: Shell, command: &str) -> Option<String> {
        run(shell, command);
        self.change()?;
        self.restore();
        run(shell, command);
        let change = self.change();
        if change.is_some() {
            self.restore();
        }
        change
    }

    /// The options that a program tells about.
    pub(crate) fn options_of(&self, words: &[&str]) -> Vec<String> {
        let mut found = Vec::new();
        for help in ["--help", "-h"] {
            let Some((program, arguments)) = words.split_first() else { break };
            let output = Command::new(program).args(arguments).arg(help).stdin(Stdio::null()).output();
            let Ok(output) = output else { continue };
            let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            let options = text.split(|c: char| c.is_whitespace() || ",[]|()<>='`\"".contains(c));
            found.extend(options.filter(|word| word.len() > 1 && word.starts_with('-')).map(str::to_owned));
        }
        found.sort();
        found.dedup();
        if self.change().is_some() {
            self.restore();
        }
        found
    }

    fn change(&self) -> Option<String> {
        let (before, now) = (self.before.borrow(), states());
        let mut paths = before.keys().chain(now.keys());
        let changed = paths.find(|path| before.get(*path) != now.get(*path))?;
        let what = match (before.get(changed), now.get(changed)) {
            (None, _) => "was made",
            (_, None) => "is gone",
            _ => "is another one",
        };
        Some(format!("{} {what}", changed.display()))
    }

    /// Puts everything back as it was.
    fn restore(&self) {
        // Whatever still runs would go on changing files. As the first process, this one is spared.
        let _ = Command::new("kill").args(["-9", "-1"]).status();
        for entry in fs::read_dir("/").unwrap().flatten() {
            let known = ["proc", "dev", "tmp", "home", "work", "program", "usr", "etc", "bin", "sbin", "nix", "opt"];
            let name = entry.file_name().to_string_lossy().into_owned();
            if !known.contains(&name.as_str()) && !name.starts_with("lib") {
                fs::remove_file(entry.path()).or_else(|_| fs::remove_dir_all(entry.path())).unwrap();
            }
        }
        for folder in WATCHED {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path)).unwrap();
            }
        }
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_600_000_000);
        for (path, content) in &self.files {
            match content {
                Content::Folder => fs::create_dir_all(path).unwrap(),
                Content::File(bytes, mode) => {
                    fs::write(path, bytes).unwrap();
                    fs::set_permissions(path, fs::Permissions::from_mode(*mode)).unwrap();
                }
            }
        }
        for (path, _) in self.files.iter().rev() {
            fs::File::open(path).unwrap().set_modified(long_ago).unwrap();
        }
        // The index knows when files were changed, and is written anew by commands that only read when that is outdated.
        let _ = Command::new("git").args(["-C", "/work", "update-index", "-q", "--refresh"]).status();
        *self.before.borrow_mut() = states();
    }
}

/// The files: some with names that look like options or programs, and a repository.
fn prepare() {
    fs::create_dir_all("/work/src").unwrap();
    for (name, text) in [
        ("a", "b\na\na\nc\n"),
        ("b", "1 2\n3 4\n"),
        ("d1", "one\n"),
        ("d2", "two\n"),
        ("l", "a\0b\0"),
        ("5", "five\n"),
        ("-oQ", "option\n"),
        ("--output=Q", "option\n"),
        ("touch", "x\n"),
        ("src/m.rs", "fn main() {}\n"),
        ("s.sh", "touch P\n"),
        (".gitconfig", ""),
    ] {
        fs::write(Path::new("/work").join(name), text).unwrap();
    }
    let git = "cd /work && git init -q . && git config user.name n && git config user.email e && git add a b src \
               && git commit -qm one && echo x >> a && git stash -q && git tag t && git branch o && git remote add r ../y";
    let status = Command::new("sh").args(["-c", git]).stdout(Stdio::null()).status();
    assert!(status.is_ok_and(|status| status.success()), "`git` has to be installed");
}

fn collect(path: &Path, files: &mut Vec<(PathBuf, Content)>) {
    let metadata = fs::symlink_metadata(path).unwrap();
    if metadata.is_dir() {
        files.push((path.to_owned(), Content::Folder));
        for entry in fs::read_dir(path).unwrap().flatten() {
            collect(&entry.path(), files);
        }
    } else {
        files.push((path.to_owned(), Content::File(fs::read(path).unwrap(), metadata.permissions().mode())));
    }
}

fn states() -> States {
    let mut states = States::new();
    for folder in WATCHED {
        add_states(Path::new(folder), &mut states);
    }
    for entry in fs::read_dir("/").unwrap().flatten() {
        states.insert(entry.path(), State { mode: 0, inode: 0, size: 0, modified: (0, 0) });
    }
    states
}

fn add_states(path: &Path, states: &mut States) {
    let Ok(metadata) = fs::symlink_metadata(path) else { return };
    let size = if metadata.is_dir() { 0 } else { metadata.size() };
    // The files of a folder are compared by themselves: its own time also changes with a file that comes and goes again.
    let modified = if metadata.is_dir() { (0, 0) } else { (metadata.mtime(), metadata.mtime_nsec()) };
    let state = State { mode: metadata.mode(), inode: metadata.ino(), size, modified };
    states.insert(path.to_owned(), state);
    if metadata.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            add_states(&entry.path(), states);
        }
    }
}

fn run(shell: Shell, text: &str) {
    let (program, options) = shell.words().split_first().unwrap();
    let mut command = Command::new(program);
    command.args(options).arg(text).args(["name", "a[$(touch P)]", "-oP", "touch P"]).current_dir("/work");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    // What a variable holds is not known to the analysis: here it is the worst.
    command.envs([
        ("x", "touch P"),
        ("y", "a[$(touch P)]"),
        ("o", "-oP"),
        ("z", "--output=P"),
        ("v", "$(touch P)"),
        ("e", ""),
    ]);
    command.env_remove(MARK).env("GIT_OPTIONAL_LOCKS", "0").env("GIT_CONFIG_NOSYSTEM", "1").env("PAGER", "cat");
    let Ok(mut child) = command.spawn() else { return };
    let begun = Instant::now();
    let mut pause = Duration::from_micros(200);
    loop {
        if child.try_wait().ok().flatten().is_some() {
            break;
        }
        if begun.elapsed() > PATIENCE {
            let _ = Command::new("kill").args(["-9", "-1"]).status();
            let _ = child.wait();
            break;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(2));
    }
    // Processes that a command left behind end up here.
    while rustix::process::wait(rustix::process::WaitOptions::NOHANG).is_ok_and(|found| found.is_some()) {}
}
