//! Keeps results: every command that measures stores its document when it ends.

use landspeed_archive::{Archive, ArchiveError, Id, Location, SETTING};
use serde::Serialize;

/// Stores a document as the archive's JSON. Returns its id, or `None` where results are not kept or could not be.
///
/// Failure never fails the measurement: it is one line on standard error.
pub fn keep(document: &impl Serialize) -> Option<Id> {
    let Location::Directory(_) = Location::from_environment() else { return None };
    match serde_json::to_vec(document) {
        Ok(bytes) => keep_bytes(&bytes),
        Err(why) => {
            eprintln!("landspeed: the result is not in the archive: cannot encode the document: {why}");
            None
        }
    }
}

/// [`keep`] of a document's bytes.
pub fn keep_bytes(bytes: &[u8]) -> Option<Id> {
    keep_all(&[bytes.to_vec()]).pop()
}

/// [`keep`] of several documents' bytes, in order; after the first that cannot be stored, none is.
pub fn keep_all(documents: &[Vec<u8>]) -> Vec<Id> {
    let Location::Directory(directory) = Location::from_environment() else { return Vec::new() };
    let mut stored = Vec::new();
    let mut store = || -> Result<(), ArchiveError> {
        let mut archive = Archive::open(&directory)?;
        if archive.is_new() {
            announce(&archive);
        }
        for bytes in documents {
            stored.push(archive.insert(bytes)?);
        }
        Ok(())
    };
    if let Err(why) = store() {
        complain(&why);
    }
    stored
}

/// Says once, when the archive is made, where results are and how to turn it off.
pub fn announce(archive: &Archive) {
    eprintln!(
        "landspeed: results are kept in {} from now on ({SETTING}=off turns this off)",
        archive.directory().display()
    );
}

fn complain(why: &ArchiveError) {
    eprintln!("landspeed: the result is not in the archive: {why}");
}
