//! Counters of cores, interrupt lines and NUMA nodes over a whole test.
//!
//! They are read only at its start and end: on a host with many cores these files are long. 32-bit counters are
//! also read in between, rarely enough to cost nothing, and often enough that no wrap is missed.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, Read as _};

use landspeed_model::{CoreTotals, HostSeries, IdleStateDelta, InterruptDelta, NumaDelta, SoftnetDelta};

use crate::files::{FileError, Files};
use crate::nic::sysfs_directory;
use crate::parse::{CoreRow, CoreTable, Counters, core_table, named_values};
use crate::unavailable::{Unavailable, ok_or_note};

const CPU: &str = "/sys/devices/system/cpu";
const NODE: &str = "/sys/devices/system/node";
/// Time between readings of 32-bit counters: half of 32 bits pass in 36 minutes at a million interrupts per
/// second.
const PERIOD_NS: u64 = 600_000_000_000;

/// The interface whose interrupt lines are listed.
pub(crate) struct Nic<'a> {
    pub name: &'a str,
    /// Interface index; 0 in a recorded tree, which has no kernel to query.
    pub index: u32,
    pub address: &'a [u8],
}

/// Readings at the start of a test, and the changes since.
pub(crate) struct Totals {
    files: Files,
    start_ns: u64,
    read_ns: u64,
    interrupts: Option<PerCoreFile>,
    softirqs: Option<PerCoreFile>,
    idle: Vec<IdleReading>,
    numa: BTreeMap<u32, Counters>,
    lines: NicLines,
    cores: BTreeMap<u32, CoreTotals>,
    nic: BTreeMap<(String, String), BTreeMap<u32, u64>>,
    reset: u64,
}

/// The last reading of a file with a column for each core.
#[derive(Debug)]
struct PerCoreFile {
    path: &'static str,
    last: CoreTable,
    /// Cores in every reading: for these, no change means zero.
    always_online: Vec<u32>,
}

/// Counters of one idle state of one core since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct IdleReading {
    core: u32,
    state: u32,
    time_us: u64,
    entries: u64,
}

/// Properties that identify an interface's interrupt lines.
#[derive(Debug, Default)]
struct NicLines {
    name: String,
    /// Numbers of its device's message-signalled interrupts.
    numbers: HashSet<String>,
}

impl Totals {
    /// Takes the first readings.
    pub(crate) fn read(files: &Files, nic: Option<&Nic<'_>>, now_ns: u64, missing: &mut Unavailable) -> Self {
        let lines = nic.map(|nic| NicLines::of(files, nic)).unwrap_or_default();
        let idle = idle_readings(files);
        if idle.is_empty() {
            let why = format!("{CPU}/cpu*/cpuidle has no states (no cpuidle driver, as in many virtual machines)");
            missing.insert("idle_states".into(), why);
        }
        let numa = numa_counters(files);
        if numa.is_empty() {
            missing
                .insert("numa".into(), format!("{NODE}/node*/numastat is not there (a kernel without CONFIG_NUMA)"));
        }
        Self {
            files: files.clone(),
            start_ns: now_ns,
            read_ns: now_ns,
            interrupts: ok_or_note(missing, "interrupts", PerCoreFile::open(files, "/proc/interrupts")),
            softirqs: ok_or_note(missing, "softirqs", PerCoreFile::open(files, "/proc/softirqs")),
            idle,
            numa,
            lines,
            cores: BTreeMap::new(),
            nic: BTreeMap::new(),
            reset: 0,
        }
    }

    /// Reads the 32-bit counters if the last reading is old enough. A failed reading is left to the next one.
    pub(crate) fn advance(&mut self, now_ns: u64) {
        if now_ns.saturating_sub(self.read_ns) >= PERIOD_NS {
            self.read_ns = now_ns;
            let _ = self.count_interrupts();
            let _ = self.count_softirqs();
        }
    }

