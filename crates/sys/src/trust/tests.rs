//! Creating files of other users needs root; tests that do so are skipped without it.

use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::sync::atomic::{AtomicU32, Ordering};

use landspeed_testkit::skip;

use super::*;

const OTHER_UID: u32 = 4242;

struct TestDirectory {
    directory: tempfile::TempDir,
}

impl TestDirectory {
    /// Creates a directory that everybody may search.
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        set_mode(directory.path(), 0o755);
        Self { directory }
    }

    fn file(&self, name: &str, mode: u32) -> PathBuf {
        let path = self.directory.path().join(name);
        std::fs::write(&path, "text").expect("written");
        set_mode(&path, mode);
        path
    }

    fn folder(&self, name: &str, mode: u32) -> PathBuf {
        let path = self.directory.path().join(name);
        std::fs::create_dir(&path).expect("made");
        set_mode(&path, mode);
        path
    }
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("set");
}

fn secret(path: &Path) -> Result<String, TrustError> {
    read_text(path, "key file", Content::Secret, Policy::Refuse)
}

fn public(path: &Path) -> Result<String, TrustError> {
    read_text(path, "configuration file", Content::Public, Policy::Refuse)
}

fn refused<T: fmt::Debug>(result: Result<T, TrustError>) -> Untrusted {
    match result.expect_err("refused") {
        TrustError::Untrusted(untrusted) => untrusted,
        TrustError::Io { .. } => panic!("another error"),
    }
}

#[test]
fn secret_readable_by_others_is_rejected_with_advice() {
    let test_directory = TestDirectory::new();
    assert_eq!(secret(&test_directory.file("own", 0o600)).expect("its owner's alone"), "text");
    assert_eq!(secret(&test_directory.file("fixed", 0o400)).expect("its owner's alone"), "text");
    for mode in [0o644, 0o640, 0o604] {
        let path = test_directory.file("open", mode);
        let text = refused(secret(&path)).to_string();
        let shown = path.display();
        let cause = format!("cannot use key file {shown}: it is readable by others (mode {mode:04o})");
        assert_eq!(text, format!("{cause}\nRun chmod 600 {shown}, or pass --insecure-permissions."));
    }
    assert_eq!(public(&test_directory.file("open", 0o644)).expect("anybody may know it"), "text");
}

#[test]
fn secret_in_a_directory_closed_to_others_is_accepted() {
    let test_directory = TestDirectory::new();
    let folder = test_directory.folder("folder", 0o700);
    let path = test_directory.file("folder/key", 0o644);
    assert_eq!(secret(&path).expect("only its owner can reach it"), "text");
    for mode in [0o710, 0o701] {
        set_mode(&folder, mode);
        assert_eq!(refused(secret(&path)).fault, Fault::Readable { mode: 0o644 });
    }
    set_mode(&folder, 0o700);
    std::fs::hard_link(&path, test_directory.directory.path().join("outside")).expect("linked");
    assert_eq!(refused(secret(&path)).fault, Fault::Readable { mode: 0o644 });
}

#[test]
fn a_file_that_others_can_write_is_refused() {
    let test_directory = TestDirectory::new();
    for mode in [0o620, 0o602, 0o666] {
        let path = test_directory.file("open", mode);
        assert_eq!(refused(public(&path)).fault, Fault::Writable { at: path.clone(), mode });
        assert!(matches!(refused(secret(&path)).fault, Fault::Writable { .. }));
    }
}

#[test]
fn a_file_or_directory_of_another_user_is_refused() {
    if !crate::process::is_root() {
        skip!("giving files to another user needs root");
    }
    let test_directory = TestDirectory::new();
    let path = test_directory.file("theirs", 0o600);
    chown(&path, Some(OTHER_UID), None).expect("given away");
    assert_eq!(refused(public(&path)).fault, Fault::Owner { at: path.clone(), uid: OTHER_UID, expected: 0 });
    // Accepted if that user is an expected owner.
    assert!(open(&path, "audit", Content::Public, &[OTHER_UID], Policy::Refuse).is_ok());
    let folder = test_directory.folder("folder", 0o755);
    chown(&folder, Some(OTHER_UID), None).expect("given away");
    let inside = test_directory.file("folder/ours", 0o600);
    assert_eq!(refused(public(&inside)).fault, Fault::Owner { at: folder.clone(), uid: OTHER_UID, expected: 0 });
    let text = refused(Directory::open(&folder, "state directory", false, Policy::Refuse)).to_string();
    assert!(text.contains("it is owned by another user (uid 4242)\nRun chown 0 "), "{text}");
}

