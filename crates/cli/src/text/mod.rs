//! Terminal output of a run: a short summary that can be pasted into an e-mail.

mod cores;
mod details;
mod latency;
mod loss;
mod page;

use std::fmt::Write as _;

use landspeed_model::{
    CONTRADICTION, Confidence, Direction, EpochState, ErrorEntry, MtuProbe, PhaseName, Protocol, RrMode, RunDocument,
    Sample, Status, StreamEnd, Verdict, Warning,
};
use landspeed_units::{BitRate, Bytes, Micros};

pub use details::{details, number};
pub use page::{Page, strip_backticks, width};

/// Warnings that cast doubt on the headline, most severe first, with short phrases. Other warnings are notes,
/// printed with `-v`.
const DOUBTFUL_WARNINGS: [(&str, &str); 21] = [
    ("accounting", "bytes unaccounted for"),
    (CONTRADICTION, "the figures contradict each other"),
    ("emulation-invalid", "the emulated path could not keep up"),
    ("emulation-unknown", "the emulated path's status is unknown"),
    ("one-ended", "one end's report is missing"),
    ("no-client-capture", "no local capture"),
    ("no-server-capture", "no remote capture"),
    ("stall", "delivery stalled"),
    ("sampler-gap", "gaps in sampling"),
    ("other-load", "other load on a host"),
    ("steal", "steal time"),
    ("not-as-asked", "options not in force as requested"),
    ("fragments", "datagrams are sent in fragments"),
    ("zerocopy-copied", "zero copy fell back to copying"),
    ("zerocopy-refused", "zero copy refused"),
    ("few-samples", "few samples"),
    ("still-ramping", "rate still rising"),
    ("unsteady", "rate varies"),
    ("softnet-drops", "drops in the receiver's backlog"),
    ("beyond-window", "the receive buffer exceeds the largest window"),
    ("loopback", "measured over loopback"),
];

/// Formats an error: the failure, then advice on a second line.
pub fn error(entry: &ErrorEntry) -> String {
    match &entry.advice {
        Some(advice) => format!("{}\n{}.", strip_backticks(&entry.message), capitalize(&strip_backticks(advice))),
        None => strip_backticks(&entry.message),
    }
}

