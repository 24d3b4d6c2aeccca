//! Downloads, and the folders that they fill.

use super::command::{Command, base_name};
use super::options::Arguments;
use super::walk::Walker;
use super::word::Word;
use super::written_files;
use super::{git, writes};

/// Maximum number of remembered folders.
const FOLDERS: usize = 64;

/// Programs that install packages, and the words after which they do.
const INSTALLERS: &[(&str, &[&str])] = &[
    ("brew", &["install", "reinstall"]),
    ("bun", &["add", "install", "i", "x"]),
    ("bunx", &[]),
    ("cargo", &["install", "binstall"]),
    ("deno", &["run", "install", "x"]),
    ("easy_install", &[]),
    ("gem", &["install"]),
    ("npm", &["add", "install", "i", "exec", "ci"]),
    ("npx", &[]),
    ("pip", &["install", "wheel"]),
    ("pipx", &["install", "run"]),
    ("pnpm", &["add", "install", "i", "dlx"]),
    ("poetry", &["add"]),
    ("python", &["install"]),
    ("uv", &["add", "install", "run", "x"]),
    ("uvx", &[]),
    ("yarn", &["add", "dlx"]),
];

/// Options whose value is the address of a registry or a proxy, not of a package.
const REGISTRIES: &[&str] = &[
    "-f",
    "-i",
    "--default-index",
    "--extra-index-url",
    "--find-links",
    "--index",
    "--index-url",
    "--proxy",
    "--registry",
    "--source",
];

/// Records files and folders that hold downloads, and packages that are installed from an address.
pub(super) fn note(name: &str, command: &Command, arguments: &Arguments, walker: &mut Walker) {
    match name {
        "git" => git::calls(command).iter().filter(|call| call.name == "clone").for_each(|call| clone(call, walker)),
        "tar" | "bsdtar" | "gtar" => {
            let arguments = writes::tar_arguments(command);
            let archive: Vec<Word> = arguments.values("f", &["file"]).cloned().collect();
            unpack(&archive, arguments.values("C", &["directory", "one-top-level"]).next(), walker);
        }
        "unzip" => {
            let archive: Vec<Word> = arguments.first().flatten().cloned().collect();
            unpack(&archive, arguments.values("d", &[]).next(), walker);
        }
        "7z" | "7za" | "bsdcpio" | "cpio" | "unrar" => {
            let archive: Vec<Word> = command.arguments().to_vec();
            unpack(&archive, None, walker);
        }
        "curl" if arguments.may_have("J", &["remote-header-name"]) => walker.fills(None),
        "curl" if arguments.may_have("O", &["remote-name", "remote-name-all"]) => {
            files(arguments.values("", &["output-dir"]).next(), arguments, walker);
        }
        "wget" if arguments.may_have("rmp", &["recursive", "mirror", "page-requisites", "content-disposition"]) => {
            walker.fills(arguments.values("P", &["directory-prefix"]).next().cloned());
        }
        "wget" if !arguments.surely_has("O", &["output-document"]) => {
            files(arguments.values("P", &["directory-prefix"]).next(), arguments, walker);
        }
        "aria2c" | "axel" | "lftp" | "yt-dlp" => {
            let named: Vec<Word> = option_values(command, &["-o", "--out", "--output"]);
            let folder = option_values(command, &["-d", "--dir"]).into_iter().next();
            if named.is_empty() {
                files(folder.as_ref(), arguments, walker);
            }
            for name in named {
                let folder = folder.as_ref().and_then(Word::literal).map(|folder| folder.trim_end_matches('/'));
                let path = folder.map_or_else(|| name.lead().to_owned(), |folder| format!("{folder}/{}", name.lead()));
                walker.record_write(&Word::known(&path), None, true);
            }
        }
        "aws" | "gsutil" | "gcloud" | "scp" | "rsync" => copy(name, command, walker),
        "gh" if command.texts().any(|text| matches!(text, "clone" | "download")) => walker.fills(None),
        _ => {}
    }
    if installs_from_address(name, command) || runs_downloaded(name, command, walker) {
        walker.runs_download();
    }
}

