//! Terminal output of `qualify`: the target, each test before it starts, and the results.

use landspeed_model::{
    Direction, QualifyCongestion, QualifyDocument, QualifyOnset, QualifyResult, QualifyTest, QualifyWeight,
};
use landspeed_qualify::{Plan, QualifyDerived, Suite};
use landspeed_units::{BitRate, Bytes, Nanos};

use crate::text::Page;

/// Formats the target, what it implies, and the duration and load of the tests.
pub fn begin(document: &QualifyDocument, suite: &Suite) -> String {
    let mut page = Page::default();
    heading(&mut page, document);
    let mtu = document.target_performance.mtu_bytes;
    let (packets, seconds) = suite.expected();
    let load = Bytes::new(packets * u64::from(mtu));
    page.line("plan", &format!("{} tests, {load} in {} if no packet is lost", suite.plans().count(), time(seconds)));
    let short: Vec<&str> = suite.plans().filter(|plan| is_short(plan)).map(|plan| plan.name.as_str()).collect();
    if let Some(longest) = suite.plans().filter(|plan| is_short(plan)).map(needed_s).reduce(f64::max) {
        let needed = longest.ceil();
        page.line("", &format!("--time is too short for a pass of {}: use --time {needed}s", short.join(", ")));
    }
    page.text
}

/// Whether a required test ends before it can pass.
fn is_short(plan: &Plan) -> bool {
    plan.weight == QualifyWeight::Required && !plan.can_pass()
}

fn needed_s(plan: &Plan) -> f64 {
    plan.accept_packets() as f64 / plan.packets_per_s
}

/// Formats the test that starts now, with its duration and load.
pub fn starting(suite: &Suite) -> String {
    let mut page = Page::default();
    if let Some(plan) = suite.plans().nth(suite.current()) {
        let packets = plan.expected_packets();
        let text = format!(
            "{} (RFC 8337 section {}): {}; {packets} packets in {}",
            plan.name,
            plan.section,
            plan.what,
            time(suite.expected_s(plan))
        );
        page.line("test", &text);
    } else if suite.current() > suite.plans().count() {
        let (packets, seconds) = suite.expected_onset();
        let text = format!(
            "evenly spaced packets at rising rates up to twice the target, until 1% are lost (section 8.2); at most {packets} packets in {}",
            time(seconds)
        );
        page.line("onset", &text);
    } else {
        page.line("buffer", "single bursts of different lengths, to find the smallest buffer");
    }
    page.text
}

/// Returns the results and the verdict as printed.
pub fn summary(document: &QualifyDocument) -> String {
    let mut page = Page::default();
    heading(&mut page, document);
    page.text + &result(document)
}

fn heading(page: &mut Page, document: &QualifyDocument) {
    let target = &document.target_performance;
    let rtt = Nanos::new(target.rtt_ns);
    let congestion = congestion(target.congestion);
    page.line(
        "target",
        &format!("{} × {rtt} with {congestion}, MTU {}", BitRate::from_bps(target.rate_bps), target.mtu_bytes),
    );
    if let Some(section) = &document.section {
        let end = match document.direction {
            Direction::Download => format!("from {}", document.target),
            Direction::Upload | Direction::Both => format!("to {}", document.target),
        };
        let mtu = section.path_mtu_bytes.map(|mtu| format!(", path MTU {mtu}")).unwrap_or_default();
        let rtt = section.rtt_ns.map_or_else(|| "unknown".to_owned(), |rtt_ns| Nanos::new(rtt_ns).to_string());
        page.line("section", &format!("{end}, RTT {rtt}{mtu}"));
    }
    let QualifyDerived { window_packets, run_length_packets, header_bytes, .. } = document.derived;
    page.line(
        "window",
        &format!("{window_packets} packets = rate × RTT / (MTU − {header_bytes} B headers), section 5.2"),
    );
    page.line(
        "loss",
        &format!("at most one in {run_length_packets} packets (target run length, {})", source(target.congestion)),
    );
}

fn source(congestion: QualifyCongestion) -> &'static str {
    match congestion {
        QualifyCongestion::Reno => "3 × window², section 5.2",
        QualifyCongestion::Cubic => "RFC 9438 section 5",
        QualifyCongestion::Bbr => "2%, draft-ietf-ccwg-bbr",
    }
}

fn congestion(congestion: QualifyCongestion) -> &'static str {
    match congestion {
        QualifyCongestion::Reno => "Reno",
        QualifyCongestion::Cubic => "CUBIC",
        QualifyCongestion::Bbr => "BBRv3",
    }
}

