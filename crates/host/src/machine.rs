//! The machine without its network: kernel, CPU, memory, hypervisor.

use landspeed_model::{Governor, HostSnapshot, NumaNode};

use crate::files::Files;
use crate::host::FactReader;
use crate::parse::{CoreTicks, CpuInfo, core_ticks, cpu_list, field, quoted_value};
use crate::unavailable::{Unavailable, ok_or_note};

const CPU: &str = "/sys/devices/system/cpu";
const NODES: &str = "/sys/devices/system/node";

/// Reads everything of a snapshot except the network.
pub(crate) fn read(files: &Files, missing: &mut Unavailable) -> HostSnapshot {
    let cpuinfo = ok_or_note(missing, "cpu_model", files.read("/proc/cpuinfo")).map(|text| CpuInfo::parse(&text));
    let kernel = |name: &str, missing: &mut Unavailable| {
        let text = files.word(&format!("/proc/sys/kernel/{name}"));
        ok_or_note(missing, &format!("kernel.{name}"), text).unwrap_or_default()
    };
    let mut host = HostSnapshot {
        hostname: kernel("hostname", missing),
        kernel_release: kernel("osrelease", missing),
        kernel_version: kernel("version", missing),
        machine: machine(files, missing),
        os: os(files, missing),
        cpu_model: cpuinfo.as_ref().and_then(|info| info.model.clone()),
        cores_online: cores_online(files, missing),
        numa: numa(files, missing),
        governor: governor(files, missing),
        smt: ok_or_note(missing, "smt", files.word(&format!("{CPU}/smt/control"))),
        virtualization: virtualization(files, cpuinfo.as_ref().is_some_and(|info| info.hypervisor)),
        memory_bytes: memory_bytes(files, missing),
        ..HostSnapshot::default()
    };
    if cpuinfo.is_some() && host.cpu_model.is_none() {
        missing.insert("cpu_model".into(), "/proc/cpuinfo names no model on this architecture".into());
    }
    host.clock_ticks_per_s = timer_hz(files, &host.kernel_release, missing);
    host
}

fn machine(files: &Files, missing: &mut Unavailable) -> String {
    // The file exists since Linux 6.1. The build's architecture is that of the machine, except for the word
    // size.
    match files.word("/proc/sys/kernel/arch") {
        Ok(arch) => arch,
        Err(_) if files.is_live() => std::env::consts::ARCH.to_owned(),
        Err(error) => ok_or_note(missing, "machine", Err::<String, _>(error)).unwrap_or_default(),
    }
}

fn os(files: &Files, missing: &mut Unavailable) -> Option<String> {
    let text = files.read("/etc/os-release").or_else(|_| files.read("/usr/lib/os-release"));
    let name = ok_or_note(missing, "os", text).map(|text| quoted_value(&text, "PRETTY_NAME"));
    if name == Some(None) {
        missing.insert("os".into(), "/etc/os-release has no PRETTY_NAME".into());
    }
    name.flatten()
}

fn cores_online(files: &Files, missing: &mut Unavailable) -> u32 {
    if let Some(cores) = files.read(&format!("{CPU}/online")).ok().and_then(|list| cpu_list(&list)).filter(|&n| n > 0)
    {
        return cores;
    }
    let stat = ok_or_note(missing, "cores_online", files.read("/proc/stat")).unwrap_or_default();
    let mut cores: Vec<Option<CoreTicks>> = Vec::new();
    core_ticks(&stat, &mut cores);
    cores.iter().flatten().count() as u32
}

fn numa(files: &Files, missing: &mut Unavailable) -> Vec<NumaNode> {
    let node = |name: &String| {
        let id = name.strip_prefix("node")?.parse().ok()?;
        Some(NumaNode { id, cpus: files.word(&format!("{NODES}/{name}/cpulist")).ok()? })
    };
    let mut nodes: Vec<_> = files.names(NODES).iter().filter_map(node).collect();
    nodes.sort_by_key(|node| node.id);
    if nodes.is_empty() {
        missing.insert("numa".into(), format!("no nodes in {NODES}"));
    }
    nodes
}

fn governor(files: &Files, missing: &mut Unavailable) -> Option<Governor> {
    let policy = format!("{CPU}/cpu0/cpufreq");
    let governor = files.word(&format!("{policy}/scaling_governor"));
    let Ok(governor) = governor else {
        let why = "the kernel scales no frequency here (no cpufreq): the firmware or the hypervisor does";
        missing.insert("governor".into(), why.into());
        return None;
    };
    let khz = |name: &str| files.number(&format!("{policy}/{name}")).ok();
    Some(Governor {
        driver: ok_or_note(missing, "governor.driver", files.word(&format!("{policy}/scaling_driver")))
            .unwrap_or_default(),
        governor,
        min_khz: khz("scaling_min_freq").or_else(|| khz("cpuinfo_min_freq")),
        max_khz: khz("scaling_max_freq").or_else(|| khz("cpuinfo_max_freq")),
    })
}

