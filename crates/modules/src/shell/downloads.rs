//! Downloads, and the folders that they fill.

use super::command::{Command, base_name};
use super::options::Arguments;
use super::walk::Walker;
use super::word::Word;
use super::written_files;
use super::{git, installs, writes};

/// Maximum number of remembered folders.
const FOLDERS: usize = 64;

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
        "az" if is_azure_download(command) => walker.fills(azure_target(command)),
        "degit" | "tiged" => walker.fills(Some(template_target(arguments))),
        "gh" if command.texts().take(2).eq(["repo", "clone"]) => {
            // Behind `--` are options of git.
            let words: Vec<Word> = command.arguments().iter().skip(2).cloned().collect();
            let end = words.iter().position(|word| word.literal() == Some("--")).unwrap_or(words.len());
            clone(&git::Call::new("clone", words.get(..end).unwrap_or_default()), walker);
        }
        "gh" if command.texts().any(|text| text == "download") => walker.fills(None),
        _ => {}
    }
    if installs::is_from_address(name, command)
        || runs_downloaded(name, command, walker)
        || loads_downloaded(name, command, arguments, walker)
    {
        walker.runs_download();
    }
}

/// Records a program that builds or runs a project that the command has downloaded: `git clone URL x && make -C x`.
pub(super) fn note_project(name: &str, command: &Command, walker: &mut Walker) {
    if installs::names_download(name, command, walker) || installs::runs_in_download(name, command, walker) {
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

/// Returns `true` if `az` downloads files.
pub(super) fn is_azure_download(command: &Command) -> bool {
    let words: Vec<&str> = command.texts().take(4).collect();
    match words.as_slice() {
        ["storage", "copy", ..] => true,
        ["storage", rest @ ..] => rest.iter().any(|text| matches!(*text, "download" | "download-batch")),
        _ => false,
    }
}

/// Returns the file or folder that `az` downloads to; `None` if it is not named.
pub(super) fn azure_target(command: &Command) -> Option<Word> {
    option_values(command, &["-d", "--destination", "--destination-path", "--dest", "-f", "--file"]).into_iter().next()
}

/// Returns the folder of a project that `degit REPOSITORY [FOLDER]` downloads.
pub(super) fn template_target(arguments: &Arguments) -> Word {
    arguments.operands().nth(1).cloned().unwrap_or_else(|| Word::known("."))
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
    let installs = SYSTEM.contains(&name) || installs::is_installer(plain);
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

/// Returns `true` if a program runs or deploys its input, or a file, and that is a download: SQL, scheduled commands, and manifests.
fn loads_downloaded(name: &str, command: &Command, arguments: &Arguments, walker: &Walker) -> bool {
    let is_input = |word: &Word| matches!(word.literal(), Some("-" | "/dev/stdin"));
    let is_url = |word: &Word| ["http://", "https://", "oci://"].iter().any(|scheme| word.lead().starts_with(scheme));
    let is_loaded = |word: &Word| is_url(word) || walker.is_download(word) || is_input(word) && walker.fed_by_download;
    let has = |words: &[&str]| command.texts().any(|text| words.contains(&text));
    match name {
        "crontab" => {
            arguments.operands().any(is_loaded) || walker.fed_by_download && arguments.operands().next().is_none()
        }
        // With a statement of its own, a client reads data.
        "psql" | "mysql" | "mariadb" | "cockroach" | "sqlcmd" | "usql" => {
            let states = arguments.may_have("ce", &["command", "execute"]);
            walker.fed_by_download && !states || option_values(command, &["-f", "--file"]).iter().any(is_loaded)
        }
        "sqlite3" | "duckdb" | "clickhouse-client" => {
            let states = arguments.operands().count() > 1 || has(&["-c", "-s", "-q", "--query", "-cmd"]);
            walker.fed_by_download && !states
        }
        "kubectl" | "oc" | "k3s" | "microk8s" => {
            has(&["apply", "create", "replace"]) && option_values(command, &["-f", "--filename"]).iter().any(is_loaded)
        }
        "helm" => {
            has(&["install", "upgrade"]) && command.arguments().iter().filter(|word| word.is_operand()).any(is_loaded)
        }
        _ => false,
    }
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

    /// Returns `true` if the command has entered a folder that is, or may be, in one that it has downloaded.
    pub(super) fn is_within_download(&self) -> bool {
        match self.folders.join(".") {
            None => self.downloads_anywhere || !self.downloaded_folders.is_empty(),
            Some(_) if self.folders.only() == Some("") => false,
            Some(folders) => self.downloads_anywhere || folders.iter().any(|folder| self.is_filled(folder)),
        }
    }

    /// Returns `true` if a path is in a folder that the command has downloaded, or is that folder.
    pub(super) fn is_in_download(&self, path: &str) -> bool {
        self.folders.join(path).is_some_and(|paths| paths.iter().any(|path| self.is_filled(path)))
    }

    fn is_filled(&self, path: &str) -> bool {
        let path = written_files::normalize(path);
        self.downloaded_folders.iter().any(|folder| match folder.trim_end_matches('/') {
            "" | "." => !path.starts_with(['/', '~']),
            folder => path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
        })
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
        !self.downloaded_folders.is_empty()
            && (paths.iter().any(|path| self.is_filled(path)) || self.folders.join(".").is_none())
    }
}
