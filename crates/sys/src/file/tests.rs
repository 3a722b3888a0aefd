//! Creating files of other users needs root; tests that do so are skipped without it.

use std::os::unix::fs::{chown, lchown, symlink};

use landspeed_testkit::skip;

use super::*;

const OTHER_UID: u32 = 4242;

fn directory(mode: u32) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::set_permissions(directory.path(), Permissions::from_mode(mode)).expect("set");
    directory
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a file")
}

/// Every way to write to a path.
fn write_every_way(path: &Path) -> Vec<io::Result<()>> {
    let atomic = || {
        let mut file = AtomicFile::create(path)?;
        file.write_all(b"new")?;
        file.commit()
    };
    vec![
        write_atomically(path, b"new"),
        check_writable(path),
        atomic(),
        create(path).and_then(|mut file| file.write_all(b"new")),
        append(path).and_then(|mut file| file.write_all(b"new")),
        open_lock(path).and_then(|mut file| file.write_all(b"new")),
        create_new_private(path).map(drop),
    ]
}

#[test]
fn other_users_cannot_hold_a_lock() {
    let directory = directory(0o755);
    for before in [None, Some(0o644)] {
        let path = directory.path().join(format!("{before:?}"));
        if let Some(mode) = before {
            std::fs::write(&path, "1").expect("written");
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).expect("set");
        }
        let lock = open_lock(&path).expect("opened");
        assert_eq!(lock.metadata().expect("there").mode() & 0o777, 0o600, "before: {before:?}");
    }
}

#[test]
fn links_of_other_users_are_not_followed() {
    if !crate::process::is_root() {
        skip!("giving files to another user needs root");
    }
    let (shared, own) = (directory(0o1777), directory(0o700));
    let target = own.path().join("target");
    std::fs::write(&target, "old").expect("written");
    let link = shared.path().join("link");
    symlink(&target, &link).expect("linked");
    lchown(&link, Some(OTHER_UID), None).expect("given away");
    let folder = shared.path().join("folder");
    symlink(own.path(), &folder).expect("linked");
    lchown(&folder, Some(OTHER_UID), None).expect("given away");
    for path in [&link, &folder.join("target")] {
        for result in write_every_way(path) {
            let why = result.expect_err("refused").to_string();
            assert!(why.contains("symbolic link of another user (uid 4242)") && why.contains("\nName "), "{why}");
        }
    }
    assert!(create_new_directory(&folder.join("below")).is_err());
    assert!(create_directory(&folder.join("below")).is_err() && remove(&folder.join("target")).is_err());
    assert_eq!(text(&target), "old");
    // The same links in a directory that only root can write to.
    std::fs::set_permissions(shared.path(), Permissions::from_mode(0o755)).expect("set");
    write_atomically(&folder.join("target"), b"new").expect("an administrator gave them away");
    assert_eq!(text(&target), "new");
}

#[test]
fn root_writes_to_a_users_directory_but_not_through_its_links() {
    if !crate::process::is_root() {
        skip!("giving files to another user needs root");
    }
    let (home, own) = (directory(0o755), directory(0o700));
    chown(home.path(), Some(OTHER_UID), None).expect("given away");
    let result = home.path().join("result.json");
    write_atomically(&result, b"{}").expect("a directory of the user who ran sudo");
    // Their own file may be written again; a second name of a file of root must not.
    chown(&result, Some(OTHER_UID), None).expect("given away");
    create(&result).and_then(|mut file| file.write_all(b"[]")).expect("their own file");
    let secret = own.path().join("secret");
    std::fs::write(&secret, "old").expect("written");
    let other_name = home.path().join("other-name");
    std::fs::hard_link(&secret, &other_name).expect("linked");
    for result in [create(&other_name), append(&other_name), open_lock(&other_name)] {
        let why = result.expect_err("refused").to_string();
        assert!(why.contains("hard link"), "{why}");
    }
    write_atomically(&other_name, b"new").expect("the name is replaced");
    assert_eq!((text(&secret), text(&other_name)), ("old".to_owned(), "new".to_owned()));
    let link = home.path().join("link");
    symlink(&secret, &link).expect("linked");
    lchown(&link, Some(OTHER_UID), None).expect("given away");
    assert!(create(&link).is_err() && write_atomically(&link, b"new").is_err());
    assert_eq!(text(&secret), "old");
}

