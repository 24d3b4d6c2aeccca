//! Markdown of the model as rows of a terminal.

use anstyle::Style;
use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::line::{Break, CYAN, DIM, PLAIN, StyledLine};
use super::table::Table;

/// The smallest width of a text within lists and quotes.
const MIN_WIDTH: usize = 20;
/// The number of nested lists and quotes that are indented. Deeper ones are shown, without more indentation.
const MAX_INDENTS: usize = 8;
/// A shorter line may not show yet which block it belongs to: `|` and `1` become a row of a table and an item.
const UNDECIDED: usize = 12;
/// Longer blocks are parsed again only after they have grown by a sixteenth, so that the time stays linear.
const SMALL_BLOCK: usize = 4096;

/// Renders Markdown that arrives in pieces. A row is returned once, when no further piece can change it.
#[derive(Debug, Default)]
pub(super) struct MarkdownStream {
    /// The text from the beginning of the last block on.
    source: String,
    /// The rows of the last block that were returned.
    shown: usize,
    /// `true` if a row was returned. Blocks are separated by an empty row.
    has_rows: bool,
    /// The width at the beginning of the last block: its rows must not move if the size of the terminal changes.
    width: usize,
    /// The length of the text at which it is parsed again.
    next_parse: usize,
}

impl MarkdownStream {
    /// Adds a piece, and returns the rows that are complete.
    pub(super) fn push(&mut self, piece: &str, width: usize) -> Vec<StyledLine> {
        self.source.push_str(piece);
        if self.source.len() < self.next_parse {
            return Vec::new();
        }
        let rows = self.take_rows(width, false);
        let length = self.source.len();
        self.next_parse = if length > SMALL_BLOCK { length + length / 16 } else { 0 };
        rows
    }

    /// Ends the text, and returns the remaining rows.
    pub(super) fn finish(&mut self, width: usize) -> Vec<StyledLine> {
        let rows = self.take_rows(width, true);
        *self = Self::default();
        rows
    }

    /// Returns the text so far, because other output follows. Text that arrives later begins a new block; a code block continues.
    pub(super) fn interrupt(&mut self, width: usize) -> Vec<StyledLine> {
        let is_code = ["```", "~~~"].iter().any(|fence| self.source.trim_start().starts_with(fence));
        if is_code { Vec::new() } else { self.finish(width) }
    }

    fn take_rows(&mut self, width: usize, is_end: bool) -> Vec<StyledLine> {
        if self.shown == 0 {
            self.width = width;
        }
        let mut blocks = render(&self.source, self.width);
        let line = self.source.rfind('\n').map_or(0, |end| end + 1);
        let is_short = self.source[line..].trim().len() < UNDECIDED;
        if !is_end && is_short && blocks.last().is_some_and(|last| last.start >= line) {
            // The line may still belong to the block before.
            blocks.pop();
        }
        let mut rows = Vec::new();
        let mut last_start = 0;
        let count = blocks.len();
        for (number, block) in blocks.into_iter().enumerate() {
            let is_last = number + 1 == count;
            let end = if is_last && !is_end { block.complete } else { block.rows.len() };
            if self.shown == 0 && end > 0 && self.has_rows {
                rows.push(StyledLine::new());
            }
            self.has_rows |= end > 0;
            rows.extend(block.rows.into_iter().take(end).skip(self.shown));
            self.shown = if is_last { end.max(self.shown) } else { 0 };
            last_start = block.start;
        }
        // From the beginning of its line, because indentation has a meaning.
        let line_start = self.source[..last_start].rfind('\n').map_or(0, |end| end + 1);
        self.source.drain(..line_start);
        rows
    }
}

/// A block that is in no other block.
struct Block {
    start: usize,
    rows: Vec<StyledLine>,
    /// The number of rows that stay as they are, whatever text follows.
    complete: usize,
}

fn render(source: &str, width: usize) -> Vec<Block> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut renderer = Renderer { width, ..Renderer::default() };
    let (mut blocks, mut depth): (Vec<Block>, usize) = (Vec::new(), 0);
    let mut start = 0;
    for (event, range) in Parser::new_ext(source, options).into_offset_iter() {
        if depth == 0 {
            start = range.start;
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth -= 1,
            _ => {}
        }
        renderer.event(event);
        if depth == 0 {
            let (rows, complete) = (std::mem::take(&mut renderer.rows), std::mem::take(&mut renderer.complete));
            renderer.has_gap = false;
            blocks.push(Block { start, rows, complete });
        }
    }
    blocks
}

