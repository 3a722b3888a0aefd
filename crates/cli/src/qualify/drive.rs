//! The tests of a section, one after the other: what is sent next, over whatever runs a test.

use landspeed_model::{
    BuildInfo, Direction, ErrorEntry, Parameters, Protocol, QUALIFY_SCHEMA, QualifyDocument, QualifyResult,
    QualifySection, RunDocument, Status, UdpParameters,
};
use landspeed_qualify::{Stream, StreamOutcome, Suite, SuiteOptions, Target};
use landspeed_sys::process;

use super::section;

/// Runs the tests of a section.
pub trait Runner {
    /// Runs one stream of the suite and returns its document.
    fn run(&mut self, parameters: Parameters) -> Result<RunDocument, Ended>;

    /// Waits; returns false if the user interrupted it.
    fn pause(&mut self, pause_ns: u64) -> bool;

    /// The section is known, and no test has been run.
    fn begins(&mut self, _document: &QualifyDocument, _suite: &Suite) {}

    /// A stream of the current test is about to be sent.
    fn sends(&mut self, _suite: &Suite) {}
}

/// Reason for the end of the tests.
pub enum Ended {
    /// The user interrupted them.
    Interrupted,
    /// A run of the suite failed with this error.
    Failed(ErrorEntry),
}

/// A section to test, and the target for the long path.
pub struct Task {
    /// Server at the other end, for the document.
    pub server: String,
    /// Target for the whole path.
    pub target: Target,
    /// Direction of the streams.
    pub direction: Direction,
    /// Maximum duration of a test, nanoseconds.
    pub max_test_ns: u64,
    /// Send at most a tenth of the time.
    pub gentle: bool,
    /// Parameters that all streams share.
    pub parameters: Parameters,
    /// The section, if it is known; otherwise a probe shows it.
    pub section: Option<QualifySection>,
}

/// Tests the section. What prevents a test is in the document.
///
/// # Errors
/// If the target is impossible over any section.
pub fn qualify(task: &Task, runner: &mut dyn Runner) -> anyhow::Result<QualifyDocument> {
    let mut target = task.target;
    let mut document = QualifyDocument {
        schema: QUALIFY_SCHEMA.to_owned(),
        landspeed: BuildInfo::default(),
        started: String::new(),
        command: process::command_line(),
        status: Status::Failed,
        errors: Vec::new(),
        target: task.server.clone(),
        direction: task.direction,
        target_performance: target.document(),
        derived: target.derive()?,
        section: None,
        verdict: QualifyResult::Inconclusive,
        reason: "no test ran".to_owned(),
        tests: Vec::new(),
        bottleneck_buffer_bytes: None,
        bottleneck_buffer_interval_bytes: None,
        bottleneck_buffer_bursts: None,
        token_bucket: None,
        bursts: Vec::new(),
        onset: None,
        steady_share: None,
        sent_packets: 0,
        sent_bytes: 0,
    };
    let mut interface_mtu_bytes = None;
    let section = match task.section.clone() {
        Some(section) => section,
        None => match runner.run(probe(&task.parameters)) {
            Ok(probe) => {
                describe(&mut document, &probe);
                let section = section::of(&probe, task.direction);
                interface_mtu_bytes = section::interface_mtu_bytes(&probe, task.direction);
                target.ip_version = section::ip_version(&section);
                document.derived = target.derive()?;
                section
            }
            Err(why) => {
                end(&mut document, why);
                return Ok(document);
            }
        },
    };
    let unfit = section::check(&section, interface_mtu_bytes, &target).err();
    let line_rate_bps = section.line_rate_bps;
    document.section = Some(section);
    if let Some(error) = unfit {
        end(&mut document, Ended::Failed(error));
        return Ok(document);
    }
    let options = SuiteOptions { line_rate_bps, max_test_ns: task.max_test_ns, gentle: task.gentle };
    let mut suite = Suite::new(target, &document.derived, options);
    runner.begins(&document, &suite);
    document.status = run_suite(task, &mut suite, &mut document, runner);
    document.tests = suite.tests();
    (document.verdict, document.reason) = suite.verdict();
    let buffer = suite.buffer_bytes();
    document.bottleneck_buffer_bytes = buffer.map(|(bytes, _)| bytes);
    document.bottleneck_buffer_interval_bytes = buffer.map(|(_, interval)| interval);
    document.bottleneck_buffer_bursts = suite.buffer_bursts();
    document.token_bucket = suite.token_bucket();
    document.bursts = suite.bursts();
    document.onset = suite.onset();
    document.steady_share = suite.steady_share();
    document.sent_packets = suite.sent_packets();
    document.sent_bytes = document.sent_packets * u64::from(target.mtu_bytes);
    Ok(document)
}

/// Sends the streams of all tests.
fn run_suite(task: &Task, suite: &mut Suite, document: &mut QualifyDocument, runner: &mut dyn Runner) -> Status {
    while let Some(stream) = suite.next_stream() {
        runner.sends(suite);
        let ran = if runner.pause(stream.pause_ns) {
            runner.run(stream_parameters(&task.parameters, &stream))
        } else {
            Err(Ended::Interrupted)
        };
        match ran {
            Ok(run) => {
                if document.started.is_empty() {
                    describe(document, &run);
                }
                suite.take(&StreamOutcome::of(&run, &stream));
            }
            Err(why) => {
                end(document, why);
                return Status::Partial;
            }
        }
    }
    Status::Complete
}

fn describe(document: &mut QualifyDocument, run: &RunDocument) {
    document.started.clone_from(&run.started);
    document.landspeed = run.landspeed.clone();
}

fn end(document: &mut QualifyDocument, why: Ended) {
    document.errors.push(match why {
        Ended::Interrupted => {
            ErrorEntry { code: "interrupted".to_owned(), message: "interrupted".to_owned(), advice: None }
        }
        Ended::Failed(error) => error,
    });
}

/// Returns the parameters of a short test that shows the section: its RTT, its MTU and the interfaces.
fn probe(shared: &Parameters) -> Parameters {
    let stream =
        Stream { payload_bytes: 500, packets: 20, rate_bps: 800_000, burst_packets: 1, burst_ns: 0, pause_ns: 0 };
    Parameters { probe_mtu: true, ..stream_parameters(shared, &stream) }
}

/// Returns the parameters of a test that sends `stream`.
fn stream_parameters(shared: &Parameters, stream: &Stream) -> Parameters {
    let udp = shared.udp.clone().unwrap_or_default();
    Parameters {
        protocol: Protocol::Udp,
        time_ns: None,
        bytes: Some(stream.packets * u64::from(stream.payload_bytes)),
        omit_ns: 0,
        write_bytes: stream.payload_bytes.into(),
        rate_bps: Some(stream.rate_bps),
        udp: Some(UdpParameters { payload_bytes: stream.payload_bytes, burst_packets: stream.burst_packets, ..udp }),
        ..shared.clone()
    }
}
