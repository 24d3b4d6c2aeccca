//! Files and locks, as other crates use them.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::time::Duration;

use amplifier_process::files::{
    Directory, FileStatus, OpenOptionsExt, create_private_folder, exposed_mode, make_private, read_exact_at,
    read_regular,
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
    let status = |path: &Path| FileStatus::at(path).unwrap();
    assert_eq!(status(&at("a")), status(&at("b")));
    assert_ne!(status(&at("a")).id, status(&at("c")).id);
    assert_eq!(
        FileStatus::of(&fs::File::open(at("b")).unwrap()).unwrap().id,
        FileStatus::at_link(&at("a")).unwrap().id
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
    let lock = FileLock::take(&file).unwrap().unwrap();
    assert!(FileLock::take(&file).unwrap().is_none());
    assert!(FileLock::share(&file).unwrap().is_none());
    assert!(FileLock::wait_for(&file, Duration::from_millis(20)).unwrap().is_none());
    drop(lock);
    let shared = [FileLock::share(&file).unwrap().unwrap(), FileLock::share(&file).unwrap().unwrap()];
    assert!(FileLock::take(&file).unwrap().is_none());
    drop(shared);
    drop(FileLock::wait(&file).unwrap());
    assert!(FileLock::wait_for(&file, Duration::from_millis(20)).unwrap().is_some());
    let _locked = FileLock::wait_for_folder(folder.path()).unwrap();
    assert_eq!(FileLock::wait_for_folder(&folder.path().join("none")).unwrap_err().kind(), ErrorKind::NotFound);
}
