//! The tap: opens rings, captures until it ends, and accounts for every packet.

use std::sync::atomic::{AtomicBool, Ordering};

use landspeed_model::{
    BuildInfo, TAP_SCHEMA, TapDocument, TapEnd, TapInterface, TapPerturbation, TapSlices, Warning,
};
use landspeed_netlink::{LinkId, Netlink};
use landspeed_sys::clock::{monotonic_ns, realtime_ns, sleep_until, thread_cpu_ns};
use landspeed_sys::ring::{PacketKind, Ring, RingPacket};
use landspeed_wire::capture::write::{self, Counts, Packet, Reception};

use crate::cpu;
use crate::events::{Event, Events};
use crate::files::{Files, WriteFailure};
use crate::merge::{self, Source};
use crate::options::{Clock, Options, Output, Rotation};
use crate::setup::{
    BLOCK_TIMEOUT_MS, geometry, hardware_time, header_blocks, program, ring_options, warn, warn_about,
};
use crate::subject::{self, Subject, Traffic};
use crate::{TapError, slices};

/// Minimum age of packets that can be merged, nanoseconds: a block that is not full is passed on after at most
/// this time, if the kernel's timer has just missed it.
const MIN_MERGE_AGE_NS: u64 = 2_500_000 * BLOCK_TIMEOUT_MS as u64;
/// Interval at which kernel counters are read, nanoseconds.
const COUNT_INTERVAL_NS: u64 = 100_000_000;
/// Interval of progress reports, nanoseconds.
const PROGRESS_NS: u64 = 250_000_000;
/// Minimum and maximum interval at which the rings are read, nanoseconds.
const READ_INTERVAL_NS: (u64, u64) = (250_000, 10_000_000);
/// Timeout for the rings to pass on the remaining packets, nanoseconds.
const DRAIN_NS: u64 = 3_000_000_000;

/// Progress of a running capture.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Progress {
    /// Time since the start of the capture, nanoseconds.
    pub elapsed_ns: u64,
    /// Packets read from the rings.
    pub packets: u64,
    /// Original length of these packets, bytes.
    pub wire_bytes: u64,
    /// Packets dropped because a ring was full.
    pub dropped: u64,
    /// Fill level of the fullest ring, 0..=1.
    pub fill: f64,
    /// CPU time of the reading thread, nanoseconds.
    pub reader_cpu_ns: u64,
}

/// A tap that is ready to start.
pub struct Tap {
    options: Options,
    subjects: Vec<Subject>,
    netlink: Netlink,
    sources: Vec<Source>,
    files: Files,
    events: Option<Events>,
    warnings: Vec<Warning>,
    interface_counts: Vec<InterfaceCounts>,
}

/// Counters of an interface.
#[derive(Debug, Clone, Copy, Default)]
struct InterfaceCounts {
    packets_in: u64,
    packets_out: u64,
    wire_bytes: u64,
    hardware: u64,
    written: u64,
    before: Option<Traffic>,
    latest: Option<Traffic>,
}

impl Tap {
    /// Finds the interfaces, compiles the filter, creates the rings and the first file. No packets are captured
    /// yet.
    pub fn open(options: Options) -> Result<Self, TapError> {
        let mut netlink = Netlink::open().map_err(|error| TapError::Links(error.to_string()))?;
        let subjects = subject::find(&mut netlink, &options.interfaces)?;
        let mut warnings = Vec::new();
        let mut sources = Vec::new();
        for (number, subject) in subjects.iter().enumerate() {
            warn_about(subject, &options, &mut warnings);
            let program = program(&options, subject)?;
            let hardware = options.clock == Clock::Hardware && hardware_time(subject, &mut warnings);
            for _ in 0..options.rings.max(1) {
                let ring = Ring::open(&ring_options(&options, subject, &program, hardware, number as u16))
                    .map_err(|source| TapError::ring(&subject.name, source))?;
                sources.push(Source::new(ring, number));
            }
        }
        let events = if options.events { Some(Events::of_capture()?) } else { None };
        if let Some(events) = &events {
            for missing in events.missing() {
                warn(&mut warnings, "event-missing", format!("this kernel has no tracepoint {missing}"));
            }
        }
        let header_blocks = header_blocks(&options, &subjects);
        let files = Files::create(options.output.clone(), options.rotation, header_blocks)
            .map_err(|failure| TapError::Write { path: failure.path, cause: failure.cause })?;
        let interface_counts = vec![InterfaceCounts::default(); subjects.len()];
        Ok(Self { options, subjects, netlink, sources, files, events, warnings, interface_counts })
    }