/// A list item or a quote around other blocks.
struct Indent {
    /// The beginning of the first row: the mark of the item.
    first: Option<StyledLine>,
    rest: StyledLine,
}

/// The rows of one block.
#[derive(Default)]
struct Renderer {
    width: usize,
    rows: Vec<StyledLine>,
    complete: usize,
    indents: Vec<Indent>,
    /// The number of the next item of each open list; `None` for bullets.
    lists: Vec<Option<u64>>,
    text: LeafText,
    style: InlineStyle,
    /// The targets of open links, each with the length of the text before it.
    links: Vec<(String, usize)>,
    code: Option<String>,
    table: Option<Table>,
    /// `true` if an empty row comes before the next block of the same item.
    has_gap: bool,
}

/// The text of a paragraph, a heading or a cell.
#[derive(Default)]
struct LeafText {
    /// The finished lines, before hard breaks.
    lines: Vec<StyledLine>,
    line: StyledLine,
    /// The length of the finished lines.
    length: usize,
    /// The text in which more markup may be found when more text arrives. Other characters are filled in.
    plain: String,
}

impl LeafText {
    fn length(&self) -> usize {
        self.length + self.line.length()
    }

    /// Adds a text whose markup is known.
    fn add(&mut self, style: Style, text: &str) {
        self.append(&StyledLine::new().prose(style, text));
    }

    /// Adds a text in which markup may begin.
    fn add_plain(&mut self, style: Style, text: &str) {
        let added = StyledLine::new().prose(style, text);
        self.plain.push_str(&added.text());
        self.line = std::mem::take(&mut self.line).then(&added);
    }

    fn append(&mut self, added: &StyledLine) {
        self.plain.extend(std::iter::repeat_n('x', added.length()));
        self.line = std::mem::take(&mut self.line).then(added);
    }

    fn break_line(&mut self) {
        self.length += self.line.length();
        self.lines.push(std::mem::take(&mut self.line));
    }
}

#[derive(Default)]
struct InlineStyle {
    strong: usize,
    emphasis: usize,
    struck: usize,
    link: usize,
    heading: Option<HeadingLevel>,
}

impl InlineStyle {
    fn style(&self) -> Style {
        let add =
            |style: Style, is_added: bool, change: fn(Style) -> Style| if is_added { change(style) } else { style };
        let style = add(PLAIN, self.strong > 0 || self.heading.is_some(), Style::bold);
        let style = add(style, self.emphasis > 0, Style::italic);
        let style = add(style, self.struck > 0, Style::strikethrough);
        add(style, self.link > 0 || self.heading == Some(HeadingLevel::H1), Style::underline)
    }
}

