//! Files and settings that persisting a transaction involves, and their text.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use landspeed_model::Target;
use landspeed_sys::file;
use serde::Serialize;

use crate::error::TuneError;
use crate::journal::FileChange;
use crate::{Device, Value};

/// A setting that the user has to persist manually.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ByHand {
    /// Name of the setting.
    pub name: String,
    /// Reason it is not written here, and what to add to which file.
    pub instruction: String,
}

/// Files and settings that persisting a transaction involves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PersistPlan {
    /// Files to write.
    pub files: Vec<FileChange>,
    /// Names of the settings in these files.
    pub covered: Vec<String>,
    /// Settings left to the user.
    pub by_hand: Vec<ByHand>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

impl PersistPlan {
    pub(super) fn hand(&mut self, name: &impl ToString, instruction: impl Into<String>) {
        self.by_hand.push(ByHand { name: name.to_string(), instruction: instruction.into() });
    }

    /// Adds a file, unless it already has this content.
    pub(super) fn file(&mut self, root: &Path, relative: &str, after: String) -> Result<(), TuneError> {
        let path = root.join(relative);
        let before = read(&path)?;
        if before.as_deref() == Some(after.as_str()) {
            return Ok(());
        }
        let made =
            path.ancestors().skip(1).take_while(|directory| !directory.exists()).map(Path::to_path_buf).collect();
        self.files.push(FileChange { path, before, after, made });
        Ok(())
    }
}

/// A setting to persist, with its current value.
pub(super) struct PersistedSetting<'a> {
    pub(super) target: &'a Target,
    pub(super) device: Option<&'a Device>,
    pub(super) value: &'a Value,
    /// The value as requested.
    pub(super) requested: &'a str,
}

pub(super) fn not_possible(why: impl Into<String>) -> TuneError {
    TuneError::NotPossible(why.into())
}

/// Returns a file's text; `None` if it does not exist.
pub(super) fn read(path: &Path) -> Result<Option<String>, TuneError> {
    match file::read_text(path, file::MAX_TEXT_BYTES) {
        Ok(text) => Ok(Some(text)),
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(why) => Err(not_possible(format!("cannot read {}: {why}", path.display()))),
    }
}

/// Section, key and value.
pub(super) type Assignment = (String, String, String);

/// Parses the assignments of an INI file.
pub(super) fn sections(text: &str) -> Vec<Assignment> {
    let mut section = String::new();
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            name.clone_into(&mut section);
        } else if !line.starts_with(['#', ';'])
            && let Some((key, value)) = line.split_once('=')
        {
            found.push((section.clone(), key.trim().to_owned(), value.trim().to_owned()));
        }
    }
    found
}

/// The comment at the beginning of every file written by landspeed.
pub(super) fn banner(what: &str) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "# Written by landspeed tune persist: {what}.");
    let _ = writeln!(text, "# `landspeed tune revert --persisted` takes it back.");
    text
}
