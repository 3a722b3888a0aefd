//! Two network namespaces with an emulator between them. Everything belongs to processes that are killed when the
//! benchmark ends.

use std::fs::{self, File};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path as FilePath, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use landspeed_netlink::{LinkId, Netlink};
use landspeed_sys::bpf::{FrameFilter, Pattern};
use landspeed_sys::clock::{monotonic_ns, sleep_until};
use landspeed_sys::netns;
use nix::sys::signal::Signal;
use tempfile::TempDir;

use super::load::offer;
use crate::bench::child::{Running, run_checked};
use crate::machine;

/// Core of the sender and the receiver; the emulator runs on [`EMULATOR_CORE`].
pub const LOAD_CORE: u32 = 0;
/// Core of the emulator.
pub const EMULATOR_CORE: u32 = 1;
/// Maximum lifetime of a namespace's process, seconds.
const NAMESPACE_LIFETIME_S: &str = "900";
/// An unprivileged user (the kernel's overflow user).
const OVERFLOW_UID: &str = "65534";
/// Time limit of an `ip` command.
const LIMIT: Duration = Duration::from_secs(10);

/// Emulator under test.
#[derive(Debug, Clone)]
pub enum Emulator {
    /// No emulator: one virtual link between the namespaces, which shows the error of the method.
    Wire,
    /// `landspeed emulate --between`.
    Landspeed(PathBuf),
    /// `rattan run` in its isolated mode, which uses `AF_PACKET`.
    Rattan(PathBuf),
    /// `mm-delay`: no rate, delay only.
    Mahimahi(PathBuf),
    /// `tc qdisc … netem` on the ports of a bridge.
    Netem,
}

/// The emulated path, the same in both directions.
#[derive(Debug, Clone, Copy)]
pub struct Path {
    /// Rate, bits/s.
    pub rate_bps: u64,
    /// One-way delay, milliseconds.
    pub delay_ms: u64,
    /// Maximum IP packet size, bytes.
    pub mtu: u32,
}

/// A running emulator with its namespaces.
#[derive(Debug)]
pub struct Rig {
    /// The sender's namespace.
    pub left: OwnedFd,
    /// The receiver's namespace.
    pub right: OwnedFd,
    /// The sender's interface.
    pub left_interface: String,
    /// The receiver's interface.
    pub right_interface: String,
    /// Process id of a process in the receiver's namespace.
    pub right_pid: u32,
    /// MAC address of the receiver; `None` if interfaces carry IP packets without a link header.
    pub right_mac: Option<[u8; 6]>,
    /// The emulated path.
    pub path: Path,
    emulator: Option<Running>,
    _filter: FrameFilter,
    _namespaces: Vec<Running>,
    _files: TempDir,
}

impl Rig {
    /// Starts an emulator of `path` between two namespaces.
    pub fn start(emulator: &Emulator, path: Path) -> Result<Self> {
        let files = tempfile::tempdir()?;
        match emulator {
            Emulator::Wire => Self::wire(path, files),
            Emulator::Landspeed(program) => Self::landspeed(program, path, files),
            Emulator::Rattan(program) => Self::rattan(program, path, files),
            Emulator::Mahimahi(program) => Self::mahimahi(program, path, files),
            Emulator::Netem => Self::netem(path, files),
        }
    }

    fn wire(path: Path, files: TempDir) -> Result<Self> {
        let (left, right) = (start_namespace()?, start_namespace()?);
        let path = Path { delay_ms: 0, ..path };
        let (mtu, l, r) = (path.mtu, left.id(), right.id());
        run_in_namespace(
            l,
            &format!("ip link add l0 mtu {mtu} type veth peer name r0 mtu {mtu} netns {r} && ip link set l0 up"),
        )?;
        run_in_namespace(r, "ip link set r0 up")?;
        Self::between(path, (l, "l0"), (r, "r0"), None, vec![left, right], files)
    }

