//! The batch script of a job array, and the file that lists the runs of each task.

use std::path::PathBuf;

use landspeed_quote::shell_path;
use landspeed_sys::file::write_atomically;

use crate::bundle::Bundle;
use crate::error::Error;
use crate::tasks::lines;

/// Files of one job array.
#[derive(Debug, Clone)]
pub struct Script {
    /// The sweep's directory, absolute.
    pub directory: PathBuf,
    /// Program and kernels for the workers.
    pub bundle: Bundle,
    /// Number of the array in the sweep, from 1.
    pub number: usize,
    /// Name of the plan.
    pub name: String,
}

impl Script {
    /// Returns the path of the batch script.
    pub fn path(&self) -> PathBuf {
        self.directory.join("slurm").join(format!("array-{}.sh", self.number))
    }

    fn tasks(&self) -> PathBuf {
        self.directory.join("slurm").join(format!("array-{}.tasks", self.number))
    }

    /// Returns the path of the tasks' output; Slurm replaces `%A` and `%a`.
    pub fn logs(&self) -> String {
        self.directory.join("slurm").join("%A_%a.log").display().to_string()
    }

    /// Returns the batch script.
    pub fn text(&self) -> String {
        format!(
            "#!/bin/sh\n\
             # landspeed sweep: each task makes the runs in its line of the file of tasks.\n\
             export LANDSPEED_ARCHIVE=off\n\
             exec {program} sweep worker {directory} --tasks {tasks} --cache {kernels}\n",
            tasks = shell_path(self.tasks()),
            program = shell_path(&self.bundle.program),
            directory = shell_path(&self.directory),
            kernels = shell_path(&self.bundle.kernels),
        )
    }

    /// Writes the batch script and the task file.
    pub fn write(&self, tasks: &[Vec<usize>]) -> Result<(), Error> {
        for (path, text) in [(self.tasks(), lines(tasks)), (self.path(), self.text())] {
            write_atomically(&path, text.as_bytes()).map_err(|cause| Error::Write { path, cause })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_script_runs_the_bundled_worker() {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(directory.path().join("slurm")).expect("created");
        let bundle = Bundle { program: "/bin/echo".into(), kernels: "/k".into() };
        let script = Script { directory: directory.path().to_owned(), bundle, number: 1, name: "x".to_owned() };
        script.write(&[vec![3, 1], vec![7]]).expect("written");
        let output = std::process::Command::new("sh").arg(script.path()).output().expect("a shell");
        let place = directory.path().display();
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(said, format!("sweep worker {place} --tasks {place}/slurm/array-1.tasks --cache /k\n"));
        assert_eq!(std::fs::read_to_string(script.tasks()).expect("written"), "3 1\n7\n");
    }
}