    /// Warnings found before the start, such as offloads that affect the capture.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Captures packets until stopped or a limit is reached. `progress` is called as soon as packets are captured,
    /// and then every 250 ms.
    pub fn run(mut self, stop: &AtomicBool, mut progress: impl FnMut(&Progress)) -> TapDocument {
        if let Some(core) = self.options.core
            && let Err(why) = landspeed_sys::thread::pin_to_core(core)
        {
            warn(&mut self.warnings, "not-pinned", format!("the reader is not on core {core}: {why}"));
        }
        let before = self.baseline(stop);
        let slices = self.slices(stop);
        let mut state = State::begin(&self.options);
        for (subject, tally) in self.subjects.iter().zip(&mut self.interface_counts) {
            tally.before = subject::traffic(&mut self.netlink, subject.index);
            tally.latest = tally.before;
        }
        for source in &mut self.sources {
            // Discard counts and packets from before the capture.
            source.count();
            (source.counted, source.dropped, source.freezes, source.read) = (0, 0, 0, 0);
            if let Err(why) = source.ring.start() {
                let name = self.subjects.get(source.interface).map_or("", |subject| subject.name.as_str());
                warn(&mut self.warnings, "not-started", format!("{name}: {why}"));
                source.gone = true;
            }
        }
        progress(&Progress::default());
        while state.end.is_none() {
            self.poll(&mut state, stop);
            let now_ns = monotonic_ns();
            if now_ns >= state.next_progress_ns {
                state.next_progress_ns = now_ns + PROGRESS_NS;
                progress(&self.progress(&state));
            }
            if state.end.is_none() {
                sleep_until(now_ns + state.read_interval_ns);
            }
        }
        self.drain(&mut state);
        progress(&self.progress(&state));
        self.conclude(state, before, slices)
    }

    fn baseline(&self, stop: &AtomicBool) -> Option<landspeed_model::TapHostUse> {
        if self.options.baseline_ns == 0 {
            return None;
        }
        let first = cpu::poll()?;
        let deadline_ns = monotonic_ns() + self.options.baseline_ns;
        while monotonic_ns() < deadline_ns && !stop.load(Ordering::Relaxed) {
            sleep_until(deadline_ns.min(monotonic_ns() + 20_000_000));
        }
        cpu::between(first, cpu::poll()?)
    }