    /// Reads everything again and writes the changes into `series`. `softnet` has the counters of each core,
    /// which are read elsewhere.
    pub(crate) fn finish(mut self, now_ns: u64, softnet: &[(u32, SoftnetDelta)], series: &mut HostSeries) {
        let missing = &mut series.unavailable;
        if ok_or_note(missing, "interrupts", self.count_interrupts()).is_none() {
            (self.interrupts, self.nic) = (None, BTreeMap::new());
        }
        if ok_or_note(missing, "softirqs", self.count_softirqs()).is_none() {
            self.softirqs = None;
        }
        if self.reset > 0 {
            let why = format!("{} counters of a line and core were reset and are left out", self.reset);
            missing.insert("interrupts.reset".into(), why);
        }
        for (core, delta) in softnet {
            if *delta != SoftnetDelta::default() {
                core_of(&mut self.cores, *core).softnet = *delta;
            }
        }
        self.count_idle(now_ns.saturating_sub(self.start_ns));
        let counted = |file: &Option<PerCoreFile>, core: u32, moved: Option<u64>| {
            file.as_ref().filter(|file| file.always_online.contains(&core)).map(|_| moved.unwrap_or(0))
        };
        for (core, totals) in &mut self.cores {
            totals.interrupts = counted(&self.interrupts, *core, totals.interrupts);
            totals.net_rx_softirqs = counted(&self.softirqs, *core, totals.net_rx_softirqs);
        }
        series.numa = self.numa_deltas(missing);
        series.core_totals = self.cores.into_values().collect();
        let delta = |((line, name), cores): ((String, String), BTreeMap<u32, u64>)| InterruptDelta {
            line,
            name,
            cores: cores.into_iter().collect(),
        };
        series.nic_interrupts = self.nic.into_iter().map(delta).collect();
    }

    fn count_interrupts(&mut self) -> Result<(), FileError> {
        let Some(file) = &mut self.interrupts else { return Ok(()) };
        let (cores, nic, lines) = (&mut self.cores, &mut self.nic, &self.lines);
        self.reset += file.advance(&self.files, |row, core, by| {
            *core_of(cores, core).interrupts.get_or_insert(0) += by;
            if lines.include(row) {
                let line = nic.entry((row.label.clone(), row.name.clone())).or_default();
                *line.entry(core).or_default() += by;
            }
        })?;
        Ok(())
    }

    fn count_softirqs(&mut self) -> Result<(), FileError> {
        let Some(file) = &mut self.softirqs else { return Ok(()) };
        let cores = &mut self.cores;
        self.reset += file.advance(&self.files, |row, core, by| {
            if row.label == "NET_RX" {
                *core_of(cores, core).net_rx_softirqs.get_or_insert(0) += by;
            }
        })?;
        Ok(())
    }

    /// Adds the idle states of each core. A state whose counters decreased is omitted.
    fn count_idle(&mut self, elapsed_ns: u64) {
        if elapsed_ns == 0 {
            return;
        }
        let before: BTreeMap<(u32, u32), &IdleReading> =
            self.idle.iter().map(|reading| ((reading.core, reading.state), reading)).collect();
        for now in idle_readings(&self.files) {
            let Some(then) = before.get(&(now.core, now.state)) else { continue };
            let (Some(time_us), Some(entries)) =
                (now.time_us.checked_sub(then.time_us), now.entries.checked_sub(then.entries))
            else {
                continue;
            };
            let directory = idle_directory(now.core, now.state);
            let Ok(name) = self.files.word(&format!("{directory}/name")) else { continue };
            if time_us > 0 || entries > 0 {
                core_of(&mut self.cores, now.core).idle_states.push(IdleStateDelta {
                    name,
                    exit_latency_us: self.files.number(&format!("{directory}/latency")).ok(),
                    share: time_us as f64 * 1e3 / elapsed_ns as f64,
                    entries,
                });
            }
        }
    }

    fn numa_deltas(&self, missing: &mut Unavailable) -> Vec<NumaDelta> {
        let mut deltas = Vec::new();
        for (node, now) in numa_counters(&self.files) {
            let Some(before) = self.numa.get(&node) else { continue };
            let mut fell = false;
            let mut moved = |name: &str| {
                let moved = now.0.get(name).zip(before.0.get(name)).and_then(|(now, then)| now.checked_sub(*then));
                fell |= moved.is_none();
                moved.unwrap_or(0)
            };
            let delta = NumaDelta {
                node,
                numa_hit: moved("numa_hit"),
                numa_miss: moved("numa_miss"),
                numa_foreign: moved("numa_foreign"),
                interleave_hit: moved("interleave_hit"),
                local_node: moved("local_node"),
                other_node: moved("other_node"),
            };
            if fell {
                missing.insert(format!("numa.node{node}"), "a counter fell or is gone".into());
            } else if delta != (NumaDelta { node, ..NumaDelta::default() }) {
                deltas.push(delta);
            }
        }
        deltas
    }
}