/// Records the files that `curl -O` and `wget` name after their addresses.
fn files(folder: Option<&Word>, arguments: &Arguments, walker: &mut Walker) {
    for address in arguments.operands().cloned().collect::<Vec<Word>>() {
        let address = address.literal().map(str::to_owned).or_else(|| walker.expand_known(&address));
        let Some(address) = address else { return walker.fills(folder.cloned()) };
        let name = base_name(address.split(['?', '#']).next().unwrap_or_default());
        let file = match folder {
            None => name.to_owned(),
            Some(folder) => match folder.literal() {
                Some(folder) => format!("{}/{name}", folder.trim_end_matches('/')),
                None => return walker.fills(None),
            },
        };
        walker.record_write(&Word::known(&file), None, true);
    }
}

/// Returns the values of an option, as in `-o FILE` or `--out=FILE`.
fn option_values(command: &Command, names: &[&str]) -> Vec<Word> {
    let words = command.arguments();
    let next = words.iter().skip(1).map(Some).chain([None]);
    let value = |(word, next): (&Word, Option<&Word>)| {
        let text = word.literal()?;
        if names.contains(&text) {
            return next.cloned();
        }
        let (name, value) = text.split_once('=')?;
        names.contains(&name).then(|| Word::known(value))
    };
    words.iter().zip(next).filter_map(value).collect()
}

/// Records what is copied from another machine or from a store, as in `scp host:file .` or `aws s3 cp s3://x/y .`.
fn copy(name: &str, command: &Command, walker: &mut Walker) {
    let is_remote = |text: &str| match name {
        "aws" => text.starts_with("s3://"),
        "gsutil" | "gcloud" => text.starts_with("gs://"),
        _ => !text.starts_with('-') && text.split('/').next().unwrap_or_default().contains(':'),
    };
    let Some((target, before)) = command.arguments().split_last() else { return };
    let sources: Vec<&str> = before.iter().map(Word::lead).filter(|text| is_remote(text)).collect();
    if sources.is_empty() || is_remote(target.lead()) {
        return;
    }
    let is_tree = |text: &str| {
        matches!(text, "sync" | "rsync" | "--recursive" | "-r" | "-R" | "-a")
            || text.starts_with('-') && text.contains('a')
    };
    if target.literal().is_none() || command.texts().any(|text| is_tree(text) && !text.starts_with("--p")) {
        return walker.fills(Some(target.clone()));
    }
    let folder = target.lead().trim_end_matches('/');
    walker.record_write(target, None, true);
    for source in sources {
        let name = base_name(source.rsplit(':').next().unwrap_or(source));
        walker.record_write(&Word::known(&format!("{folder}/{name}")), None, true);
    }
}

/// Returns `true` if a program installs, imports or collects a file that the command has downloaded.
fn runs_downloaded(name: &str, command: &Command, walker: &Walker) -> bool {
    const PACKAGES: &[&str] = &[
        ".whl", ".tar.gz", ".tgz", ".zip", ".deb", ".rpm", ".gem", ".pkg", ".apk", ".crate", ".vsix", ".snap",
        ".flatpak",
    ];
    const SYSTEM: &[&str] = &["dpkg", "apt", "apt-get", "rpm", "dnf", "yum", "zypper", "installer", "snap", "code"];
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let installs = SYSTEM.contains(&name) || INSTALLERS.iter().any(|(program, _)| *program == plain);
    let is_package = |text: &str| PACKAGES.iter().any(|ending| text.ends_with(ending));
    if installs && command.texts().any(|text| is_package(text) && walker.is_written_download(text)) {
        return true;
    }
    let module = if plain == "python" { option_values(command, &["-m"]) } else { Vec::new() };
    let module = module.first().and_then(Word::literal);
    let is_test = matches!(name, "pytest" | "py.test") || matches!(module, Some("pytest"));
    if is_test && walker.has_download("conftest.py") {
        return true;
    }
    module.is_some_and(|module| {
        let path = module.replace('.', "/");
        [".py", "/__main__.py", "/__init__.py"].iter().any(|end| walker.is_written_download(&format!("{path}{end}")))
    })
}