    fn slices(&mut self, stop: &AtomicBool) -> Option<TapSlices> {
        if self.options.slices_ns == 0 {
            return None;
        }
        // Packets are written to a null sink, so that their cost is the same as in the capture.
        let scratch = match &self.options.output {
            Output::None => Output::None,
            _ => Output::File("/dev/null".into()),
        };
        let mut files = Files::create(scratch, Rotation::default(), Vec::new()).ok()?;
        let each = |packet: &RingPacket<'_>| {
            let _ = files.packet(&record(0, packet), &[]);
        };
        let total_ns = self.options.slices_ns;
        Some(slices::measure(&mut self.sources, &self.subjects, &mut self.netlink, total_ns, stop, each))
    }

    /// Reads the rings, and checks whether the capture has to end.
    fn poll(&mut self, state: &mut State, stop: &AtomicBool) {
        let fill = self.fill();
        state.read_interval_ns = match fill {
            fill if fill > 0.125 => state.read_interval_ns / 2,
            fill if fill < 0.03 => state.read_interval_ns + state.read_interval_ns / 4,
            _ => state.read_interval_ns,
        }
        .clamp(READ_INTERVAL_NS.0, READ_INTERVAL_NS.1);
        self.read(state, Some(MIN_MERGE_AGE_NS));
        let now_ns = monotonic_ns();
        if now_ns >= state.next_count_ns {
            state.next_count_ns = now_ns + COUNT_INTERVAL_NS;
            self.count(state);
            self.install_narrow_filter();
            if let Err(failure) = self.files.flush() {
                state.fail(&failure);
            }
        }
        if state.deadline_ns.is_some_and(|deadline| now_ns >= deadline) {
            state.ends(TapEnd::Time);
        }
        if stop.load(Ordering::Relaxed) {
            state.ends(TapEnd::Stopped);
        }
    }

    /// Installs a narrower kernel filter once the selection is complete.
    fn install_narrow_filter(&mut self) {
        let Some(filter) = self.options.selection.as_ref().and_then(|selection| selection.take_filter()) else {
            return;
        };
        let options = Options { filter: Some(filter.clone()), ..self.options.clone() };
        for source in &mut self.sources {
            let Some(subject) = self.subjects.get(source.interface) else { continue };
            let replaced = program(&options, subject)
                .map_err(|error| error.to_string())
                .and_then(|program| source.ring.replace_filter(&program).map_err(|error| error.to_string()));
            // The selection still applies; the ring only receives more packets than necessary.
            if let Err(why) = replaced {
                warn(&mut self.warnings, "filter-not-narrowed", why);
            }
        }
    }

    /// Reads the available packets; where rings are merged, only those older than `hold_ns`.
    fn read(&mut self, state: &mut State, hold_ns: Option<u64>) {
        // Interface clocks are not synchronised, so with hardware timestamps packets are written in order of arrival.
        let merged = self.options.clock == Clock::Software && self.fill() < 0.5;
        let bound_ns = match hold_ns {
            Some(hold_ns) if merged => realtime_ns().saturating_sub(hold_ns),
            _ => u64::MAX,
        };
        if let Some(events) = &mut self.events {
            events.take(&mut state.events);
        }
        let Self { sources, files, interface_counts, options, subjects, .. } = self;
        // Packets of unknown flows do not count towards the size limit.
        let spare = options.selection.as_ref().map_or(0, |selection| selection.provisional_bytes());
        merge::drain(sources, bound_ns, |_, interface, packet| {
            let tally = &mut interface_counts[interface];
            match packet.kind {
                PacketKind::Out => tally.packets_out += 1,
                _ => tally.packets_in += 1,
            }
            tally.wire_bytes += u64::from(packet.original_bytes);
            tally.hardware += u64::from(packet.hardware_time);
            // Packets after the last one to write are only counted.
            if !state.is_writing || !files.is_enabled() {
                return true;
            }
            if !state.events.is_empty() {
                state.write_events(files, packet.timestamp_ns);
            }
            let mut record = record(interface as u32, packet);
            if let Some(selection) = &options.selection {
                let Some(link) = subjects.get(interface).map(|subject| subject.link) else { return true };
                let Some(kept) = selection.keep(link, record.data, record.original_bytes) else { return true };
                record.data = record.data.get(..kept).unwrap_or_default();
            }
            match files.packet(&record, &state.counts) {
                Ok(()) => {
                    tally.written += 1;
                    state.written += 1;
                    if options.limits.packets.is_some_and(|most| state.written >= most) {
                        state.ends(TapEnd::Packets);
                        state.is_writing = false;
                    } else if options.limits.bytes.is_some_and(|most| files.bytes() >= most + spare) {
                        state.ends(TapEnd::Size);
                        state.is_writing = false;
                    }
                }
                Err(failure) => state.fail(&failure),
            }
            true
        });
    }

    /// Reads the kernel's counters, and checks whether the interfaces still exist.
    fn count(&mut self, state: &mut State) {
        for source in &mut self.sources {
            source.count();
            if source.gone {
                continue;
            }
            let Some(subject) = self.subjects.get(source.interface) else { continue };
            if let Some(why) = source.ring.failure() {
                if self.netlink.link(LinkId::Index(subject.index)).is_err() {
                    source.gone = true;
                    warn(&mut self.warnings, "interface-gone", format!("{} went away", subject.name));
                } else {
                    warn(
                        &mut self.warnings,
                        "interface-down",
                        format!("{} was down for a while: {why}", subject.name),
                    );
                }
            }
        }
        if self.sources.iter().all(|source| source.gone) {
            state.ends(TapEnd::InterfaceGone);
        }
        for (subject, tally) in self.subjects.iter().zip(&mut self.interface_counts) {
            tally.latest = subject::traffic(&mut self.netlink, subject.index).or(tally.latest);
        }
        state.counts = self.counts(state);
    }

    fn counts(&self, state: &State) -> Vec<Counts> {
        let each = self.interface_counts.iter().enumerate().map(|(number, tally)| {
            let of = || self.sources.iter().filter(|source| source.interface == number);
            let own = tally.before.zip(tally.latest);
            Counts {
                start_ns: state.start_unix_ns,
                end_ns: realtime_ns(),
                received: own.map(|(before, latest)| latest.packets.saturating_sub(before.packets)),
                dropped: None,
                accepted: of().map(|source| source.counted).sum(),
                kernel_dropped: of().map(|source| source.dropped).sum(),
                delivered: tally.written,
            }
        });
        each.collect()
    }

    /// Stops the rings, and reads until every packet they counted has been read.
    fn drain(&mut self, state: &mut State) {
        state.stopped_ns = monotonic_ns();
        for source in &mut self.sources {
            if let Err(why) = source.ring.stop() {
                warn(&mut self.warnings, "not-stopped", why.to_string());
            }
        }
        if let Some(events) = &self.events {
            events.stop();
        }
        let deadline_ns = monotonic_ns() + DRAIN_NS;
        let mut quiet = 0;
        // Twice, because a packet may be entering a ring while it is stopped, and is counted afterwards.
        while quiet < 2 && monotonic_ns() < deadline_ns {
            // Keep merging by time: a partly filled block is passed on later than a full one.
            self.read(state, Some(MIN_MERGE_AGE_NS));
            for source in &mut self.sources {
                source.count();
            }
            quiet = if self.sources.iter().all(Source::is_drained) { quiet + 1 } else { 0 };
            sleep_until(monotonic_ns() + 2_000_000);
        }
        self.read(state, None);
        if !self.sources.iter().all(Source::is_drained) {
            warn(
                &mut self.warnings,
                "not-drained",
                "the kernel counted packets that the rings did not give out".into(),
            );
        }
        state.write_events(&mut self.files, u64::MAX);
        for (subject, tally) in self.subjects.iter().zip(&mut self.interface_counts) {
            tally.latest = subject::traffic(&mut self.netlink, subject.index).or(tally.latest);
        }
        state.counts = self.counts(state);
        if let Err(failure) = self.files.finish(&state.counts) {
            state.fail(&failure);
        }
    }

    fn fill(&self) -> f64 {
        let shares = self.sources.iter().map(|source| {
            let (waiting, blocks) = source.ring.fill();
            waiting as f64 / blocks as f64
        });
        shares.fold(0.0, f64::max)
    }

    fn progress(&self, state: &State) -> Progress {
        Progress {
            elapsed_ns: monotonic_ns().min(state.stopped_ns).saturating_sub(state.start_ns),
            packets: self.sources.iter().map(|source| source.read).sum(),
            wire_bytes: self.interface_counts.iter().map(|tally| tally.wire_bytes).sum(),
            dropped: self.sources.iter().map(|source| source.dropped).sum(),
            fill: self.fill(),
            reader_cpu_ns: thread_cpu_ns().saturating_sub(state.cpu_ns),
        }
    }

    fn conclude(
        mut self,
        state: State,
        before: Option<landspeed_model::TapHostUse>,
        slices: Option<TapSlices>,
    ) -> TapDocument {
        let duration_ns = state.stopped_ns.saturating_sub(state.start_ns);
        let reader_cpu_ns = thread_cpu_ns().saturating_sub(state.cpu_ns);
        let during = state.host.zip(cpu::poll()).and_then(|(first, last)| cpu::between(first, last));
        let interfaces: Vec<TapInterface> = self.interfaces();
        let dropped: u64 = interfaces.iter().map(|interface| interface.dropped).sum();
        let packets: u64 = interfaces.iter().map(|interface| interface.packets).sum();
        let read: u64 = self.sources.iter().map(|source| source.read).sum();
        if dropped > 0 {
            warn(
                &mut self.warnings,
                "dropped",
                format!("{dropped} packets found the ring full: a larger --ring or a smaller --snaplen helps"),
            );
        }
        let (files, files_removed) = self.files.listed();
        let written = if state.disk_full { files.iter().map(|file| file.packets).sum() } else { state.written };
        TapDocument {
            schema: TAP_SCHEMA.to_owned(),
            landspeed: BuildInfo { version: env!("CARGO_PKG_VERSION").to_owned(), server_version: None },
            command: Vec::new(),
            start_unix_ns: state.start_unix_ns,
            duration_ns,
            ended: state.end.unwrap_or(TapEnd::Stopped),
            failure: state.failure,
            filter: self.options.filter.clone(),
            snap_bytes: self.options.snap_bytes,
            packets,
            wire_bytes: interfaces.iter().map(|interface| interface.wire_bytes).sum(),
            dropped,
            unwritten: packets.saturating_sub(dropped).saturating_sub(written),
            written,
            interfaces,
            files,
            files_removed,
            events: self.events.as_ref().map(Events::summary),
            perturbation: TapPerturbation {
                reader_cpu_ns,
                reader_ns_per_packet: (read > 0).then(|| reader_cpu_ns as f64 / read as f64),
                reader_core_share: reader_cpu_ns as f64 / duration_ns.max(1) as f64,
                before,
                during,
                slices,
                not_measured:
                    "the kernel copies each packet into the ring in the context of who sends or receives it; \
                               that time is the sender's or the softirq's and in no figure of the reader"
                        .to_owned(),
            },
            warnings: self.warnings,
        }
    }

    fn interfaces(&self) -> Vec<TapInterface> {
        let each = self.subjects.iter().zip(&self.interface_counts).enumerate().map(|(number, (subject, tally))| {
            let of = || self.sources.iter().filter(|source| source.interface == number);
            let read: u64 = of().map(|source| source.read).sum();
            let (block_bytes, blocks) = geometry(&self.options);
            let own = tally.before.zip(tally.latest);
            TapInterface {
                name: subject.name.clone(),
                index: subject.index,
                link: subject.link.name().unwrap_or("unknown").to_owned(),
                clock: match tally.hardware {
                    0 => "software",
                    hardware if hardware == read => "hardware",
                    _ => "mixed",
                }
                .to_owned(),
                rings: self.options.rings.max(1),
                ring_bytes: u64::from(block_bytes) * u64::from(blocks),
                offloads: subject.offloads.clone(),
                packets: of().map(|source| source.counted.max(source.read + source.dropped)).sum(),
                packets_in: tally.packets_in,
                packets_out: tally.packets_out,
                wire_bytes: tally.wire_bytes,
                dropped: of().map(|source| source.dropped).sum(),
                freezes: of().map(|source| source.freezes).sum(),
                fill_max: of().map(|source| source.fill_max).fold(0.0, f64::max),
                interface_packets: own.map(|(before, latest)| latest.packets.saturating_sub(before.packets)),
                interface_dropped: own.map(|(before, latest)| latest.dropped.saturating_sub(before.dropped)),
                gone: of().all(|source| source.gone),
            }
        });
        each.collect()
    }
}

