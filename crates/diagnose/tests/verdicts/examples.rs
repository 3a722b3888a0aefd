//! The table of causes against documents: from which viewpoints a cause can be named, and where its limit is.

use landspeed_diagnose::{diagnose, diagnose_watched};
use landspeed_model::{
    Cause, CausePlace, CounterDelta, Direction, ErrorEntry, HostSeries, Parameters, QdiscDelta, RrMode, RunDocument,
    Status, Verdict, Viewpoint, WatchHost,
};

use crate::arrivals;
use crate::beside::{blocked, busy, each_reading, quota};
use crate::common::{Scenario, idle, softirq_core};
use crate::doubt::rr;
use crate::named::{bbr_on_a_short_path, losses_at, lossy};
use crate::{lab, real};

/// An upload with the reports of both ends, and what `watch` reads besides the socket.
type Example = (RunDocument, WatchHost);

/// Examples that together show each cause from each viewpoint of its row.
fn examples() -> Vec<Example> {
    let alone = |run: RunDocument| (run, WatchHost::default());
    let mut examples: Vec<Example> =
        lab::KNOWN.iter().map(|(name, _)| alone(lab::as_two_hosts(&lab::fixture(name)))).collect();
    examples.extend(real::EXPECTED.iter().map(|(name, ..)| alone(real::fixture(name))));

    let paced = Scenario { goodput_bps: 0.98e9, fill: 1.0, ..Scenario::default() };
    let options = Parameters { pace_bps: Some(1_000_000_000), ..Parameters::default() };
    let at_line_rate = Scenario { line_rate_bps: Some(1_000_000_000), goodput_bps: 0.941e9, ..Scenario::default() };
    let waiting = Scenario { fill: 0.02, flight_cwnd: 0.2, notsent: 0, sender_thread: 0.0, ..Scenario::default() };
    let both_wait = Scenario { recv_fill: 0.6, receiver_thread: 0.0, ..waiting.clone() };
    let full_window = Scenario { rwnd: 0.9, flight_wnd: 1.0, ..Scenario::default() };
    let reader_behind = Scenario { recv_fill: 0.6, receiver_thread: 0.98, ..full_window.clone() };
    let mut host_drops = lossy().document();
    host_drops.host_series.server.as_mut().expect("a series").softnet.dropped = 1_000;
    let mut qdisc_drops = lossy().document();
    let qdisc = QdiscDelta {
        kind: "tbf".into(),
        parent: "root".into(),
        drops: 20_000,
        bytes: 1_300_000_000,
        ..QdiscDelta::default()
    };
    qdisc_drops.host_series.client.as_mut().expect("a series").qdiscs.push(qdisc);
    let spurious = each_reading(lossy().document(), |k, tcp| {
        (tcp.reord_seen, tcp.dsack_dups) = (Some(k), Some(tcp.total_retrans));
    });
    let disordered =
        |run: RunDocument, per_reading: u32| each_reading(run, move |k, tcp| tcp.rcv_ooopack = Some(k * per_reading));
    let mut backlog = disordered(Scenario { receiver_thread: 0.0, ..Scenario::default() }.document(), 50);
    backlog.host_series.server.as_mut().expect("a series").softnet.dropped = 60;
    let counters = |series: &mut Option<HostSeries>, counters: &[(&str, i64)]| {
        let counter = |&(name, delta): &(&str, i64)| CounterDelta { name: name.to_owned(), delta };
        series.as_mut().expect("a series").snmp.extend(counters.iter().map(counter));
    };
    let mut filtered_in = disordered(Scenario { receiver_thread: 0.0, ..lossy() }.document(), 20);
    counters(&mut filtered_in.host_series.server, &[("Ip.InReceives", 100_000), ("Ip.InDelivers", 99_000)]);
    let mut filtered_out = Scenario { sender_thread: 0.0, ..Scenario::default() }.document();
    counters(&mut filtered_out.host_series.client, &[("Ip.OutRequests", 100_000), ("Ip.OutTransmits", 80_000)]);
    let throttled = |mut run: RunDocument| {
        let series = [run.host_series.client.as_mut(), run.host_series.server.as_mut()];
        series.into_iter().flatten().for_each(|series| series.quota = quota(60).quota);
        run
    };
    let down = each_reading(lossy().document(), |k, tcp| {
        if k > 26 {
            (tcp.unacked, tcp.backoff, tcp.last_ack_recv_ms) = (500, 3, (k - 26) * 100);
        }
    });
    let mut given_up = down.clone();
    given_up.errors = vec![ErrorEntry { code: "path-down".to_owned(), message: String::new(), advice: None }];
    given_up.status = Status::Partial;
    let received = given_up.streams.iter_mut().filter_map(|stream| stream.receiver.as_mut());
    received.flat_map(|end| &mut end.samples).for_each(|sample| sample.bytes = sample.bytes.min(3_000_000));
    examples.extend(
        vec![
            given_up,
            throttled(both_wait.document()),
            down,
            Scenario { max_pacing_bps: Some(1e9), ..paced.clone() }.document(),
            Scenario { parameters: options, ..paced }.document(),
            Scenario::default().udp(Some(1_000_000_000), 100_000, 80_000, 20_000),
            Scenario { srtt_us: 38_000, ..lossy() }.document(),
            Scenario { resent_ratio: 0.0, srtt_us: 60_000, ..lossy() }.document(),
            losses_at(&[300, 1000, 500, 1400, 700, 400, 900]),
            losses_at(&[1000, 1010, 990]),
            Scenario { receiver_cores: vec![idle(), softirq_core()], ..lossy() }.document(),
            at_line_rate.document(),
            at_line_rate.udp(None, 100_000, 100_000, 0),
            rr(RrMode::ClosedLoop, None, 48.0, 20.5e6),
            rr(RrMode::OpenLoop, Some(1000.0), 999.0, 1e6),
            Scenario::default().document(),
            waiting.document(),
            full_window.document(),
            each_reading(full_window.document(), |k, tcp| {
                tcp.snd_wnd_bytes = Some(if k.is_multiple_of(4) { 4_000_000 } else { 400_000 });
            }),
            reader_behind.document(),
            host_drops,
            qdisc_drops,
            spurious,
            backlog,
            filtered_in,
            filtered_out,
            Scenario { resent_ratio: 0.0, growth: 3.0, ..lossy() }.document(),
        ]
        .into_iter()
        .map(alone),
    );
    let filtered = WatchHost { nft_drops: Some(100_000), ..WatchHost::default() };
    let filters_few = WatchHost { nft_drops: Some(50), ..WatchHost::default() };
    examples.extend(vec![
        (both_wait.document(), quota(60)),
        (both_wait.document(), blocked(0.8, Some(1e9))),
        (both_wait.document(), busy(0.97, 0.0, 1)),
        (bbr_on_a_short_path().document(), busy(0.97, 0.0, 1)),
        (lossy().document(), filtered),
        (disordered(Scenario { receiver_thread: 0.0, ..Scenario::default() }.document(), 100), filters_few),
    ]);
    let gaps = |sent_ms: u32| {
        each_reading(
            Scenario { receiver_thread: 0.0, recv_fill: 0.0, ..waiting.clone() }.document(),
            move |k, tcp| {
                tcp.busy_time_us = tcp.busy_time_us.map(|us| us / 10);
                (tcp.unacked, tcp.last_data_sent_ms, tcp.last_data_recv_ms) = (0, sent_ms, 60);
                (tcp.bytes_received, tcp.data_segs_out) = (Some(u64::from(k) * 100), Some(k));
            },
        )
    };
    examples.extend([40, 90].map(|sent_ms| alone(gaps(sent_ms))));
    // 350 requests in 10 s over 20 ms.
    let waiting_for_answers =
        each_reading(Scenario { receiver_thread: 0.0, recv_fill: 0.0, ..waiting }.document(), |k, tcp| {
            (tcp.data_segs_in, tcp.data_segs_out, tcp.min_rtt_us) = (Some(k * 4), Some(k * 4), Some(20_000));
        });
    examples.push(alone(waiting_for_answers));
    let mut at_its_rate = arrivals::received(|_, _| {});
    let fast = Scenario { line_rate_bps: Some(1_060_000_000), ..Scenario::default() }.document();
    at_its_rate.hosts.server = fast.hosts.client;
    examples.push(alone(at_its_rate));
    examples.extend(arrivals::EXAMPLES.iter().map(|(_, change)| alone(arrivals::received(*change))));
    examples
}