/// Formats the results of the tests and the verdict.
pub fn result(document: &QualifyDocument) -> String {
    let mut page = Page::default();
    for test in &document.tests {
        let note = match (test.weight, test.result) {
            (QualifyWeight::Informative, _) => " (does not count)",
            (QualifyWeight::FailureOnly, QualifyResult::Inconclusive) => " (counts only if it fails)",
            _ => "",
        };
        let label = label(test.result);
        page.paragraph(&format!("  {label}"), 16, &format!("{}{note}: {}", test.name, test.reason));
    }
    if let (Some(bytes), Some((low, high))) =
        (document.bottleneck_buffer_bytes, document.bottleneck_buffer_interval_bytes)
    {
        let [bytes, low, high] = [bytes, low, high].map(|bytes| Bytes::new(bytes).to_string());
        let bursts = document.bottleneck_buffer_bursts.map(|(low, high)| format!(", {low} and {high} bursts"));
        let bursts = bursts.unwrap_or_default();
        page.line("buffer", &format!("smallest of the section: {bytes} ({low} to {high}{bursts})"));
    }
    if let Some(bucket) = &document.token_bucket {
        let (rate, refill) = (BitRate::from_bps(bucket.rate_bps), Nanos::new(bucket.refill_ns));
        let bytes = Bytes::new(bucket.bucket_bytes);
        page.line("policer", &format!("token bucket of {bytes} at {rate}, filled in {refill}: not a queue"));
    }
    if let Some(share) = document.steady_share {
        page.line("steady", &format!("a long flow over this buffer gets {share:.2} of the target on average"));
    }
    if let Some(onset) = &document.onset {
        page.line("onset", &onset_line(onset));
    }
    page.line("load", &format!("{} in {} packets", Bytes::new(document.sent_bytes), document.sent_packets));
    page.line("verdict", &format!("{}: {}", label(document.verdict), document.reason));
    if let Some(meaning) = meaning(document) {
        page.line("", meaning);
    }
    page.text
}

/// Formats the rate from which packets queue.
fn onset_line(onset: &QualifyOnset) -> String {
    let highest = onset.steps.last().map(|step| BitRate::from_bps(step.rate_bps));
    let queue = onset.standing_queue_ns.filter(|_| onset.onset_bps.is_some());
    let queue = queue.map(|ns| format!("; the queue holds up to {}", Nanos::new(ns))).unwrap_or_default();
    match (onset.onset_bps, highest) {
        (Some(bps), _) => format!("packets queue or are lost from {}{queue}", BitRate::from_bps(bps)),
        (None, Some(highest)) => format!("no queue up to {highest}"),
        (None, None) => "unknown: a host disturbed every step".to_owned(),
    }
}

fn label(result: QualifyResult) -> &'static str {
    match result {
        QualifyResult::Pass => "pass",
        QualifyResult::Fail => "fail",
        QualifyResult::Inconclusive => "inconclusive",
    }
}

/// What the verdict means for an engineer who has not read the RFC.
fn meaning(document: &QualifyDocument) -> Option<&'static str> {
    match document.verdict {
        QualifyResult::Pass => {
            return Some(
                "Test the other sections of the path as well: each of them must pass, in both directions if data flows in both.",
            );
        }
        QualifyResult::Inconclusive => {
            return Some(
                "The section may be fit or not: a required test ran for too short a time, or a host disturbed it; its line above \
                 says which. Give it more --time, or test between idle, faster hosts.",
            );
        }
        QualifyResult::Fail => {}
    }
    let failed =
        |test: &&QualifyTest| test.result == QualifyResult::Fail && test.weight != QualifyWeight::Informative;
    let first = document.tests.iter().find(failed)?;
    Some(match first.name.as_str() {
        "background-loss" | "delivery-at-target-rate" => {
            "Packets are lost without bursts: look for errors of a link, a duplex mismatch, a policer or a full link. A short path \
             hides such losses; the long one needs many RTTs to recover from each."
        }
        "slow-start-bursts" => {
            "A new connection sends a window at twice the rate: a link or a policer of this section has too little buffer for \
             it. The long path would lose packets in slow start, and then grow slowly."
        }
        _ => {
            "Bursts at interface rate are lost: a link after a faster one has too little buffer. Pace the senders (fq), or give \
             that port more buffer."
        }
    })
}

fn time(seconds: f64) -> String {
    Nanos::from_secs_f64(seconds).map_or_else(|| format!("{seconds:.0} s"), |time| time.to_string())
}