fn clone(call: &git::Call, walker: &mut Walker) {
    match call.clone_folders() {
        Some(folders) => folders.into_iter().for_each(|folder| walker.fills(Some(folder))),
        None => walker.fills(None),
    }
}

/// Records the folder of an unpacked archive that is a download.
fn unpack(archive: &[Word], folder: Option<&Word>, walker: &mut Walker) {
    let is_input = archive.is_empty() || archive.iter().any(|file| file.literal() == Some("-"));
    if is_input && walker.fed_by_download || archive.iter().any(|file| walker.is_download(file)) {
        walker.fills(Some(folder.cloned().unwrap_or_else(|| Word::known("."))));
    }
}

/// Returns `true` if a package manager installs something by its address, and so runs it.
fn installs_from_address(name: &str, command: &Command) -> bool {
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let Some((_, actions)) = INSTALLERS.iter().find(|(program, _)| *program == name) else { return false };
    if !actions.is_empty() && !command.texts().take(4).any(|text| actions.contains(&text)) {
        return false;
    }
    let is_git = |word: &str| command.texts().any(|text| text == word);
    if name == "cargo" && is_git("--git") {
        return true;
    }
    let words = command.arguments();
    let before = std::iter::once(None).chain(words.iter().map(Some));
    words.iter().zip(before).any(|(word, before)| {
        let is_registry = before.and_then(Word::literal).is_some_and(|option| REGISTRIES.contains(&option));
        let text = word.lead();
        let text = text
            .split_once(" @ ")
            .or_else(|| text.split_once('@'))
            .map_or(text, |(_, address)| if address.contains("://") { address } else { text });
        let is_address = ["http://", "https://", "git+", "git://", "ssh://", "github:", "gitlab:"]
            .iter()
            .any(|scheme| text.starts_with(scheme));
        is_address && !is_registry
    })
}

impl Walker {
    /// Records a folder that is filled by a download; `None` if it is unknown.
    pub(super) fn fills(&mut self, folder: Option<Word>) {
        let paths = folder.and_then(|folder| self.file_reference(&folder).paths);
        match paths {
            Some(paths) if self.downloaded_folders.len() < FOLDERS => {
                self.downloaded_folders.extend(paths.iter().map(|path| written_files::normalize(path)));
            }
            _ => self.downloads_anywhere = true,
        }
    }

    /// Returns `true` if the command has downloaded this very file.
    fn is_written_download(&self, path: &str) -> bool {
        let path = written_files::normalize(path);
        self.written.iter().any(|written| written.is_download && written.path == path)
    }

    /// Returns `true` if the command has downloaded a file of this name to any folder.
    fn has_download(&self, name: &str) -> bool {
        self.written.iter().any(|written| written.is_download && base_name(&written.path) == name)
    }

    /// Returns `true` if the command has downloaded a program to a folder that may be in `PATH`.
    pub(super) fn installs_program(&self, name: &str) -> bool {
        let is_program =
            |path: &str| path.rsplit_once('/').is_some_and(|(folder, base)| base == name && folder.ends_with("bin"));
        self.written.iter().any(|written| written.is_download && is_program(&written.path))
    }

    /// Returns `true` if the command has downloaded a file, or the folder that holds it.
    pub(super) fn is_download(&self, file: &Word) -> bool {
        let Some(path) = file.literal().map(str::to_owned).or_else(|| self.expand_known(file)) else { return false };
        let plain = written_files::normalize(&path);
        let name = base_name(&plain);
        if self.written.iter().any(|written| written.is_download && (written.path == plain || written.path == name)) {
            return true;
        }
        if self.downloads_anywhere && (path.starts_with("./") || !path.starts_with('/')) {
            return true;
        }
        let paths = self.folders.join(&path).unwrap_or_default();
        let is_below = |path: &String| {
            let path = written_files::normalize(path);
            self.downloaded_folders.iter().any(|folder| match folder.trim_end_matches('/') {
                "" | "." => !path.starts_with(['/', '~']),
                folder => path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
            })
        };
        !self.downloaded_folders.is_empty() && (paths.iter().any(is_below) || self.folders.join(".").is_none())
    }
}
