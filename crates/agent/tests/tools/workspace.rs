use std::io::ErrorKind;

use amplifier_agent::tool::{OutsideWorkspace, Workspace};

use crate::tools::place::Place;

#[track_caller]
fn leads_to(place: &Place, path: &str, expected: &str) {
    assert_eq!(place.workspace.resolve(path), Ok(place.path(expected)), "{path}");
}

#[track_caller]
fn leads_out(place: &Place, path: &str) {
    let root = place.workspace.root().to_path_buf();
    assert_eq!(place.workspace.resolve(path), Err(OutsideWorkspace { path: path.to_owned(), root }), "{path}");
}

#[test]
fn paths_within_are_resolved_whether_or_not_they_exist() {
    let place = Place::with(&[("src/main.rs", "")]);
    leads_to(&place, "src/main.rs", "src/main.rs");
    leads_to(&place, "./src//main.rs", "src/main.rs");
    leads_to(&place, "src/../src/main.rs", "src/main.rs");
    leads_to(&place, "new/folder/file", "new/folder/file");
    leads_to(&place, "../inside/src", "src");
    leads_to(&place, place.path("src/main.rs").to_str().unwrap(), "src/main.rs");
    assert_eq!(place.workspace.resolve("."), Ok(place.workspace.root().to_path_buf()));
    assert_eq!(place.workspace.resolve(""), Ok(place.workspace.root().to_path_buf()));
}

#[test]
fn paths_that_lead_out_are_refused() {
    let place = Place::with(&[("src/main.rs", "")]);
    leads_out(&place, "..");
    leads_out(&place, "../outside/secret");
    leads_out(&place, "src/../../outside/secret");
    leads_out(&place, "missing/../../outside/secret");
    leads_out(&place, "/etc/passwd");
    leads_out(&place, "/");
    // A name that begins as that of the root does is another folder.
    leads_out(&place, &format!("{}-too/file", place.workspace.root().display()));
}

#[test]
fn links_are_followed_within_and_refused_when_they_lead_out() {
    let place = Place::with(&[("real/file", "")]);
    place.link("to_folder", "real");
    place.link("to_file", place.path("real/file"));
    place.link("to_missing", "real/missing");
    leads_to(&place, "to_folder/file", "real/file");
    leads_to(&place, "to_folder/../real/file", "real/file");
    leads_to(&place, "to_file", "real/file");
    leads_to(&place, "to_missing", "real/missing");

    place.link("absolute", place.outside("secret"));
    place.link("relative", "../outside/secret");
    place.link("folder", place.outside(""));
    place.link("dangling", place.outside("missing"));
    place.link("dangling_folder", "../outside/missing");
    place.link("twice", "absolute");
    place.link("real/up", "../..");
    leads_out(&place, "absolute");
    leads_out(&place, "relative");
    leads_out(&place, "folder/secret");
    leads_out(&place, "folder/missing");
    leads_out(&place, "dangling");
    leads_out(&place, "dangling_folder/new/file");
    leads_out(&place, "twice");
    leads_out(&place, "real/up/outside/secret");
    // The parent of the target counts, not the parent of the link.
    leads_out(&place, "folder/../outside/secret");
    leads_to(&place, "folder/../inside/real", "real");
}

#[test]
fn links_that_lead_in_circles_are_refused() {
    let place = Place::new();
    place.link("one", "two");
    place.link("two", "one");
    leads_out(&place, "one");
    leads_out(&place, "two/file");
}

#[test]
fn the_root_may_be_given_through_a_link() {
    let place = Place::with(&[("file", "")]);
    std::os::unix::fs::symlink(place.workspace.root(), place.outside("link")).unwrap();
    let workspace = Workspace::new(place.outside("link")).unwrap();
    assert_eq!(workspace.root(), place.workspace.root());
    assert_eq!(workspace.resolve(place.outside("link/file").to_str().unwrap()), Ok(place.path("file")));
}

#[test]
fn a_workspace_is_a_folder_that_exists() {
    let place = Place::with(&[("file", "")]);
    assert_eq!(Workspace::new(place.path("file")).unwrap_err().kind(), ErrorKind::NotADirectory);
    assert_eq!(Workspace::new(place.path("missing")).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn paths_are_shown_relative_to_the_root() {
    let place = Place::new();
    assert_eq!(place.workspace.display(&place.path("src/main.rs")), "src/main.rs");
    assert_eq!(place.workspace.display(place.workspace.root()), ".");
}