#[test]
fn files_of_other_users_in_shared_directories_are_not_written() {
    if !crate::process::is_root() {
        skip!("giving files to another user needs root");
    }
    let shared = directory(0o1777);
    let path = shared.path().join("capture.pcapng");
    std::fs::write(&path, "old").expect("written");
    chown(&path, Some(OTHER_UID), None).expect("given away");
    assert!(create(&path).is_err() && append(&path).is_err() && open_lock(&path).is_err());
    assert_eq!(text(&path), "old");
    write_atomically(&path, b"new").expect("their file is replaced by ours");
    assert_eq!(std::fs::metadata(&path).expect("there").uid(), 0);
}

#[test]
fn own_links_are_followed_and_stay() {
    let directory = directory(0o700);
    let target = directory.path().join("target");
    let link = directory.path().join("link");
    symlink("target", &link).expect("linked");
    write_atomically(&link, b"one").expect("a dangling link of ours");
    assert_eq!(text(&target), "one");
    create(&link).and_then(|mut file| file.write_all(b"2")).expect("written");
    append(&link).and_then(|mut file| file.write_all(b"3")).expect("written");
    assert_eq!(text(&target), "23");
    assert!(std::fs::symlink_metadata(&link).expect("there").is_symlink());
    let alias = directory.path().join("alias");
    symlink(directory.path(), &alias).expect("linked");
    create_directory(&alias.join("a/b")).expect("made");
    create_directory(&alias.join("a/b")).expect("there already");
    assert!(directory.path().join("a/b").is_dir());
    create_new_directory(&alias.join("a/c")).expect("made");
    assert!(create_new_directory(&alias.join("a/c")).is_err());
    remove(&alias.join("target")).expect("removed");
    assert!(!target.exists());
}

#[test]
fn devices_and_standard_streams_are_written_directly() {
    write_atomically(Path::new("/dev/null"), b"x").expect("a device");
    assert!(write_atomically(Path::new("/dev/full"), b"x").is_err());
    assert!(check_writable(Path::new("/dev/full")).is_ok());
    let directory = directory(0o700);
    let path = directory.path().join("redirected");
    let file = File::create(&path).expect("a file");
    let descriptor = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
    for name in [descriptor.clone(), descriptor.replace("/proc/self", "/dev")] {
        check_writable(Path::new(&name)).expect("an open file");
        write_atomically(Path::new(&name), b"one ").expect("an open file");
        create(Path::new(&name)).and_then(|mut file| file.write_all(b"two ")).expect("an open file");
    }
    assert_eq!(text(&path), "one two one two ");
    let pipe = directory.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    if !made.is_ok_and(|status| status.success()) {
        skip!("there is no mkfifo");
    }
    check_writable(&pipe).expect("without waiting for a reader");
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || text(&pipe)
    });
    write_atomically(&pipe, b"through").expect("written");
    assert_eq!(reader.join().expect("it ends"), "through");
    assert!(std::fs::symlink_metadata(&pipe).expect("there").file_type().is_fifo());
}

#[test]
fn replaced_files_keep_their_mode_and_failures_leave_nothing() {
    let directory = directory(0o700);
    let path = directory.path().join("private.json");
    std::fs::write(&path, "old").expect("written");
    std::fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("set");
    write_atomically(&path, b"new").expect("written");
    let mode = |path: &Path| std::fs::metadata(path).expect("there").mode() & 0o777;
    assert_eq!((text(&path), mode(&path)), ("new".to_owned(), 0o600));
    let deep = directory.path().join("a/b/document");
    AtomicFile::create_private(&deep).and_then(AtomicFile::commit).expect("made");
    assert_eq!([mode(&deep), mode(deep.parent().expect("b"))], [0o600, 0o700]);
    drop(AtomicFile::create(&path).expect("begun"));
    assert_eq!(text(&path), "new");
    assert_eq!(std::fs::read_dir(directory.path()).expect("there").count(), 2, "no temporary file is left");
    assert!(create_new_private(&path).is_err(), "it exists");
    assert!(write_atomically(&directory.path().join("missing/x"), b"").is_err());
    assert!(write_atomically(&directory.path().join("a"), b"").is_err(), "a directory");
}