fn core_of(cores: &mut BTreeMap<u32, CoreTotals>, core: u32) -> &mut CoreTotals {
    cores.entry(core).or_insert_with(|| CoreTotals { core, ..CoreTotals::default() })
}

impl PerCoreFile {
    fn open(files: &Files, path: &'static str) -> Result<Self, FileError> {
        let last = table(files, path)?;
        Ok(Self { path, always_online: last.cores.clone(), last })
    }

    /// Reads the file again. Returns how many counters were reset.
    fn advance(&mut self, files: &Files, add: impl FnMut(&CoreRow, u32, u64)) -> Result<u64, FileError> {
        let now = table(files, self.path)?;
        self.always_online.retain(|core| now.cores.contains(core));
        let reset = now.since(&self.last, add);
        self.last = now;
        Ok(reset)
    }
}

fn table(files: &Files, path: &str) -> Result<CoreTable, FileError> {
    let table = core_table(&files.read(path)?);
    if table.cores.is_empty() {
        let cause = io::Error::new(io::ErrorKind::InvalidData, "it does not name its cores");
        return Err(FileError { path: path.into(), cause });
    }
    Ok(table)
}

fn idle_directory(core: u32, state: u32) -> String {
    format!("{CPU}/cpu{core}/cpuidle/state{state}")
}

/// Returns the numbers N of the directory's names `prefixN`, in order.
fn numbered(files: &Files, directory: &str, prefix: &str) -> Vec<u32> {
    let names = files.names_with_prefix(directory, prefix).unwrap_or_default();
    let mut numbers: Vec<u32> = names.iter().filter_map(|name| name.strip_prefix(prefix)?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// Reads `time` and `usage` of each idle state of each core (Documentation/admin-guide/pm/cpuidle.rst).
fn idle_readings(files: &Files) -> Vec<IdleReading> {
    let mut readings = Vec::new();
    for core in numbered(files, CPU, "cpu") {
        for state in numbered(files, &format!("{CPU}/cpu{core}/cpuidle"), "state") {
            let number = |file: &str| read_number(files, &format!("{}/{file}", idle_directory(core, state)));
            if let (Some(time_us), Some(entries)) = (number("time"), number("usage")) {
                readings.push(IdleReading { core, state, time_us, entries });
            }
        }
    }
    readings
}

/// Reads the number in a short file with as few system calls as possible: there are two such files for each
/// state of each core.
fn read_number(files: &Files, path: &str) -> Option<u64> {
    let mut bytes = [0; 32];
    let length = files.open(path).ok()?.read(&mut bytes).ok()?;
    std::str::from_utf8(bytes.get(..length)?).ok()?.trim().parse().ok()
}

fn numa_counters(files: &Files) -> BTreeMap<u32, Counters> {
    let counters = |node: u32| {
        let mut counters = Counters::default();
        named_values(&files.read(&format!("{NODE}/node{node}/numastat")).ok()?, &mut counters);
        Some((node, counters))
    };
    numbered(files, NODE, "node").into_iter().filter_map(counters).collect()
}

impl NicLines {
    fn of(files: &Files, nic: &Nic<'_>) -> Self {
        let directory = sysfs_directory(files, nic.name, nic.index, nic.address);
        // A virtio device's lines are those of the PCI device it sits on.
        let numbers = directory.into_iter().flat_map(|directory| {
            let of = |device: &str| files.names_with_prefix(&format!("{directory}/{device}/msi_irqs"), "");
            of("device").or_else(|_| of("device/..")).unwrap_or_default()
        });
        Self { name: nic.name.to_owned(), numbers: numbers.collect() }
    }

    /// Returns whether a line belongs to the interface. Drivers name lines after the interface and queue
    /// (`eth0-TxRx-3`, `i40e-eth0-TxRx-3`), or after the device.
    fn include(&self, row: &CoreRow) -> bool {
        let named = || row.name.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == self.name);
        self.numbers.contains(&row.label) || (!self.name.is_empty() && named())
    }
}
