//! Figures of a run, read from the documents of the lab and of `emulate`.

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::Figures;

/// Share of the link's payload rate at which the ramp ends.
const RAMP_END_SHARE: f64 = 0.9;
/// Payload share of a full segment on the link: 1500 − 52 bytes of 1514 + 24.
const PAYLOAD: f64 = 1448.0 / 1538.0;
/// Window over which the goodput of the ramp is measured, nanoseconds.
const WINDOW_NS: u64 = 100_000_000;
/// `snd_ssthresh` before slow start ends for the first time.
const NO_SSTHRESH: u64 = 0x7fff_ffff;
const NS_PER_MS: f64 = 1e6;

/// A figure as shown in the table.
#[derive(Debug, Clone, Copy)]
pub(super) struct FigureFormat {
    /// Key in [`Figures`].
    pub name: &'static str,
    /// Label in the table.
    pub title: &'static str,
    /// Unit as printed; empty for counts.
    pub unit: &'static str,
    /// Decimal places.
    pub decimals: usize,
}

const fn figure_format(name: &'static str, title: &'static str, unit: &'static str, decimals: usize) -> FigureFormat {
    FigureFormat { name, title, unit, decimals }
}

/// All figures, in table order.
const FIGURE_FORMATS: &[FigureFormat] = &[
    figure_format("goodput", "goodput", "Mb/s", 2),
    figure_format("retransmits", "retransmits", "", 0),
    figure_format("lost", "frames lost by the link", "", 0),
    figure_format("cwnd-mean", "mean cwnd", "packets", 1),
    figure_format("cwnd-max", "max cwnd", "packets", 0),
    figure_format("rtt-min", "min RTT", "ms", 3),
    figure_format("rtt-median", "median RTT", "ms", 2),
    figure_format("cross-goodput", "goodput of the cross traffic", "Mb/s", 2),
    figure_format("cross-loss", "loss of the cross traffic (UDP)", "%", 2),
    figure_format("queue-drops", "dropped by the queue", "", 0),
    figure_format("queue-max", "max queue", "kB", 1),
    figure_format("queue-mean", "mean queue", "kB", 1),
    figure_format("to-90", "time to 90 % of the rate", "ms", 0),
    figure_format("bytes-500", "received after 0.5 s", "MB", 2),
    figure_format("bytes-1000", "received after 1 s", "MB", 2),
    figure_format("exit-at", "slow start ends after", "ms", 0),
    figure_format("exit-cwnd", "ssthresh at its end", "packets", 0),
    figure_format("ack-gap-p50", "ACK spacing at the sender, p50", "µs", 1),
    figure_format("ack-gap-p99", "… p99", "µs", 1),
    figure_format("data-gap-p50", "data spacing at the receiver, p50", "µs", 1),
    figure_format("data-gap-p99", "… p99", "µs", 1),
    figure_format("per-ack", "data frames per ACK", "", 2),
    figure_format("burst-p50", "burst at the sender, p50", "frames", 0),
    figure_format("burst-p99", "… p99", "frames", 0),
    figure_format("burst-max", "… max", "frames", 0),
    figure_format("burst-gap", "spacing in bursts, p50", "µs", 2),
    figure_format("ms-max", "busiest ms at the sender", "Mb/s", 0),
    figure_format("forward-min", "forward delay, min", "ms", 4),
    figure_format("forward-p50", "… p50", "ms", 3),
    figure_format("forward-p99", "… p99", "ms", 3),
    figure_format("forward-max", "… max", "ms", 3),
    figure_format("reverse-min", "reverse delay, min", "ms", 4),
    figure_format("reverse-p50", "… p50", "ms", 3),
    figure_format("reverse-p99", "… p99", "ms", 3),
    figure_format("reverse-max", "… max", "ms", 3),
];

/// Returns title, unit and precision of a figure.
pub(super) fn shown(name: &str) -> Option<FigureFormat> {
    FIGURE_FORMATS.iter().find(|shown| shown.name == name).copied()
}

