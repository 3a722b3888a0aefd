//! Whatever a report that never came would have told is null, with the reason, and everything else is as before.

use std::sync::LazyLock;

use landspeed_flow::assemble::{self, CollectedRun};
use landspeed_model::{LossLocation, RunDocument};
use landspeed_testkit::missing::{invented, parts, recordings, unknown, without};
use proptest::prelude::*;
use serde_json::{Value, json};

fn document(recording: &Value) -> RunDocument {
    let found: CollectedRun = serde_json::from_value(recording.clone()).expect("a recording");
    assemble::document(found)
}

/// The figures of a document. The bounds of phases are those of the end that divided it, and not compared.
fn figures(document: &RunDocument) -> Value {
    let phases: Vec<Value> = document
        .phases
        .iter()
        .map(|phase| json!({ "direction": phase.direction, "name": phase.name, "bytes": phase.bytes }))
        .collect();
    json!({
        "summary": document.summary,
        "udp": document.udp,
        "conservation": document.conservation,
        "phases": phases,
        "totals": document.totals,
        "cost": document.cost,
        "latency": document.latency,
        "latency_under_load": document.latency_under_load,
    })
}

/// Paths in a summary, UDP totals or accounting whose figure is null without a reason.
fn unexplained(full: &Value, partial: &RunDocument) -> Vec<String> {
    let left = figures(partial);
    let has_reason = |path: &str| {
        let path = path.trim_start_matches('/').replace('/', ".");
        let in_document = partial.unknown.contains_key(&path);
        in_document || left.pointer(&format!("/{}_unknown", path.replace('.', "/"))).is_some_and(Value::is_string)
    };
    let of_document = |path: &str| {
        let parts = path.matches('/').count();
        parts == 2 && ["/summary/", "/udp/", "/conservation/"].iter().any(|section| path.starts_with(section))
    };
    let mut found = unknown(full, &left);
    found.retain(|path| of_document(path) && !has_reason(path));
    let phases = partial.phases.iter().enumerate().filter(|(_, phase)| phase.bytes.is_none());
    found.extend(
        phases.map(|(at, _)| format!("phases[{at}].bytes")).filter(|path| !partial.unknown.contains_key(path)),
    );
    found
}

/// A recorded run, and the figures of its document.
struct Recording {
    name: String,
    run: Value,
    full: Value,
}

static RECORDINGS: LazyLock<Vec<Recording>> = LazyLock::new(|| {
    let complete = |(name, run): (String, Value)| Recording { full: figures(&document(&run)), name, run };
    recordings().into_iter().map(complete).collect()
});

fn check(Recording { name, run, full }: &Recording, missing: &[&str]) {
    let partial = document(&without(run, missing));
    let wrong = invented(full, &figures(&partial));
    assert!(wrong.is_empty(), "{name} without {missing:?}: {wrong:#?}");
    let silent = unexplained(full, &partial);
    assert!(silent.is_empty(), "{name} without {missing:?}, no reason for {silent:#?} in {:#?}", partial.unknown);
}

#[test]
fn recorded_runs_are_complete() {
    let names: Vec<&str> = RECORDINGS.iter().map(|recording| &*recording.name).collect();
    for kind in ["tcp", "tcp-bidir", "udp", "udp-reverse", "udp-bidir", "rr", "iperf3-udp-reverse"] {
        assert!(names.contains(&kind), "{kind} of {names:?}");
    }
    for Recording { name, run, .. } in &*RECORDINGS {
        let run = document(run);
        let iperf3 = name.starts_with("iperf3");
        assert!(run.conservation.holds, "{name}: {:?}", run.conservation);
        // An iperf3 server reports totals only.
        assert!(iperf3 || run.unknown.is_empty(), "{name}: {:#?}", run.unknown);
    }
}

#[test]
fn no_figure_is_invented_for_any_missing_part() {
    for recording in &*RECORDINGS {
        for part in parts(&recording.run) {
            check(recording, &[&part]);
            for end in ["/client", "/server"] {
                if !part.starts_with(end) {
                    check(recording, &[end, &part]);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_figure_is_invented_for_any_missing_parts(at in any::<prop::sample::Index>(), masks in any::<[bool; 40]>()) {
        let recording = at.get(&RECORDINGS);
        let parts = parts(&recording.run);
        let missing: Vec<&str> = parts.iter().zip(masks).filter(|(_, mask)| *mask).map(|(part, _)| &**part).collect();
        check(recording, &missing);
    }
}

/// Changes a recorded UDP run: `change` gets its receiver's counts and the unavailable values of the server's host.
fn changed_udp(change: impl FnOnce(&mut Value, &mut Value)) -> RunDocument {
    let recording = RECORDINGS.iter().find(|recording| recording.name == "udp").expect("recorded");
    let mut run = recording.run.clone();
    let mut unavailable = run["server"]["host"]["unavailable"].take();
    change(&mut run["server"]["streams"][0]["end"]["udp"], &mut unavailable);
    run["server"]["host"]["unavailable"] = unavailable;
    document(&run)
}

#[test]
fn losses_with_an_unread_counter_are_not_the_networks() {
    let network = |run: &RunDocument| -> u64 {
        let losses = run.conservation.losses.iter().filter(|loss| loss.place == LossLocation::Network);
        losses.map(|loss| loss.packets).sum()
    };
    let lose = |udp: &mut Value| {
        udp["delivered_packets"] = json!(udp["delivered_packets"].as_u64().expect("a count") - 40);
    };
    let visible = changed_udp(|udp, _| lose(udp));
    assert!(network(&visible) > 0, "{:?}", visible.conservation);
    for key in ["nic", "softnet"] {
        let run = changed_udp(|udp, unavailable| {
            lose(udp);
            unavailable[key] = json!("Permission denied");
        });
        assert_eq!(network(&run), 0, "{key}: {:?}", run.conservation);
        let note = run.conservation.notes.iter().find(|note| note.contains("is unknown"));
        assert!(note.is_some_and(|note| note.contains("Permission denied")), "{key}: {:?}", run.conservation.notes);
    }
    // A receiver's qdiscs do not drop what it receives.
    let run = changed_udp(|udp, unavailable| {
        lose(udp);
        unavailable["qdiscs"] = json!("Permission denied");
    });
    assert_eq!(network(&run), network(&visible));
}

#[test]
fn surplus_packets_have_no_loss_ratio() {
    let run = changed_udp(|udp, _| udp["delivered_packets"] = json!(1_u64 << 40));
    let udp = run.udp.as_ref().expect("a UDP test");
    assert!(udp.lost_packets.is_some_and(|lost| lost < 0), "{udp:?}");
    assert_eq!((udp.loss_ratio, run.summary.loss_ratio), (None, None));
    for field in ["udp.loss_ratio", "summary.loss_ratio"] {
        assert_eq!(run.unknown[field], "more packets arrived than were sent");
    }
}

#[test]
fn tail_loss_without_the_receivers_counts_is_unknown() {
    let run = changed_udp(|udp, _| *udp = Value::Null);
    let udp = run.udp.as_ref().expect("a UDP test");
    assert_eq!((udp.tail_lost_packets, udp.jitter_ns), (None, None));
    for field in ["udp.tail_lost_packets", "udp.jitter_ns"] {
        assert_eq!(run.unknown[field], "the server does not report it");
    }
}
