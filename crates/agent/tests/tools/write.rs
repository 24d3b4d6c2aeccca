use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};

use amplifier_agent::tool::{EditTool, ReadTool, ToolOutput, WriteTool};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};

use crate::tools::place::{Place, failed, failure, file, out_of_bounds, output, run};

fn content(path: &str, content: &str) -> Value {
    json!({"file_path": path, "content": content})
}

#[tokio::test]
async fn a_file_is_made_with_its_folders() {
    let place = Place::new();
    let expected = ToolOutput::text("wrote 2 lines to `a/b/c.py`").with("file_path", "a/b/c.py").writing("a/b/c.py", 8);
    let write = WriteTool::new(place.workspace.clone());
    assert_eq!(run(&write, content("a/b/c.py", "one\ntwo\n")).await.unwrap(), expected);
    assert_eq!(place.content("a/b/c.py"), "one\ntwo\n");
    assert_eq!(place.names("a/b"), ["c.py"]);
}

#[tokio::test]
async fn a_file_is_replaced_and_keeps_its_permissions() {
    let place = Place::with(&[("run.sh", "a much longer text")]);
    fs::set_permissions(place.path("run.sh"), fs::Permissions::from_mode(0o750)).unwrap();
    let write = WriteTool::new(place.workspace.clone());
    assert_eq!(output(&write, content("run.sh", "short")).await, "wrote 1 line to `run.sh`");
    assert_eq!(place.content("run.sh"), "short");
    assert_eq!(fs::metadata(place.path("run.sh")).unwrap().permissions().mode() & 0o7777, 0o750);
    assert_eq!(place.names("."), ["run.sh"]);
}

#[tokio::test]
async fn a_link_is_written_through() {
    let place = Place::with(&[("real/file", "old")]);
    place.link("link", "real/file");
    place.link("new", "real/new");
    let write = WriteTool::new(place.workspace.clone());
    assert_eq!(output(&write, content("link", "new")).await, "wrote 1 line to `real/file`");
    assert_eq!(output(&write, content("new", "")).await, "wrote 0 lines to `real/new`");
    assert_eq!((place.content("real/file"), place.content("real/new")), ("new".to_owned(), String::new()));
    assert!(place.path("link").is_symlink() && place.path("new").is_symlink());
}

#[tokio::test]
async fn what_is_outside_is_not_written() {
    let place = Place::new();
    place.link("absolute", place.outside("secret"));
    place.link("relative", "../outside/secret");
    place.link("folder", place.outside(""));
    place.link("dangling", place.outside("new"));
    place.link("dangling_folder", "../outside/new");
    let write = WriteTool::new(place.workspace.clone());
    let outside = place.outside("new");
    let paths = ["absolute", "relative", "folder/new", "dangling", "dangling_folder/a/b", "../outside/new"];
    for path in paths.into_iter().chain([outside.to_str().unwrap()]) {
        assert_eq!(failure(&write, content(path, "x")).await, out_of_bounds(&place, path));
    }
    assert_eq!(place.names("../outside"), ["secret"]);
    assert_eq!(place.content("../outside/secret"), "secret\n");
}

#[tokio::test]
async fn only_regular_files_are_replaced() {
    let place = Place::with(&[("folder/file", "kept")]);
    let write = WriteTool::new(place.workspace.clone());
    let folder = failed("`folder` is a folder: use `Glob` to see which files are in it");
    assert_eq!(failure(&write, content("folder", "x")).await, folder);
    let below = failed("`folder/file/x` cannot be written: Not a directory (os error 20)");
    assert_eq!(failure(&write, content("folder/file/x", "x")).await, below);
    assert_eq!((place.names("."), place.names("folder")), (vec!["folder".to_owned()], vec!["file".to_owned()]));
    assert_eq!(place.content("folder/file"), "kept");
}

#[test]
fn readers_never_see_a_part_of_a_file() {
    let place = Place::with(&[("file", &"a".repeat(200_000))]);
    let path = place.path("file");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut reads = 0;
            while !done.load(Ordering::Acquire) || reads == 0 {
                let content = fs::read(&path).unwrap();
                assert_eq!(content.len(), 200_000);
                assert!(content.iter().all(|byte| *byte == content[0]));
                reads += 1;
            }
        });
        let writers = ["b", "c"].map(|letter| {
            let workspace = place.workspace.clone();
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                let write = WriteTool::new(workspace);
                for _ in 0..20 {
                    runtime.block_on(run(&write, content("file", &letter.repeat(200_000)))).unwrap();
                }
            })
        });
        let results = writers.map(std::thread::ScopedJoinHandle::join);
        done.store(true, Ordering::Release);
        results.into_iter().for_each(|result| result.unwrap());
        reader.join().unwrap();
    });
    assert_eq!(place.names("."), ["file"]);
}

#[tokio::test]
async fn edits_at_the_same_time_are_all_kept() {
    let lines: String = (0..20).map(|number| format!("<{number}>\n")).collect();
    let place = Place::with(&[("file", &lines)]);
    let edit = EditTool::new(place.workspace.clone());
    let edits = (0..20).map(|number| {
        let input =
            json!({"file_path": "file", "old_string": format!("<{number}>"), "new_string": format!("[{number}]")});
        run(&edit, input)
    });
    for result in futures::future::join_all(edits).await {
        result.unwrap();
    }
    assert_eq!(place.content("file"), lines.replace('<', "[").replace('>', "]"));
}

#[test]
fn a_write_that_nobody_waits_for_does_not_begin() {
    let place = Place::new();
    let write = WriteTool::new(place.workspace.clone());
    let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        // The only thread for such work is taken, so that the write has to wait for it.
        let (release, released) = std::sync::mpsc::channel::<()>();
        let taken = tokio::task::spawn_blocking(move || released.recv());
        let mut writing = Box::pin(run(&write, content("file", "x")));
        assert!(futures::poll!(&mut writing).is_pending());
        drop(writing);
        release.send(()).unwrap();
        taken.await.unwrap().unwrap();
        // Work is done in order: once this is done, the write would be.
        tokio::task::spawn_blocking(|| {}).await.unwrap();
    });
    assert_eq!(place.names("."), [""; 0]);
}

#[test]
fn a_folder_that_becomes_a_link_meanwhile_leads_nowhere() {
    let place = Place::with(&[("folder/secret", "public\n")]);
    place.link("link", "../outside");
    let over = AtomicBool::new(false);
    let (folder, link) = (place.path("folder"), place.path("link"));
    std::thread::scope(|scope| {
        let swapping = scope.spawn(|| {
            while !over.load(Ordering::Acquire) {
                renameat_with(CWD, &folder, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            }
        });
        let working = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let (write, read) = (WriteTool::new(place.workspace.clone()), ReadTool::new(place.workspace.clone()));
            for _ in 0..300 {
                // Their failure is a matter of chance.
                let _ = runtime.block_on(run(&write, content("folder/new", "x")));
                if let Ok(output) = runtime.block_on(run(&read, file("folder/secret"))) {
                    assert_eq!(output.result["output"], "     1\tpublic\n");
                }
            }
        });
        let result = working.join();
        over.store(true, Ordering::Release);
        swapping.join().unwrap();
        result.unwrap();
    });
    assert_eq!(place.names("../outside"), ["secret"]);
}