/// Capitalizes the first letter and removes a final period.
fn capitalize(text: &str) -> String {
    let text = text.trim_end_matches('.');
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Formats the summary for the terminal's width, in at most eight lines of 80 columns if they fit.
pub fn summary(document: &RunDocument) -> String {
    let mut page = Page::default();
    write_summary(document, &mut page);
    page.text
}

/// Formats the summary for a given width.
#[cfg(test)]
pub fn summary_at(document: &RunDocument, width: usize) -> String {
    let mut page = Page::with_width(width);
    write_summary(document, &mut page);
    page.text
}

fn write_summary(document: &RunDocument, page: &mut Page) {
    let mut chosen = SummaryLines { lines: Vec::new(), page: Page::with_width(page::STANDARD_WIDTH) };
    choose_summary(document, &mut chosen);
    for (label, content) in &chosen.lines {
        page.line(label, content);
    }
}

/// Labels and contents of the summary, chosen for the standard width: every terminal shows the same.
struct SummaryLines {
    lines: Vec<(&'static str, String)>,
    page: Page,
}

impl SummaryLines {
    fn line(&mut self, label: &'static str, content: &str) {
        self.page.line(label, content);
        self.lines.push((label, content.to_owned()));
    }
}

fn choose_summary(document: &RunDocument, page: &mut SummaryLines) {
    if document.status != Status::Complete {
        for entry in &document.errors {
            let label = if document.status == Status::Failed { "failed" } else { "cut short" };
            page.line(label, &error(entry).replacen('\n', ". ", 1));
        }
    }
    if document.status == Status::Failed {
        return;
    }
    if let (Some(parties), Some(path)) = (&document.third_party, &document.path) {
        page.line(
            "hosts",
            &format!("client {}, server {}", strip_backticks(&parties.from), strip_backticks(&path.target)),
        );
    }
    page.line("result", &headline(document));
    if let (Some(metres), Some(bps)) = (document.requested.distance_m, document.summary.goodput_bps) {
        let product = landspeed_calc::land_speed_bit_m_per_s(bps, metres) / 1e12;
        let digits = if product >= 100.0 { 0 } else { 3 };
        page.line(
            "record",
            &format!("{product:.digits$} Tb·m/s over {:.0} km (the last Land Speed Record: 272400)", metres / 1e3),
        );
    }
    if !document.latency.is_empty() {
        page.line("latency", &latency::short_summary(&document.latency));
    } else if document.udp.is_some() {
        page.line("loss", &loss::short_summary(document));
    } else {
        page.line("network", &tcp(document));
    }
    if let Some(load) = &document.latency_under_load {
        page.line("latency", &latency::under_load(load));
    }
    if let Some(mtu) = path_mtu(document) {
        page.line("path MTU", &mtu);
    }
    page.line("cause", &limits(document, &page.page));
    let doubt = doubt(&document.warnings, &page.page);
    let left = MAX_LINES.saturating_sub(page.page.text.lines().count() + usize::from(doubt.is_some()));
    let step = first_sentence(&document.verdict.next_step);
    if !step.is_empty() {
        let short = first_clause(step).map(|begin| format!("{begin}."));
        let fits = page.page.lines_of(step) <= left.min(MAX_PART_LINES);
        page.line("next", &short.filter(|_| !fits).unwrap_or_else(|| step.to_owned()));
    }
    if let Some(doubt) = doubt {
        page.line("doubt", &doubt);
    }
}

/// Formats what `--probe-mtu` found: `1500 bytes in both directions`.
fn path_mtu(document: &RunDocument) -> Option<String> {
    let found = |probe: &MtuProbe| {
        let size = probe.path_mtu_bytes.map_or_else(|| "not found".to_owned(), |mtu| format!("{mtu} bytes"));
        if probe.is_black_hole() { size + " (larger packets vanish without an ICMP message)" } else { size }
    };
    match document.path.as_ref()?.mtu.as_slice() {
        [] => None,
        [one, other] if found(one) == found(other) => Some(format!("{} in both directions", found(one))),
        probes => {
            let each = probes.iter().map(|probe| format!("{} {}", direction_name(probe.direction), found(probe)));
            Some(each.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Maximum lines of the summary without the report's path, and of one longer part of it. Details contain the
/// rest.
const MAX_LINES: usize = 8;
const MAX_PART_LINES: usize = 2;

/// Returns the text before the first semicolon outside parentheses and backticks.
fn first_clause(text: &str) -> Option<&str> {
    let whole = |begin: &&str| {
        begin.matches('(').count() == begin.matches(')').count() && begin.matches('`').count().is_multiple_of(2)
    };
    text.match_indices("; ").map(|(at, _)| &text[..at]).find(whole)
}

/// Formats cause, place and confidence per direction, with the reason if it fits.
fn limits(document: &RunDocument, page: &Page) -> String {
    let sure = |verdict: &Verdict| confidence(verdict.confidence);
    if let Some(reverse) = &document.reverse_verdict {
        let (up, down) = (&document.verdict, reverse);
        if (up.cause, up.confidence) == (down.cause, down.confidence) {
            return format!("{} in both directions, {}", up.cause.phrase(), sure(up));
        }
        let named = |verdict: &Verdict| format!("{} ({})", verdict.cause.phrase(), sure(verdict));
        return format!("upload: {}, download: {}", named(up), named(down));
    }
    let verdict = &document.verdict;
    let place = verdict.place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
    let named = format!("{}{place}, {}", verdict.cause.phrase(), sure(verdict));
    let why = reason(document, document.requested.direction, verdict);
    let begin = first_clause(why).unwrap_or(why);
    [why, begin]
        .into_iter()
        .map(|why| format!("{named}: {}", why.trim_end_matches('.')))
        .find(|line| page.lines_of(line) <= MAX_PART_LINES)
        .unwrap_or(named)
}

/// Returns a verdict's summary without the rate, which is in the headline.
fn reason<'a>(document: &RunDocument, direction: Direction, verdict: &'a Verdict) -> &'a str {
    let headline = landspeed_diagnose::headline(document, direction) + ": ";
    verdict.summary.strip_prefix(&headline).unwrap_or(&verdict.summary)
}

/// Formats the most severe warning and the number of others; if that does not fit on a line, the short phrases
/// of all.
fn doubt(warnings: &[Warning], page: &Page) -> Option<String> {
    let rank = |warning: &Warning| DOUBTFUL_WARNINGS.iter().position(|(code, _)| *code == warning.code);
    let mut doubts: Vec<(usize, &Warning)> =
        warnings.iter().filter_map(|warning| Some((rank(warning)?, warning))).collect();
    doubts.sort_by_key(|(rank, _)| *rank);
    let (_, gravest) = doubts.first()?;
    let more = match doubts.len() - 1 {
        0 => String::new(),
        n => format!(" ({n} more: -v)"),
    };
    let sentence = first_sentence(&gravest.message);
    let begin = first_clause(sentence).unwrap_or(sentence);
    let line = format!("{}{more}", begin.trim_end_matches('.'));
    if page.lines_of(&line) == 1 {
        return Some(line);
    }
    let mut phrases: Vec<&str> = doubts.iter().map(|(rank, _)| DOUBTFUL_WARNINGS[*rank].1).collect();
    phrases.dedup();
    let all = format!("{} (-v explains)", phrases.join(", "));
    Some(if page.lines_of(&all) == 1 { all } else { format!("{}{more}", phrases[0]) })
}

/// Returns the text up to the first period that ends a sentence.
fn first_sentence(text: &str) -> &str {
    let stop = text.match_indices(". ").find(|(at, _)| {
        let next = text[at + 2..].chars().next();
        next.is_some_and(|c| c.is_uppercase() || c == '`')
    });
    stop.map_or(text, |(at, _)| &text[..=at])
}

/// Returns the prefix `upload: ` or `download: ` for bidirectional tests, otherwise nothing.
fn of(document: &RunDocument, direction: Direction) -> String {
    if document.requested.direction == Direction::Both {
        format!("{}: ", direction_name(direction))
    } else {
        String::new()
    }
}

fn headline(d: &RunDocument) -> String {
    let p = d.effective.as_ref().unwrap_or(&d.requested);
    let s = &d.summary;
    let mut line = if d.latency.is_empty() {
        let figures = [
            (s.goodput_bps, s.goodput_cv, &s.goodput_cv_unknown),
            (s.reverse_goodput_bps, s.reverse_goodput_cv, &s.reverse_goodput_cv_unknown),
        ];
        let rates: Vec<String> = p
            .direction
            .parts()
            .iter()
            .zip(figures)
            .zip(["summary.goodput_bps", "summary.reverse_goodput_bps"])
            .map(|((direction, (bps, cv, unknown)), path)| {
                let rate = bps.map_or_else(
                    || unknown_rate(d, *direction, path),
                    |bps| BitRate::from_bps(bps as u64).to_string(),
                );
                let spread = match (cv, unknown) {
                    (Some(cv), _) => format!(" ± {}", percent(cv)),
                    // The reason is printed with `-v`.
                    (None, Some(_)) if bps.is_some() => " ± unknown".to_owned(),
                    (None, _) => String::new(),
                };
                format!("{}{rate}{spread}", of(d, *direction).replace(':', ""))
            })
            .collect();
        rates.join(", ")
    } else {
        latency::rates(&d.latency)
    };
    let kind = match p.protocol {
        Protocol::Tcp => "TCP",
        Protocol::Udp => "UDP",
        Protocol::TcpRr => "TCP request/response",
        Protocol::UdpRr => "UDP request/response",
    };
    let arrow = match p.direction {
        _ if p.rr.is_some() => "",
        Direction::Upload => ", client to server",
        Direction::Download => ", server to client",
        // The directions are named next to the rates.
        Direction::Both => "",
    };
    let _ = write!(line, "{arrow}, {kind}");
    let sender = d.streams.iter().find_map(|stream| stream.sender.as_ref());
    if let Some(congestion) = sender.and_then(|sender| sender.congestion.as_ref()) {
        let _ = write!(line, " {congestion}");
    }
    if p.direction != Direction::Both || p.streams > 1 {
        let _ = write!(line, ", {}", plural(u64::from(p.streams), "stream"));
    }
    let steady = d.phases.iter().find(|phase| phase.name == PhaseName::Steady);
    let steady_ns = s.steady_ns.or_else(|| steady.map(|phase| phase.end_ns.saturating_sub(phase.start_ns)));
    let time_ns =
        if d.latency.is_empty() { steady_ns.unwrap_or(0) } else { d.latency.iter().map(|r| r.duration_ns).sum() };
    if time_ns > 0 {
        let _ = write!(line, ", {:.1} s", time_ns as f64 / 1e9);
    }
    line
}

/// Formats an unknown goodput: the reason, and the rate of the ACKs if the sender's TCP has it.
fn unknown_rate(d: &RunDocument, direction: Direction, path: &str) -> String {
    let Some(why) = d.why_unknown(path) else { return "no data".to_owned() };
    let streams: Vec<_> = d.streams.iter().filter(|stream| stream.direction == direction).collect();
    let acknowledged = streams.iter().all(|stream| stream.intervals_from == "sender");
    let rates: Option<Vec<f64>> = streams.iter().map(|stream| landspeed_results::steady_bps(stream)).collect();
    let rates = rates.filter(|rates| acknowledged && !rates.is_empty());
    let acknowledged =
        rates.map(|rates| format!(", {} acknowledged", BitRate::from_bps(rates.iter().sum::<f64>() as u64)));
    format!("unknown ({why}){}", acknowledged.unwrap_or_default())
}

/// Formats retransmits and RTT per direction.
fn tcp(d: &RunDocument) -> String {
    let parts = d.requested.direction.parts();
    let lines: Vec<String> = parts
        .iter()
        .map(|direction| {
            let streams = || d.streams.iter().filter(|s| s.direction == *direction);
            let senders: Option<Vec<&StreamEnd>> = streams().map(|s| s.sender.as_ref()).collect();
            let Some(senders) = senders.filter(|senders| !senders.is_empty()) else {
                return format!("{}retransmits unknown (the sender's report is missing)", of(d, *direction));
            };
            let retransmits: Option<u64> = senders.iter().map(|end| end.retransmits).sum();
            let last = |end: &StreamEnd| end.samples.last()?.tcp.as_ref()?.data_segs_out;
            let segments: Option<u64> = senders.iter().map(|end| last(end).map(u64::from)).sum();
            let share = match (retransmits, segments) {
                (Some(retransmits @ 1..), Some(segments @ 1..)) => {
                    format!(" ({})", percent(retransmits as f64 / segments as f64))
                }
                _ => String::new(),
            };
            let mut words = vec![retransmits.map_or_else(
                || "retransmits unknown (not reported)".to_owned(),
                |retransmits| plural(retransmits, "retransmit") + &share,
            )];
            if senders.iter().all(|end| !end.samples.is_empty()) {
                let samples: Vec<&Sample> = senders.iter().flat_map(|end| &end.samples).collect();
                words.extend(rtt(&samples));
            }
            format!("{}{}", of(d, *direction), words.join(", "))
        })
        .collect();
    lines.join("; ")
}

/// Formats the senders' RTT samples: `min RTT 20.0 ms, median 20.4 ms`.
fn rtt(samples: &[&Sample]) -> Option<String> {
    let infos = || samples.iter().filter_map(|sample| sample.tcp.as_deref());
    let min = infos().filter_map(|tcp| tcp.min_rtt_us).filter(|us| *us < u32::MAX).min()?;
    let mut smoothed: Vec<u32> = infos().map(|tcp| tcp.rtt_us).filter(|us| *us > 0).collect();
    smoothed.sort_unstable();
    let median =
        smoothed.get(smoothed.len() / 2).map(|us| format!(", median {}", Micros::new(*us))).unwrap_or_default();
    Some(format!("min RTT {}{median}", Micros::new(min)))
}

fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Upload => "upload",
        Direction::Download => "download",
        Direction::Both => "both directions",
    }
}

/// Formats a share with two significant digits: `37 %`, `1.2 %`, `0.0046 %`.
pub(crate) fn percent(share: f64) -> String {
    let value = share * 100.0;
    if !value.is_finite() || value == 0.0 {
        return "0 %".to_owned();
    }
    let digits = if value.abs() >= 9.95 { 0 } else { (1.0 - value.abs().log10().floor()).clamp(1.0, 9.0) as usize };
    format!("{value:.digits$} %")
}

pub(crate) fn plural(n: u64, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// Formats a confidence: `high confidence`.
pub(crate) fn confidence(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::High => "high confidence",
        Confidence::Medium => "medium confidence",
        Confidence::Low => "low confidence",
    }
}

/// Formats the share of time per state, for states with at least 1 %: `97.0 % cwnd-limited, 2.1 % recovery`.
/// `None` without samples.
pub(crate) fn epochs(v: &Verdict) -> Option<String> {
    let states: Vec<String> = v
        .epochs
        .iter()
        .filter(|epoch| epoch.share_permille >= 10)
        .map(|epoch| format!("{:.1} % {}", f64::from(epoch.share_permille) / 10.0, state_name(epoch.state)))
        .collect();
    (!states.is_empty()).then(|| states.join(", "))
}

pub(crate) fn state_name(state: EpochState) -> &'static str {
    match state {
        EpochState::SlowStart => "slow start",
        EpochState::Recovery => "recovery",
        EpochState::Stalled => "stalled",
        EpochState::CwndLimited => "cwnd-limited",
        EpochState::ReceiveWindowLimited => "receive-window-limited",
        EpochState::SendBufferLimited => "send-buffer-limited",
        EpochState::ApplicationLimited => "application-limited",
        EpochState::PacingLimited => "pacing-limited",
        EpochState::CpuLimited => "CPU-limited",
        EpochState::Unknown => "unknown",
    }
}

fn mode(mode: RrMode) -> &'static str {
    match mode {
        RrMode::ClosedLoop => "closed loop",
        RrMode::OpenLoop => "open loop, latency from the intended send time",
        RrMode::Connect => "a new connection for each transaction",
    }
}

/// Formats a size: `6.00 MiB`, or `1 MB` for multiples of a power of 1000.
fn bytes(n: u64) -> String {
    Bytes::new(n).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_keep_two_significant_digits() {
        let printed = [0.370_735, 0.0123, 0.000_046, 0.0, 1.0].map(percent);
        assert_eq!(printed, ["37 %", "1.2 %", "0.0046 %", "0 %", "100 %"]);
    }

    #[test]
    fn a_decimal_point_does_not_end_a_sentence() {
        assert_eq!(
            first_sentence("Raise it to 1.5 MiB (now 1. of 2), e.g. so. Then run."),
            "Raise it to 1.5 MiB (now 1. of 2), e.g. so."
        );
        assert_eq!(first_sentence("One only."), "One only.");
    }
}