#[test]
fn a_directory_writable_by_others_is_refused() {
    let test_directory = TestDirectory::new();
    let folder = test_directory.folder("folder", 0o777);
    let inside = test_directory.file("folder/ours", 0o600);
    assert_eq!(refused(public(&inside)).fault, Fault::Writable { at: folder.clone(), mode: 0o777 });
    // In a sticky directory only the file's owner can replace it.
    set_mode(&folder, 0o1777);
    assert!(public(&inside).is_ok());
    // A directory for state files must not be writable by others even if it is sticky.
    let kept = Directory::open(&folder, "state directory", false, Policy::Refuse);
    assert_eq!(refused(kept).fault, Fault::Writable { at: folder.clone(), mode: 0o1777 });
}

#[test]
fn symbolic_links_to_the_file_are_not_followed() {
    let test_directory = TestDirectory::new();
    let file = test_directory.file("file", 0o600);
    let link = test_directory.directory.path().join("link");
    symlink(&file, &link).expect("linked");
    assert_eq!(refused(public(&link)).fault, Fault::Link);
    let folder = test_directory.folder("folder", 0o755);
    test_directory.file("folder/file", 0o600);
    let alias = test_directory.directory.path().join("alias");
    symlink("folder", &alias).expect("linked");
    assert_eq!(public(&alias.join("file")).expect("a link of ours on the way"), "text");
    assert_eq!(public(&alias.join("../folder/file")).expect("up and down"), "text");
    assert_eq!(refused(Directory::open(&alias, "state directory", false, Policy::Refuse)).fault, Fault::Link);
    let circle = test_directory.directory.path().join("circle");
    symlink("circle", &circle).expect("linked");
    let error = public(&circle.join("file")).expect_err("it has no end");
    assert_eq!(error.io().and_then(io::Error::raw_os_error), Some(libc::ELOOP));
    if crate::process::is_root() {
        std::os::unix::fs::lchown(&alias, Some(OTHER_UID), None).expect("given away");
        assert_eq!(
            refused(public(&alias.join("file"))).fault,
            Fault::Owner { at: alias, uid: OTHER_UID, expected: 0 }
        );
    }
    drop(folder);
}

#[test]
fn special_files_are_refused_without_blocking() {
    let test_directory = TestDirectory::new();
    let pipe = test_directory.directory.path().join("pipe");
    let made = std::process::Command::new("mkfifo").args(["-m", "600"]).arg(&pipe).status();
    if !made.is_ok_and(|status| status.success()) {
        skip!("there is no mkfifo");
    }
    assert_eq!(refused(public(&pipe)).fault, Fault::NotRegular);
    let error = public(&test_directory.folder("folder", 0o755)).expect_err("a directory");
    assert_eq!(error.io().and_then(io::Error::raw_os_error), Some(libc::EISDIR));
}

#[test]
fn the_override_uses_the_file_and_reports_each_fault() {
    static REPORTED: AtomicU32 = AtomicU32::new(0);
    let test_directory = TestDirectory::new();
    let file = test_directory.file("file", 0o666);
    let link = test_directory.directory.path().join("link");
    symlink(&file, &link).expect("linked");
    let policy = Policy::Report(|_| {
        REPORTED.fetch_add(1, Ordering::Relaxed);
    });
    assert_eq!(read_text(&link, "key file", Content::Secret, policy).expect("used"), "text");
    assert_eq!(REPORTED.load(Ordering::Relaxed), 3, "a link, writable, readable");
}

#[test]
fn directories_and_files_are_created_private() {
    let test_directory = TestDirectory::new();
    let path = test_directory.directory.path().join("a/b");
    assert_eq!(
        Directory::open(&path, "state directory", false, Policy::Refuse)
            .expect_err("not there")
            .io()
            .map(io::Error::kind),
        Some(io::ErrorKind::NotFound)
    );
    let made = Directory::open(&path, "state directory", true, Policy::Refuse).expect("made");
    made.file("one", "lock", Access::CreateNew).expect("made");
    assert!(made.file("one", "lock", Access::CreateNew).is_err(), "it is there");
    assert!(made.file("one", "lock", Access::Create).is_ok());
    made.rename("one", "two").expect("renamed");
    assert_eq!(made.names().expect("listed"), ["two"]);
    let facts = std::fs::metadata(path.join("two")).expect("there");
    assert_eq!(facts.mode() & 0o777, 0o600);
    assert_eq!(made.identity("two").expect("there"), (facts.dev(), facts.ino()));
    assert_eq!(std::fs::metadata(&path).expect("there").mode() & 0o777, 0o700);
    symlink("/etc/hostname", path.join("link")).expect("linked");
    assert_eq!(refused(made.file("link", "lock", Access::Create)).fault, Fault::Link);
    made.remove("two").expect("removed");
    made.sync().expect("on the disk");
}
