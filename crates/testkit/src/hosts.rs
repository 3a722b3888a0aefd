//! The recorded hosts of `fixtures/hosts`: one JSON file per host, which contains every file of the host by path.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

fn packed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts")
}

/// Returns the names of the hosts, sorted.
pub fn names() -> Vec<String> {
    let files = std::fs::read_dir(packed()).expect("the hosts").map(|entry| entry.expect("an entry").path());
    let hosts = files.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let mut names: Vec<_> = hosts.map(|path| path.file_stem().expect("a name").display().to_string()).collect();
    names.sort_unstable();
    names
}

/// Unpacks a host into a temporary directory, as `landspeed check --record` would write it.
pub fn unpack(name: &str) -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    unpack_into(name, directory.path());
    directory
}

/// Unpacks a host into a directory, which is created if needed.
pub fn unpack_into(name: &str, directory: &Path) {
    let text = std::fs::read(packed().join(name).with_extension("json")).expect("a host of that name");
    let files: BTreeMap<String, Value> = serde_json::from_slice(&text).expect("texts by path");
    for (path, value) in files {
        let path = directory.join(path);
        std::fs::create_dir_all(path.parent().expect("it is below the directory")).expect("a directory");
        // JSON values are written as JSON, strings as plain text.
        std::fs::write(path, value.as_str().map_or_else(|| value.to_string(), str::to_owned)).expect("written");
    }
}
