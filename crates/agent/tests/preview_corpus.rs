//! Previews and tools agree: a corpus of calls, each shown and then run.
//!
//! The diff of a preview, applied to the file before, gives the file after. A call that the preview says will be refused is refused by the tool in the
//! same words, and the other way around.

#![cfg(unix)]

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use amplifier_agent::tool::{self, Tool, Workspace};
use amplifier_core::{ActionPreview, Map, PreviewRow, PreviewRowKind};
use serde_json::{Value, json};

const MIB: usize = 1 << 20;
const REFUSED: &str = "will be refused: ";

/// The files of every case. Paths that end in `/` are folders.
fn fill(root: &Path) {
    let text = |name: &str, content: &[u8]| {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    };
    text("notes.txt", b"one\ntwo\nthree\n");
    text("aaa.txt", b"aaa");
    text("one.txt", b"one");
    text("empty.txt", b"");
    text("break.txt", b"\n");
    text("open.txt", b"one\ntwo");
    text("crlf.txt", b"one\r\ntwo\r\nthree\r\n");
    text("mixed.txt", b"one\r\ntwo\nthree\rfour\n");
    text("mac.txt", b"one\rtwo\rthree");
    text("unicode.txt", "Größe: 3 µm\n日本語 👩‍👩‍👧 e\u{301}\nabc\u{202e}def\u{2028}end\n".as_bytes());
    text("bom.txt", "\u{feff}one\ntwo\n".as_bytes());
    text("nul.txt", b"one\0two\n");
    text("late-nul.txt", &[vec![b'x'; 9_000], vec![0, b'\n'], b"one\n".to_vec()].concat());
    text("latin.txt", b"caf\xe9\none\n");
    text("bytes.bin", &[0xff, 0xfe, 0, 1]);
    text("deep/er/file.txt", b"deep\n");
    text("repeated.txt", b"x = 1\ny = 2\nx = 1\ny = 2\nx = 1\n");
    text("long-line.txt", format!("{}one{}\n", "a".repeat(100_000), "b".repeat(100_000)).as_bytes());
    let lines: Vec<String> = (0..200_000).map(|number| format!("line {number}\n")).collect();
    text("2mib.txt", lines.concat().as_bytes());
    text("grows.txt", "a".repeat(8 * MIB).as_bytes());
    text("largest.txt", &[vec![b'a'; 10 * MIB - 4], b"one\n".to_vec()].concat());
    text("too-large.txt", &[vec![b'a'; 10 * MIB], b"one\n".to_vec()].concat());
    text("rules/bundle.yaml", b"hooks: []\n");
    text("key", b"the secret is 7\n");
    text("name with spaces.txt", b"one\n");
    text("-dash.txt", b"one\n");
    fs::hard_link(root.join("key"), root.join("second-name")).unwrap();
    fs::create_dir(root.join("folder")).unwrap();
    symlink("notes.txt", root.join("link")).unwrap();
    symlink("link", root.join("link-to-link")).unwrap();
    symlink("deep", root.join("way")).unwrap();
    symlink("not-there.txt", root.join("dangling")).unwrap();
    symlink("../elsewhere.txt", root.join("out")).unwrap();
    symlink("/etc", root.join("etc")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    symlink("key", root.join("link-to-key")).unwrap();
    symlink("rules", root.join("link-to-rules")).unwrap();
    make_fifo(&root.join("pipe"));
}

fn make_fifo(path: &Path) {
    let path = CString::new(path.to_str().unwrap()).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
}

fn edit(file: &str, old: &str, new: &str) -> (&'static str, Value) {
    ("Edit", json!({ "file_path": file, "old_string": old, "new_string": new }))
}

fn edit_all(file: &str, old: &str, new: &str) -> (&'static str, Value) {
    ("Edit", json!({ "file_path": file, "old_string": old, "new_string": new, "replace_all": true }))
}

fn edits(file: &str, edits: &[(&str, &str)]) -> (&'static str, Value) {
    let edits: Vec<Value> = edits.iter().map(|(old, new)| json!({ "old_string": old, "new_string": new })).collect();
    ("MultiEdit", json!({ "file_path": file, "edits": edits }))
}

fn write(file: &str, content: &str) -> (&'static str, Value) {
    ("Write", json!({ "file_path": file, "content": content }))
}

/// Calls that change a file.
fn changes() -> Vec<(&'static str, Value)> {
    let big = "x".repeat(3 * MIB);
    let lines: Vec<String> = (0..60_000).map(|number| format!("other line {number}\n")).collect();
    vec![
        edit("notes.txt", "two", "zwei"),
        edit("notes.txt", "one\ntwo\n", ""),
        edit("notes.txt", "three\n", "three"),
        edit("notes.txt", "one\ntwo\nthree\n", ""),
        edit("./deep/../notes.txt", "two", "2"),
        edit("aaa.txt", "aaa", "b"),
        edit_all("aaa.txt", "aa", "b"),
        edit_all("aaa.txt", "a", "aa"),
        edit("open.txt", "two", "two\n"),
        edit("open.txt", "two", "2"),
        edit("break.txt", "\n", "one"),
        edit("crlf.txt", "two", "zwei"),
        edit("crlf.txt", "two\r\nthree", "2\n3"),
        edit_all("crlf.txt", "\r\n", "\n"),
        edit("mixed.txt", "three\rfour", "three\r\nfour"),
        edit("mac.txt", "two\r", "two\r\n"),
        edit("unicode.txt", "日本語 👩‍👩‍👧", "中文 👨‍👩‍👧"),
        edit("unicode.txt", "\u{202e}", ""),
        edit("unicode.txt", "e\u{301}", "é"),
        edit("bom.txt", "\u{feff}one", "one"),
        edit("late-nul.txt", "one", "two"),
        edit("deep/er/file.txt", "deep", "deeper"),
        edit("link", "two", "through a link"),
        edit("link-to-link", "two", "through two links"),
        edit("way/er/file.txt", "deep", "through a folder"),
        edit("name with spaces.txt", "one", "two"),
        edit("-dash.txt", "one", "two"),
        edit("long-line.txt", "one", "two"),
        edit("2mib.txt", "line 100000\n", "another line\n"),
        edit("largest.txt", "one", "two"),
        edit_all("repeated.txt", "x = 1", "x = 3"),
        edits("notes.txt", &[("one", "1"), ("two", "2"), ("three", "3")]),
        edits("notes.txt", &[("one", "two and a half"), ("two and a half", "2.5")]),
        edits("notes.txt", &[("two", "x"), ("x", "two")]),
        edits("repeated.txt", &[("x = 1\ny = 2\nx = 1\ny = 2\nx = 1\n", "z\n")]),
        (
            "MultiEdit",
            json!({ "file_path": "repeated.txt", "edits": [
            { "old_string": "x = 1", "new_string": "x = 3", "replace_all": true },
            { "old_string": "x = 3\ny = 2\nx = 3\ny = 2\n", "new_string": "" },
        ] }),
        ),
        write("notes.txt", "one\n2\nthree\n"),
        write("notes.txt", "one\ntwo\nthree\n"),
        write("notes.txt", "one\ntwo\nthree"),
        write("notes.txt", ""),
        write("empty.txt", "now there is something"),
        write("empty.txt", ""),
        write("new.txt", "a\nb\n"),
        write("new.txt", "a\nb"),
        write("new.txt", ""),
        write("new.txt", "\n"),
        write("new.txt", "\n\n"),
        write("new.txt", "a\r\nb\rc\u{2028}d"),
        write("new/folder/file.txt", "made\n"),
        write("link", "through a link\n"),
        write("dangling", "made where the link leads\n"),
        write("crlf.txt", "one\ntwo\nthree\n"),
        write("mac.txt", "one\r\ntwo\r\nthree"),
        write("nul.txt", "one\ntwo\n"),
        write("2mib.txt", "short\n"),
        write("new.txt", &big),
        write("new.txt", &lines.concat()),
        // The old content is not text, or larger than tools read.
        write("bytes.bin", "text\n"),
        write("latin.txt", "café\n"),
        write("too-large.txt", "short\n"),
        write("grows.txt", "short\n"),
    ]
}

/// Calls that the tool refuses.
fn refusals() -> Vec<(&'static str, Value)> {
    let path = |path: &str| ("Edit", json!({ "path": path, "old_string": "one", "new_string": "two" }));
    vec![
        edit("aaa.txt", "aa", "b"),
        edit("empty.txt", "", "hello"),
        edit("missing.txt", "", "hello"),
        edit("missing.txt", "one", "two"),
        edit("one.txt", "one", "one"),
        path("one.txt"),
        ("Edit", json!({ "file_path": "one.txt", "old_string": "one", "new_string": "two", "replace_all": "true" })),
        edit("nul.txt", "one", "two"),
        edit_all("grows.txt", "a", "bb"),
        edit("too-large.txt", "one", "two"),
        edit("latin.txt", "one", "two"),
        edit("bytes.bin", "a", "b"),
        edit("notes.txt", "four", "4"),
        edit("notes.txt", "o", "0"),
        edit("crlf.txt", "one\ntwo", "1\n2"),
        edit("repeated.txt", "x = 1", "x = 3"),
        edit("folder", "one", "two"),
        edit(".", "one", "two"),
        edit("", "one", "two"),
        edit("notes.txt/more", "one", "two"),
        edit("missing/folder/file.txt", "one", "two"),
        edit("pipe", "one", "two"),
        edit("out", "one", "two"),
        edit("etc/hostname", "a", "b"),
        edit("../elsewhere.txt", "one", "two"),
        edit("/etc/passwd", "root", "toor"),
        edit("loop", "one", "two"),
        edit("dangling", "one", "two"),
        edit("key", "secret", "public"),
        edit("second-name", "secret", "public"),
        edit("link-to-key", "secret", "public"),
        edit("rules/bundle.yaml", "[]", "[1]"),
        edit("link-to-rules/bundle.yaml", "[]", "[1]"),
        edit("rules/bundle.yaml", "not there", "[1]"),
        edit("nul\0byte", "one", "two"),
        edits("notes.txt", &[]),
        edits("notes.txt", &[("one", "1"), ("one", "2")]),
        edits("notes.txt", &[("one", "1"), ("", "2")]),
        edits("notes.txt", &[("one", "1"), ("two", "two")]),
        edits("repeated.txt", &[("y = 2", "y = 3")]),
        (
            "MultiEdit",
            json!({ "file_path": "notes.txt", "edits": [{ "old_string": "one", "new_string": "1", "all": true }] }),
        ),
        ("MultiEdit", json!({ "file_path": "notes.txt", "edits": "one" })),
        ("Edit", json!({})),
        ("Write", json!({ "file_path": "new.txt" })),
        ("Write", json!({ "file_path": "new.txt", "content": 7 })),
        ("Write", json!({ "path": "new.txt", "content": "x" })),
        write("folder", "x"),
        write(".", "x"),
        write("notes.txt/more", "x"),
        write("pipe", "x"),
        write("out", "x"),
        write("etc/new-file", "x"),
        write("/etc/new-file", "x"),
        write("no/such/../../../../x", "x"),
        write("loop", "x"),
        write("key", "x"),
        write("second-name", "x"),
        write("link-to-key", "x"),
        write("rules/new.yaml", "x"),
        write("rules", "x"),
        ("Bash", json!({ "command": ["ls"] })),
        ("Bash", json!({ "command": "ls", "timeout": 601 })),
        ("Bash", json!({ "command": "ls", "cwd": "/" })),
        ("Read", json!({ "file_path": "missing.txt" })),
        ("Read", json!({ "file_path": "/etc/passwd" })),
        ("Read", json!({ "file_path": "etc/passwd" })),
        ("Read", json!({ "file_path": "folder" })),
        ("Read", json!({ "file_path": "nul.txt" })),
        ("Read", json!({ "file_path": "pipe" })),
        ("Read", json!({ "file_path": "link-to-key" })),
        ("Read", json!({ "file_path": "notes.txt", "limit": 0 })),
        ("Glob", json!({ "pattern": "/etc/*" })),
        ("Glob", json!({ "pattern": "[" })),
        ("Glob", json!({ "pattern": "*", "path": "notes.txt" })),
        ("Glob", json!({ "pattern": "*", "path": "etc" })),
        ("Grep", json!({ "pattern": "(" })),
        ("Grep", json!({ "pattern": "x", "context": 21 })),
        ("Grep", json!({ "pattern": "x", "path": "../" })),
        ("Grep", json!({ "pattern": "x", "path": "missing" })),
        ("Todo", json!({ "todos": [{ "content": " ", "status": "pending" }] })),
        ("Todo", json!({ "todos": "all" })),
    ]
}

struct Place {
    folder: tempfile::TempDir,
    workspace: Workspace,
    tools: BTreeMap<String, std::sync::Arc<dyn Tool>>,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("work");
        fs::create_dir(&root).unwrap();
        fill(&root);
        fs::write(folder.path().join("elsewhere.txt"), "one\n").unwrap();
        let workspace = Workspace::new(&root).unwrap().hide(["key"]).protect(["rules"]);
        let tools = tool::standard(&workspace).into_iter().map(|tool| (tool.spec().name, tool)).collect();
        Self { folder, workspace, tools }
    }

    /// Every file, so that a change anywhere is seen.
    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                match entry.file_type().unwrap() {
                    kind if kind.is_dir() => folders.push(entry.path()),
                    kind if kind.is_file() => {
                        _ = files.insert(entry.path().display().to_string(), fs::read(entry.path()).unwrap())
                    }
                    _ => {}
                }
            }
        }
        files
    }

    /// Runs a call as a session does after a person has agreed to its preview.
    async fn run(&self, name: &str, input: &Map, preview: &ActionPreview) -> Result<(), String> {
        let tool = &self.tools[name];
        let result = match preview.compared_with.clone() {
            Some(compared_with) => tool.run_previewed(input.clone(), compared_with).await,
            None => tool.run(input.clone()).await,
        };
        result.map(|_| ()).map_err(|error| error.to_string())
    }
}