    fn landspeed(program: &FilePath, path: Path, files: TempDir) -> Result<Self> {
        let Path { rate_bps, delay_ms, mtu } = path;
        let [left, middle, right] = create_linked_namespaces(mtu)?;
        run_in_namespace(middle.id(), "ip link set m0 up && ip link set m1 up")?;
        let file = files.path().join("path.toml");
        fs::write(
            &file,
            format!(
                "name = \"bench\"\nmtu = {mtu}\n[[link]]\nrate = {rate_bps}\ndelay = \"{delay_ms}ms\"\n\
                 queue = {{ kind = \"bfifo\", limit = \"64MB\" }}\n"
            ),
        )?;
        let mut command = enter(middle.id());
        command
            .env("LANDSPEED_ARCHIVE", "off")
            .args(["taskset", "-c", &EMULATOR_CORE.to_string()])
            .arg(program)
            .args(["emulate", "--quiet", "--between", "m0,m1", "--json"])
            .arg(files.path().join("certificate.json"))
            .arg(&file);
        let emulator = Running::start(&mut command)?;
        let (l, r) = (left.id(), right.id());
        Self::between(path, (l, "l0"), (r, "r0"), Some(emulator), vec![left, middle, right], files)
    }

    fn rattan(program: &FilePath, path: Path, files: TempDir) -> Result<Self> {
        let Path { rate_bps, delay_ms, mtu } = path;
        let gbps = rate_bps as f64 / 1e9;
        let cells: String = ["up", "down"]
            .map(|way| {
                format!(
                    "[cells.{way}_bw]\ntype = \"Bw\"\nbw_type = \"LinkLayer\"\nbandwidth = \"{gbps}Gbps\"\nqueue = \"Infinite\"\n\
                     [cells.{way}_delay]\ntype = \"Delay\"\ndelay = \"{delay_ms}ms\"\n"
                )
            })
            .concat();
        let file = files.path().join("rattan.toml");
        fs::write(
            &file,
            format!(
                "[env]\nmode = \"Isolated\"\n{cells}[links]\nleft = \"up_bw\"\nup_bw = \"up_delay\"\nup_delay = \"right\"\n\
                 right = \"down_bw\"\ndown_bw = \"down_delay\"\ndown_delay = \"left\"\n[resource]\ncpu = [{EMULATOR_CORE}]\n"
            ),
        )?;
        // rattan creates named namespaces below /run/netns; a private mount namespace makes them end with the
        // process.
        let mut command = command_killed_with_parent();
        command
            .args(["unshare", "--mount", "sh", "-c"])
            .arg("mount -t tmpfs tmpfs /run && mkdir -p /run/netns && exec \"$@\"")
            .args(["sh", "taskset", "-c", &EMULATOR_CORE.to_string()])
            .arg(program)
            .args(["run", "--config"])
            .arg(&file)
            .args(["--left", "sleep", "901", "--right", "sleep", "902"]);
        let mut emulator = Running::start(&mut command)?;
        let (left, right) = wait_for("rattan's namespaces", || {
            check(&mut emulator)?;
            let all = descendants(emulator.id());
            let with = |word: &str| all.iter().copied().find(|pid| command_line(*pid) == ["sleep", word]);
            Ok(with("901").zip(with("902")))
        })?;
        if mtu != 1500 {
            let task = fs::read_dir(format!("/proc/{}/task", emulator.id()))?
                .flatten()
                .map(|entry| entry.path())
                .find(|task| {
                    let own = fs::read_link("/proc/self/ns/net").ok();
                    fs::read_link(task.join("ns/net")).ok() != own
                })
                .context("rattan's own namespace was not found")?;
            let each = format!("for i in $(ls /sys/class/net); do ip link set $i mtu {mtu}; done");
            for namespace in [task.join("ns/net"), ns(left), ns(right)] {
                let mut command = Command::new("nsenter");
                command.arg(format!("--net={}", namespace.display()));
                command.args(["unshare", "--mount", "sh", "-c", &format!("mount -t sysfs sysfs /sys && {each}")]);
                run_checked(&mut command, LIMIT)?;
            }
        }
        let (l, r) = (interface(left, "vL1-L")?, interface(right, "vR1-R")?);
        Self::between(path, (left, &l), (right, &r), Some(emulator), Vec::new(), files)
    }

