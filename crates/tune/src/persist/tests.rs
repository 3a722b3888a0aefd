use std::collections::BTreeMap;
use std::process::Command;

use landspeed_model::Change;
use landspeed_testkit::skip;

use super::*;
use crate::{Allow, Context, Device, SimulatedKnobs, Value, plan};

/// A temporary root directory with some files.
struct Root(tempfile::TempDir);

impl Root {
    fn new(files: &[(&str, &str)]) -> Self {
        let root = Self(tempfile::tempdir().expect("a directory"));
        for (path, text) in files {
            let path = root.0.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        root
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Plans these settings; returns the files (path below the root and content) and the plan.
    fn assign_owners(&self, settings: &[(Target, &str)]) -> (BTreeMap<String, String>, PersistPlan) {
        let device =
            Device { name: "eth0".into(), ifindex: 3, mac: "aa:bb:cc:00:11:22".into(), bus: "0000:3b:00.0".into() };
        let values: Vec<Value> = settings.iter().map(|(_, value)| Value::text(*value)).collect();
        let kept: Vec<PersistedSetting<'_>> = settings
            .iter()
            .zip(&values)
            .map(|((target, requested), value)| {
                let device = target.interface().map(|_| &device);
                PersistedSetting { target, device, value, requested }
            })
            .collect();
        let mut plan = PersistPlan::default();
        assign_owners(&kept, self.path(), &mut plan).expect("the root is readable");
        let relative = |file: &FileChange| file.path.strip_prefix(self.path()).expect("below").display().to_string();
        (plan.files.iter().map(|file| (relative(file), file.after.clone())).collect(), plan)
    }
}

const UDEVADM: (&str, &str) = ("usr/bin/udevadm", "");

fn mtu() -> (Target, &'static str) {
    (Target::Mtu { interface: "eth0".into() }, "9000")
}

fn governor(policy: u32) -> (Target, &'static str) {
    (Target::Governor { policy: format!("policy{policy}") }, "performance")
}

fn interrupt(name: &str) -> (Target, &'static str) {
    (Target::InterruptAffinity { number: 45, name: name.into() }, "0-3,8")
}

/// Lines that are not comments.
fn effective_lines(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect()
}

#[test]
fn an_mtu_persists_in_udev_or_the_network_manager() {
    let state = "NETWORK_FILE=/run/systemd/network/10-netplan-eth0.network\n";
    let network = |matched: &str| format!("[Match]\n{matched}\n\n[Link]\nMTUBytes=1500\n");
    let profile = |rest: &str| format!("[connection]\nid=wired\nuuid=u-1\n{rest}");
    let networkd = "run/systemd/network/10-netplan-eth0.network";
    let keyfile = "etc/NetworkManager/system-connections/wired.nmconnection";
    let (links, devices) = ("run/systemd/netif/links/3", "run/NetworkManager/devices/3");
    for (files, expected) in [
        (vec![], Some(("etc/systemd/network/00-landspeed-eth0.link", "MTUBytes=9000"))),
        (
            vec![(links, state.to_owned()), (networkd, network("Name=eth0"))],
            Some(("etc/systemd/network/10-netplan-eth0.network.d/90-landspeed.conf", "MTUBytes=9000")),
        ),
        // It would apply to other interfaces too.
        (vec![(links, state.to_owned()), (networkd, network("Name=eth*"))], None),
        (
            vec![(devices, "[device]\nconnection-uuid=u-1\n".to_owned()), (keyfile, profile("[ethernet]\nmtu=0\n"))],
            Some(("etc/NetworkManager/conf.d/90-landspeed-eth0.conf", "ethernet.mtu=9000")),
        ),
        (vec![(devices, "connection-uuid=u-1\n".to_owned()), (keyfile, profile("[ethernet]\nmtu=4000\n"))], None),
        (vec![(devices, "connection-uuid=u-2\n".to_owned()), (keyfile, profile(""))], None),
    ] {
        let mut all: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        all.push(UDEVADM);
        let (written, plan) = Root::new(&all).assign_owners(&[mtu()]);
        match expected {
            Some((path, line)) => {
                assert_eq!(written.keys().collect::<Vec<_>>(), [path], "exactly one owner");
                assert!(effective_lines(&written[path]).contains(&line), "{written:?}");
                assert_eq!((plan.covered.len(), plan.by_hand.len()), (1, 0));
            }
            None => assert_eq!((written.len(), plan.covered.len(), plan.by_hand.len()), (0, 0, 1), "{files:?}"),
        }
    }
}

#[test]
fn rings_set_by_a_networkmanager_profile_are_left_to_it() {
    let ring = (Target::Ring { interface: "eth0".into(), side: landspeed_model::Side::Rx }, "8192");
    let pause = (Target::Pause { interface: "eth0".into(), side: landspeed_model::Side::Rx }, "on");
    let root = Root::new(&[
        UDEVADM,
        ("run/NetworkManager/devices/3", "connection-uuid=u-1\n"),
        ("etc/NetworkManager/system-connections/w", "[connection]\nuuid=u-1\n[ethtool]\nring-rx=512\n"),
    ]);
    let (written, plan) = root.assign_owners(&[ring, pause]);
    assert!(plan.by_hand.len() == 1 && plan.by_hand[0].instruction.contains("ethtool.ring-"), "{:?}", plan.by_hand);
    let lines = effective_lines(&written["etc/systemd/network/00-landspeed-eth0.link"]);
    assert!(lines.contains(&"RxFlowControl=yes") && !lines.contains(&"RxBufferSize=8192"), "{lines:?}");
}

#[test]
fn our_tuned_profile_includes_the_active_one() {
    let policies =
        [("sys/devices/system/cpu/cpufreq/policy0/x", ""), ("sys/devices/system/cpu/cpufreq/policy1/x", "")];
    let sysctl = || (Target::Sysctl { name: "net.ipv4.tcp_mtu_probing".into() }, "1");
    let active = ("etc/tuned/active_profile", "throughput-performance\n");
    // sysctl.d is applied after tuned's own sysctls, unless configured otherwise: then tuned's profile sets
    // them.
    for (main, in_profile) in [("", false), ("reapply_sysctl = 0\n", true)] {
        let mode = ("etc/tuned/profile_mode", "auto\n");
        let root = Root::new(&[active, mode, policies[0], policies[1], ("etc/tuned/tuned-main.conf", main)]);
        let (written, plan) = root.assign_owners(&[sysctl(), governor(0), governor(1)]);
        assert_eq!(plan.by_hand, []);
        assert_eq!(written["etc/tuned/active_profile"], "landspeed\n");
        assert_eq!(written["etc/tuned/profile_mode"], "manual\n", "tuned would choose for itself");
        let profile = effective_lines(&written["etc/tuned/landspeed/tuned.conf"]);
        assert!(profile.contains(&"include=throughput-performance") && profile.contains(&"governor=performance"));
        assert_eq!(profile.contains(&"net.ipv4.tcp_mtu_probing=1"), in_profile);
        assert_eq!(written.contains_key("etc/sysctl.d/90-landspeed.conf"), !in_profile);
        assert!(!written.contains_key("etc/tmpfiles.d/landspeed.conf"), "one owner");
        // The profile is written before it is activated.
        assert!(plan.files.last().is_some_and(|file| file.path.ends_with("active_profile")));
    }
    // Different values for CPUs need manual work; a second run keeps the lines and the include of our existing
    // profile.
    let root = Root::new(&[active, policies[0], policies[1]]);
    assert_eq!(root.assign_owners(&[governor(0)]).1.by_hand.len(), 1);
    let again = Root::new(&[
        ("etc/tuned/active_profile", "landspeed"),
        ("etc/tuned/tuned-main.conf", "reapply_sysctl=0"),
        ("etc/tuned/profiles/landspeed/tuned.conf", "[main]\ninclude=balanced\n[cpu]\ngovernor=performance\n"),
    ]);
    let (written, _) = again.assign_owners(&[sysctl()]);
    let profile = effective_lines(&written["etc/tuned/profiles/landspeed/tuned.conf"]);
    for line in ["include=balanced", "governor=performance", "net.ipv4.tcp_mtu_probing=1"] {
        assert!(profile.contains(&line), "{profile:?}");
    }
}

#[test]
fn interrupts_are_set_by_name_unless_irqbalance_runs() {
    let systemd = ("usr/lib/systemd/systemd", "");
    let (written, plan) =
        Root::new(&[systemd]).assign_owners(&[interrupt("mlx5_comp0@pci:0000:3b:00.0"), interrupt("x'; reboot")]);
    let service = effective_lines(&written["etc/systemd/system/landspeed-interrupts.service"]);
    let start: Vec<_> = service.iter().filter(|line| line.starts_with("ExecStart=")).collect();
    assert_eq!(
        start,
        [&"ExecStart=/bin/sh -c 'n=0; until ls -d /proc/irq/*/mlx5_comp0@pci:0000:3b:00.0 >/dev/null 2>&1 || \
           [ $$n = 120 ]; do sleep 1; n=$$((n+1)); done; \
           for i in /proc/irq/*/mlx5_comp0@pci:0000:3b:00.0; do echo 0-3,8 > \
           \"$${i%%/*}/smp_affinity_list\"; done'"]
    );
    assert_eq!(plan.by_hand.len(), 1, "what a shell would read otherwise is left to a person");
    let irqbalance = ("etc/systemd/system/multi-user.target.wants/irqbalance.service", "");
    let (written, plan) = Root::new(&[systemd, irqbalance]).assign_owners(&[interrupt("eth0-0")]);
    assert_eq!((written.len(), plan.by_hand.len()), (0, 1));
    let masked = ("etc/systemd/system/irqbalance.service", "");
    let (written, plan) = Root::new(&[systemd, irqbalance, masked]).assign_owners(&[interrupt("eth0-0")]);
    assert_eq!((written.len(), plan.by_hand.len()), (2, 0));
}

#[test]
fn interrupt_service_is_valid_for_systemd_and_sh() {
    let systemd = ("usr/lib/systemd/systemd", "");
    let root = Root::new(&[systemd]);
    let (written, _) = root.assign_owners(&[interrupt("eth0-0")]);
    let text = &written["etc/systemd/system/landspeed-interrupts.service"];
    let unit = root.path().join("landspeed-interrupts.service");
    std::fs::write(&unit, text).expect("written");
    match Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&unit).output() {
        Ok(output) => {
            let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!complaints.contains("landspeed"), "{complaints}");
        }
        Err(why) => skip!("no systemd-analyze here: {why}"),
    }
    // The command as systemd would run it, with /proc replaced by a temporary directory.
    let command = effective_lines(text)
        .into_iter()
        .find_map(|line| line.strip_prefix("ExecStart=/bin/sh -c '"))
        .expect("there");
    let command = command.trim_end_matches('\'').replace("$$", "$").replace("%%", "%");
    let here = root.path().join("irq/45");
    std::fs::create_dir_all(here.join("eth0-0")).expect("made");
    let command = command.replace("/proc", &root.path().display().to_string());
    assert!(Command::new("/bin/sh").args(["-c", &command]).status().expect("a shell").success());
    assert_eq!(std::fs::read_to_string(here.join("smp_affinity_list")).expect("written"), "0-3,8\n");
    // Without the interrupt it ends, here at once, and fails.
    let command = command.replace("= 120", "= 0");
    std::fs::remove_dir(here.join("eth0-0")).expect("removed");
    assert!(!Command::new("/bin/sh").args(["-c", &command]).status().expect("a shell").success());
}