fn refusal(preview: &ActionPreview) -> Option<&str> {
    preview.warnings.iter().find_map(|warning| warning.strip_prefix(REFUSED))
}

/// The file after the diff of a preview.
fn apply(before: &str, rows: &[PreviewRow]) -> String {
    let mut lines = before.split_inclusive('\n');
    let (mut after, mut taken) = (String::new(), 0);
    let mut rows = rows.iter().peekable();
    while let Some(row) = rows.next() {
        let is_open = rows.peek().is_some_and(|next| next.kind == PreviewRowKind::Note);
        let line = if is_open { row.text.clone() } else { format!("{}\n", row.text) };
        match row.kind {
            PreviewRowKind::Gap | PreviewRowKind::Note => continue,
            PreviewRowKind::Plain => panic!("a line that is no part of a diff: {row:?}"),
            PreviewRowKind::Added => {
                // A new file has no numbers.
                after.push_str(&line);
                continue;
            }
            PreviewRowKind::Context | PreviewRowKind::Removed => {}
        }
        let number = row.old.unwrap();
        while taken + 1 < number {
            after.push_str(lines.next().unwrap());
            taken += 1;
        }
        assert_eq!(lines.next(), Some(line.as_str()));
        taken += 1;
        if row.kind == PreviewRowKind::Context {
            after.push_str(&line);
        }
    }
    after.extend(lines);
    after
}