/// Mutable state of a running capture.
struct State {
    start_ns: u64,
    start_unix_ns: u64,
    stopped_ns: u64,
    deadline_ns: Option<u64>,
    next_count_ns: u64,
    next_progress_ns: u64,
    read_interval_ns: u64,
    cpu_ns: u64,
    host: Option<cpu::CpuReading>,
    end: Option<TapEnd>,
    failure: Option<String>,
    is_writing: bool,
    /// Whether packets counted as written were lost because the disk was full.
    disk_full: bool,
    written: u64,
    counts: Vec<Counts>,
    /// Kernel events that are not written yet.
    events: Vec<Event>,
}

impl State {
    fn begin(options: &Options) -> Self {
        let now_ns = monotonic_ns();
        Self {
            start_ns: now_ns,
            start_unix_ns: realtime_ns(),
            stopped_ns: u64::MAX,
            deadline_ns: options.limits.time_ns.map(|time| now_ns.saturating_add(time)),
            next_count_ns: now_ns + COUNT_INTERVAL_NS,
            next_progress_ns: now_ns + PROGRESS_NS,
            read_interval_ns: READ_INTERVAL_NS.1,
            cpu_ns: thread_cpu_ns(),
            host: cpu::poll(),
            end: None,
            failure: None,
            is_writing: true,
            disk_full: false,
            written: 0,
            counts: vec![Counts::default(); options.interfaces.len()],
            events: Vec::new(),
        }
    }

