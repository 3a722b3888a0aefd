//! A cgroup's rate limit on a real interface: measured next to a transfer outside the cgroup, and rolled
//! back.

use std::io::Read as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use landspeed_model::{Change, Target};
use landspeed_sys::clock;
use landspeed_sys::trust::Policy;
use landspeed_testkit::netns::{Namespace, veth};
use landspeed_testkit::{in_lab_kernel, skip};
use landspeed_tune::{Allow, Context, Engine, Knobs as _, LiveKnobs, State, Value, Watchdog, plan};

const RATE_BPS: u64 = 80_000_000;
/// Time left out at the beginning of a measurement, nanoseconds.
const SETTLE_NS: u64 = 300_000_000;
const MEASURE_NS: u64 = 1_500_000_000;

/// A cgroup, removed after the test.
struct Group {
    path: PathBuf,
    name: String,
}

impl Group {
    fn new(test: &str) -> Option<Self> {
        let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
        let mut lines = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let mount = lines.find(|words| words.get(2) == Some(&"cgroup2"))?[1].to_owned();
        let name = format!("lstest-tune-{}-{test}", std::process::id());
        let path = Path::new(&mount).join(&name);
        std::fs::create_dir(&path).ok()?;
        Some(Self { path, name })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.path);
    }
}

/// A process that sends at full rate; killed on drop.
struct Sender(Child);

