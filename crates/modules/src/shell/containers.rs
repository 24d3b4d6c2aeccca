//! `docker run`: the access of a container, and the command in it.

use amplifier_process::is_secret_variable;

use super::command::Command;
use super::effects::{ChangeExtent, Exemption};
use super::walk::Walker;
use super::word::Word;

/// Flags that give the container no access.
const FLAGS: &[&str] = &[
    "--rm",
    "-i",
    "-t",
    "-it",
    "-ti",
    "-d",
    "-dit",
    "-itd",
    "-P",
    "--init",
    "--interactive",
    "--tty",
    "--detach",
    "--read-only",
    "--no-healthcheck",
    "--publish-all",
    "-q",
    "--quiet",
    "--sig-proxy=false",
    "--oom-kill-disable",
];

/// Options with a value that give the container no access.
const VALUED: &[&str] = &[
    "-w",
    "--workdir",
    "-e",
    "--env",
    "--env-file",
    "-u",
    "--user",
    "--name",
    "-p",
    "--publish",
    "--platform",
    "-h",
    "--hostname",
    "-l",
    "--label",
    "-m",
    "--memory",
    "--cpus",
    "--entrypoint",
    "--pull",
    "--gpus",
    "--shm-size",
    "--tmpfs",
    "--restart",
    "--stop-timeout",
    "--ulimit",
    "--add-host",
    "--expose",
    "--memory-swap",
    "--dns",
    "--health-cmd",
    "--log-driver",
    "--log-opt",
    "--cidfile",
    "--network-alias",
    "-a",
    "--attach",
    "--pids-limit",
];

/// Options that share a namespace of the machine if their value is `host`.
const NAMESPACES: &[&str] = &["--network", "--net", "--pid", "--ipc", "--uts", "--userns", "--cgroupns"];

pub(super) fn runs(command: &Command) -> bool {
    matches!(command.texts().next(), Some("run")) || command.texts().take(2).eq(["container", "run"])
}

/// The options of a container that matter.
struct Container {
    mounts: Vec<Word>,
    entry: Option<Word>,
    /// `true` if a variable whose name looks like a secret keeps its value, as in `-e API_TOKEN`.
    gets_secret: bool,
    /// Index of the image's name.
    image: usize,
}

/// Judges a container by its access and its command; an unclear one counts as sending.
pub(super) fn run(command: &Command, walker: &mut Walker) {
    walker.taint();
    let words: Vec<Word> = command.words.iter().map(|word| expand(word, walker)).collect();
    let Some(container) = read(&words) else {
        return walker.sends("starts a container that may reach more than the workspace", &command.source_text());
    };
    let (writes, scripts, losses) =
        (walker.effects.writes.len(), walker.effects.scripts.len(), walker.effects.losses.len());
    let (changes, programs) = (walker.effects.changes.len(), walker.effects.unknown_programs.len());
    let loaders = walker.effects.code_loaders.len();
    if container.gets_secret {
        walker.sends("passes a secret of the environment to a container", &command.source_text());
    }
    let rest = words.iter().skip(container.image + 1).cloned();
    let inner: Vec<Word> = container.entry.into_iter().chain(rest).collect();
    let (folders, moves) = (walker.folders.clone(), walker.analysis.moves);
    if inner.first().is_some_and(|word| !word.lead().starts_with('-')) {
        walker.moves();
        Command { words: inner, stdin: command.stdin.clone() }.inspect(walker);
    }
    // The folders of a container change no path of the workspace.
    (walker.folders, walker.analysis.moves) = (folders, moves);
    let has_changed = walker.effects.writes.len() > writes || walker.effects.changes.len() > changes;
    // Files in the container belong to the image, or are mounted.
    walker.effects.writes.truncate(writes);
    walker.effects.scripts.truncate(scripts);
    walker.effects.changes.truncate(changes);
    walker.effects.unknown_programs.truncate(programs);
    walker.effects.code_loaders.truncate(loaders);
    for loss in walker.effects.losses.iter_mut().skip(losses).filter(|_| !container.mounts.is_empty()) {
        loss.exemption = Exemption::Never;
    }
    let files = walker.file_references(&container.mounts);
    for file in files {
        // A command that changes files may change each mounted one.
        walker.changes(file.clone(), if has_changed { ChangeExtent::Anything } else { ChangeExtent::File });
        walker.effects.writes.push(file);
    }
}

/// Expands the known variables of a word.
fn expand(word: &Word, walker: &Walker) -> Word {
    match (word.literal(), walker.expand_known(word)) {
        (None, Some(text)) => Word::known(&text),
        _ => word.clone(),
    }
}

/// Parses the options before the image; `None` if one of them gives access, or is unknown.
fn read(words: &[Word]) -> Option<Container> {
    let mut container = Container { mounts: Vec::new(), entry: None, gets_secret: false, image: 0 };
    let mut at = words.iter().position(|word| word.literal() == Some("run"))? + 1;
    loop {
        let word = words.get(at)?;
        if !word.lead().starts_with('-') {
            let is_image = word.is_operand() && !word.is_many();
            container.image = at;
            return is_image.then_some(container);
        }
        at += 1;
        if word.literal().is_some_and(|text| FLAGS.contains(&text)) {
            continue;
        }
        let option = word.lead().split('=').next().unwrap_or_default();
        let value = if word.lead().contains('=') {
            // Of `-v=/:/x`, the value begins after the sign; the next word is no value.
            option.starts_with("--").then(|| word.tail(option.len() + 1))?
        } else {
            at += 1;
            words.get(at - 1)?.clone()
        };
        match option {
            "-v" | "--volume" | "--mount" => container.mounts.extend(mount(option, &value)?),
            "--entrypoint" => container.entry = Some(value),
            "-e" | "--env" if value.literal().is_some_and(passes_secret) => container.gets_secret = true,
            // Values are text for the container, but must not expand to several words.
            _ if VALUED.contains(&option) => (!value.is_many()).then_some(())?,
            _ if NAMESPACES.contains(&option) => value.literal().filter(|value| !value.contains("host")).map(drop)?,
            _ => return None,
        }
    }
}

/// Returns `true` for a variable without a value, which keeps that of the environment.
fn passes_secret(variable: &str) -> bool {
    !variable.contains('=') && is_secret_variable(variable)
}

/// Returns the mounted folder; `Some(None)` for a volume, `None` if unknown.
fn mount(option: &str, value: &Word) -> Option<Option<Word>> {
    let text = value.literal()?;
    if option != "--mount" {
        let (from, _) = text.split_once(':').unwrap_or(("", text));
        let is_path = from.starts_with(['.', '/', '~']);
        return Some(is_path.then(|| Word::known(from)));
    }
    let (mut kind, mut source, mut target) = (None, None, None);
    for field in text.split(',') {
        let (key, value) = field.split_once('=').unwrap_or((field, ""));
        let place = match key {
            "type" => &mut kind,
            "source" | "src" => &mut source,
            "target" | "destination" | "dst" => &mut target,
            "readonly" | "ro" => continue,
            // Other keys, also in capitals, can name a folder.
            _ => return None,
        };
        // Of two values, the last one counts.
        if place.replace(value).is_some() || value.contains('"') {
            return None;
        }
    }
    match kind.unwrap_or("volume") {
        "bind" => source.map(|source| Some(Word::known(source))),
        "volume" if !source.is_some_and(|source| source.contains('/')) => Some(None),
        "tmpfs" => Some(None),
        _ => None,
    }
}
