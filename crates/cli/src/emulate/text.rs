//! Terminal output of an emulation.

use std::fmt::Write as _;

use landspeed_emulation::{DirectionPlan, LoadedPath};
use landspeed_model::{
    EmulateAsked, EmulateDatapath, EmulateDelivered, EmulateDocument, EmulateEnd, EmulateHop, InvalidSecond,
};
use landspeed_units::{BitRate, Bytes, Nanos};

use crate::text::Page;

/// Maximum number of invalid seconds listed.
const MAX_LISTED: usize = 5;

/// Formats the message printed when frames begin to pass.
pub(super) fn opening(path: &LoadedPath, place: &str) -> String {
    let mut page = Page::default();
    page.line("path", &format!("{}; {place}", path.path.name));
    page.line("asked", &both(&direction(&path.forward), &direction(&path.reverse)));
    for warning in &path.warnings {
        page.line("note", warning);
    }
    page.text
}

fn direction(plan: &DirectionPlan) -> String {
    rate_and_delay(plan.rate_bps(), plan.rate_varies(), plan.delay_ns())
}

fn rate_and_delay(bps: u64, varies: bool, delay_ns: u64) -> String {
    let mean = if varies { " on average" } else { "" };
    format!("{}{mean}, {} one way", BitRate::from_bps(bps), Nanos::new(delay_ns))
}

/// Joins the forward and reverse texts; equal texts appear once.
fn both(forward: &str, reverse: &str) -> String {
    if forward == reverse {
        format!("{forward}, both directions")
    } else {
        format!("forward {forward}; reverse {reverse}")
    }
}

/// Formats the summary.
pub fn summary(document: &EmulateDocument) -> String {
    let mut page = Page::default();
    let ended = match document.ended {
        EmulateEnd::Command => "the command ended",
        EmulateEnd::Time => "time limit reached",
        EmulateEnd::Stopped => "interrupted",
        EmulateEnd::InterfaceGone => "an interface disappeared or went down",
        EmulateEnd::Loop => "the interfaces lead to each other",
    };
    let duration = Nanos::new(document.duration_ns);
    let by = match document.datapath {
        EmulateDatapath::Userspace => "",
        EmulateDatapath::Kernel => " by the kernel",
    };
    page.line("emulated", &format!("{} {}{by}, {duration}; ended: {ended}", document.path.name, document.placement));
    let asked = |asked: &EmulateAsked| rate_and_delay(asked.rate_bps, asked.rate_varies, asked.delay_ns);
    page.line("asked", &both(&asked(&document.asked.forward), &asked(&document.asked.reverse)));
    for (name, delivered, hops) in [
        ("forward", &document.delivered.forward, &document.hops.forward),
        ("reverse", &document.delivered.reverse, &document.hops.reverse),
    ] {
        page.line(name, &delivered_line(delivered));
        page.line("", &drops_line(delivered, hops));
    }
    page.line("delay error", &delay_error(document));
    if let (Some(cpu), Some(store)) = (&document.cpu, &document.store) {
        page.line(
            "cost",
            &format!(
                "{:.0} % of a core, {:.0} % in the busiest second; frames took {} of {} reserved",
                cpu.work_share * 100.0,
                cpu.work_share_max * 100.0,
                Bytes::new(store.used_bytes_max),
                Bytes::new(store.reserved_bytes)
            ),
        );
    }
    invalid(&mut page, &document.invalid, document.duration_ns);
    for warning in document.warnings.iter().filter(|warning| warning.code != "path") {
        page.line("note", &warning.message);
    }
    page.text
}

fn delay_error(document: &EmulateDocument) -> String {
    let error = &document.delay_error_ns;
    let (Some(p50), Some(p99), Some(max)) = (error.p50, error.p99, error.max) else {
        return "unknown: departures of this path follow from random draws or active queue management".to_owned();
    };
    let [p50, p99, max] = [p50, p99, max].map(Nanos::new);
    let mut words = format!("p50 {p50}, p99 {p99}, max {max}");
    if let (EmulateDatapath::Kernel, Some(packets)) = (document.datapath, error.packets) {
        let _ = write!(words, ", late or early, of {packets} packets");
    }
    words
}

fn delivered_line(delivered: &EmulateDelivered) -> String {
    let mut words = format!(
        "{} of {} packets delivered, mean {}, busiest second {}",
        delivered.delivered_packets,
        delivered.offered_packets,
        BitRate::from_bps(delivered.rate_bps),
        BitRate::from_bps(delivered.peak_rate_bps),
    );
    if let Some(delay) = delivered.delay_ns {
        let text = |ns: u64| Nanos::new(ns).to_string();
        let _ = write!(words, "; delay min {}, p50 {}, p99 {}", text(delay.min), text(delay.p50), text(delay.p99));
    }
    words
}

