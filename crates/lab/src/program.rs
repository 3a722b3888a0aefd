//! Finds the programs of a scenario on this host.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::plan::{OWN_PROGRAM, Plan};

/// Directories in which programs are searched for, here and on the hosts of the network.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Directories that are empty and writable on each host of the network.
pub const WRITABLE: [&str; 5] = ["/tmp", "/var/tmp", "/var/log", "/run", "/dev/shm"];
/// Maximum number of nested interpreters, as in the kernel.
const MAX_INTERPRETERS: usize = 4;
/// Maximum length of the first line of a script, bytes, as in the kernel (`BINPRM_BUF_SIZE`).
const MAX_FIRST_LINE: u64 = 256;

/// Sets the command lines to execute, and the working directory: that of this process.
///
/// # Errors
/// Returns which program cannot be found or executed, and what to do.
pub fn resolve(plan: &mut Plan) -> Result<(), String> {
    if plan.programs.is_empty() {
        return Ok(());
    }
    let directory = std::env::current_dir().ok().and_then(|path| path.into_os_string().into_string().ok());
    plan.directory = directory.unwrap_or_else(|| "/".to_owned());
    for program in &mut plan.programs {
        let refuse = |why: String| format!("cannot run the program {}: {why}", program.name);
        let mut run = program.command.clone();
        run[0] = locate(&run[0], &plan.directory).map_err(refuse)?;
        for _ in 0..MAX_INTERPRETERS {
            let Some(interpreter) = interpreter(&run[0]) else { break };
            run.splice(0..0, interpreter);
        }
        program.run = run;
    }
    Ok(())
}

/// Returns the absolute path of a program.
fn locate(word: &str, directory: &str) -> Result<String, String> {
    if word == OWN_PROGRAM {
        return Ok(word.to_owned());
    }
    if word.contains('/') {
        let path = Path::new(directory).join(word);
        let text = path.to_string_lossy().into_owned();
        let hidden = WRITABLE.iter().find(|own| path.starts_with(own) && !Path::new(directory).starts_with(own));
        return match hidden {
            Some(own) => Err(format!(
                "hosts of the lab have their own {own}\nMove {text} elsewhere, or start landspeed in its directory."
            )),
            None if is_executable(&path) => Ok(text),
            None if path.exists() => Err(format!("{text} is not executable\nMake it so: chmod +x")),
            None => Err(format!("{text} does not exist\nCorrect its `run`.")),
        };
    }
    let mut candidates = PATH.split(':').map(|directory| Path::new(directory).join(word));
    candidates
        .find(|path| is_executable(path))
        .map(|path| path.to_string_lossy().into_owned())
        .ok_or_else(|| format!("no `{word}` in {PATH}\nInstall it, or write its absolute path."))
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Returns the interpreter of a script, and its argument: the lab's kernel executes only ELF files.
fn interpreter(path: &str) -> Option<Vec<String>> {
    let mut head = Vec::new();
    File::open(path).ok()?.take(MAX_FIRST_LINE).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    let line = line.trim();
    let (program, argument) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    let argument = argument.trim();
    let words = [program, argument].into_iter().filter(|word| !word.is_empty());
    (!program.is_empty()).then(|| words.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_in_the_path_or_named_with_their_reason() {
        let shell = locate("sh", "/").expect("every host has a shell");
        assert!(shell.ends_with("/sh"), "{shell}");
        assert_eq!(locate(&shell, "/").as_deref(), Ok(shell.as_str()));
        assert_eq!(locate(OWN_PROGRAM, "/").as_deref(), Ok(OWN_PROGRAM));
        assert!(locate("no-such-program", "/").expect_err("missing").contains("no `no-such-program` in /usr"));
        assert!(locate("/etc/passwd", "/").expect_err("a text").contains("not executable"));
        assert!(locate("./x", "/nonexistent").expect_err("missing").contains("/nonexistent/./x does not exist"));
        assert!(locate("/tmp/x", "/").expect_err("hidden").contains("their own /tmp"));
    }

    #[test]
    fn scripts_get_their_interpreter_and_one_argument() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("script");
        let path = path.to_str().expect("plain");
        for (text, words) in [
            ("#!/bin/sh\necho", Some(vec!["/bin/sh"])),
            ("#! /usr/bin/env -S python3 -u\n", Some(vec!["/usr/bin/env", "-S python3 -u"])),
            ("#!\n", None),
            ("\x7fELF", None),
            ("", None),
        ] {
            std::fs::write(path, text).expect("writable");
            let words = words.map(|words| words.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(interpreter(path), words, "{text}");
        }
    }
}
