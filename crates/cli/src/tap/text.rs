//! Terminal output of a capture.

use std::fmt::Write as _;

use landspeed_model::{TapDocument, TapEnd, TapInterface, TapPerturbation};
use landspeed_units::{BitRate, Bytes, Nanos};

use crate::text::Page;

/// Formats the summary.
pub fn summary(document: &TapDocument) -> String {
    let mut page = Page::default();
    let ended = match document.ended {
        TapEnd::Packets => "--count reached",
        TapEnd::Size => "size limit reached",
        TapEnd::Time => "time limit reached",
        TapEnd::Stopped => "interrupted",
        TapEnd::InterfaceGone => "the interface disappeared",
        TapEnd::WriteFailed => "writing failed",
    };
    page.line("tap", &format!("{}; ended: {ended}", Nanos::new(document.duration_ns)));
    for interface in &document.interfaces {
        interface_section(&mut page, interface, document.duration_ns);
    }
    let mut files = match document.files.as_slice() {
        [] => "none: packets were only counted".to_owned(),
        [file] => format!("{}: {} packets, {}", file.path, file.packets, Bytes::new(file.bytes)),
        [first, .., last] => {
            let bytes = document.files.iter().map(|file| file.bytes).sum();
            format!("{} to {}: {} files, {}", first.path, last.path, document.files.len(), Bytes::new(bytes))
        }
    };
    if document.files_removed > 0 {
        let _ = write!(files, "; {} older ones removed", document.files_removed);
    }
    page.line("file", &files);
    if document.unwritten > 0 && !document.files.is_empty() {
        page.line("unwritten", &format!("{} packets were taken and not written", document.unwritten));
    }
    if let Some(events) = &document.events {
        let lost = if events.lost > 0 { format!(", {} lost", events.lost) } else { String::new() };
        page.line("events", &format!("{} of {}{lost}", events.taken, events.names.join(", ")));
    }
    cost(&mut page, &document.perturbation);
    for warning in &document.warnings {
        page.line("note", &warning.message);
    }
    page.text
}

fn interface_section(page: &mut Page, interface: &TapInterface, duration_ns: u64) {
    let rate = BitRate::mean(Bytes::new(interface.wire_bytes), Nanos::new(duration_ns)).unwrap_or(BitRate::ZERO);
    let mut words = format!(
        "{} packets ({} in, {} out), {rate}; {} dropped",
        interface.packets, interface.packets_in, interface.packets_out, interface.dropped
    );
    let _ = write!(
        words,
        "; {} clock; ring {} at most {:.0} % full",
        interface.clock,
        Bytes::new(interface.ring_bytes),
        interface.fill_max * 100.0
    );
    if interface.gone {
        words.push_str("; disappeared");
    }
    page.line(&interface.name, &words);
}

fn cost(page: &mut Page, cost: &TapPerturbation) {
    let mut words = format!("reader {:.1} % of a core", cost.reader_core_share * 100.0);
    if let Some(ns) = cost.reader_ns_per_packet {
        let _ = write!(words, ", {ns:.0} ns a packet");
    }
    match (&cost.before, &cost.during) {
        (Some(before), Some(during)) => {
            let _ = write!(
                words,
                "; host {:.2} cores busy ({:.2} in softirqs), before {:.2} ({:.2})",
                during.busy_cores, during.softirq_cores, before.busy_cores, before.softirq_cores
            );
        }
        (None, Some(during)) => {
            let _ =
                write!(words, "; host {:.2} cores busy ({:.2} in softirqs)", during.busy_cores, during.softirq_cores);
        }
        _ => {}
    }
    page.line("cost", &words);
    let Some(slices) = &cost.slices else { return };
    let mut words = format!(
        "{} pairs of {}: {:.0} packets/s with the tap, {:.0} without",
        slices.pairs,
        Nanos::new(slices.slice_ns),
        slices.on_pps,
        slices.off_pps
    );
    if let (Some(ratio), Some((low, high))) = (slices.rate_ratio, slices.rate_ratio_ci) {
        let _ = write!(words, "; ratio {ratio:.3} (95 %: {low:.3} to {high:.3})");
    }
    if let (Some(more), Some((low, high))) = (slices.busy_cores_more, slices.busy_cores_more_ci) {
        let _ = write!(words, "; {more:+.2} cores ({low:+.2} to {high:+.2})");
    }
    page.line("slowed", &words);
}