#[tokio::test]
async fn what_a_preview_shows_is_what_the_tool_does() {
    let mut place = Place::new();
    for (name, input) in changes() {
        let case = format!("{name} {}", input.to_string().chars().take(200).collect::<String>());
        let input = input.as_object().unwrap();
        let before = place.files();
        let preview = tool::preview(name, input, &place.workspace);
        assert_eq!(place.files(), before, "{case}: the preview changes something");
        assert_eq!(refusal(&preview), None, "{case}");
        assert_eq!(Some(&preview), place.tools[name].preview(input).as_ref(), "{case}");
        place.run(name, input, &preview).await.unwrap_or_else(|error| panic!("{case}: {error}"));

        let file = place.workspace.root().join(&preview.compared_with.as_ref().unwrap().path);
        let key = file.display().to_string();
        let mut after = place.files();
        let written = String::from_utf8(after.remove(&key).unwrap()).unwrap();
        let mut others = before.clone();
        let old = others.remove(&key);
        assert_eq!(after, others, "{case}: another file is changed");
        if preview.truncated {
            assert_eq!(preview.warnings[0], ActionPreview::TOO_LARGE, "{case}");
        } else if preview.warnings.is_empty() {
            let old = String::from_utf8(old.unwrap_or_default()).unwrap();
            assert!(apply(&old, &preview.body) == written, "{case}: {:?}", preview.body);
        } else {
            assert!(preview.warnings[0].starts_with("the content that is replaced is not shown: "), "{case}");
            assert!(apply("", &preview.body) == written, "{case}: {:?}", preview.body);
        }
        // Every case begins with the same files.
        let changed = fs::read(&file).ok() != before.get(&key).cloned();
        if changed {
            place = Place::new();
        }
    }
}

