//! Responsiveness under load in round trips per minute (draft-ietf-ippm-responsiveness-09).

use landspeed_calc::round_trips_per_minute;
use landspeed_model::{
    Bucket, LatencyResult, LatencyUnderLoad, Parameters, Phase, PhaseName, Protocol, Responsiveness, Stream,
};
use landspeed_stats::trimmed_mean;

use super::known::{Known, Unknown};

/// Share of the samples that counts: TMP, section "Test Parameters".
const KEPT: f64 = 0.95;

/// Adds the responsiveness to the latencies of a run; the reasons for figures that are unknown go to `unknown`.
pub fn add(
    load: LatencyUnderLoad,
    parameters: &Parameters,
    streams: &[Stream],
    phases: &[Phase],
    unknown: &mut Unknown,
) -> LatencyUnderLoad {
    let (rtts, loaded_rpm) = match load_bearing_rtts(parameters, streams, phases) {
        Ok(rtts) => {
            let rpm = rpm(rtts.iter().map(|rtt_ns| (*rtt_ns, 1)));
            (rtts, rpm.ok_or_else(|| "the senders have no sample of the RTT in the steady phase".to_owned()))
        }
        Err(why) => (Vec::new(), Err(why)),
    };
    let foreign_rpm = rpm_of_probes(&load.loaded);
    let mean = foreign_rpm.clone().and_then(|foreign| Ok(foreign.midpoint(loaded_rpm.clone()?)));
    let mut field = |name: &str, rpm| unknown.field(format!("latency_under_load.responsiveness.{name}"), rpm);
    let responsiveness = Responsiveness {
        rpm: field("rpm", mean),
        foreign_rpm: field("foreign_rpm", foreign_rpm),
        foreign_samples: load.loaded.completed,
        foreign_unanswered: without_answer(&load.loaded),
        loaded_samples: if loaded_rpm.is_ok() { rtts.len() as u64 } else { 0 },
        loaded_rpm: field("loaded_rpm", loaded_rpm),
        idle_rpm: load.idle.as_ref().and_then(|idle| field("idle_rpm", rpm_of_probes(idle))),
    };
    LatencyUnderLoad { responsiveness: Some(responsiveness), ..load }
}

/// Round trips per minute of (round-trip time in nanoseconds, count).
fn rpm(rtts_ns: impl IntoIterator<Item = (f64, u64)>) -> Option<f64> {
    trimmed_mean(rtts_ns, KEPT).and_then(|mean_ns| round_trips_per_minute(mean_ns / 1e9))
}

/// Number of probes that were due and got no answer, among them those that could not be sent.
fn without_answer(probes: &LatencyResult) -> u64 {
    probes.scheduled.max(probes.sent).saturating_sub(probes.completed)
}

/// Each value of a bucket counts as its middle: buckets are 0.1 % wide. A probe without an answer counts as longer than all that
/// were answered: losing probes improves no figure.
fn rpm_of_probes(probes: &LatencyResult) -> Known<f64> {
    if probes.completed == 0 {
        return Err("no probe was answered".to_owned());
    }
    let missing = without_answer(probes);
    let middle = |bucket: &Bucket| (bucket.low_ns as f64).midpoint(bucket.high_ns as f64);
    let answered = probes.histogram.iter().map(|bucket| (middle(bucket), bucket.count));
    rpm(answered.chain([(f64::INFINITY, missing)])).ok_or_else(|| {
        let due = missing + probes.completed;
        format!("{missing} of {due} probes were not answered: the longest 5 % do not count, and these are more")
    })
}

/// Returns the smoothed RTTs of the senders in the steady phase of their direction, nanoseconds.
fn load_bearing_rtts(parameters: &Parameters, streams: &[Stream], phases: &[Phase]) -> Known<Vec<f64>> {
    if parameters.protocol != Protocol::Tcp {
        return Err("the streams have no RTT: they are UDP".to_owned());
    }
    let mut rtts_ns = Vec::new();
    for stream in streams {
        let steady = phases.iter().find(|p| p.direction == stream.direction && p.name == PhaseName::Steady);
        let steady = steady.ok_or("there is no steady phase")?;
        let sender =
            stream.sender.as_ref().ok_or_else(|| format!("the sender of stream {} did not report", stream.id))?;
        let of_steady =
            sender.samples.iter().filter(|sample| (steady.start_ns..=steady.end_ns).contains(&sample.t_ns));
        let rtts_us = of_steady.filter_map(|sample| Some(sample.tcp.as_ref()?.rtt_us)).filter(|rtt_us| *rtt_us > 0);
        let before = rtts_ns.len();
        rtts_ns.extend(rtts_us.map(|rtt_us| f64::from(rtt_us) * 1e3));
        if rtts_ns.len() == before {
            return Err(format!("the sender of stream {} has no sample of the RTT in the steady phase", stream.id));
        }
    }
    Ok(rtts_ns)
}

#[cfg(test)]
mod tests {
    use landspeed_model::{Direction, RrMode, Sample, StreamEnd, TcpInfo};

    use super::*;

    fn probes(histogram: Vec<Bucket>) -> LatencyResult {
        LatencyResult {
            request_bytes: 64,
            response_bytes: 64,
            mode: RrMode::OpenLoop,
            offered_per_s: Some(100.0),
            achieved_per_s: 100.0,
            scheduled: histogram.iter().map(|bucket| bucket.count).sum(),
            sent: histogram.iter().map(|bucket| bucket.count).sum(),
            completed: histogram.iter().map(|bucket| bucket.count).sum(),
            unanswered: 0,
            send_late_p99_ns: None,
            stray_responses: 0,
            duration_ns: 1_000_000_000,
            min_ns: None,
            mean_ns: None,
            p50_ns: None,
            p90_ns: None,
            p99_ns: None,
            p999_ns: None,
            p9999_ns: None,
            max_ns: None,
            histogram,
        }
    }