/// Returns the verdict from a viewpoint without the lab's data on the path.
fn verdict(example: &Example, from: Viewpoint) -> Verdict {
    let mut run = example.0.clone();
    let direction = match from {
        Viewpoint::Lab | Viewpoint::BothEnds => return diagnose(&run, Direction::Upload),
        Viewpoint::Sender | Viewpoint::WatchSender => {
            run.streams.iter_mut().for_each(|stream| stream.receiver = None);
            Direction::Upload
        }
        // A download, whose receiver is the client.
        Viewpoint::Receiver | Viewpoint::WatchReceiver => {
            run.streams.iter_mut().for_each(|stream| (stream.direction, stream.sender) = (Direction::Download, None));
            run.phases.iter_mut().for_each(|phase| phase.direction = Direction::Download);
            run.hosts.client = run.hosts.server.take();
            run.host_series.client = run.host_series.server.take();
            run.cost.client = run.cost.server.take();
            Direction::Download
        }
    };
    (run.hosts.server, run.host_series.server, run.cost.server) = (None, None, None);
    if matches!(from, Viewpoint::Sender | Viewpoint::Receiver) {
        run.requested.direction = direction;
        run.effective.iter_mut().for_each(|parameters| parameters.direction = direction);
        return diagnose(&run, direction);
    }
    // `watch` knows no options, and not the use of each core.
    run.status = Status::Complete;
    (run.requested, run.effective) = (Parameters { direction, ..Parameters::default() }, None);
    run.latency.clear();
    run.host_series.client.iter_mut().for_each(|series| series.samples.clear());
    for end in run.streams.iter_mut().flat_map(|stream| stream.sender.iter_mut().chain(&mut stream.receiver)) {
        (end.app_wait_ns, end.udp) = (None, None);
    }
    diagnose_watched(&run, direction, &example.1)
}

