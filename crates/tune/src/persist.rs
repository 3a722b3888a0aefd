//! Persists a confirmed transaction across reboots: each setting is written for the one program that sets
//! it at boot, in a separate file, atomically. Settings that no program restores reliably are reported to
//! the user with instructions.

use std::fs::{File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use landspeed_model::Target;

use crate::error::TuneError;
use crate::history::{State, StepState};
use crate::journal::{Entry, FileChange, Journal, sync_directory};
use crate::transaction::Engine;

mod interrupts;
mod link;
mod manager;
mod plan;
mod rules;
mod sysctl;
mod tuned;

use landspeed_quote::shell_word;
pub use plan::{ByHand, PersistPlan};
use plan::{PersistedSetting, not_possible, read};

impl Engine<'_> {
    /// Returns what persisting a transaction (by default the last confirmed one) would write below `root`.
    pub fn plan_persist(&self, id: Option<u32>, root: &Path) -> Result<(u32, PersistPlan), TuneError> {
        let id = match id {
            Some(id) => id,
            None => self.last_committed()?,
        };
        let journal = Journal::load(self.context(), id)?;
        match journal.state() {
            State::Committed => {}
            State::AwaitingConfirm { .. } => {
                return Err(not_possible(format!(
                    "transaction {id} is not confirmed yet: `landspeed tune confirm` first"
                )));
            }
            _ => return Err(not_possible(format!("transaction {id} does not stand, so there is nothing to keep"))),
        }
        let mut plan = PersistPlan::default();
        let states: Vec<StepState> = (0..journal.steps().len()).map(|number| journal.step_state(number)).collect();
        let kept: Vec<PersistedSetting<'_>> = journal
            .steps()
            .iter()
            .zip(&states)
            .filter_map(|(step, state)| {
                let StepState::Applied { observed, .. } = state else { return None };
                // A sysctl is persisted by sysctl.d, even one of an interface.
                let device = step.device.as_ref().filter(|_| !matches!(step.target, Target::Sysctl { .. }));
                Some(PersistedSetting { target: &step.target, device, value: observed, requested: &step.desired })
            })
            .collect();
        assign_owners(&kept, root, &mut plan)?;
        Ok((id, plan))
    }

    fn last_committed(&self) -> Result<u32, TuneError> {
        for id in Journal::list(self.context())?.into_iter().rev() {
            if Journal::load(self.context(), id)?.state() == State::Committed {
                return Ok(id);
            }
        }
        Err(not_possible("no transaction has been confirmed: apply and confirm first"))
    }

    /// Writes all files or none. Their previous contents are in the journal.
    pub fn persist(&self, id: u32, plan: &PersistPlan) -> Result<(), TuneError> {
        let _lock = self.lock()?;
        self.recover(&[])?;
        let mut journal = Journal::load(self.context(), id)?;
        if journal.persisted().is_some() {
            return Err(not_possible(format!(
                "transaction {id} is persisted already; `landspeed tune revert --persisted` takes that back"
            )));
        }
        if plan.files.is_empty() {
            return Ok(());
        }
        for file in &plan.files {
            if read(&file.path)? != file.before {
                return Err(not_possible(format!("{} was changed meanwhile; try again", file.path.display())));
            }
        }
        journal.append(self.context(), Entry::Persisting { files: plan.files.clone() })?;
        for file in &plan.files {
            if let Err(why) = write_atomically(file) {
                let path = file.path.display();
                let put_back = self.restore_files(&mut journal, &plan.files);
                let state = if put_back.is_ok() { "nothing was left behind" } else { "run `landspeed tune status`" };
                return Err(not_possible(format!("cannot write {path}: {why}; {state}")));
            }
            self.wrote();
        }
        journal.append(self.context(), Entry::Persisted)?;
        Ok(())
    }

    /// Restores the files of a transaction (by default the last persisted one). Runtime settings are kept.
    pub fn unpersist(&self, id: Option<u32>) -> Result<(u32, Vec<PathBuf>), TuneError> {
        let _lock = self.lock()?;
        let mut found = None;
        for number in Journal::list(self.context())?.into_iter().rev() {
            let journal = Journal::load(self.context(), number)?;
            if id.is_none_or(|id| id == number) && journal.persisted().is_some() {
                found = Some(journal);
                break;
            }
        }
        let Some(mut journal) = found else {
            return Err(not_possible("nothing is persisted that could be removed"));
        };
        let files = journal.persisted().map(|(files, _)| files.to_vec()).unwrap_or_default();
        journal.append(self.context(), Entry::Unpersisting)?;
        let left = self.restore_files(&mut journal, &files)?;
        Ok((journal.id, left))
    }

    /// Restores files that have not been modified since; returns the modified ones.
    pub(crate) fn restore_files(
        &self,
        journal: &mut Journal,
        files: &[FileChange],
    ) -> Result<Vec<PathBuf>, TuneError> {
        let mut left = Vec::new();
        for file in files.iter().rev() {
            let _ = std::fs::remove_file(temporary_path(&file.path));
            let now = read(&file.path)?;
            if now == file.before {
                // Nothing was written, or it was restored before.
            } else if now.as_deref() == Some(file.after.as_str()) {
                let back = match &file.before {
                    Some(before) => write_atomically(&FileChange { after: before.clone(), ..file.clone() }),
                    None => std::fs::remove_file(&file.path),
                };
                back.map_err(|why| not_possible(format!("cannot put {} back: {why}", file.path.display())))?;
                self.wrote();
            } else {
                left.push(file.path.clone());
            }
            for directory in &file.made {
                // Removes only an empty directory.
                let _ = std::fs::remove_dir(directory);
            }
        }
        journal.append(self.context(), Entry::Unpersisted)?;
        Ok(left)
    }
}

