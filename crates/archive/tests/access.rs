//! Who may read and write an archive, and what the next opening makes of a writer that was killed.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, lchown, symlink};
use std::path::{Path, PathBuf};

use landspeed_archive::{Archive, ArchiveError, Id, Query, TagChange};
use landspeed_testkit::skip;

fn document(timesecs: u64) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/iperf3/3.18/tcp.json");
    let mut document: serde_json::Value =
        serde_json::from_slice(&std::fs::read(path).expect("a fixture")).expect("JSON");
    document["start"]["timestamp"]["timesecs"] = timesecs.into();
    serde_json::to_vec(&document).expect("JSON")
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("set");
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap_or_else(|why| panic!("{}: {why}", path.display())).mode() & 0o777
}

fn below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(below(&path));
        }
        found.push(path);
    }
    found
}

fn count(archive: &Archive) -> usize {
    archive.find(&Query::all()).expect("an index").len()
}

#[test]
fn files_are_private_in_a_directory_that_others_can_read() {
    let directory = tempfile::tempdir().expect("a directory");
    set_mode(directory.path(), 0o755);
    let mut archive = Archive::open(directory.path()).expect("it can be made");
    archive.insert(&document(1)).expect("stored");
    for path in below(directory.path()) {
        assert_eq!(mode(&path) & 0o077, 0, "{}", path.display());
    }
    drop(archive);
    // As an earlier version left it.
    let (index, documents) = (directory.path().join("index.sqlite"), directory.path().join("documents"));
    set_mode(&index, 0o644);
    set_mode(&documents, 0o755);
    Archive::open(directory.path()).expect("it is there");
    assert_eq!([mode(&index), mode(&documents)], [0o600, 0o700]);
    assert_eq!(mode(directory.path()), 0o755, "the directory that the user made stays");
}

#[test]
fn a_directory_that_others_can_write_is_read_but_not_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let id = Archive::open(directory.path()).and_then(|mut archive| archive.insert(&document(1))).expect("stored");
    set_mode(directory.path(), 0o777);
    let why = Archive::open(directory.path()).expect_err("others can write");
    assert!(matches!(why, ArchiveError::Untrusted(_)), "{why}");
    assert!(why.advice().is_some_and(|advice| advice.starts_with("Run chmod go-w")), "{why}");
    let mut archive = Archive::open_existing(directory.path()).expect("it can be read");
    assert_eq!(archive.find(&Query::all()).expect("an index")[0].id, id);
    assert!(matches!(archive.insert(&document(2)), Err(ArchiveError::Untrusted(_))));
    assert!(matches!(archive.remove(&[id]), Err(ArchiveError::Untrusted(_))));
    assert!(matches!(archive.verify(), Err(ArchiveError::Untrusted(_))));
    assert!(matches!(Archive::rebuild(directory.path()), Err(ArchiveError::Untrusted(_))));
}

#[test]
fn root_does_not_follow_links_in_another_users_archive() {
    if !landspeed_sys::process::is_root() {
        skip!("giving files to another user needs root");
    }
    let (home, victim) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    let link = home.path().join("documents");
    symlink(victim.path(), &link).expect("linked");
    lchown(&link, Some(4242), None).expect("given away");
    chown(home.path(), Some(4242), None).expect("given away");
    let why = Archive::open(home.path()).expect_err("it is another user's");
    assert!(why.to_string().contains("owned by another user (uid 4242)"), "{why}");
    // A link that was there before the directory became root's.
    chown(home.path(), Some(0), None).expect("chown works for root");
    assert!(matches!(Archive::open(home.path()), Err(ArchiveError::Untrusted(_))));
    assert!(below(victim.path()).is_empty());
    // A link of root: the documents are on another disk.
    lchown(&link, Some(0), None).expect("chown works for root");
    Archive::open(home.path()).and_then(|mut archive| archive.insert(&document(1))).expect("stored");
    assert!(!below(victim.path()).is_empty());
}

#[test]
fn the_next_opening_finishes_a_killed_change_of_tags() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("archive");
    let mut archive = Archive::open(&path).expect("it can be made");
    let id = archive.insert(&document(1)).expect("stored");
    let add = TagChange { add: ["old".to_owned()].into(), ..TagChange::default() };
    archive.tag(&id, &add).expect("tagged");
    drop(archive);
    assert!(!below(&path).iter().any(|file| file.to_string_lossy().contains("writing.")), "no mark stays");
    // Killed after the notes were written, before the index was.
    let notes = path.join("documents").join(&id.as_str()[..2]).join(format!("{id}.notes.json"));
    let text = std::fs::read_to_string(&notes).expect("notes").replace("old", "new");
    std::fs::write(&notes, text).expect("written");
    std::fs::write(path.join("writing.1.0"), "").expect("a mark of a process that is gone");
    let archive = Archive::open_existing(&path).expect("it is there");
    let found = archive.documents(&Query::all(), None).expect("an index");
    assert_eq!(found[0].tags, ["new"]);
}

#[test]
fn the_next_opening_adopts_what_a_killed_writer_stored() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("archive");
    let ids: Vec<Id> = {
        let mut archive = Archive::open(&path).expect("it can be made");
        (0..3).map(|i| archive.insert(&document(i)).expect("stored")).collect()
    };
    let index = rusqlite::Connection::open(path.join("index.sqlite")).expect("an index");
    index.execute("PRAGMA foreign_keys = ON", []).ok();
    index.execute("DELETE FROM documents WHERE id = ?1", [ids[0].as_str()]).expect("a row less");
    drop(index);
    let file = |id: &Id, end: &str| path.join("documents").join(&id.as_str()[..2]).join(format!("{id}.{end}"));
    let half = Id::of(b"half");
    std::fs::create_dir_all(file(&half, "json.gz").parent().expect("a parent")).expect("made");
    std::fs::write(file(&half, "json.gz.1.0.part"), "half").expect("written");
    std::fs::remove_file(file(&ids[1], "json.gz")).expect("removed before its row");
    // Without a mark, nothing is compared: an opening of a large archive stays fast.
    assert_eq!(count(&Archive::open_existing(&path).expect("it is there")), 2);
    std::fs::write(path.join("writing.1.0"), "").expect("a mark of a process that is gone");
    let archive = Archive::open_existing(&path).expect("it is there");
    let found = archive.documents(&Query::all(), None).expect("an index");
    let found: std::collections::BTreeSet<Id> = found.into_iter().map(|document| document.id).collect();
    assert_eq!(found, [ids[0].clone(), ids[2].clone()].into(), "adopted, gone, whole");
    assert!(archive.unadopted().is_none());
    assert!(!path.join("writing.1.0").exists() && !path.join("adopting.1.0").exists());
}