/// Reads the figures of a `landspeed.lab/2` whose bottleneck port and link are `port->receiver`.
pub(super) fn lab_figures(document: &Value) -> Result<Figures> {
    let named = |list: &str, name: &str| {
        document[list].as_array().and_then(|all| all.iter().find(|one| one["name"] == name)).cloned()
    };
    let run = |name: &str| named("flows", name).map(|flow| flow["run"].clone()).filter(|run| !run.is_null());
    let link = named("links", "port->receiver").context("the scenario has a link port->receiver")?;
    let queue = named("queues", "port->receiver").context("the scenario has a queue port->receiver")?;
    let mut figures = run_figures(&run("tcp").context("the scenario has a flow tcp")?, rate_bps(&link["rate_bps"])?)?;
    if let Some(cross) = run("cross") {
        figures.extend(cross_figures(&cross));
    }
    add(&mut figures, "lost", link["lost"].as_f64());
    add(&mut figures, "queue-drops", queue["drops"].as_f64());
    add(&mut figures, "queue-max", queue["peak_bytes"].as_f64().map(|bytes| bytes / 1e3));
    let mean = queue["mean_bytes"].as_f64().zip(document["virtual_s"].as_f64());
    add_mean_queue(&mut figures, mean);
    Ok(figures)
}

/// Reads the figures of a `landspeed.emulate/1` and of the `landspeed.run/1` of its flows.
pub(super) fn emulation_figures(certificate: &Value, run: &Value, cross: Option<&Value>) -> Result<Figures> {
    let mut figures = run_figures(run, rate_bps(&certificate["asked"]["forward"]["rate_bps"])?)?;
    figures.extend(cross.into_iter().flat_map(cross_figures));
    let hop = &certificate["hops"]["forward"][0];
    add(&mut figures, "lost", hop["lost_packets"].as_f64());
    add(&mut figures, "queue-drops", hop["queue_full_packets"].as_f64());
    add(&mut figures, "queue-max", hop["queue_max_bytes"].as_f64().map(|bytes| bytes / 1e3));
    let seconds = certificate["duration_ns"].as_f64().map(|ns| ns / 1e9);
    add_mean_queue(&mut figures, hop["queue_mean_bytes"].as_f64().zip(seconds));
    Ok(figures)
}

fn rate_bps(value: &Value) -> Result<f64> {
    value.as_f64().context("the document has the rate of the link")
}

fn add(figures: &mut Figures, name: &str, value: Option<f64>) {
    figures.extend(value.map(|value| (name.to_owned(), value)));
}

/// Adds the mean queue while the flow runs, kB. The argument is a mean over a longer time, in which the queue is
/// otherwise empty.
fn add_mean_queue(figures: &mut Figures, mean_bytes_over_s: Option<(f64, f64)>) {
    let Some(flow_s) = figures.remove("seconds") else { return };
    add(figures, "queue-mean", mean_bytes_over_s.map(|(bytes, seconds)| bytes * seconds / flow_s / 1e3));
}

/// Reads the figures of a flow; `seconds` is its duration.
fn run_figures(run: &Value, link_bps: f64) -> Result<Figures> {
    let mut figures = Figures::new();
    let phases = run["phases"].as_array().context("the run has phases")?;
    let steady = phases.iter().find(|phase| phase["name"] == "steady").context("the run has a steady phase")?;
    let time = |value: &Value| value.as_u64().context("a phase has its times");
    let (steady_ns, end_ns) = (time(&steady["start_ns"])?, time(&steady["end_ns"])?);
    add(&mut figures, "seconds", Some(end_ns as f64 / 1e9));
    add(&mut figures, "goodput", run["summary"]["goodput_bps"].as_f64().map(|bps| bps / 1e6));
    add(&mut figures, "retransmits", run["summary"]["retransmits"].as_f64());
    add(&mut figures, "rtt-min", run["summary"]["min_rtt_us"].as_f64().map(|us| us / 1e3));
    let stream = &run["streams"][0];
    let samples = stream["sender"]["samples"].as_array().context("the run has samples")?;
    let tcp = |sample: &Value, name: &str| sample["tcp"][name].as_u64();
    let steadily = |name: &str| -> Vec<f64> {
        let during = samples
            .iter()
            .filter(|sample| sample["t_ns"].as_u64().is_some_and(|at_ns| (steady_ns..=end_ns).contains(&at_ns)));
        during.filter_map(|sample| tcp(sample, name)).map(|value| value as f64).collect()
    };
    let windows = steadily("snd_cwnd");
    add(&mut figures, "cwnd-mean", Some(windows.iter().sum::<f64>() / windows.len().max(1) as f64));
    add(&mut figures, "rtt-median", landspeed_stats::median(&steadily("rtt_us")).map(|us| us / 1e3));
    let cwnd_max = samples.iter().filter_map(|sample| tcp(sample, "snd_cwnd")).max();
    add(&mut figures, "cwnd-max", cwnd_max.map(|packets| packets as f64));
    let exit = samples.iter().find(|sample| tcp(sample, "snd_ssthresh").is_some_and(|packets| packets < NO_SSTHRESH));
    add(&mut figures, "exit-at", exit.and_then(|sample| sample["t_ns"].as_f64()).map(|ns| ns / NS_PER_MS));
    add(&mut figures, "exit-cwnd", exit.and_then(|sample| tcp(sample, "snd_ssthresh")).map(|packets| packets as f64));
    let received = received(stream);
    for (name, at_ns) in [("bytes-500", 500_000_000), ("bytes-1000", 1_000_000_000)] {
        add(&mut figures, name, Some(at(&received, at_ns) / 1e6));
    }
    let goal_bytes = RAMP_END_SHARE * link_bps * PAYLOAD / 8.0 * WINDOW_NS as f64 / 1e9;
    let reached =
        received.iter().find(|(ns, bytes)| *ns >= WINDOW_NS && *bytes - at(&received, ns - WINDOW_NS) >= goal_bytes);
    add(&mut figures, "to-90", reached.map(|(ns, _)| *ns as f64 / NS_PER_MS));
    Ok(figures)
}

