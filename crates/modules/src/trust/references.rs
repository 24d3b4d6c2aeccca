//! Files that a text may refer to.
//!
//! Too many are harmless: an unneeded pin costs one more approval. A missing one would run unchecked. So the text is not interpreted, but split in
//! every way in which a shell or a program could, and every existing file with one of these names counts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::FileType;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use amplifier_process::files::{SpecialFile, special_file};

use super::TrustError;

/// Maximum length of a searched text, in bytes.
const MAX_TEXT_LENGTH: usize = 64 * 1024;
const MAX_WORDS: usize = 4_000;
/// Maximum number of searched folders: every word is looked up in every folder that a word names.
const MAX_FOLDERS: usize = 64;
const VIRTUAL_FOLDERS: [&str; 3] = ["/dev", "/proc", "/sys"];

/// Characters around words, for a shell or for a program with options such as `--option=FILE`, `@FILE` or `FILE:FILE`.
const SEPARATORS: &str = ";|&<>(){}[]$`\"'\\=,:!@*?~#^%+";

/// Files that texts refer to, and names of files that do not exist.
#[derive(Debug, Default)]
pub(super) struct ReferencedFiles {
    pub(super) files: BTreeSet<PathBuf>,
    pub(super) absent: BTreeSet<PathBuf>,
    pub(super) special: BTreeMap<PathBuf, &'static str>,
}

/// Finds the files that texts refer to, relative to a folder and to every folder in the texts: a shell line may change to it first.
pub(super) fn find_references(texts: &[String], folder: &Path, owner: &str) -> Result<ReferencedFiles, TrustError> {
    let too_much = |what: String| Err(TrustError::TooManyReferences { owner: owner.to_owned(), what });
    let mut words = BTreeSet::new();
    for text in texts {
        if text.len() > MAX_TEXT_LENGTH {
            return too_much(format!("a text of {} bytes; the limit is {MAX_TEXT_LENGTH}", text.len()));
        }
        split_words(text, &mut words);
        if words.len() > MAX_WORDS {
            return too_much(format!("more than {MAX_WORDS} words"));
        }
    }
    let mut references = ReferencedFiles::default();
    let mut folders = vec![folder.to_owned()];
    let mut next = 0;
    while let Some(folder) = folders.get(next).cloned() {
        next += 1;
        if folders.len() > MAX_FOLDERS {
            return too_much(format!("more than {MAX_FOLDERS} folders to search"));
        }
        for path in words.iter().map(|word| folder.join(word)) {
            folders.extend(references.add(path).filter(|new| !folders.contains(new)));
        }
    }
    Ok(references)
}

fn split_words(text: &str, words: &mut BTreeSet<String>) {
    let mut add = |word: &str| {
        // `-fFILE`, and `$HOME/FILE` after it was split at the dollar sign.
        let after_option = word.strip_prefix('-').and_then(|option| option.get(1..));
        let tails = word.match_indices('/').map(|(at, _)| &word[at + 1..]);
        let all = tails.chain(after_option).chain([word]).filter(|word| !word.is_empty() && !word.contains('\0'));
        words.extend(all.map(str::to_owned));
    };
    add(text);
    text.split(char::is_whitespace).for_each(&mut add);
    text.split(|c: char| c.is_whitespace() || SEPARATORS.contains(c)).for_each(&mut add);
    unquoted(text).iter().for_each(|word| add(word));
}

/// Returns the words of a line without quotes and backslashes: `./my\ hooks/"a b".sh` is one.
fn unquoted(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (character, quote) {
            ('\\', None | Some('"')) => word.extend(characters.next()),
            (character, Some(open)) if character == open => quote = None,
            ('\'' | '"', None) => quote = Some(character),
            (character, None) if character.is_whitespace() || ";|&<>()`".contains(character) => {
                words.push(std::mem::take(&mut word));
            }
            (character, _) => word.push(character),
        }
    }
    words.push(word);
    words
}

impl ReferencedFiles {
    /// Adds the file at a path. Returns the resolved path of a folder.
    fn add(&mut self, path: PathBuf) -> Option<PathBuf> {
        if VIRTUAL_FOLDERS.iter().any(|made_up| path.starts_with(made_up)) {
            return None;
        }
        match std::fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => _ = self.files.insert(path),
            Ok(metadata) if metadata.is_dir() => return path.canonicalize().ok(),
            Ok(metadata) => self.special.extend(special_kind(metadata.file_type()).map(|what| (path, what))),
            // No system has such names.
            Err(error) if error.kind() == ErrorKind::InvalidFilename => {}
            Err(_) => _ = self.absent.insert(path),
        }
        None
    }
}

/// Returns the reason for which a special file cannot be pinned: a pipe or device has other content each time. Sockets are ignored, because they
/// cannot be run or read as files.
fn special_kind(kind: FileType) -> Option<&'static str> {
    match special_file(kind)? {
        SpecialFile::Socket => None,
        SpecialFile::Pipe => Some("the file is a pipe"),
        SpecialFile::Other => Some("the file is a device"),
    }
}