#[tokio::test]
async fn what_a_preview_says_will_be_refused_is_refused_in_the_same_words() {
    let place = Place::new();
    let before = place.files();
    for (name, input) in refusals() {
        let case = format!("{name} {input}");
        let input = input.as_object().unwrap();
        let preview = tool::preview(name, input, &place.workspace);
        let said = refusal(&preview).unwrap_or_else(|| panic!("{case}: {preview:?}")).to_owned();
        let error = place.run(name, input, &preview).await.expect_err(&case);
        assert_eq!(said, error, "{case}");
        let without_preview = place.tools[name].run(input.clone()).await.expect_err(&case).to_string();
        assert_eq!(said, without_preview, "{case}");
        let shown = serde_json::to_string(&preview).unwrap();
        assert!(!shown.contains("the secret is 7") && !shown.contains("hooks: []"), "{case}: {shown}");
    }
    assert_eq!(place.files(), before);
}

#[tokio::test]
async fn the_corpus_is_large_enough() {
    assert!(changes().len() >= 60, "{}", changes().len());
    assert!(refusals().len() >= 60, "{}", refusals().len());
}

#[tokio::test]
async fn what_was_refused_is_not_done_when_it_could_be_after_all() {
    let late: [(_, fn(&Path)); 4] = [
        (edit("missing.txt", "one", "two"), |root| fs::write(root.join("missing.txt"), "one").unwrap()),
        (edit("notes.txt", "four", "4"), |root| fs::write(root.join("notes.txt"), "four").unwrap()),
        (write("out", "x"), |root| {
            fs::remove_file(root.join("out")).unwrap();
        }),
        (edit("out", "one", "two"), |root| {
            fs::remove_file(root.join("out")).unwrap();
            fs::write(root.join("out"), "one").unwrap();
        }),
    ];
    for ((name, input), meanwhile) in late {
        let place = Place::new();
        let input = input.as_object().unwrap();
        let preview = tool::preview(name, input, &place.workspace);
        assert!(refusal(&preview).is_some());
        meanwhile(place.workspace.root());
        let before = place.files();
        let error = place.run(name, input, &preview).await.unwrap_err();
        assert!(error.contains("changed after the approval was requested"), "{error}");
        assert_eq!(place.files(), before);
    }
}