    /// Ends the capture; the first reason is kept.
    fn ends(&mut self, why: TapEnd) {
        self.end.get_or_insert(why);
    }

    fn fail(&mut self, failure: &WriteFailure) {
        self.end = Some(TapEnd::WriteFailed);
        self.is_writing = false;
        self.disk_full = true;
        self.failure.get_or_insert(format!("cannot write {}: {}", failure.path.display(), failure.cause));
    }

    /// Writes the events up to a time.
    fn write_events(&mut self, files: &mut Files, until_ns: u64) {
        let count = self.events.partition_point(|event| event.time_ns <= until_ns);
        for event in self.events.drain(..count) {
            let time = event.time_ns.to_string();
            let message = format!("{}: {}", event.name, event.text);
            let fields = [
                ("MESSAGE", message.as_str()),
                ("SYSLOG_IDENTIFIER", "landspeed"),
                ("LANDSPEED_EVENT", event.name.as_str()),
                ("LANDSPEED_TIME_NS", time.as_str()),
            ];
            files.block(|into| write::journal(into, event.time_ns, &fields));
        }
    }
}

/// Converts a packet of a ring for writing.
#[inline]
fn record<'a>(interface: u32, packet: &RingPacket<'a>) -> Packet<'a> {
    let (direction, reception) = match packet.kind {
        PacketKind::Out => (write::PacketDirection::Out, Reception::Unknown),
        PacketKind::ThisHost => (write::PacketDirection::In, Reception::Unicast),
        PacketKind::Broadcast => (write::PacketDirection::In, Reception::Broadcast),
        PacketKind::Multicast => (write::PacketDirection::In, Reception::Multicast),
        PacketKind::OtherHost => (write::PacketDirection::In, Reception::OtherHost),
    };
    Packet {
        interface,
        time_ns: packet.timestamp_ns,
        original_bytes: packet.original_bytes,
        data: packet.data,
        vlan: packet.vlan,
        direction,
        reception,
    }
}
