//! Tests: what is printed of, compared with, and concluded from recorded runs from which reports are missing is either that
//! of the complete run, or unknown.

use std::sync::LazyLock;

use landspeed_flow::assemble::{self, CollectedRun};
use landspeed_iperf3::convert::{self, ReportOptions};
use landspeed_model::{Cause, Direction, RunDocument};
use landspeed_testkit::missing::{invented, parts, recordings, without};
use serde_json::{Value, json};

use crate::{run, text};

static RECORDINGS: LazyLock<Vec<(String, Value)>> = LazyLock::new(recordings);

fn judged(recording: &Value) -> RunDocument {
    let found: CollectedRun = serde_json::from_value(recording.clone()).expect("a recording");
    let mut document = assemble::document(found);
    run::judge(&mut document);
    document
}

/// Calls `check` with every recording, complete and without each part, each report and both.
fn for_every_gap(mut check: impl FnMut(&str, &RunDocument, &RunDocument)) {
    for (name, recording) in &*RECORDINGS {
        let full = judged(recording);
        for part in parts(recording) {
            let what = format!("{name} without {part}");
            check(&what, &full, &judged(&without(recording, &[&part])));
        }
        check(&format!("{name} without reports"), &full, &judged(&without(recording, &["/client", "/server"])));
    }
}

#[test]
fn compared_figures_are_never_invented() {
    for_every_gap(|what, full, partial| {
        let of = |run: &RunDocument| json!(landspeed_results::figures(run).fields());
        let wrong = invented(&of(full), &of(partial));
        assert!(wrong.is_empty(), "{what}: {wrong:#?}");
    });
}

#[test]
fn totals_of_iperf3_are_never_invented() {
    let mut tests = 0;
    for (name, recording) in RECORDINGS.iter().filter(|(name, _)| name.starts_with("iperf3")) {
        let end = |recording: &Value| json!(convert::document(&judged(recording), &ReportOptions::default()).end);
        let full = end(recording);
        // The client always has its own report.
        for part in parts(recording).iter().filter(|part| part.starts_with("/server") || part.ends_with("samples")) {
            let wrong = invented(&full, &end(&without(recording, &[part])));
            assert!(wrong.is_empty(), "{name} without {part}: {wrong:#?}");
            tests += 1;
        }
    }
    assert!(tests > 10, "{tests}");
}

#[test]
fn text_says_unknown_where_a_figure_is() {
    for_every_gap(|what, _, partial| {
        let printed = format!("{}{}", text::summary_at(partial, 300), text::details(partial));
        let words = printed.split_whitespace().collect::<Vec<_>>().join(" ");
        let bulk = partial.requested.rr.is_none();
        for wrong in [" of 0 packets", "-1 ", "NaN", "inf "] {
            assert!(!words.contains(wrong), "{what}: {wrong}: {printed}");
        }
        if partial.status != landspeed_model::Status::Failed && bulk && partial.summary.goodput_bps.is_none() {
            assert!(words.contains("result") && words.contains("unknown ("), "{what}: {printed}");
        }
        if partial.udp.as_ref().is_some_and(|udp| udp.lost_packets.is_none()) && !words.is_empty() {
            let mut losses = printed.lines().map(str::trim).filter(|line| line.starts_with("loss"));
            assert!(losses.all(|line| !line.contains("100 %") && !line.contains("none of")), "{what}: {printed}");
        }
    });
}

#[test]
fn no_verdict_rests_on_a_report_that_never_came() {
    for_every_gap(|what, full, partial| {
        let verdicts = [(&full.verdict, &partial.verdict)];
        for (before, verdict) in verdicts {
            let of_loss =
                matches!(verdict.cause, Cause::NetworkLoss | Cause::NetworkCongestion | Cause::ShallowBuffer);
            let knows = partial.udp.is_none() || partial.summary.loss_ratio.is_some();
            assert!(!of_loss || knows || before.cause == verdict.cause, "{what}: {verdict:#?}");
            // In both directions the loss of one may be known without that of the other.
            let of_document = verdict.evidence.iter().filter(|evidence| {
                evidence.source == "udp.loss_ratio" && partial.requested.direction != Direction::Both
            });
            for evidence in of_document {
                assert_eq!(Some(evidence.value), partial.summary.loss_ratio, "{what}");
            }
        }
    });
}