    fn mahimahi(program: &FilePath, path: Path, files: TempDir) -> Result<Self> {
        ensure!(path.mtu <= 1500, "its interfaces have an MTU of 1500");
        let right = start_namespace()?;
        run_in_namespace(right.id(), "echo 1 > /proc/sys/net/ipv4/ip_forward && ip link set lo up")?;
        // mm-delay is setuid root and refuses to be run by root; the unprivileged user cannot access the original's
        // directory.
        let copy = files.path().join("mm-delay");
        fs::copy(program, &copy)?;
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o4755))?;
        fs::set_permissions(files.path(), fs::Permissions::from_mode(0o755))?;
        let mut command = enter(right.id());
        command
            .args([
                "taskset",
                "-c",
                &EMULATOR_CORE.to_string(),
                "setpriv",
                "--reuid",
                OVERFLOW_UID,
                "--regid",
                OVERFLOW_UID,
            ])
            .arg("--clear-groups")
            .arg(&copy)
            .args([&path.delay_ms.to_string(), "sleep", "901"])
            .current_dir("/");
        let mut emulator = Running::start(&mut command)?;
        let left = wait_for("mahimahi's command", || {
            check(&mut emulator)?;
            Ok(descendants(emulator.id()).into_iter().find(|pid| command_line(*pid) == ["sleep", "901"]))
        })?;
        let name = interface(right.id(), "delay-")?;
        let right_pid = right.id();
        Self::between(path, (left, "ingress"), (right_pid, &name), Some(emulator), vec![right], files)
    }

    fn netem(path: Path, files: TempDir) -> Result<Self> {
        let Path { rate_bps, delay_ms, mtu } = path;
        let [left, middle, right] = create_linked_namespaces(mtu)?;
        run_in_namespace(middle.id(), "ip link add b0 type bridge && ip link set b0 up")?;
        for port in ["m0", "m1"] {
            // The default limit of netem is 1000 packets.
            run_in_namespace(
                middle.id(),
                &format!(
                    "ip link set {port} up master b0 && tc qdisc add dev {port} root netem delay {delay_ms}ms rate {rate_bps}bit limit 10000000"
                ),
            )?;
        }
        let (l, r) = (left.id(), right.id());
        Self::between(path, (l, "l0"), (r, "r0"), None, vec![left, middle, right], files)
    }

    fn between(
        path: Path,
        left: (u32, &str),
        right: (u32, &str),
        emulator: Option<Running>,
        namespaces: Vec<Running>,
        files: TempDir,
    ) -> Result<Self> {
        let open = |pid| File::open(ns(pid)).map(OwnedFd::from).context("a network namespace is gone");
        let text = run_in_namespace(right.0, &format!("ip -o link show dev {}", right.1))?;
        let mac = text.split("link/ether ").nth(1).and_then(|rest| rest.split_whitespace().next());
        let right_mac =
            mac.map(|mac| parse_mac(mac).ok_or_else(|| anyhow!("not a MAC address: {mac}"))).transpose()?;
        let (left_namespace, right_namespace) = (open(left.0)?, open(right.0)?);
        run_in_namespace(right.0, &format!("tc qdisc add dev {} clsact", right.1))?;
        let filter = discard(&right_namespace, right.1)?;
        Ok(Self {
            left: left_namespace,
            right: right_namespace,
            _filter: filter,
            left_interface: left.1.to_owned(),
            right_interface: right.1.to_owned(),
            right_pid: right.0,
            right_mac,
            path,
            emulator,
            _namespaces: namespaces,
            _files: files,
        })
    }

    /// Returns the number of frames that have arrived at the receiver's interface.
    pub fn arrived(&self) -> Result<u64> {
        let table =
            fs::read_to_string(format!("/proc/{}/net/dev", self.right_pid)).context("the receiver is gone")?;
        let row = table.lines().find_map(|line| line.trim().strip_prefix(&format!("{}:", self.right_interface)));
        let packets = row.and_then(|row| row.split_whitespace().nth(1)).and_then(|packets| packets.parse().ok());
        packets.context("the receiver's interface is gone")
    }

    /// Waits until frames pass the emulator.
    pub fn settle(&mut self, frame_bytes: usize) -> Result<()> {
        let deadline_ns = monotonic_ns() + 15_000_000_000;
        while monotonic_ns() < deadline_ns {
            if offer(self, frame_bytes, Some(1000.0), 20_000_000)?.delivered >= 10 {
                return Ok(());
            }
            self.emulator.as_mut().map_or(Ok(()), check)?;
        }
        bail!("no frame arrives after 15 s")
    }

    /// Stops the emulator with SIGINT.
    pub fn stop(mut self) -> Result<()> {
        if let Some(emulator) = self.emulator.take() {
            emulator.stop(Signal::SIGINT)?;
        }
        Ok(())
    }
}

