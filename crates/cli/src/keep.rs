//! Stores results in the archive: every measuring command stores its document when it ends.

use landspeed_archive::{Archive, ArchiveError, ENV_VARIABLE, Id, Location};
use serde::Serialize;

/// Stores a document in the archive. Returns its id, or `None` if the archive is off or storing failed.
///
/// A failure is printed on standard error; it does not fail the measurement.
pub fn keep(document: &impl Serialize) -> Option<Id> {
    let Location::Directory(_) = Location::from_environment() else { return None };
    match serde_json::to_vec(document) {
        Ok(bytes) => store_encoded(&bytes),
        Err(why) => {
            errln!("landspeed: the result is not in the archive: cannot encode the document: {why}");
            None
        }
    }
}

/// Like [`keep`], for an encoded document.
pub fn store_encoded(bytes: &[u8]) -> Option<Id> {
    store_all(&[bytes.to_vec()]).pop()
}

/// Like [`keep`], for several encoded documents in order; stops at the first that cannot be stored.
pub fn store_all(documents: &[Vec<u8>]) -> Vec<Id> {
    let Location::Directory(directory) = Location::from_environment() else { return Vec::new() };
    let mut stored = Vec::new();
    let mut store = || -> Result<(), ArchiveError> {
        let mut archive = Archive::open(&directory)?;
        if archive.is_new() {
            print_location(&archive);
        }
        for bytes in documents {
            stored.push(archive.insert(bytes)?);
        }
        Ok(())
    };
    if let Err(why) = store() {
        warn_not_stored(&why);
    }
    stored
}

/// Prints where results are kept and how to turn that off; once, when the archive is created.
pub fn print_location(archive: &Archive) {
    errln!(
        "landspeed: results are kept in {} from now on ({ENV_VARIABLE}=off turns this off)",
        archive.directory().display()
    );
}

fn warn_not_stored(why: &ArchiveError) {
    errln!("landspeed: warning: the result is not in the archive: {why}");
    if let Some(advice) = why.advice() {
        errln!("{advice}.");
    }
}
