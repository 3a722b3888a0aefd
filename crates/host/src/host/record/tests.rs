use std::os::unix::fs::PermissionsExt;

use super::*;

/// Clears the collection time, which differs between readings and is not recorded.
fn without_collection_time(mut facts: Facts) -> Facts {
    facts.collect_ns = 0;
    facts
}

#[test]
fn a_recorded_host_has_the_facts_of_the_original() {
    let parent = tempfile::tempdir().expect("a directory");
    let directory = parent.path().join("host");
    let recorder = Recorder { host: &LiveHost::new(), seen: RefCell::new(HostAnswers::default()) };
    let seen = without_collection_time(collect(&recorder));
    write_all(&recorder.seen.into_inner(), &directory).expect("room");
    let host = RecordedHost::open(&directory).expect("recorded");
    let again = collect(&host);
    assert_eq!(again.collect_ns, 0, "a recorded host takes no time");
    assert_eq!(again, seen);
    assert!(!seen.interfaces.is_empty() || seen.default_interface.known().is_none(), "{seen:?}");

    // A recording of a recording is identical.
    let copy = parent.path().join("copy");
    assert_eq!(record_host(&host, &copy, false).expect("room"), seen);
}

#[test]
fn a_directory_with_files_is_not_changed() {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("thesis.txt"), "years of work").expect("written");
    let error = record(directory.path(), false).expect_err("not empty");
    assert!(error.to_string().contains("is not empty; name a directory that is not there"), "{error}");
    let names: Vec<_> = fs::read_dir(directory.path()).expect("a directory").flatten().collect();
    assert_eq!(names.len(), 1);
}

#[test]
fn an_empty_directory_is_used_without_leftovers() {
    let parent = tempfile::tempdir().expect("a directory");
    let directory = parent.path().join("empty");
    fs::create_dir(&directory).expect("made");
    let facts = record(&directory, false).expect("recorded");
    assert_eq!(facts.schema, landspeed_model::FACTS_SCHEMA);
    let beside: Vec<_> = fs::read_dir(parent.path()).expect("a directory").flatten().map(|e| e.file_name()).collect();
    assert_eq!(beside, ["empty"]);
}

#[test]
fn failed_writes_are_reported_and_leave_no_files() {
    let parent = tempfile::tempdir().expect("a directory");
    let missing = parent.path().join("no/such/parent");
    let error = record(&missing, false).expect_err("its parent is not there");
    assert!(error.to_string().starts_with("cannot record this host: cannot make "), "{error}");
    assert!(error.to_string().ends_with("nothing was kept"), "{error}");
    assert_eq!(fs::read_dir(parent.path()).expect("a directory").count(), 0);
    let file = parent.path().join("file");
    fs::write(&file, "").expect("written");
    let error = record(&file, false).expect_err("a file");
    assert!(error.to_string().contains("cannot list"), "{error}");
}

#[test]
fn a_full_disk_is_reported_and_leaves_no_files() {
    let outcome = landspeed_sys::netns::run_in_new_namespace(|| ());
    if outcome.is_err() || !landspeed_sys::process::is_root() {
        landspeed_testkit::skip!("a small file system needs root");
    }
    let parent = tempfile::tempdir().expect("a directory");
    let mount = |words: &[&str]| {
        std::process::Command::new(words[0]).args(&words[1..]).arg(parent.path()).status().is_ok_and(|s| s.success())
    };
    if !mount(&["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs"]) {
        landspeed_testkit::skip!("a small file system cannot be mounted here");
    }
    let outcome = record(&parent.path().join("host"), false);
    let left = fs::read_dir(parent.path()).expect("a directory").count();
    assert!(mount(&["umount"]), "unmounted");
    let error = outcome.expect_err("64 KiB hold no host").to_string();
    assert!(error.contains("No space left on device"), "{error}");
    assert_eq!(left, 0, "{error}");
}

/// A host that refuses access to some files, as for an unprivileged caller.
struct FailingHost;

impl Host for FailingHost {
    fn read(&self, path: &str) -> io::Result<String> {
        match path {
            "/proc/sys/kernel/hostname" => Ok("h\n".into()),
            "/proc/cmdline" => Err(io::Error::from_raw_os_error(13)),
            "/sys/devices/system/cpu/smt/control" => Err(io::ErrorKind::InvalidInput.into()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn link(&self, _path: &str) -> io::Result<String> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn names(&self, directory: &str, _prefix: &str) -> io::Result<Vec<String>> {
        match directory {
            "/etc/sysctl.d" => Err(io::Error::from_raw_os_error(13)),
            "/sys/devices/system/cpu/vulnerabilities" => Ok(vec!["../../escape".into(), "mds".into()]),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn kernel(&self) -> KernelAnswers {
        KernelAnswers { taken: "2026-01-02T03:04:05Z".into(), ..KernelAnswers::default() }
    }

    fn interface(&self, _name: &str) -> InterfaceAnswers {
        InterfaceAnswers::default()
    }

    fn pci_config(&self, _address: &str) -> Fact<Vec<u8>> {
        Fact::default()
    }
}

#[test]
fn forbidden_facts_stay_unknown_and_missing_ones_absent() {
    let parent = tempfile::tempdir().expect("a directory");
    let directory = parent.path().join("host");
    let facts = record_host(&FailingHost, &directory, false).expect("recorded");
    assert_eq!(without_collection_time(facts.clone()), without_collection_time(collect(&FailingHost)));
    let why = "cannot read /proc/cmdline: Permission denied (os error 13)";
    assert_eq!(facts.kernel.command_line, Fact::Unknown(why.into()));
    let Fact::Unknown(why) = &facts.sysctl_files else { panic!("{:?}", facts.sysctl_files) };
    assert!(why.contains("/etc/sysctl.d: Permission denied"), "{why}");
    assert!(matches!(facts.cpu.smt, Fact::Unknown(_)), "{:?}", facts.cpu.smt);
    assert!(matches!(facts.memory_bytes, Fact::Absent(_)), "{:?}", facts.memory_bytes);
    assert_eq!(facts.taken, "2026-01-02T03:04:05Z");
    assert!(!parent.path().join("escape").exists() && !directory.join("escape").exists());
}

#[test]
fn recorded_files_are_not_executable() {
    let parent = tempfile::tempdir().expect("a directory");
    let directory = parent.path().join("host");
    record(&directory, false).expect("recorded");
    let mode = fs::metadata(directory.join(KERNEL_FILE)).expect("written").permissions().mode();
    assert_eq!(mode & 0o111, 0, "{mode:o}");
}