#[test]
fn causes_are_named_from_the_viewpoints_of_the_table() {
    let mut named: Vec<(Cause, Viewpoint)> = Vec::new();
    for (name, _) in lab::KNOWN {
        named.push((lab::judge(&lab::fixture(name)).cause, Viewpoint::Lab));
    }
    for example in examples() {
        for from in Viewpoint::ALL.into_iter().filter(|from| *from != Viewpoint::Lab) {
            named.push((verdict(&example, from).cause, from));
        }
    }
    let mut wrong = Vec::new();
    for cause in Cause::ALL {
        for from in Viewpoint::ALL {
            let (found, listed) = (named.contains(&(*cause, from)), cause.visible().contains(&from));
            // The recorded lab runs do not show every cause; what both ends show, the lab shows too.
            if found != listed && (found || from != Viewpoint::Lab) {
                wrong.push(format!("{} from {from:?}: listed {listed}, named {found}", cause.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn places_of_verdicts_are_those_of_the_table() {
    for example in examples() {
        let verdict = verdict(&example, Viewpoint::BothEnds);
        let Some(place) = &verdict.place else { continue };
        let expected = match verdict.cause.place() {
            CausePlace::Sender => ["client"].as_slice(),
            CausePlace::Receiver => &["server"],
            CausePlace::EitherHost => &["client", "server"],
            CausePlace::Network => &["network"],
            CausePlace::Unknown => &[],
        };
        assert!(expected.iter().any(|end| place.starts_with(end)), "{}: {place}", verdict.cause.name());
    }
}