/// Drops arriving frames after they are counted and captured, so that the receiver's IP layer does not add to the
/// emulator's time.
fn discard(namespace: &OwnedFd, interface: &str) -> Result<FrameFilter> {
    let filter = FrameFilter::load(&Pattern::Longer(0)).context("cannot load a filter")?;
    std::thread::scope(|scope| {
        let attach = scope.spawn(|| -> Result<()> {
            netns::enter(namespace.as_fd())?;
            let mut netlink = Netlink::open()?;
            let index = netlink.link(LinkId::Name(interface))?.index;
            Ok(netlink.filter_ingress(index, filter.program())?)
        });
        attach.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    filter.start()?;
    Ok(filter)
}

/// Returns an error with the emulator's last line if it has ended.
fn check(emulator: &mut Running) -> Result<()> {
    match emulator.exit_status()? {
        Some(status) => {
            bail!("the emulator ended ({status}): {}", emulator.said()?.lines().next_back().unwrap_or_default())
        }
        None => Ok(()),
    }
}

/// Polls every 20 ms, at most 5 s.
fn wait_for<T>(what: &str, mut poll: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    for _ in 0..250 {
        if let Some(found) = poll()? {
            return Ok(found);
        }
        sleep_until(monotonic_ns() + 20_000_000);
    }
    bail!("{what}: not there after 5 s")
}

fn command_killed_with_parent() -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]);
    command
}

/// Starts a process in a new network namespace.
fn start_namespace() -> Result<Running> {
    let own = fs::read_link("/proc/self/ns/net")?;
    let running =
        Running::start(command_killed_with_parent().args(["unshare", "--net", "sleep", NAMESPACE_LIFETIME_S]))?;
    let id = running.id();
    wait_for("a network namespace", || Ok(fs::read_link(ns(id)).ok().filter(|name| *name != own)))?;
    wait_for("a network namespace", || Ok((command_line(id) == ["sleep", NAMESPACE_LIFETIME_S]).then_some(())))?;
    run_in_namespace(
        id,
        "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6; echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6",
    )?;
    Ok(running)
}

/// Creates network namespaces for sender, emulator and receiver, with the links l0–m0 and m1–r0; m0 and m1 are
/// down.
fn create_linked_namespaces(mtu: u32) -> Result<[Running; 3]> {
    let (left, middle, right) = (start_namespace()?, start_namespace()?, start_namespace()?);
    for (end, name, port) in [(&left, "l0", "m0"), (&right, "r0", "m1")] {
        let middle = middle.id();
        let add = format!("ip link add {name} mtu {mtu} type veth peer name {port} mtu {mtu} netns {middle}");
        run_in_namespace(end.id(), &format!("{add} && ip link set {name} up"))?;
    }
    Ok([left, middle, right])
}

fn ns(pid: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/ns/net"))
}

fn enter(pid: u32) -> Command {
    let mut command = command_killed_with_parent();
    command.arg("nsenter").arg(format!("--net={}", ns(pid).display()));
    command
}

/// Runs a shell script in a process's network namespace and returns its output.
fn run_in_namespace(pid: u32, script: &str) -> Result<String> {
    Ok(run_checked(enter(pid).args(["sh", "-c", script]), LIMIT)?.stdout)
}

fn command_line(pid: u32) -> Vec<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}

/// Returns the process and all its descendants, including those started by its threads.
fn descendants(pid: u32) -> Vec<u32> {
    let mut all = vec![pid];
    let mut next = 0;
    while let Some(pid) = all.get(next).copied() {
        next += 1;
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        for list in tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok()) {
            all.extend(list.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
    }
    all
}

/// Returns the interface in a process's network namespace whose name starts with `start`.
fn interface(pid: u32, start: &str) -> Result<String> {
    let rows = fs::read_to_string(format!("/proc/{pid}/net/dev"))?;
    let mut names = rows.lines().filter_map(|row| Some(row.split_once(':')?.0.trim()));
    names.find(|name| name.starts_with(start)).map(str::to_owned).with_context(|| format!("no interface {start}…"))
}

fn parse_mac(text: &str) -> Option<[u8; 6]> {
    let bytes: Vec<u8> = text.split(':').map(|part| u8::from_str_radix(part, 16)).collect::<Result<_, _>>().ok()?;
    bytes.try_into().ok()
}

/// Checks the requirements of the rig; the error is the missing one.
pub fn check_requirements() -> Result<(), String> {
    if !nix::unistd::geteuid().is_root() {
        return Err("needs root: network namespaces".to_owned());
    }
    if machine::cores() < 2 {
        return Err("needs two cores: one for the emulator, one for the load".to_owned());
    }
    ["ip", "nsenter", "setpriv", "taskset", "unshare"]
        .into_iter()
        .find(|program| machine::find(program).is_none())
        .map_or(Ok(()), |program| Err(format!("{program} is not installed")))
}
