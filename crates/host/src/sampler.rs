//! Sampler of a host's counters during a test.

use landspeed_model::{HostSeries, SoftnetDelta};
use landspeed_sys::clock::thread_cpu_ns;

use crate::counters::InitialReadings;
use crate::files::{Files, KeptFile};
use crate::parse::{CoreTicks, CpuInfo, SoftnetRow, core_ticks, softnet_rows};
use crate::quota::{Quota, QuotaCounters};
use crate::spans::{Span, Spans, add};
use crate::totals::{Nic, Totals};
use crate::unavailable::{Unavailable, ok_or_note};

/// Readings closer together than this are skipped: over five ticks, a share is only accurate to ±0.2.
pub const MIN_SPAN_NS: u64 = 5 * crate::TICK_NS;

/// Minimum time between readings of the frequencies: `/proc/cpuinfo` interrupts every core on some kernels.
const FREQUENCY_PERIOD_NS: u64 = 1_000_000_000;

/// Reads a host's counters during a test.
///
/// Create it in the network namespace of the test, before the test, on the thread that will call
/// [`sample`](Self::sample), so that its CPU time is counted separately. It may also be created on one thread
/// and used on another; `sampler_cpu_ns` then covers each call on the thread that made it.
pub struct HostSampler {
    files: Files,
    missing: Unavailable,
    before: InitialReadings,
    totals: Totals,
    stat: Option<KeptFile>,
    softnet: Option<KeptFile>,
    quotas: Vec<Quota>,
    /// First readings of `quotas`.
    quotas_before: Vec<QuotaCounters>,
    buffer: Vec<u8>,
    /// Last readings, and spare buffers for the next ones.
    cores: Vec<Option<CoreTicks>>,
    cores_buffer: Vec<Option<CoreTicks>>,
    rows: Vec<SoftnetRow>,
    rows_buffer: Vec<SoftnetRow>,
    /// Change of each row since the first reading.
    moved: Vec<SoftnetDelta>,
    last_ns: u64,
    frequency_ns: Option<u64>,
    went_back: u64,
    failed: u64,
    spans: Spans,
    cpu_ns: u64,
}

impl HostSampler {
    /// Takes the first readings. `nic` is the interface whose counters to watch ([`snapshot`](crate::snapshot)
    /// finds it); `now_ns` is the monotonic clock ([`landspeed_sys::clock::monotonic_ns`]).
    pub fn new(nic: Option<&str>, now_ns: u64) -> Self {
        Self::from_files(&Files::live(), nic, now_ns)
    }

    /// The same from any files; only live ones have an interface to query.
    pub fn from_files(files: &Files, nic: Option<&str>, now_ns: u64) -> Self {
        let started_ns = thread_cpu_ns();
        let mut missing = Unavailable::new();
        let before = InitialReadings::read(files, nic, &mut missing);
        // A recorded tree has the interface's files, but no kernel to get its index from.
        let known = before.interface().or_else(|| (!files.is_live()).then_some((0, &[])));
        let nic = nic.zip(known).map(|(name, (index, address))| Nic { name, index, address });
        let totals = Totals::read(files, nic.as_ref(), now_ns, &mut missing);
        let stat = ok_or_note(&mut missing, "cores", files.open_kept("/proc/stat"));
        let softnet = files
            .open_kept("/proc/thread-self/net/softnet_stat")
            .or_else(|_| files.open_kept("/proc/net/softnet_stat"));
        let softnet = ok_or_note(&mut missing, "softnet", softnet);
        let quotas = ok_or_note(&mut missing, "quota", Quota::of_process(files, "/proc/self")).unwrap_or_default();
        let mut sampler = Self {
            quotas_before: quotas.iter().filter_map(Quota::read).collect(),
            quotas,
            files: files.clone(),
            missing,
            before,
            totals,
            stat,
            softnet,
            buffer: Vec::new(),
            cores: Vec::new(),
            cores_buffer: Vec::new(),
            rows: Vec::new(),
            rows_buffer: Vec::new(),
            moved: Vec::new(),
            last_ns: now_ns,
            frequency_ns: None,
            went_back: 0,
            failed: 0,
            spans: Spans::default(),
            cpu_ns: 0,
        };
        sampler.read_cores();
        sampler.read_softnet();
        sampler.cpu_ns = thread_cpu_ns().saturating_sub(started_ns);
        sampler
    }

    /// Reads the counters, unless the last reading is less than [`MIN_SPAN_NS`] ago. It may be called at any
    /// rate; every 100 ms is enough.
    pub fn sample(&mut self, now_ns: u64) {
        if now_ns < self.last_ns.saturating_add(MIN_SPAN_NS) {
            return;
        }
        let started_ns = thread_cpu_ns();
        let span = self.span(now_ns);
        self.spans.push(span);
        self.totals.advance(now_ns);
        self.cpu_ns += thread_cpu_ns().saturating_sub(started_ns);
    }