    fn bucket(ms: u64, count: u64) -> Bucket {
        Bucket { low_ns: ms * 1_000_000, high_ns: ms * 1_000_000, count }
    }

    fn stream(rtts_ms: &[u32]) -> Stream {
        let sample = |(at, rtt_ms): (usize, &u32)| Sample {
            t_ns: at as u64,
            tcp: Some(Box::new(TcpInfo { rtt_us: rtt_ms * 1000, ..TcpInfo::default() })),
            ..Sample::default()
        };
        Stream {
            id: 0,
            direction: Direction::Upload,
            client_addr: String::new(),
            server_addr: String::new(),
            intervals: Vec::new(),
            intervals_from: "receiver".to_owned(),
            sender: Some(StreamEnd {
                samples: rtts_ms.iter().enumerate().map(sample).collect(),
                ..StreamEnd::default()
            }),
            receiver: None,
        }
    }

    fn steady(start_ns: u64) -> [Phase; 1] {
        let direction = Direction::Upload;
        [Phase { direction, name: PhaseName::Steady, start_ns, end_ns: 100, bytes: None }]
    }

    fn of(load: LatencyUnderLoad, streams: &[Stream]) -> (Responsiveness, usize) {
        let mut unknown = Unknown::default();
        let load = add(load, &Parameters::default(), streams, &steady(1), &mut unknown);
        (load.responsiveness.expect("computed"), unknown.into_reasons().len())
    }

    #[test]
    fn responsiveness_is_the_mean_of_both_kinds_of_connections() {
        let load = LatencyUnderLoad {
            idle: Some(probes(vec![bucket(10, 50)])),
            // The longest five of a hundred do not count.
            loaded: probes(vec![bucket(60, 95), bucket(5000, 5)]),
            responsiveness: None,
            timeline: Vec::new(),
        };
        // The first sample is before the steady phase.
        let (found, unknown) = of(load, &[stream(&[1, 100, 100])]);
        assert_eq!((found.idle_rpm, found.foreign_rpm, found.loaded_rpm), (Some(6000.0), Some(1000.0), Some(600.0)));
        assert_eq!((found.rpm, found.foreign_samples, found.loaded_samples, unknown), (Some(800.0), 100, 2, 0));
    }

    /// Probes with `unanswered` that were lost and `unsent` that the host could not send.
    fn with_missing(histogram: Vec<Bucket>, unanswered: u64, unsent: u64) -> LatencyResult {
        let answered = probes(histogram);
        let sent = answered.completed + unanswered;
        LatencyResult { sent, unanswered, scheduled: sent + unsent, ..answered }
    }

    #[test]
    fn unanswered_probes_never_improve_responsiveness() {
        let of_loaded = |loaded| {
            let load = LatencyUnderLoad { idle: None, loaded, responsiveness: None, timeline: Vec::new() };
            of(load, &[stream(&[1, 100])])
        };
        // Five slow probes of a hundred are trimmed; without an answer they still take the place of the longest.
        let slow = || vec![bucket(60, 90), bucket(120, 5)];
        let (answered, _) = of_loaded(probes([slow(), vec![bucket(5000, 5)]].concat()));
        for (unanswered, unsent) in [(5, 0), (0, 5), (3, 2)] {
            let (lost, unknown) = of_loaded(with_missing(slow(), unanswered, unsent));
            assert_eq!((lost.foreign_rpm, lost.rpm), (answered.foreign_rpm, answered.rpm));
            assert_eq!((lost.foreign_samples, lost.foreign_unanswered, unknown), (95, 5, 0));
        }
        let (lost, unknown) = of_loaded(with_missing(slow(), 6, 0));
        assert_eq!((lost.foreign_rpm, lost.rpm, lost.foreign_unanswered, unknown), (None, None, 6, 2));
    }

    #[test]
    fn unanswered_idle_probes_are_unknown_with_the_reason() {
        let load = LatencyUnderLoad {
            idle: Some(with_missing(vec![bucket(10, 90)], 10, 0)),
            loaded: probes(vec![bucket(60, 100)]),
            responsiveness: None,
            timeline: Vec::new(),
        };
        let (found, unknown) = of(load, &[stream(&[1, 100])]);
        assert_eq!((found.idle_rpm, found.rpm.is_some(), unknown), (None, true, 1));
    }

    #[test]
    fn unknown_responsiveness_is_null_with_the_reason() {
        let load = |histogram| LatencyUnderLoad {
            idle: None,
            loaded: probes(histogram),
            responsiveness: None,
            timeline: Vec::new(),
        };
        let silent = Stream { sender: None, ..stream(&[]) };
        let (found, unknown) = of(load(vec![bucket(60, 1)]), &[stream(&[1, 100]), silent]);
        assert_eq!((found.rpm, found.loaded_rpm, found.foreign_rpm.is_some(), unknown), (None, None, true, 2));
        let (found, unknown) = of(load(Vec::new()), &[stream(&[1, 100])]);
        assert_eq!((found.rpm, found.foreign_rpm, found.loaded_rpm, unknown), (None, None, Some(600.0), 2));
    }
}
