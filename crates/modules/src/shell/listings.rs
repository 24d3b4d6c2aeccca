//! Words that stand for listed files: `$(git ls-files '*.py')`, and the variable of a loop over such words.

use super::walk::Walker;
use super::word::Word;

/// Maximum number of remembered listings, and of paths in one.
const MOST: usize = 64;
const LONGEST: usize = 1_000;

impl Walker {
    /// Remembers the paths of the files that a substitution lists.
    pub(super) fn lists(&mut self, text: &str, paths: Option<Vec<String>>) {
        if let Some(paths) = paths.filter(|_| text.len() <= LONGEST && self.listings.len() < MOST) {
            self.listings.insert(format!("$({text})"), paths.clone());
            self.listings.insert(format!("`{text}`"), paths);
        }
    }

    /// Remembers the files that the variable of a loop stands for.
    pub(super) fn lists_by_variable(&mut self, name: &str, words: &[Word]) {
        let paths: Option<Vec<Vec<String>>> =
            words.iter().take(MOST + 1).map(|word| self.file_reference(word).paths).collect();
        let paths = paths.unwrap_or_default().concat();
        let is_plain = !words.is_empty() && paths.iter().all(|path| !path.contains(['$', '`', '…']));
        if is_plain {
            self.lists_at(name, &paths);
        }
    }

    /// Remembers the paths of the files that a variable stands for.
    pub(super) fn lists_at(&mut self, name: &str, paths: &[String]) {
        if !self.moves_later && paths.len() <= MOST && self.listings.len() < MOST {
            for raw in forms(name) {
                self.listings.insert(raw, paths.to_vec());
            }
        }
    }

    pub(super) fn forget_listing(&mut self, name: &str) {
        for raw in forms(name) {
            self.listings.remove(&raw);
        }
    }

    /// Returns the paths of the files that a word stands for, if the word is a listing.
    pub(super) fn listing(&self, word: &Word) -> Option<&Vec<String>> {
        if word.literal().is_some() || word.raw.len() > LONGEST + 3 { None } else { self.listings.get(&word.raw) }
    }
}

/// Returns all spellings of a variable as a whole word.
fn forms(name: &str) -> [String; 4] {
    [format!("${name}"), format!("\"${name}\""), format!("${{{name}}}"), format!("\"${{{name}}}\"")]
}