    /// Takes the last readings. `t0_ns` is the time on the monotonic clock that is zero on the series'
    /// timeline.
    pub fn finish(mut self, now_ns: u64, t0_ns: u64) -> HostSeries {
        let started_ns = thread_cpu_ns();
        if now_ns > self.last_ns {
            let short = now_ns < self.last_ns.saturating_add(MIN_SPAN_NS);
            let span = self.span(now_ns);
            if short {
                self.spans.extend_last(span);
            } else {
                self.spans.push(span);
            }
        }
        if self.went_back > 0 {
            let why =
                format!("idle or I/O-wait time went back {} times, and was taken as standing still", self.went_back);
            self.missing.insert("cores.went_back".into(), why);
        }
        if self.failed > 0 {
            self.missing.insert("samples.failed".into(), format!("{} readings failed", self.failed));
        }
        let mut series = HostSeries { unavailable: self.missing, ..HostSeries::default() };
        let quotas_now: Vec<_> = self.quotas.iter().filter_map(Quota::read).collect();
        series.quota = Quota::most_throttled(&self.quotas, &self.quotas_before, &quotas_now);
        for moved in &self.moved {
            add(&mut series.softnet, *moved);
        }
        let softnet: Vec<_> = self.rows.iter().map(|row| row.core).zip(self.moved).collect();
        self.totals.finish(now_ns, &softnet, &mut series);
        self.before.finish(&mut series);
        series.samples = self.spans.into_samples(t0_ns);
        if series.samples.iter().all(|sample| sample.mhz.is_empty()) {
            let why = "neither cpufreq nor /proc/cpuinfo has frequencies";
            series.unavailable.insert("mhz".into(), why.into());
        }
        series.sampler_cpu_ns = self.cpu_ns + thread_cpu_ns().saturating_sub(started_ns);
        series
    }

    /// Returns the changes since the last reading.
    fn span(&mut self, now_ns: u64) -> Span {
        let start_ns = std::mem::replace(&mut self.last_ns, now_ns);
        let cores = self.read_cores();
        let softnet = self.read_softnet();
        Span { start_ns, end_ns: now_ns, cores, mhz: self.frequencies(now_ns), softnet }
    }

    /// Returns the ticks of each core since the last reading; `None` for a core that was offline at one of the
    /// two.
    fn read_cores(&mut self) -> Vec<Option<CoreTicks>> {
        let Some(stat) = &self.stat else { return Vec::new() };
        if let Err(error) = stat.read_into(&mut self.buffer) {
            self.failed += 1;
            self.missing.insert("cores".into(), error.to_string());
            return Vec::new();
        }
        core_ticks(&String::from_utf8_lossy(&self.buffer), &mut self.cores_buffer);
        let mut back = 0;
        let passed = |(core, now): (usize, &Option<CoreTicks>)| {
            let before = self.cores.get(core).copied().flatten()?;
            let (passed, went_back) = (*now)?.since(before);
            back += u64::from(went_back);
            Some(passed)
        };
        let passed = self.cores_buffer.iter().enumerate().map(passed).collect();
        self.went_back += back;
        std::mem::swap(&mut self.cores, &mut self.cores_buffer);
        passed
    }

    /// Returns the softnet counters of all cores since the last reading. Counters persist while a core is
    /// offline, so its last row is kept.
    fn read_softnet(&mut self) -> SoftnetDelta {
        let mut sum = SoftnetDelta::default();
        let Some(softnet) = &self.softnet else { return sum };
        if let Err(error) = softnet.read_into(&mut self.buffer) {
            self.failed += 1;
            self.missing.insert("softnet".into(), error.to_string());
            return sum;
        }
        softnet_rows(&String::from_utf8_lossy(&self.buffer), &mut self.rows_buffer);
        for row in &self.rows_buffer {
            let Some(at) = self.rows.iter().position(|before| before.core == row.core) else {
                self.rows.push(*row);
                self.moved.push(SoftnetDelta::default());
                continue;
            };
            let moved = row.since(std::mem::replace(&mut self.rows[at], *row));
            add(&mut sum, moved);
            add(&mut self.moved[at], moved);
        }
        sum
    }

    /// Returns the MHz of each core; empty if they were read within the last second.
    fn frequencies(&mut self, now_ns: u64) -> Vec<f32> {
        if self.frequency_ns.is_some_and(|last_ns| now_ns < last_ns.saturating_add(FREQUENCY_PERIOD_NS)) {
            return Vec::new();
        }
        self.frequency_ns = Some(now_ns);
        let scaling = |core: usize| {
            let path = format!("/sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq");
            self.files.number::<f32>(&path).map(|khz| khz / 1000.0)
        };
        if scaling(0).is_ok() {
            return (0..self.cores.len()).map(|core| scaling(core).unwrap_or(0.0)).collect();
        }
        self.files.read("/proc/cpuinfo").map(|text| CpuInfo::parse(&text).mhz).unwrap_or_default()
    }
}