/// Content and mode of every file below a directory.
fn snapshot(directory: &Path, into: &mut BTreeMap<PathBuf, (Vec<u8>, u32)>) {
    for entry in std::fs::read_dir(directory).expect("readable").flatten() {
        let mode = entry.metadata().expect("there").permissions().mode();
        if entry.path().is_dir() {
            into.insert(entry.path(), (Vec::new(), mode));
            snapshot(&entry.path(), into);
        } else {
            into.insert(entry.path(), (std::fs::read(entry.path()).expect("readable"), mode));
        }
    }
}

#[test]
fn persist_and_undo_restore_bytes_and_modes() {
    let root = Root::new(&[
        ("etc/tuned/active_profile", "balanced"),
        ("etc/tuned/tuned-main.conf", "reapply_sysctl=0\n"),
        ("sys/devices/system/cpu/cpufreq/policy0/x", ""),
    ]);
    let active = root.path().join("etc/tuned/active_profile");
    std::fs::set_permissions(&active, Permissions::from_mode(0o640)).expect("set");
    let (probing, policy) = (Target::Sysctl { name: "net.ipv4.tcp_mtu_probing".into() }, governor(0).0);
    let twin = SimulatedKnobs::new([(probing.clone(), Value::text("0")), (policy.clone(), Value::text("powersave"))]);
    let state = tempfile::tempdir().expect("a directory");
    let context = Context {
        state: state.path().join("s"),
        boot: "b".into(),
        namespace: "n".into(),
        policy: landspeed_sys::trust::Policy::Refuse,
        registry: state.path().join("registry"),
        fault: None,
    };
    let engine = Engine::new(&twin, context);
    let watchdog = crate::Watchdog { process: 1, unit: None, warning: None };
    let changes = [Change::new(probing, "1"), Change::new(policy, "performance")];
    engine
        .apply(&plan(&changes, &twin, Allow::default()), 60, None, &mut |_| Ok(watchdog.clone()))
        .expect("it applies");
    let id = engine.confirm(None).expect("it is confirmed");
    let mut before = BTreeMap::new();
    snapshot(root.path(), &mut before);

    let (_, files) = engine.plan_persist(Some(id), root.path()).expect("it can be kept");
    engine.persist(id, &files).expect("it is kept");
    let mut kept = BTreeMap::new();
    snapshot(root.path(), &mut kept);
    assert_eq!(kept[&active], (b"landspeed\n".to_vec(), 0o100_640), "the mode stays");
    let profile = &kept[&root.path().join("etc/tuned/landspeed/tuned.conf")];
    assert_eq!(profile.1, 0o100_644, "readable whatever the mask");

    assert_eq!(engine.unpersist(None).expect("it is rolled back"), (id, Vec::new()));
    let mut after = BTreeMap::new();
    snapshot(root.path(), &mut after);
    assert_eq!(after, before);
}
