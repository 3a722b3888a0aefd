//! Filter programs from tcpdump: run without privileges, with limits on time and output, and verified.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use landspeed_sys::clock::{monotonic_ns, sleep_until};
use landspeed_sys::process::is_root;
use landspeed_wire::LinkType;
use landspeed_wire::filter::{Instruction, MAX_INSTRUCTIONS, op, verify};

/// Time limit for tcpdump, which may resolve names, nanoseconds.
const TCPDUMP_TIMEOUT_NS: u64 = 10_000_000_000;
/// Poll interval while it runs, nanoseconds.
const POLL_NS: u64 = 2_000_000;
/// Maximum output read from it, bytes: twice the longest possible program.
const MAX_OUTPUT_BYTES: u64 = 256 << 10;
/// User and group id of `nobody`.
const NOBODY_ID: u32 = 65534;
/// BPF operation that returns the accumulator.
const RETURN_A: u16 = 0x16;

/// Reason why tcpdump produced no program.
#[derive(Debug, thiserror::Error)]
pub enum TcpdumpError {
    /// tcpdump is not installed.
    #[error("tcpdump is not installed")]
    Missing,
    /// tcpdump cannot be started.
    #[error("cannot run {0}: {1}")]
    Run(PathBuf, std::io::Error),
    /// tcpdump exceeded the time limit.
    #[error("tcpdump has not answered in {} s", TCPDUMP_TIMEOUT_NS / 1_000_000_000)]
    Time,
    /// tcpdump refused the expression; its message.
    #[error("tcpdump: {0}")]
    Refused(String),
    /// The output is not a valid program.
    #[error("tcpdump's program is not valid: {0}")]
    Program(String),
}

/// Compiles an expression with the installed tcpdump; accepted packets are truncated to `snap_bytes`.
pub fn compile(text: &str, link: LinkType, snap_bytes: u32) -> Result<Vec<Instruction>, TcpdumpError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin", "/usr/bin"].map(PathBuf::from));
    let mut programs =
        directories.filter(|directory| directory.is_absolute()).map(|directory| directory.join("tcpdump"));
    let program = programs.find(|program| program.is_file()).ok_or(TcpdumpError::Missing)?;
    let output = run(&program, text, link, snap_bytes, TCPDUMP_TIMEOUT_NS)?;
    read(&output, snap_bytes)
}

/// Runs tcpdump on an empty capture of this link type, which needs no privilege; returns its output.
fn run(program: &Path, text: &str, link: LinkType, snap_bytes: u32, most_ns: u64) -> Result<String, TcpdumpError> {
    let failed = |error| TcpdumpError::Run(program.to_owned(), error);
    let deadline_ns = monotonic_ns().saturating_add(most_ns);
    let mut child = spawn(program, text).map_err(failed)?;
    let [stdout, stderr] = [
        child.stdout.take().map(|pipe| read_limited(Box::new(pipe))),
        child.stderr.take().map(|pipe| read_limited(Box::new(pipe))),
    ];
    if let Some(mut stdin) = child.stdin.take() {
        // Fails if tcpdump has already refused the expression.
        let _ = stdin.write_all(&empty_capture(link, snap_bytes));
    }
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if monotonic_ns() < deadline_ns => sleep_until(monotonic_ns() + POLL_NS),
            waited => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(waited.err().map_or(TcpdumpError::Time, failed));
            }
        }
    };
    let [stdout, stderr] =
        [stdout, stderr].map(|thread| thread.and_then(|thread| thread.join().ok()).unwrap_or_default());
    if status.success() {
        return Ok(stdout);
    }
    let words = stderr.lines().rfind(|line| !line.starts_with("reading from file")).unwrap_or_default();
    let words = words.strip_prefix("tcpdump: ").unwrap_or(words).trim();
    Err(TcpdumpError::Refused(if words.is_empty() { status.to_string() } else { words.to_owned() }))
}

fn spawn(program: &Path, text: &str) -> std::io::Result<Child> {
    let mut command = Command::new(program);
    command.args(["-r", "-", "-ddd", "--", text]).env_clear();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if !is_root() {
        return command.spawn();
    }
    match command.uid(NOBODY_ID).gid(NOBODY_ID).spawn() {
        // In a user namespace without `nobody`, or if only root may execute it.
        Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::InvalidInput) => {
            command.uid(0).gid(0).spawn()
        }
        spawned => spawned,
    }
}