fn memory_bytes(files: &Files, missing: &mut Unavailable) -> u64 {
    let text = ok_or_note(missing, "memory_bytes", files.read("/proc/meminfo"));
    let kib = text.map(|text| field(&text, "MemTotal"));
    if kib == Some(None) {
        missing.insert("memory_bytes".into(), "/proc/meminfo has no MemTotal".into());
    }
    kib.flatten().unwrap_or(0).saturating_mul(1024)
}

/// Returns the possible paths of a kernel's configuration: the kernel's own (`CONFIG_IKCONFIG_PROC`), then
/// those of its packages.
pub(crate) fn configuration_paths(release: &str) -> [String; 3] {
    ["/proc/config.gz".into(), format!("/boot/config-{release}"), format!("/lib/modules/{release}/config")]
}

fn timer_hz(files: &Files, release: &str, missing: &mut Unavailable) -> Option<u32> {
    let hz = configuration_paths(release)
        .iter()
        .filter_map(|path| files.read(path).ok())
        .find_map(|text| quoted_value(&text, "CONFIG_HZ")?.parse().ok());
    if hz.is_none() {
        missing
            .insert("clock_ticks_per_s".into(), "the kernel's configuration is neither in /proc nor in /boot".into());
    }
    hz
}

/// Returns the container and the hypervisor, joined by `+` if there are both; `None` on bare metal, as far as
/// is known.
fn virtualization(files: &Files, hypervisor_bit: bool) -> Option<String> {
    let look = FactReader(files);
    let found: Vec<_> = [container(look), hypervisor(look, hypervisor_bit)].into_iter().flatten().collect();
    (!found.is_empty()).then(|| found.join("+"))
}

/// Detects a container by the marks in systemd's documentation (container interface) and those of the engines.
pub(crate) fn container(files: FactReader<'_>) -> Option<String> {
    // In the initial PID namespace (PROC_PID_INIT_INO, linux/proc_ns.h), marks are left-overs of an image that
    // was booted as a machine.
    if files.link_name("/proc/self/ns/pid").as_deref() == Some("pid:[4026531836]") {
        return None;
    }
    if let Some(name) = files.word("/run/systemd/container").ok().filter(|name| !name.is_empty()) {
        return Some(name);
    }
    let marks = [("/.dockerenv", "docker"), ("/run/.containerenv", "podman")];
    marks.iter().find(|(path, _)| files.exists(path)).map(|(_, name)| (*name).to_owned())
}

/// Detects a hypervisor by the firmware's names and the CPU's hypervisor bit (x86: `bit`).
pub(crate) fn hypervisor(files: FactReader<'_>, bit: bool) -> Option<String> {
    if let Some(kind) = files.word("/sys/hypervisor/type").ok().filter(|kind| !kind.is_empty()) {
        return Some(kind);
    }
    // Substrings of the firmware's vendor and product; the list of systemd-detect-virt. Clouds use the same
    // names for bare metal: on x86 the CPU's bit must confirm a hypervisor; on Arm the product name may contain
    // "metal".
    let vendors = [
        ("KVM", "kvm"),
        ("QEMU", "kvm"),
        ("Google Compute Engine", "kvm"),
        ("Amazon EC2", "amazon"),
        ("VMware", "vmware"),
        ("VirtualBox", "oracle"),
        ("innotek", "oracle"),
        ("Virtual Machine", "microsoft"),
        ("Xen", "xen"),
        ("Bochs", "bochs"),
        ("Parallels", "parallels"),
        ("BHYVE", "bhyve"),
        ("Apple Virtualization", "apple"),
        ("OpenStack", "kvm"),
    ];
    let firmware = ["sys_vendor", "product_name", "board_vendor", "bios_vendor"]
        .map(|name| files.word(&format!("/sys/class/dmi/id/{name}")).unwrap_or_default())
        .join("\n");
    let arm = files.word("/proc/sys/kernel/arch").unwrap_or_default().starts_with("aarch64");
    if (bit || arm && !firmware.contains("metal"))
        && let Some((_, name)) = vendors.iter().find(|(text, _)| firmware.contains(text))
    {
        return Some((*name).to_owned());
    }
    if !bit {
        return None;
    }
    // No firmware tables (Firecracker, direct boot): the paravirtual clock reveals the hypervisor.
    let clocks = files.word("/sys/devices/system/clocksource/clocksource0/available_clocksource").unwrap_or_default();
    let clock_names = [("kvm-clock", "kvm"), ("hyperv", "microsoft"), ("xen", "xen"), ("vmware", "vmware")];
    let by_clock = clock_names.iter().find(|(text, _)| clocks.contains(text)).map(|(_, name)| *name);
    Some(by_clock.unwrap_or("unknown hypervisor").to_owned())
}