/// Assigns each setting to the program that sets it at boot.
fn assign_owners(kept: &[PersistedSetting<'_>], root: &Path, plan: &mut PersistPlan) -> Result<(), TuneError> {
    let mut tuned = tuned::Tuned::detect(root)?;
    sysctl::plan(kept, root, tuned.as_mut(), plan)?;
    link::plan(kept, root, plan)?;
    rules::plan(kept, root, tuned.is_some(), plan)?;
    interrupts::plan(kept, root, plan)?;
    if let Some(mut tuned) = tuned {
        tuned.cpus(kept, root, plan);
        tuned.finish(root, plan)?;
    }
    for setting in kept {
        if let Target::EgressRate { cgroup, interface } = setting.target {
            plan.hand(
                setting.target,
                format!(
                    "a control group is made anew whenever its service starts. Let that service do it: \
                     ExecStartPost=+landspeed tune apply --set {}, and confirm it",
                    shell_word(format!("{interface}:cgroup/{cgroup}={}", setting.value))
                ),
            );
        }
    }
    Ok(())
}

/// Writes a file atomically: a temporary file next to it, fsync, rename.
fn write_atomically(file: &FileChange) -> io::Result<()> {
    let directory = file.path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    std::fs::create_dir_all(directory)?;
    let temporary_path = temporary_path(&file.path);
    let result = (|| {
        let mut new = File::create(&temporary_path)?;
        // Keep mode and owner of an existing file; otherwise make it readable for services, whatever the umask.
        let mode = match std::fs::metadata(&file.path) {
            Ok(old) => {
                fchown(&new, Some(old.uid()), Some(old.gid()))?;
                old.permissions()
            }
            Err(_) => Permissions::from_mode(0o644),
        };
        new.set_permissions(mode)?;
        new.write_all(file.after.as_bytes())?;
        new.sync_all()?;
        std::fs::rename(&temporary_path, &file.path)?;
        sync_directory(directory)
    })();
    if result.is_err() {
        let _ = std::fs::remove_file(&temporary_path);
        for made in &file.made {
            let _ = std::fs::remove_dir(made);
        }
    }
    result
}

/// Path of the temporary file: hidden and with an unknown extension, so that no boot program reads it.
fn temporary_path(path: &Path) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    path.with_file_name(format!(".{name}.landspeed-new"))
}

#[cfg(test)]
mod tests;
