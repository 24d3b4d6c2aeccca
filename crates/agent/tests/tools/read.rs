use amplifier_agent::tool::{ReadTool, ToolOutput};
use serde_json::json;

use crate::tools::place::{Place, failed, failure, file, out_of_bounds, output, run};

#[tokio::test]
async fn lines_come_with_their_numbers() {
    let place = Place::with(&[("a.txt", "one\ntwo\r\n\nfour")]);
    let expected = ToolOutput::text("     1\tone\n     2\ttwo\n     3\t\n     4\tfour\n")
        .with("file_path", "a.txt")
        .with("lines", 4)
        .reading("a.txt", 14);
    assert_eq!(run(&ReadTool::new(place.workspace.clone()), file("a.txt")).await.unwrap(), expected);
}

#[tokio::test]
async fn a_part_can_be_read() {
    let place = Place::with(&[("a.txt", "one\ntwo\nthree\n")]);
    let read = ReadTool::new(place.workspace.clone());
    let part = |offset, limit| output(&read, json!({"file_path": "a.txt", "offset": offset, "limit": limit}));
    assert_eq!(part(2, 1).await, "     2\ttwo\n(the file goes on: read on with `offset` 3)\n");
    assert_eq!(part(3, 1).await, "     3\tthree\n");
    let beyond = failure(&read, json!({"file_path": "a.txt", "offset": 4})).await;
    assert_eq!(beyond, failed("`a.txt` has no line 4: its last line is 3"));
}

#[tokio::test]
async fn an_empty_file_says_so() {
    let place = Place::with(&[("empty", "")]);
    assert_eq!(output(&ReadTool::new(place.workspace.clone()), file("empty")).await, "(the file is empty)");
}

#[tokio::test]
async fn long_files_are_read_in_parts() {
    let place =
        Place::with(&[("many", &"x\n".repeat(2_001)), ("wide", &format!("{}\n", "y".repeat(1_999)).repeat(60))]);
    let read = ReadTool::new(place.workspace.clone());

    let many = output(&read, file("many")).await;
    assert!(many.ends_with("  2000\tx\n(the file goes on: read on with `offset` 2001)\n"));
    assert_eq!(output(&read, json!({"file_path": "many", "offset": 2_001})).await, "  2001\tx\n");

    let wide = output(&read, file("wide")).await;
    assert!(wide.len() < 103 * 1024, "{}", wide.len());
    assert!(wide.ends_with("(the file goes on: read on with `offset` 52)\n"), "{}", &wide[wide.len() - 60..]);
}

#[tokio::test]
async fn long_lines_are_cut_between_characters() {
    // The euro sign has three bytes: 666 of them fit.
    let place = Place::with(&[("long", &format!("{}\nnext\n", "€".repeat(10_000)))]);
    let expected = format!("     1\t{}… (28002 bytes more)\n     2\tnext\n", "€".repeat(666));
    assert_eq!(output(&ReadTool::new(place.workspace.clone()), file("long")).await, expected);
}

#[tokio::test]
async fn text_that_is_not_utf8_is_still_shown() {
    let place = Place::new();
    place.put("latin", b"caf\xe9\n");
    assert_eq!(output(&ReadTool::new(place.workspace.clone()), file("latin")).await, "     1\tcaf\u{fffd}\n");
}

#[tokio::test]
async fn what_is_no_text_file_is_refused() {
    let place = Place::with(&[("src/main.rs", ""), ("binary", "a\0b")]);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        place.path("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let read = ReadTool::new(place.workspace.clone());
    let cases = [
        ("binary", "`binary` is a binary file: only text can be read"),
        ("src", "`src` is a folder: use `Glob` to see which files are in it"),
        (".", "`.` is a folder: use `Glob` to see which files are in it"),
        ("none", "`none` does not exist: use `Glob` to see which files there are"),
        ("no/ne", "`no/ne` does not exist: use `Glob` to see which files there are"),
        ("pipe", "`pipe` cannot be read: it is not a regular file"),
        ("binary/x", "`binary/x` cannot be read: Not a directory (os error 20)"),
    ];
    for (path, expected) in cases {
        assert_eq!(failure(&read, file(path)).await, failed(expected));
    }
}

#[tokio::test]
async fn what_is_outside_is_not_read() {
    let place = Place::new();
    place.link("link", "../outside/secret");
    place.link("folder", place.outside(""));
    let read = ReadTool::new(place.workspace.clone());
    for path in ["link", "folder/secret", "../outside/secret", place.outside("secret").to_str().unwrap()] {
        assert_eq!(failure(&read, file(path)).await, out_of_bounds(&place, path));
    }
}