impl Sender {
    /// Starts a sender in `left`, as a member of `group`.
    fn new(left: &Namespace, to: &str, group: Option<&Path>) -> Self {
        let join = group.map_or_else(String::new, |group| format!("echo $$ > {}/cgroup.procs && ", group.display()));
        let script = format!("{join} exec 3<>/dev/tcp/{to}/5210 && exec timeout 30 cat /dev/zero >&3");
        let child = left.run(|| Command::new("bash").args(["-c", &script]).stderr(Stdio::null()).spawn());
        Self(child.expect("bash runs"))
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn context(state: PathBuf) -> Context {
    let registry = state.with_file_name("registry");
    let (boot, namespace) = ("boot".into(), "left".into());
    Context { state, boot, namespace, policy: Policy::Refuse, registry, fault: None }
}

#[expect(clippy::unnecessary_wraps, reason = "what `StartWatchdog` takes")]
fn watchdog(_: u32) -> Result<Watchdog, String> {
    Ok(Watchdog { process: 1, unit: None, warning: None })
}

/// Goodput of concurrent senders, bits/s, in the order of `groups`.
fn goodput(left: &Namespace, right: &Namespace, groups: &[Option<&Path>]) -> Vec<f64> {
    let listener = right.run(|| TcpListener::bind("10.9.0.2:5210")).expect("the address is ours");
    let mut senders = Vec::new();
    let mut streams = Vec::new();
    for group in groups {
        senders.push(Sender::new(left, "10.9.0.2", *group));
        let (stream, _) = listener.accept().expect("it connects");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a limit");
        streams.push(stream);
    }
    let begin = clock::monotonic_ns() + SETTLE_NS;
    std::thread::scope(|scope| {
        let count = |mut stream: std::net::TcpStream| {
            let mut buffer = vec![0; 1 << 16];
            let (mut bytes, mut now) = (0, clock::monotonic_ns());
            while now < begin + MEASURE_NS {
                let read = stream.read(&mut buffer).expect("it sends");
                now = clock::monotonic_ns();
                if now >= begin {
                    bytes += read;
                }
            }
            bytes as f64 * 8e9 / (now - begin) as f64
        };
        let threads: Vec<_> = streams.into_iter().map(|stream| scope.spawn(move || count(stream))).collect();
        threads.into_iter().map(|thread| thread.join().expect("it counts")).collect()
    })
}

#[test]
fn a_group_limit_affects_only_its_group() {
    let left = landspeed_testkit::or_skip!(Namespace::new("left"));
    let right = landspeed_testkit::or_skip!(Namespace::new("right"));
    let Some(group) = Group::new("rate") else { in_lab_kernel!("no control groups of version 2 here") };
    let link = veth(&left, &right, "10.9.0.1/24", "10.9.0.2/24");
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    let context = context(state);
    let qdisc = Target::Qdisc { interface: link.a.clone() };
    let rate = Target::EgressRate { cgroup: group.name.clone(), interface: link.a.clone() };
    let shown =
        || left.exec(["tc", "qdisc", "show", "dev", &link.a]) + &left.exec(["tc", "class", "show", "dev", &link.a]);
    let mut left_out = Vec::new();
    for kind in ["fq", "htb"] {
        let before = (shown(), left.run(|| LiveKnobs.read(&qdisc)).expect("readable"));
        let changes = [Change::new(qdisc.clone(), kind), Change::new(rate.clone(), RATE_BPS.to_string())];
        let applied = left.run(|| {
            let plan = plan(&changes, &LiveKnobs, Allow::default());
            let refused: Vec<_> = plan.refused().map(|step| step.refused.clone()).collect();
            assert_eq!(refused, [], "nothing speaks against it");
            Engine::new(&LiveKnobs, context.clone()).apply(&plan, 60, None, &mut watchdog).map(|_| ())
        });
        if let Err(why) = applied {
            assert_eq!(shown(), before.0, "what cannot be done leaves nothing");
            left_out.push(format!("{kind}: {why}"));
            continue;
        }
        assert_eq!(left.run(|| LiveKnobs.read(&rate)), Ok(Value::text(RATE_BPS.to_string())));
        let measured = goodput(&left, &right, &[Some(group.path.as_path()), None]);
        // 1448 of 1514 bytes of a frame are payload; data queued at the beginning may add to it.
        let share = measured[0] / RATE_BPS as f64;
        assert!((0.90..1.02).contains(&share), "{kind}: {share} of the rate");
        assert!(measured[1] > 2.0 * measured[0], "{kind}: the other one is not held: {measured:?}");

        let (_, state) =
            left.run(|| Engine::new(&LiveKnobs, context.clone()).revert(None, false)).expect("it is rolled back");
        assert_eq!(state, State::Reverted);
        assert_eq!((shown(), left.run(|| LiveKnobs.read(&qdisc)).expect("readable")), before);
        assert_eq!(left.run(|| LiveKnobs.read(&rate)), Ok(Value::text("0")));
    }
    if !left_out.is_empty() {
        in_lab_kernel!("{}", left_out.join("; "));
    }
}

#[test]
fn a_limit_for_a_removed_interface_leaves_no_program() {
    let left = landspeed_testkit::or_skip!(Namespace::new("left"));
    let Some(group) = Group::new("gone") else { in_lab_kernel!("no control groups of version 2 here") };
    left.exec(["ip", "link", "add", "gone0", "type", "veth", "peer", "name", "gone1"]);
    left.exec(["tc", "qdisc", "add", "dev", "gone0", "root", "handle", "7:", "htb"]);
    let rate = Target::EgressRate { cgroup: group.name.clone(), interface: "gone0".into() };
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    let context = context(state);
    let limits = || landspeed_sys::bpf::egress::limits(&group.path).map(|limits| limits.len());
    left.run(|| {
        let plan = plan(&[Change::new(rate, "80000000")], &LiveKnobs, Allow::default());
        let engine = Engine::new(&LiveKnobs, context);
        if let Err(why) = engine.apply(&plan, 60, None, &mut watchdog) {
            skip!("{why}");
        }
        assert_eq!(limits().expect("readable"), 1);
        left.exec(["ip", "link", "del", "gone0"]);
        assert_eq!(engine.revert(None, false).expect("nothing is in the way").1, State::Reverted);
        assert_eq!(limits().expect("readable"), 0);
    });
}
