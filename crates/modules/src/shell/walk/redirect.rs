//! Walk over redirections.

use super::Walker;
use crate::shell::command::Stdin;
use crate::shell::grammar::{Argument, Descriptor, Redirection, RedirectionKind, RedirectionTarget};
use crate::shell::word::Word;
use crate::shell::writes;

/// Maximum number of remembered input files of a pipeline.
const FILES: usize = 512;

impl Walker {
    pub(super) fn redirects(&mut self, redirections: &[Redirection<'_>]) {
        for redirection in redirections {
            self.redirect(redirection, &mut Stdin::default());
        }
    }

    /// Records a redirection; returns `true` if it empties a file.
    pub(super) fn redirect(&mut self, redirection: &Redirection<'_>, stdin: &mut Stdin) -> bool {
        use RedirectionKind::{DuplicateInput, Read, ReadWrite};
        let kind = redirection.kind;
        if let Descriptor::Variable(name) = redirection.descriptor {
            self.assigned(name);
        }
        let replaces_input = match redirection.descriptor {
            Descriptor::Implied => matches!(kind, Read | ReadWrite | DuplicateInput),
            Descriptor::Number(number) => number == 0,
            Descriptor::Variable(_) => false,
        };
        let (text, strips_tabs) = match &redirection.target {
            RedirectionTarget::File(Argument::Word(raw)) => {
                let word = self.word(raw);
                if replaces_input {
                    let is_empty = matches!(stdin, Stdin::Inherited) && word.literal() == Some("/dev/null");
                    *stdin = if is_empty { Stdin::Text(String::new()) } else { Stdin::Unknown };
                }
                return self.redirects_file(kind, &word);
            }
            RedirectionTarget::File(Argument::ProcessSubstitution(list)) => {
                if replaces_input {
                    *stdin = Stdin::Unknown;
                }
                self.list(list);
                return false;
            }
            RedirectionTarget::HereString(word) => (Word::new(word), false),
            RedirectionTarget::HereDocument(document) => {
                let body = document.body.get();
                let text = if document.expands { Word::here_document(body) } else { Word::known(body) };
                (text, document.strips_tabs)
            }
        };
        self.expand(&text);
        if replaces_input {
            *stdin = stdin.then(&text, strips_tabs);
        }
        false
    }

    fn redirects_file(&mut self, kind: RedirectionKind, file: &Word) -> bool {
        use RedirectionKind::{DuplicateInput, DuplicateOutput, Read, Write};
        let duplicates = matches!(kind, DuplicateInput | DuplicateOutput);
        if duplicates && file.literal().is_some_and(writes::is_descriptor) {
            return false;
        }
        let writes = !matches!(kind, Read | DuplicateInput);
        if !writes {
            self.inputs.push(file.literal().map(str::to_owned));
        }
        self.fed_by_download |= !writes && self.is_download(file);
        if !writes && self.fed_words.len() < FILES {
            self.fed_words.extend(file.literal().map(str::to_owned));
        }
        writes::redirection(file, writes, self) && matches!(kind, Write | DuplicateOutput)
    }
}