impl Renderer {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some(code) => code.push_str(&text),
                None => self.text.add_plain(self.style.style(), &text),
            },
            Event::Code(text) => self.text.add(CYAN, &text),
            // Hidden text would be text that the user does not see.
            Event::Html(text) | Event::InlineHtml(text) => {
                for (number, line) in text.trim_end_matches('\n').split('\n').enumerate() {
                    if number > 0 {
                        self.text.break_line();
                    }
                    self.text.add(DIM, line);
                }
            }
            Event::SoftBreak => self.text.add(self.style.style(), " "),
            Event::HardBreak => self.text.break_line(),
            Event::Rule => {
                self.begin_block();
                let line = StyledLine::new().exact(DIM, "─".repeat(self.room().min(40)));
                self.push_rows(vec![line], 0);
                self.has_gap = true;
            }
            Event::TaskListMarker(is_done) => self.text.add(PLAIN, if is_done { "[x] " } else { "[ ] " }),
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.text.add(PLAIN, &text);
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.begin_block();
                self.style.heading = Some(level);
            }
            Tag::BlockQuote(_) => {
                self.begin_block();
                self.indents.push(Indent { first: None, rest: StyledLine::new().exact(DIM, "│ ") });
            }
            Tag::CodeBlock(_) => {
                self.begin_block();
                self.code = Some(String::new());
            }
            Tag::List(first) => {
                self.flush(0);
                self.lists.push(first);
            }
            Tag::Item => {
                self.flush(0);
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", number.saturating_sub(1))
                    }
                    _ => "• ".to_owned(),
                };
                let rest = StyledLine::new().exact(PLAIN, " ".repeat(mark.chars().count()));
                self.indents.push(Indent { first: Some(StyledLine::new().exact(DIM, mark)), rest });
                self.has_gap = false;
            }
            Tag::Table(_) => {
                self.begin_block();
                self.table = Some(Table::default());
            }
            Tag::TableHead | Tag::TableRow => self.table.iter_mut().for_each(Table::begin_row),
            Tag::Emphasis => self.style.emphasis += 1,
            Tag::Strong => self.style.strong += 1,
            Tag::Strikethrough => self.style.struck += 1,
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.style.link += 1;
                self.links.push((dest_url.into_string(), self.text.length()));
            }
            Tag::Paragraph | Tag::HtmlBlock => self.begin_block(),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                // It ends with its line, which is complete only if another block follows.
                self.flush(0);
                self.style.heading = None;
                self.has_gap = true;
            }
            TagEnd::BlockQuote(_) => {
                self.flush(usize::MAX);
                self.indents.pop();
                self.has_gap = true;
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.lists.pop();
                self.has_gap = true;
            }
            TagEnd::Item => {
                self.flush(usize::MAX);
                if self.indents.last().is_some_and(|indent| indent.first.is_some()) {
                    self.push_rows(vec![StyledLine::new()], 0);
                }
                self.indents.pop();
            }
            TagEnd::TableCell => {
                let mut text = std::mem::take(&mut self.text);
                text.break_line();
                let cell = text.lines.iter().fold(StyledLine::new(), StyledLine::then);
                self.table.iter_mut().for_each(|table| table.add_cell(cell.clone()));
            }
            TagEnd::Table => {
                let room = self.room();
                let rows = self.table.take().map(|table| table.rows(room)).unwrap_or_default();
                self.push_rows(rows, 0);
                self.has_gap = true;
            }
            TagEnd::Emphasis => self.style.emphasis -= 1,
            TagEnd::Strong => self.style.strong -= 1,
            TagEnd::Strikethrough => self.style.struck -= 1,
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::Paragraph | TagEnd::HtmlBlock => {
                self.flush(usize::MAX);
                self.has_gap = true;
            }
            _ => {}
        }
    }

    /// Shows the target of a link, unless its text is the target.
    fn end_link(&mut self) {
        self.style.link = self.style.link.saturating_sub(1);
        let Some((target, before)) = self.links.pop() else { return };
        let text: String = self.text.line.text().chars().skip(before.saturating_sub(self.text.length)).collect();
        let is_shown = text == target || format!("mailto:{text}") == target;
        if !is_shown && !target.is_empty() {
            self.text.append(&StyledLine::new().exact(DIM, format!(" ({target})")));
        }
    }

    fn end_code(&mut self) {
        let code = self.code.take().unwrap_or_default();
        // Without a line break at its end, the last line is incomplete, or the beginning of the closing fence.
        let is_ended = code.ends_with('\n');
        let lines: Vec<&str> =
            if code.is_empty() { Vec::new() } else { code.trim_end_matches('\n').split('\n').collect() };
        let room = self.room().saturating_sub(2).max(MIN_WIDTH);
        let indent = StyledLine::new().exact(PLAIN, "  ");
        let wrap =
            |line: &&str| StyledLine::new().prose(PLAIN, line.trim_end_matches('\r')).wrap(room, Break::Anywhere);
        let rows = |lines: &[&str]| lines.iter().flat_map(wrap).map(|row| indent.clone().then(&row)).collect();
        let (last, others) =
            lines.split_last().map_or((&[][..], &[][..]), |(last, others)| (std::slice::from_ref(last), others));
        let (complete, last): (Vec<StyledLine>, Vec<StyledLine>) = (rows(others), rows(last));
        let count = complete.len() + if is_ended { last.len() } else { 0 };
        self.push_rows(complete.into_iter().chain(last).collect(), count);
        self.has_gap = true;
    }

    /// Begins a block: within a list item, an empty row separates it from the block before.
    fn begin_block(&mut self) {
        self.flush(usize::MAX);
        if std::mem::take(&mut self.has_gap) {
            self.push_rows(vec![StyledLine::new()], 0);
        }
    }

    /// Ends the text of a paragraph. At most `complete` of its rows are complete.
    fn flush(&mut self, complete: usize) {
        if self.text.length() == 0 {
            return;
        }
        let mut text = std::mem::take(&mut self.text);
        text.break_line();
        let room = self.room();
        let rows: Vec<StyledLine> = text.lines.iter().flat_map(|line| line.wrap(room, Break::Words)).collect();
        // The last row may get more words.
        let mut stable = rows.len().saturating_sub(1).min(complete);
        if let Some(open) = first_possible_markup(&text.plain) {
            // A word that loses its markup may still fit into the row above.
            let first_word = |row: &StyledLine| row.text().split(' ').next().map_or(0, |word| word.chars().count());
            let mut end = 0;
            let needed = rows.windows(2).map(|rows| {
                // One more for the space at the end of the row, which is left out.
                end += rows[0].length() + 1;
                end + first_word(&rows[1])
            });
            stable = stable.min(needed.take_while(|end| *end <= open).count());
        }
        self.push_rows(rows, stable);
    }

    /// Adds rows behind the indentation. Rows that were added before are complete.
    fn push_rows(&mut self, rows: Vec<StyledLine>, complete: usize) {
        self.complete = self.rows.len() + complete;
        for row in rows {
            let mut line = StyledLine::new();
            for indent in self.indents.iter_mut().take(MAX_INDENTS) {
                line = line.then(indent.first.as_ref().unwrap_or(&indent.rest));
                indent.first = None;
            }
            self.rows.push(line.then(&row).without_trailing_spaces());
        }
    }

    /// Returns the number of columns beside the indentation.
    fn room(&self) -> usize {
        let indent: usize = self.indents.iter().take(MAX_INDENTS).map(|indent| indent.rest.width()).sum();
        self.width.saturating_sub(indent).max(MIN_WIDTH)
    }
}