fn drops_line(delivered: &EmulateDelivered, hops: &[EmulateHop]) -> String {
    let sum = |of: fn(&EmulateHop) -> u64| hops.iter().map(of).sum::<u64>();
    let mut parts = Vec::new();
    for (count, what) in [
        (sum(|hop| hop.lost_packets), "lost"),
        (sum(|hop| hop.down_packets), "lost while the link was down"),
        (sum(|hop| hop.queue_full_packets), "dropped by full queues"),
        (sum(|hop| hop.aqm_packets), "dropped by AQM"),
        (sum(|hop| hop.marked_packets), "marked (CE)"),
        (sum(|hop| hop.policed_packets), "dropped by policers"),
        (delivered.duplicated_packets, "duplicated"),
        (delivered.reordered_packets.unwrap_or(0), "reordered"),
        (delivered.inside_packets, "in flight"),
        (delivered.unhandled_packets, "not handled"),
    ] {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    }
    if parts.is_empty() {
        parts.push("no loss".to_owned());
    }
    let queue = hops.iter().max_by_key(|hop| hop.queue_max_bytes);
    if let Some(hop) = queue.filter(|hop| hop.queue_max_bytes > 0) {
        parts.push(format!("{} queue at most {}", hop.queue, Bytes::new(hop.queue_max_bytes)));
    }
    parts.join("; ")
}

fn invalid(page: &mut Page, invalid: &[InvalidSecond], duration_ns: u64) {
    let whole = duration_ns.div_ceil(1_000_000_000);
    if invalid.is_empty() {
        page.line("valid", &format!("all {whole} seconds"));
        return;
    }
    page.line(
        "invalid",
        &format!("{} of {whole} seconds: figures measured in them do not describe the path", invalid.len()),
    );
    for second in invalid.iter().take(MAX_LISTED) {
        page.line("", &format!("second {}: {}", second.second, second.message));
    }
    if invalid.len() > MAX_LISTED {
        page.line("", &format!("{} more: see --json", invalid.len() - MAX_LISTED));
    }
}

#[cfg(test)]
mod tests {
    use landspeed_model::{
        BuildInfo, DelayError, DelaySummary, EmulateCpu, EmulateDirections, EmulatePlacement, EmulateStore,
        EmulatedPath, InvalidReason,
    };

    use super::*;

    fn document() -> EmulateDocument {
        let asked = EmulateAsked { rate_bps: 1_000_000_000, rate_varies: false, delay_ns: 25_000_000 };
        let delivered = |offered, dropped| EmulateDelivered {
            offered_packets: offered,
            offered_bytes: offered * 1514,
            delivered_packets: offered - dropped,
            delivered_bytes: (offered - dropped) * 1514,
            dropped_packets: dropped,
            duplicated_packets: 0,
            reordered_packets: Some(0),
            inside_packets: 0,
            unhandled_packets: 0,
            rate_bps: 871_000_000,
            peak_rate_bps: 999_600_000,
            delay_ns: Some(DelaySummary { min: 25_012_300, p50: 28_000_000, p99: 33_100_000, max: 33_112_000 }),
        };
        let hop = |arrived, lost, full| EmulateHop {
            queue: "bfifo".to_owned(),
            arrived_packets: arrived,
            queue_full_packets: full,
            sent_packets: arrived - full,
            lost_packets: lost,
            queue_mean_bytes: 312_000,
            queue_max_bytes: 999_240,
            queue_max_packets: 660,
            ..EmulateHop::default()
        };
        EmulateDocument {
            schema: landspeed_model::EMULATE_SCHEMA.to_owned(),
            landspeed: BuildInfo { version: "0".to_owned(), server_version: None },
            command: Vec::new(),
            path: EmulatedPath { name: "1 Gb/s, 50 ms".to_owned(), seed: 1, mtu_bytes: 1500, links: 1 },
            datapath: EmulateDatapath::Userspace,
            placement: EmulatePlacement::Command { local: Vec::new(), remote: Vec::new() },
            start_unix_ns: 0,
            duration_ns: 10_120_000_000,
            ended: EmulateEnd::Command,
            exit_status: Some(0),
            asked: EmulateDirections { forward: asked.clone(), reverse: asked },
            delivered: EmulateDirections { forward: delivered(719_000, 120), reverse: delivered(360_000, 0) },
            delay_error_ns: DelayError {
                p50: Some(1_200),
                p99: Some(14_000),
                max: Some(812_000),
                packets: Some(1_078_880),
            },
            invalid: vec![InvalidSecond {
                second: 7,
                reasons: vec![InvalidReason::Late],
                message: "900 of 71900 frames left more than 250 µs late, the latest by 812 µs".to_owned(),
            }],
            seconds: Vec::new(),
            hops: EmulateDirections { forward: vec![hop(719_000, 72, 48)], reverse: vec![hop(360_000, 0, 0)] },
            store: Some(EmulateStore { reserved_bytes: 11_000_000, used_bytes_max: 4_400_000 }),
            cpu: Some(EmulateCpu { work_share: 0.31, work_share_max: 0.42, headroom: 0.58 }),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn summary_matches_golden_file() {
        let mut valid = document();
        valid.invalid.clear();
        valid.placement = EmulatePlacement::Between { first: "eth1".to_owned(), second: "eth2".to_owned() };
        valid.ended = EmulateEnd::Stopped;
        valid.asked.reverse.rate_bps = 100_000_000;
        let all = format!("{}\n{}", summary(&document()), summary(&valid));
        landspeed_testkit::golden::same("emulate.txt", &all);
    }
}
