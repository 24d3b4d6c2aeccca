//! Walk over redirections.

use brush_parser::ast;

use super::Walker;
use crate::shell::command::Stdin;
use crate::shell::word::Word;
use crate::shell::writes;

/// Maximum number of remembered input files of a pipeline.
const FILES: usize = 512;

impl Walker {
    pub(super) fn redirects(&mut self, redirects: Option<&ast::RedirectList>) {
        for redirect in redirects.iter().flat_map(|list| &list.0) {
            self.redirect(redirect, &mut Stdin::default());
        }
    }

    /// Records a redirection; returns `true` if it empties a file.
    pub(super) fn redirect(&mut self, redirect: &ast::IoRedirect, stdin: &mut Stdin) -> bool {
        use ast::{IoFileRedirectKind as Kind, IoFileRedirectTarget as Target};
        match redirect {
            ast::IoRedirect::File(descriptor, kind, target) => {
                let writes = !matches!(kind, Kind::Read | Kind::DuplicateInput);
                let word = match target {
                    Target::Filename(word) | Target::Duplicate(word) => self.word(&word.value),
                    Target::Fd(_) => {
                        hides_input(writes, *descriptor, stdin);
                        return false;
                    }
                    Target::ProcessSubstitution(_, inner) => {
                        hides_input(writes, *descriptor, stdin);
                        self.list(&inner.list);
                        return false;
                    }
                };
                if word.literal() == Some("/dev/null")
                    && matches!((descriptor, &stdin), (None | Some(0), Stdin::Inherited))
                {
                    if !writes {
                        *stdin = Stdin::Text(String::new());
                    }
                } else {
                    hides_input(writes, *descriptor, stdin);
                }
                if !writes && self.fed_words.len() < FILES {
                    self.fed_words.extend(word.literal().map(str::to_owned));
                }
                let duplicates = matches!(kind, Kind::DuplicateInput | Kind::DuplicateOutput);
                if duplicates && word.literal().is_some_and(writes::is_descriptor) {
                    return false;
                }
                let truncates = matches!(kind, Kind::Write | Kind::Clobber | Kind::DuplicateOutput);
                writes::redirection(&word, writes, self) && truncates
            }
            ast::IoRedirect::OutputAndError(word, appends) => {
                let word = self.word(&word.value);
                writes::redirection(&word, true, self) && !appends
            }
            ast::IoRedirect::HereDocument(descriptor, document) => {
                let body = &document.doc.value;
                let word = if document.requires_expansion { Word::here_document(body) } else { Word::known(body) };
                self.expand(&word);
                if descriptor.is_none_or(|number| number == 0) {
                    *stdin = stdin.then(&word, document.remove_tabs);
                }
                false
            }
            ast::IoRedirect::HereString(descriptor, word) => {
                let word = self.word(&word.value);
                if descriptor.is_none_or(|number| number == 0) {
                    *stdin = stdin.then(&word, false);
                }
                false
            }
        }
    }
}

/// Marks the standard input as unknown if this redirection replaces it.
fn hides_input(writes: bool, descriptor: Option<i32>, stdin: &mut Stdin) {
    if !writes && descriptor.is_none_or(|number| number == 0) {
        *stdin = Stdin::Unknown;
    }
}