/// Returns cumulative payload received at the end of each of the stream's intervals: (nanoseconds, bytes).
fn received(stream: &Value) -> Vec<(u64, f64)> {
    let intervals = stream["intervals"].as_array().map_or(&[][..], Vec::as_slice);
    let mut sum = 0.0;
    let ends = intervals.iter().filter_map(|interval| interval["end_ns"].as_u64().zip(interval["bytes"].as_f64()));
    ends.map(|(end_ns, bytes)| {
        sum += bytes;
        (end_ns, sum)
    })
    .collect()
}

/// Returns the payload received up to `ns`, interpolated, bytes.
fn at(received: &[(u64, f64)], ns: u64) -> f64 {
    let after = received.partition_point(|(end_ns, _)| *end_ns < ns);
    let (from_ns, from) = after.checked_sub(1).map_or((0, 0.0), |before| received[before]);
    let Some((to_ns, to)) = received.get(after).copied() else { return from };
    from + (to - from) * (ns - from_ns) as f64 / (to_ns - from_ns).max(1) as f64
}

fn cross_figures(run: &Value) -> Figures {
    let mut figures = Figures::new();
    add(&mut figures, "cross-goodput", run["summary"]["goodput_bps"].as_f64().map(|bps| bps / 1e6));
    add(&mut figures, "cross-loss", run["summary"]["loss_ratio"].as_f64().map(|ratio| ratio * 100.0));
    figures
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_ramp_ends_with_the_first_window_at_ninety_percent() {
        // 20 ms intervals at a tenth of the rate, then at the full payload rate of 100 Mb/s.
        let full = 100e6 * PAYLOAD / 8.0 * 0.02;
        let intervals: Vec<Value> = (0..50_u64)
            .map(|n| {
                let bytes = if n < 20 { full / 10.0 } else { full };
                json!({ "start_ns": n * 20_000_000, "end_ns": (n + 1) * 20_000_000, "bytes": bytes })
            })
            .collect();
        let run = json!({
            "phases": [{ "name": "steady", "start_ns": 0, "end_ns": 1_000_000_000 }],
            "summary": { "goodput_bps": 1e6, "retransmits": 3, "min_rtt_us": 50_000 },
            "streams": [{ "intervals": intervals, "sender": { "samples": [
                { "t_ns": 10_000_000, "tcp": { "snd_cwnd": 10, "snd_ssthresh": NO_SSTHRESH, "rtt_us": 50_000 } },
                { "t_ns": 30_000_000, "tcp": { "snd_cwnd": 30, "snd_ssthresh": 25, "rtt_us": 60_000 } },
            ] } }],
        });
        let figures = run_figures(&run, 100e6).expect("the document is complete");
        // Intervals 20 to 24 are the first five at the full rate.
        assert_eq!((figures["to-90"], figures["exit-at"]), (500.0, 30.0));
        assert_eq!((figures["exit-cwnd"], figures["cwnd-max"]), (25.0, 30.0));
        assert_eq!((figures["cwnd-mean"], figures["rtt-median"]), (20.0, 55.0));
        let expected = (20.0 * full / 10.0 + 5.0 * full) / 1e6;
        assert!((figures["bytes-500"] - expected).abs() < 1e-9);
    }
}
