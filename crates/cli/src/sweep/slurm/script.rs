//! The batch script of a job array, and the file that says which runs each task makes.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::bundle::Bundle;
use crate::output::Sink;

/// Files of one array.
#[derive(Debug, Clone)]
pub struct Script {
    /// The sweep's directory, absolute.
    pub directory: PathBuf,
    /// What workers need beside it.
    pub bundle: Bundle,
    /// Number of the array in this sweep, from 1.
    pub number: usize,
    /// Name of the plan.
    pub name: String,
}

impl Script {
    /// Where it is.
    pub fn path(&self) -> PathBuf {
        self.directory.join("slurm").join(format!("array-{}.sh", self.number))
    }

    fn tasks(&self) -> PathBuf {
        self.directory.join("slurm").join(format!("array-{}.tasks", self.number))
    }

    /// Where the output of tasks goes; `%A` and `%a` are Slurm's.
    pub fn logs(&self) -> String {
        self.directory.join("slurm").join("%A_%a.log").display().to_string()
    }

    /// What the batch system runs. Line N+1 of the file of tasks has the runs of task N.
    pub fn text(&self) -> String {
        let path = |path: PathBuf| quoted(&path.display().to_string());
        format!(
            "#!/bin/sh\n\
             # landspeed sweep: one task makes the runs of its line in the file of tasks.\n\
             export LANDSPEED_ARCHIVE=off\n\
             runs=$(sed -n \"$((SLURM_ARRAY_TASK_ID + 1))p\" {tasks}) || exit 2\n\
             exec {program} sweep worker {directory} $runs --cache {kernels} --name \"${{SLURMD_NODENAME:-$(hostname)}}\"\n",
            tasks = path(self.tasks()),
            program = path(self.bundle.program.clone()),
            directory = path(self.directory.clone()),
            kernels = path(self.bundle.kernels.clone()),
        )
    }

    /// Writes both files.
    pub fn write(&self, tasks: &[Vec<usize>]) -> anyhow::Result<()> {
        let lines = tasks.iter().fold(String::new(), |mut text, runs| {
            let runs: Vec<String> = runs.iter().map(ToString::to_string).collect();
            let _ = writeln!(text, "{}", runs.join(" "));
            text
        });
        Sink::File(self.tasks()).write(lines.as_bytes())?;
        Sink::File(self.path()).write(self.text().as_bytes())
    }
}

/// A word for a shell.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=%+,:@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        assert_eq!(quoted("/a/b-1.sh"), "/a/b-1.sh");
        assert_eq!(quoted("/a b/it's"), "'/a b/it'\\''s'");
        assert_eq!(quoted("$(x)"), "'$(x)'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn a_task_reads_its_line() {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(directory.path().join("slurm")).expect("created");
        let bundle = Bundle { program: "/bin/echo".into(), kernels: "/k".into() };
        let script = Script { directory: directory.path().to_owned(), bundle, number: 1, name: "x".to_owned() };
        script.write(&[vec![3, 1], vec![7]]).expect("written");
        let task = |index: &str| {
            let output = std::process::Command::new("sh")
                .arg(script.path())
                .env("SLURM_ARRAY_TASK_ID", index)
                .env("SLURMD_NODENAME", "n1")
                .output()
                .expect("a shell");
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let place = directory.path().display();
        assert_eq!(task("0"), format!("sweep worker {place} 3 1 --cache /k --name n1\n"));
        assert_eq!(task("1"), format!("sweep worker {place} 7 --cache /k --name n1\n"));
    }
}