/// Returns the position of the first character that may be the beginning of markup, if more text follows.
fn first_possible_markup(text: &str) -> Option<usize> {
    let characters: Vec<char> = text.chars().collect();
    let next = |at: usize| characters.get(at + 1).copied();
    let is_word = |character: Option<char>| character.is_none_or(|character| !character.is_whitespace());
    characters.iter().enumerate().position(|(at, character)| match character {
        '`' | '[' | '|' => true,
        '\\' | '!' => next(at).is_none(),
        '*' | '~' => is_word(next(at)),
        '_' => is_word(next(at)) && !at.checked_sub(1).is_some_and(|before| characters[before].is_alphanumeric()),
        '<' => next(at).is_none_or(|next| next.is_ascii_alphabetic() || "/!?".contains(next)),
        '&' => next(at).is_none_or(|next| next.is_ascii_alphanumeric() || next == '#'),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str, width: usize) -> Vec<StyledLine> {
        let mut stream = MarkdownStream { source: text.to_owned(), ..MarkdownStream::default() };
        stream.finish(width)
    }

    fn shown(rows: &[StyledLine]) -> Vec<String> {
        rows.iter().map(|row| row.render(false)).collect()
    }

    /// Checks the rows of a text, and that it has the same rows if it arrives in pieces of any size.
    fn check(text: &str, width: usize, expected: &[&str]) {
        let whole = rows(text, width);
        assert_eq!(shown(&whole), expected, "{text}");
        let characters: Vec<char> = text.chars().collect();
        for size in [1, 2, 3, 5, 17] {
            let mut stream = MarkdownStream::default();
            let pieces = characters.chunks(size).map(|piece| piece.iter().collect::<String>());
            let mut streamed: Vec<StyledLine> = pieces.flat_map(|piece| stream.push(&piece, width)).collect();
            streamed.extend(stream.finish(width));
            assert_eq!(shown(&streamed), expected, "in pieces of {size}: {text}");
        }
    }

    const TEXT: &str = "\
# Title

Some **bold words** with `code` and a [link](https://example.org/a), and then snake_case text that is long enough for rows.
It goes on * here.

- one
- two, which is longer than a row of this width and wraps at words
  1. inner
  2. more

     a second paragraph

> quoted text

```rust
fn main() {}

    let x = \"a line that is longer than the width of the terminal here\";
```

| a | b |
|---|---|
| 1 | **2** |

---
Done.";

    #[test]
    fn markdown_is_shown_in_rows_that_wrap_at_words() {
        let expected = [
            "Title",
            "",
            "Some bold words with code and a link",
            "(https://example.org/a), and then",
            "snake_case text that is long enough for",
            "rows. It goes on * here.",
            "",
            "• one",
            "• two, which is longer than a row of",
            "  this width and wraps at words",
            "  1. inner",
            "  2. more",
            "",
            "     a second paragraph",
            "",
            "│ quoted text",
            "",
            "  fn main() {}",
            "",
            "      let x = \"a line that is longer tha",
            "  n the width of the terminal here\";",
            "",
            "a  b",
            "─  ─",
            "1  2",
            "",
            "────────────────────────────────────────",
            "",
            "Done.",
        ];
        check(TEXT, 40, &expected);
    }

    #[test]
    fn every_prefix_of_a_text_shows_rows_that_stay_at_any_width() {
        let text = format!("{TEXT}\n\n![a picture](b.png) and a \\*star\\*, an &amp; and __strong words__ at the end.");
        let characters: Vec<char> = text.chars().collect();
        for width in 20..80 {
            let whole = shown(&rows(&text, width));
            for end in (0..characters.len()).step_by(if width % 10 == 0 { 1 } else { 7 }) {
                let mut stream = MarkdownStream::default();
                let begun = stream.push(&characters[..end].iter().collect::<String>(), width);
                assert!(whole.starts_with(&shown(&begun)), "{end} at {width}: {begun:?}");
            }
        }
    }

    #[test]
    fn rows_are_shown_while_a_long_paragraph_arrives() {
        let mut stream = MarkdownStream::default();
        let early = stream.push(&"word ".repeat(20), 40);
        assert_eq!(shown(&early), ["word word word word word word word word"; 2]);
    }

    #[test]
    fn a_table_that_is_too_wide_becomes_a_list() {
        let text = "| name | meaning |\n|---|---|\n| a | a long explanation |\n| b | short |\n";
        check(text, 20, &["name: a", "meaning: a long", "explanation", "", "name: b", "meaning: short"]);
    }

    #[test]
    fn hostile_text_cannot_hide_and_cannot_command_the_terminal() {
        check("a\u{1b}[2Jb &#x202e;c", 40, &["a␛[2Jb \\u{202e}c"]);
        check("[good.org](http://evil.org)", 60, &["good.org (http://evil.org)"]);
        check("<http://a.org>", 40, &["http://a.org"]);
        check("x <!-- hidden --> y\n\n<b>bold</b>", 40, &["x <!-- hidden --> y", "", "<b>bold</b>"]);
        check("```\n\u{1b}]0;title\u{7}\n```", 40, &["  ␛]0;title␇"]);
        let deep = rows(&format!("{}deep", "> ".repeat(500)), 40);
        assert_eq!(shown(&deep), ["│ │ │ │ │ │ │ │ deep"]);
    }

    #[test]
    fn output_in_between_keeps_what_has_arrived() {
        let mut stream = MarkdownStream::default();
        assert_eq!(shown(&stream.push("half a sent", 40)), [""; 0]);
        assert_eq!(shown(&stream.interrupt(40)), ["half a sent"]);
        assert_eq!(shown(&stream.push("```\none\ntw", 40)), ["  one"]);
        assert_eq!(shown(&stream.interrupt(40)), [""; 0]);
        assert_eq!(shown(&stream.push("o\n```\n", 40)), ["  two"]);
    }

    #[test]
    fn styles_are_bold_for_headings_and_coloured_for_code() {
        let colours: Vec<String> = rows("# A\n\n*b* `c`", 40).iter().map(|row| row.render(true)).collect();
        let expected = ["\u{1b}[1m\u{1b}[4mA\u{1b}[0m", "", "\u{1b}[3mb\u{1b}[0m \u{1b}[36mc\u{1b}[0m"];
        assert_eq!(colours, expected);
    }
}
