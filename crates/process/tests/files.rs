//! Files and locks, as other crates use them.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::time::Duration;

use amplifier_process::files::{
    AtomicFile, Directory, Durability, FileStatus, OpenOptionsExt, create_private_folder, exposed_mode, make_private,
    read_exact_at, read_regular, write_atomic,
};
use amplifier_process::locks::FileLock;

#[test]
fn new_files_and_folders_are_for_their_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("a/b");
    create_private_folder(&inner).unwrap();
    let file = inner.join("file");
    OpenOptions::new().write(true).create(true).truncate(true).owner_only().open(&file).unwrap();
    for path in [&folder.path().join("a"), &inner, &file] {
        assert_eq!(exposed_mode(&fs::metadata(path).unwrap()), None, "{}", path.display());
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_others_can_read_is_exposed_until_it_is_made_private() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    OpenOptions::new().write(true).create_new(true).new_mode(0o644).open(&file).unwrap();
    fs::set_permissions(&file, amplifier_process::files::permissions(0o644).unwrap()).unwrap();
    assert_eq!(exposed_mode(&fs::metadata(&file).unwrap()), Some(0o644));
    make_private(&file).unwrap();
    assert_eq!(exposed_mode(&fs::metadata(&file).unwrap()), None);
}

#[test]
fn whoever_reads_a_file_that_is_replaced_sees_the_old_content_or_the_new() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let contents = ["a".repeat(300_000), "b".repeat(100_000)];
    write_atomic(&path, contents[0].as_bytes(), Durability::Cached).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for content in contents.iter().cycle().take(200) {
                write_atomic(&path, content.as_bytes(), Durability::Cached).unwrap();
            }
        });
        while !writer.is_finished() {
            let text = fs::read_to_string(&path).unwrap();
            assert!(contents.contains(&text), "{} bytes", text.len());
        }
    });
    write_atomic(&path, b"last", Durability::Synced).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"last");
    assert_eq!(exposed_mode(&fs::metadata(&path).unwrap()), None);
    assert_eq!(names(folder.path()), ["file"]);
}

#[test]
fn a_file_that_could_not_be_written_leaves_the_old_one_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "old").unwrap();
    let begun = || {
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        file
    };
    drop(begun());
    assert_eq!(begun().create_new(Durability::Synced).unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!((fs::read(&path).unwrap().as_slice(), names(folder.path())), (&b"old"[..], vec!["file".to_owned()]));

    // A folder stands in its place.
    fs::create_dir_all(folder.path().join("folder/inner")).unwrap();
    write_atomic(&folder.path().join("folder"), b"new", Durability::Synced).unwrap_err();
    write_atomic(&folder.path().join("none/file"), b"new", Durability::Synced).unwrap_err();
    assert_eq!(names(folder.path()), ["file", "folder"]);
}

#[cfg(unix)]
#[test]
fn a_new_file_takes_the_place_of_no_link_and_has_the_permissions_that_were_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("file"), folder.path().join("link"));
    std::os::unix::fs::symlink(folder.path().join("nowhere"), &link).unwrap();
    for (path, is_placed) in [(&file, true), (&link, false)] {
        let mut new = AtomicFile::create_with_mode(path, 0o640).unwrap();
        new.write_all(b"text").unwrap();
        assert_eq!(new.create_new(Durability::Synced).is_ok(), is_placed);
    }
    assert_eq!(amplifier_process::files::mode(&fs::metadata(&file).unwrap()), 0o640);
    assert_eq!(names(folder.path()), ["file", "link"]);
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[cfg(unix)]
#[test]
fn a_link_or_a_pipe_in_the_place_of_a_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("file"), folder.path().join("link"));
    fs::write(&file, "text").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    OpenOptions::new().read(true).no_follow().open(&file).unwrap();
    OpenOptions::new().read(true).no_follow().open(&link).unwrap_err();

    let pipe = folder.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    assert_eq!(read_regular(&pipe, 10).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(read_regular(&file, 3).unwrap_err().kind(), ErrorKind::FileTooLarge);
    assert_eq!(read_regular(&link, 4).unwrap(), b"text");
}

#[cfg(unix)]
#[test]
fn a_folder_opens_what_is_in_it_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.path().join("link")).unwrap();
    let opened = Directory::open(folder.path()).unwrap();
    let name = OsStr::new;

    opened.open_folder(name("link")).unwrap_err();
    opened.open_file(name("link")).unwrap_err();
    for path in ["..", ".", "a/b", "/etc", ""] {
        assert_eq!(opened.open_folder(name(path)).unwrap_err().kind(), ErrorKind::InvalidInput, "{path}");
    }
    opened.make_folder(name("inner")).unwrap();
    opened.make_folder(name("inner")).unwrap();
    let inner = opened.open_folder(name("inner")).unwrap();
    assert!(inner.replaceable(name("file")).unwrap().is_none());
    inner.create_file(name("new"), 0o600).unwrap().write_all(b"text").unwrap();
    inner.create_file(name("new"), 0o600).unwrap_err();
    inner.rename(name("new"), name("file")).unwrap();
    inner.sync().unwrap();
    assert!(inner.replaceable(name("file")).unwrap().is_some());
    assert_eq!(opened.replaceable(name("inner")).unwrap_err().kind(), ErrorKind::IsADirectory);
    assert_eq!(fs::read_to_string(folder.path().join("inner/file")).unwrap(), "text");
    inner.remove_file(name("file")).unwrap();
    assert_eq!(inner.open_file(name("file")).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_file_has_one_identity_under_all_its_names() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("a"), "text").unwrap();
    fs::hard_link(at("a"), at("b")).unwrap();
    fs::write(at("c"), "text").unwrap();
    let status = |path: &Path| FileStatus::from_path(path).unwrap();
    assert_eq!(status(&at("a")), status(&at("b")));
    assert_ne!(status(&at("a")).id, status(&at("c")).id);
    assert_eq!(
        FileStatus::from_file(&fs::File::open(at("b")).unwrap()).unwrap().id,
        FileStatus::from_link(&at("a")).unwrap().id
    );
    assert!(!status(&at("a")).is_settled());
}

#[test]
fn bytes_are_read_from_the_middle_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "0123456789").unwrap();
    let file = fs::File::open(&path).unwrap();
    let mut bytes = [0; 4];
    read_exact_at(&file, &mut bytes, 3).unwrap();
    assert_eq!(&bytes, b"3456");
    assert_eq!(read_exact_at(&file, &mut bytes, 8).unwrap_err().kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn a_lock_is_for_one_or_for_several_who_share_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lock");
    let lock = FileLock::try_lock(&file).unwrap().unwrap();
    assert!(FileLock::try_lock(&file).unwrap().is_none());
    assert!(FileLock::try_lock_shared(&file).unwrap().is_none());
    assert!(FileLock::wait_for(&file, Duration::from_millis(20)).unwrap().is_none());
    drop(lock);
    let shared =
        [FileLock::try_lock_shared(&file).unwrap().unwrap(), FileLock::try_lock_shared(&file).unwrap().unwrap()];
    assert!(FileLock::try_lock(&file).unwrap().is_none());
    drop(shared);
    drop(FileLock::wait(&file).unwrap());
    assert!(FileLock::wait_for(&file, Duration::from_millis(20)).unwrap().is_some());
    let _locked = FileLock::wait_for_folder(folder.path()).unwrap();
    assert_eq!(FileLock::wait_for_folder(&folder.path().join("none")).unwrap_err().kind(), ErrorKind::NotFound);
}
