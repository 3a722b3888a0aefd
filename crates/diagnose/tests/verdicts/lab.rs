//! Recorded lab runs keep their verdicts: with the lab's data on the path, as seen by two hosts, and as
//! seen by the sender.
//!
//! The documents are of real lab runs with one known cause each, reduced to a tenth of their samples.

use std::path::Path;

use landspeed_diagnose::{contradictions, diagnose, diagnose_lab};
use landspeed_model::Cause::{
    AckPath, LinkRate, LocalQdisc, NetworkLoss, NetworkPath, PathMtu, Policer, ReceiverHostDrops, Reordering,
    SlowStartOvershoot,
};
use landspeed_model::{Cause, Confidence, Direction, LabDocument, RunDocument, Verdict};

/// Fixtures, each with its cause.
pub const KNOWN: &[(&str, Cause)] = &[
    ("ack-path", AckPath),
    ("fq-maxrate", LocalQdisc),
    ("full-link-40g", LinkRate),
    ("full-path-window-below-bdp", NetworkPath),
    ("mtu-black-hole-probed", PathMtu),
    ("policer-bbr", Policer),
    ("policer-cubic", Policer),
    ("random-loss", NetworkLoss),
    ("receiver-host-drops", ReceiverHostDrops),
    ("reordering-bbr", Reordering),
    ("reordering-cubic", Reordering),
    ("slow-start-overshoot", SlowStartOvershoot),
];

/// Loads a recorded lab run.
pub fn fixture(name: &str) -> LabDocument {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fixtures/lab/{name}.json"));
    serde_json::from_str(&std::fs::read_to_string(path).expect(name)).expect(name)
}

/// Returns the first flow's run as two hosts see it: lab hosts share a host name, real ones do not.
pub fn as_two_hosts(lab: &LabDocument) -> RunDocument {
    let mut run = lab.flows[0].run.clone().expect("a run");
    run.hosts.server.as_mut().expect("a server").hostname.push_str("-server");
    run
}

/// As [`as_two_hosts`], without the receiver's report.
pub fn as_sender_view(lab: &LabDocument) -> RunDocument {
    let mut run = as_two_hosts(lab);
    run.streams.iter_mut().for_each(|stream| stream.receiver = None);
    run.hosts.server = None;
    run.host_series.server = None;
    run
}

/// Returns the verdict with the lab's data on the path.
pub fn judge(lab: &LabDocument) -> Verdict {
    diagnose_lab(lab, &lab.flows[0], Direction::Upload).expect("a run")
}

#[test]
fn recorded_lab_runs_name_their_known_cause() {
    for &(name, cause) in KNOWN {
        let lab = fixture(name);
        let verdict = judge(&lab);
        assert_eq!(verdict.cause, cause, "{name}: {verdict:#?}");
        assert!(verdict.confidence >= Confidence::Medium, "{name}: {verdict:#?}");
        let run = lab.flows[0].run.as_ref().expect("a run");
        assert_eq!(contradictions(run, Some(&lab), &verdict), Vec::<String>::new(), "{name}: {verdict:#?}");
    }
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/lab");
    assert_eq!(std::fs::read_dir(directory).expect("fixtures").count(), KNOWN.len(), "a fixture is not listed");
}

/// Causes that two hosts cannot distinguish from `cause`.
fn looks_like(cause: Cause) -> &'static [Cause] {
    match cause {
        // The lab's hosts shape their own link with tbf.
        LinkRate => &[LocalQdisc, NetworkPath],
        Policer => &[Cause::ShallowBuffer],
        ReceiverHostDrops => &[NetworkLoss],
        _ => &[],
    }
}

#[test]
fn two_hosts_never_name_wrong_causes_with_high_confidence() {
    for &(name, cause) in KNOWN {
        let run = as_two_hosts(&fixture(name));
        let verdict = diagnose(&run, Direction::Upload);
        let right = verdict.cause == cause || looks_like(cause).contains(&verdict.cause);
        assert!(right || verdict.confidence == Confidence::Low, "{name}: {verdict:#?}");
        assert_eq!(contradictions(&run, None, &verdict), Vec::<String>::new(), "{name}: {verdict:#?}");
    }
}

#[test]
fn one_host_never_names_wrong_causes_with_high_confidence() {
    for &(name, cause) in KNOWN {
        let run = as_sender_view(&fixture(name));
        let verdict = diagnose(&run, Direction::Upload);
        let right = verdict.cause == cause || looks_like(cause).contains(&verdict.cause);
        assert!(right || verdict.confidence == Confidence::Low, "{name}: {verdict:#?}");
        assert!(verdict.confidence <= Confidence::Medium || verdict.cause == PathMtu, "{name}: {verdict:#?}");
        assert_eq!(contradictions(&run, None, &verdict), Vec::<String>::new(), "{name}: {verdict:#?}");
    }
}