/// The text of a preview, a part a line.
fn drawn(preview: &ActionPreview) -> String {
    let ActionPreview { title, target, summary, warnings, body, fields, .. } = preview;
    let head = [Some(title), target.as_ref(), summary.as_ref()].into_iter().flatten().cloned().collect::<Vec<_>>();
    let rows = body.iter().map(|row| match row.kind {
        PreviewRowKind::Plain | PreviewRowKind::Gap => row.text.clone(),
        PreviewRowKind::Context => format!(" {}", row.text),
        PreviewRowKind::Added => format!("+{}", row.text),
        PreviewRowKind::Removed => format!("-{}", row.text),
        PreviewRowKind::Note => format!("\\ {}", row.text),
    });
    let fields = fields.iter().map(|field| format!("{}: {}", field.name, field.value));
    let warnings = warnings.iter().map(|warning| format!("! {warning}"));
    [head.join("  ")].into_iter().chain(warnings).chain(rows).chain(fields).collect::<Vec<_>>().join("\n")
}

#[test]
fn each_tool_has_its_own_form() {
    let place = Place::new();
    let check = |name: &str, input: Value, expected: &str| {
        let preview = tool::preview(name, input.as_object().unwrap(), &place.workspace);
        assert_eq!(drawn(&preview), expected);
        let sent = serde_json::to_string(&preview).unwrap();
        assert_eq!(serde_json::from_str::<ActionPreview>(&sent).unwrap(), preview);
    };
    let call = |(name, input): (&'static str, Value), expected: &str| check(name, input, expected);
    check("Bash", json!({ "command": "set -e\nmake all\n", "timeout": 60 }), "Bash\nset -e\nmake all\ntimeout: 60");
    check("Read", json!({ "file_path": "notes.txt", "limit": 5 }), "Read  notes.txt\nlimit: 5");
    check("Glob", json!({ "pattern": "**/*.rs" }), "Glob  **/*.rs");
    check("Grep", json!({ "pattern": "TODO", "path": "deep" }), "Grep  TODO\npath: \"deep\"");
    check("Task", json!({ "task": "Look\naround", "agent_name": "explorer" }), "Task  explorer\nLook\naround");
    let todos = json!([{ "content": "look", "status": "completed" }, { "content": "go", "status": "in_progress" }]);
    check("Todo", json!({ "todos": todos }), "Todo\n[x] look\n[>] go");
    check("Deploy", json!({ "to": "production" }), "Deploy\n{\n  \"to\": \"production\"\n}");
    call(write("new.txt", "a\nb\n"), "Write  new.txt  new file\n+a\n+b");
    call(write("new.txt", ""), "Write  new.txt  new empty file");
    call(write("notes.txt", "one\n2\nthree\n"), "Write  notes.txt  +1 −1\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three");
    call(write("one.txt", "one"), "Write  one.txt  changes nothing");
    let expected = "Write  bytes.bin\n! the content that is replaced is not shown: not text, but 4 bytes\n+x\n\
                    \\ no line break at the end of the file";
    call(write("bytes.bin", "x"), expected);
    let expected = "Edit  key\n! will be refused: `key` cannot be edited: hidden from tools\n-secret\n+public";
    call(edit("key", "secret", "public"), expected);
    let expected = "Edit  aaa.txt\n! will be refused: `old_string` is in `aaa.txt` 2 times: add lines around it so that it is there once, \
                    or set `replace_all`\n-aa\n+b";
    call(edit("aaa.txt", "aa", "b"), expected);
}

#[test]
fn what_is_too_large_to_show_is_said() {
    let place = Place::new();
    let preview = |(name, input): (&str, Value)| tool::preview(name, input.as_object().unwrap(), &place.workspace);
    // An edit of a large file is shown like any other.
    let shown = preview(edit("2mib.txt", "line 100000\n", "another line\n"));
    assert_eq!((shown.truncated, shown.summary.as_deref(), shown.body.len()), (false, Some("+1 −1"), 9));
    // The whole change is counted, also where it is not shown.
    let shown = preview(write("2mib.txt", "short\n"));
    assert_eq!((shown.truncated, shown.summary.as_deref()), (true, Some("+1 −200000")));
    assert_eq!(shown.warnings, [ActionPreview::TOO_LARGE]);
    let last = shown.body.last().unwrap();
    assert!(last.kind == PreviewRowKind::Note && last.text.starts_with("not shown: "), "{last:?}");
    let size: usize = shown.body.iter().map(|row| row.text.len() + 64).sum();
    assert!(size <= ActionPreview::LARGEST_BODY + 200, "{size}");
    // One line is shown in part.
    let shown = preview(write("new.txt", &"x".repeat(3 * MIB)));
    assert_eq!(shown.warnings, [ActionPreview::TOO_LARGE]);
    assert!(shown.body[0].text.len() > MIB / 2 && shown.body[0].text.ends_with('…'));
    // The replaced content is larger than tools read.
    let shown = preview(write("too-large.txt", "short\n"));
    let replaced = format!("the content that is replaced is not shown: too large, {} bytes", 10 * MIB + 4);
    assert_eq!(shown.warnings, [ActionPreview::TOO_LARGE.to_owned(), replaced]);
}