/// Reads a pipe on a new thread, to its end or to the limit.
fn read_limited(pipe: Box<dyn Read + Send>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Header of a pcap file with the link type and the snap length.
fn empty_capture(link: LinkType, snap_bytes: u32) -> Vec<u8> {
    let mut header = Vec::new();
    landspeed_wire::capture::write::pcap_header(&mut header, link, snap_bytes);
    header
}

/// Parses the output of `tcpdump -ddd`: the number of instructions, then four numbers per instruction.
fn read(output: &str, snap_bytes: u32) -> Result<Vec<Instruction>, TcpdumpError> {
    let invalid = |why: &str| TcpdumpError::Program(why.to_owned());
    let mut lines = output.lines();
    let count =
        lines.next().and_then(|line| line.parse().ok()).ok_or_else(|| invalid("no number of instructions"))?;
    if count > MAX_INSTRUCTIONS {
        return Err(invalid("too many instructions"));
    }
    let mut program = Vec::with_capacity(count);
    for line in lines {
        let instruction = instruction(line).ok_or_else(|| invalid("a line that is not an instruction"))?;
        program.push(match instruction.code {
            op::RETURN if instruction.k != 0 => Instruction::pass(snap_bytes),
            RETURN_A => return Err(invalid("it returns a value that it computes")),
            _ => instruction,
        });
    }
    if program.len() != count {
        return Err(invalid("another number of instructions than it says"));
    }
    verify(&program).map_err(|error| TcpdumpError::Program(error.to_string()))?;
    Ok(program)
}

fn instruction(line: &str) -> Option<Instruction> {
    let mut fields = line.split(' ');
    let mut next = || fields.next();
    let instruction = Instruction {
        code: next()?.parse().ok()?,
        jt: next()?.parse().ok()?,
        jf: next()?.parse().ok()?,
        k: next()?.parse().ok()?,
    };
    next().is_none().then_some(instruction)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A script that replaces tcpdump.
    fn script(directory: &Path, body: &str) -> PathBuf {
        let path = directory.join("tcpdump");
        std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).expect("a file");
        for path in [directory, &path] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("its owner may");
        }
        path
    }

    fn run_script(body: &str, most_ns: u64) -> Result<String, TcpdumpError> {
        let directory = tempfile::tempdir().expect("a directory");
        run(&script(directory.path(), body), "-w x", LinkType::RAW, 96, most_ns)
    }

    #[test]
    fn programs_are_parsed_strictly_and_use_the_snap_length() {
        let program =
            read("4\n40 0 0 12\n21 0 1 2048\n6 0 0 262144\n6 0 0 0\n", 96).expect("tcpdump's output for ip");
        assert_eq!(program[2..], [Instruction::pass(96), Instruction::pass(0)]);
        for output in [
            "",
            "x\n",
            "1\n",
            "1\n6 0 0\n",
            "1\n6 0 0 0 0\n",
            "1\n6 0  0 0\n",
            "1\n6 0 0 -1\n",
            "1\n6 256 0 0\n",
            "2\n6 0 0 1\n",
            "1\n6 0 0 1\n6 0 0 1\n",
            "1\n22 0 0 0\n",
            "2\n21 1 0 0\n6 0 0 1\n",
            "1\n40 0 0 12\n",
            "2\n52 0 0 0\n6 0 0 1\n",
            "4097\n",
        ] {
            assert!(matches!(read(output, 96), Err(TcpdumpError::Program(_))), "{output}");
        }
    }

    #[test]
    fn expressions_are_never_options_and_privileges_are_dropped() {
        let said = run_script("for a; do echo \"<$a>\"; done; id -u; head -c 24 | od -An -tu4", 10_000_000_000);
        let said = said.expect("it succeeds");
        let lines: Vec<&str> = said.lines().map(str::trim).collect();
        assert_eq!(lines[..5], ["<-r>", "<->", "<-ddd>", "<-->", "<-w x>"]);
        assert_ne!(lines[5], "0", "it runs as root");
        assert!(said.contains("96") && said.contains("101"), "snap length and link type: {said}");
    }

    #[test]
    fn time_and_output_are_limited() {
        assert!(matches!(run_script("exec sleep 30", 200_000_000), Err(TcpdumpError::Time)));
        assert!(matches!(run_script("exec cat /dev/zero", 10_000_000_000), Err(TcpdumpError::Refused(_))));
    }

    #[test]
    fn last_line_of_stderr_is_the_error() {
        let body = "echo 'reading from file -' >&2; echo 'tcpdump: syntax error' >&2; exit 1";
        let error = run_script(body, 10_000_000_000).expect_err("it fails");
        assert_eq!(error.to_string(), "tcpdump: syntax error");
    }

    #[test]
    fn tcpdump_compiles_for_the_link_type_without_privileges() {
        let compiled = |text, link| match compile(text, link, 96) {
            Err(TcpdumpError::Missing) => None,
            compiled => Some(compiled),
        };
        let Some(ethernet) = compiled("tcp[tcpflags] & tcp-syn != 0", LinkType::ETHERNET) else {
            landspeed_testkit::skip!("tcpdump is not installed");
        };
        let ethernet = ethernet.expect("it is valid");
        assert_eq!((ethernet[0].code, ethernet[0].k), (op::LOAD_HALF, 12), "the EtherType");
        assert!(ethernet.contains(&Instruction::pass(96)), "{ethernet:?}");
        let raw = compiled("len > 100", LinkType::RAW).expect("it is there").expect("it is valid");
        assert_ne!(raw, ethernet);
        let raw = compiled("tcp[0] = 1", LinkType::RAW).expect("it is there").expect("it is valid");
        assert_eq!((raw[0].code, raw[0].k), (op::LOAD_BYTE, 0), "the version of IP");
        let refused = compiled("prt 80", LinkType::ETHERNET).expect("it is there").expect_err("nonsense");
        assert!(refused.to_string().contains("syntax error"), "{refused}");
    }
}
