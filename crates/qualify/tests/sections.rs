//! Suites over sections in virtual time: the links and queues that the lab and `emulate` have.

use landspeed_emulation::{DirectionModel, DirectionPlan, Event, Frame, load};
use landspeed_qualify::{
    QualifyCongestion, QualifyResult, QualifyWeight, Stream, StreamOutcome, Suite, SuiteOptions, Target,
};

/// Link speed of the sender's interface, bits/s.
const LINE_BPS: u64 = 100_000_000_000;
const ETHERNET_HEADER_BYTES: u32 = 14;
const ETHERNET_OVERHEAD_BYTES: u32 = 38;
const UDP_HEADERS_BYTES: u32 = 28;

fn section(link: &str) -> DirectionPlan {
    let text = format!("name = \"section\"\nmtu = 9000\n[[link]]\n{link}\n");
    load(&text, &mut |name| Err(format!("no file {name}"))).unwrap_or_else(|problems| panic!("{problems}")).forward
}

/// Packets after which the losses of a stream over a section without random loss are those of the whole stream, in proportion.
const PERIODIC_PACKETS: u64 = 20_000;

/// Sends a stream with an exact schedule.
fn send(plan: &DirectionPlan, seed: u64, stream: &Stream) -> StreamOutcome {
    let random = plan.hops().iter().any(|hop| hop.wire.loss.is_some());
    if !random && stream.packets > PERIODIC_PACKETS && u64::from(stream.burst_packets) < PERIODIC_PACKETS / 10 {
        let part = send(plan, seed, &Stream { packets: PERIODIC_PACKETS, ..*stream });
        let lost = part.lost * stream.packets / PERIODIC_PACKETS;
        let whole = |ns: u64| ns * stream.packets / PERIODIC_PACKETS;
        let (send_span_ns, receive_span_ns) = (part.send_span_ns.map(whole), part.receive_span_ns.map(whole));
        return StreamOutcome { sent: stream.packets, lost, send_span_ns, receive_span_ns, ..part };
    }
    let mut line = DirectionModel::new(plan, seed);
    let ip_bytes = stream.payload_bytes + UDP_HEADERS_BYTES;
    let at_line_rate_ns = u64::from(ip_bytes + ETHERNET_OVERHEAD_BYTES) * 8 * 1_000_000_000 / LINE_BPS;
    let burst = u64::from(stream.burst_packets);
    let gap_ns = burst as f64 * f64::from(stream.payload_bytes) * 8.0 * 1e9 / stream.rate_bps as f64;
    let mut events = Vec::new();
    let (mut delivered, mut first_ns, mut last_ns) = (0, None, 0);
    let (mut free_ns, mut first_sent_ns) = (0, None);
    let mut drain = |events: &mut Vec<Event<()>>| {
        for event in events.drain(..) {
            if let Event::Deliver { due_ns, .. } = event {
                delivered += 1;
                first_ns.get_or_insert(due_ns);
                last_ns = due_ns;
            }
        }
    };
    for packet in 0..stream.packets {
        let due_ns = ((packet / burst) as f64 * gap_ns) as u64;
        let at_ns = due_ns.max(free_ns);
        free_ns = at_ns + at_line_rate_ns;
        first_sent_ns.get_or_insert(at_ns);
        line.offer(at_ns, Frame::new((), ip_bytes + ETHERNET_HEADER_BYTES), &mut events);
        drain(&mut events);
    }
    line.take(u64::MAX, &mut events);
    drain(&mut events);
    StreamOutcome {
        sent: stream.packets,
        lost: stream.packets - delivered,
        send_span_ns: Some(free_ns - at_line_rate_ns),
        receive_span_ns: first_ns.map(|first_ns| last_ns - first_ns),
        ..StreamOutcome::default()
    }
}

fn target(rate: &str, rtt: &str) -> Target {
    Target { mtu_bytes: 9000, ..Target::new(rate.parse().expect("a rate"), rtt.parse().expect("a time")) }
}

/// Runs the whole suite.
fn qualify(plan: &DirectionPlan, target: Target) -> Suite {
    let derived = target.derive().expect("a possible target");
    let options = SuiteOptions { line_rate_bps: Some(LINE_BPS), max_test_ns: 60_000_000_000, gentle: false };
    let mut suite = Suite::new(target, &derived, options);
    let mut seed = 1;
    while let Some(stream) = suite.next_stream() {
        suite.take(&send(plan, seed, &stream));
        seed += 1;
    }
    suite
}

fn result(suite: &Suite, name: &str) -> QualifyResult {
    let tests = suite.tests();
    tests.iter().find(|test| test.name == name).unwrap_or_else(|| panic!("no {name} in {tests:#?}")).result
}

const SMALL_BUFFER: &str = "rate = \"10.2G\"\ndelay = \"0.2ms\"\nqueue = { kind = \"bfifo\", limit = \"256KiB\" }";

#[test]
fn a_buffer_of_256_kib_fails_10_gigabits_over_92_ms() {
    let suite = qualify(&section(SMALL_BUFFER), target("10G", "92ms"));
    assert_eq!(suite.verdict().0, QualifyResult::Fail, "{:#?}", suite.tests());
    assert_eq!(result(&suite, "slow-start-bursts"), QualifyResult::Fail);
    assert_eq!(result(&suite, "delivery-at-target-rate"), QualifyResult::Pass, "the short RTT hides it");
}

#[test]
fn a_buffer_of_256_kib_passes_1_gigabit_over_10_ms() {
    let suite = qualify(&section(SMALL_BUFFER), target("1G", "10ms"));
    assert_eq!(suite.verdict().0, QualifyResult::Pass, "{:#?}", suite.tests());
}

#[test]
fn a_clean_section_passes_10_gigabits_over_92_ms() {
    let clean = section("rate = \"10.2G\"\ndelay = \"0.2ms\"\nqueue = { kind = \"bfifo\", limit = \"200MB\" }");
    let suite = qualify(&clean, target("10G", "92ms"));
    assert_eq!(suite.verdict().0, QualifyResult::Pass, "{:#?}", suite.tests());
    assert_eq!(suite.buffer_bytes(), None, "no burst of a window overflows it");
}

#[test]
fn the_smallest_buffer_is_found_by_bisection() {
    for kib in [256_u64, 1024] {
        let link = format!("rate = \"10G\"\ndelay = \"0.2ms\"\nqueue = {{ kind = \"bfifo\", limit = \"{kib}KiB\" }}");
        let suite = qualify(&section(&link), target("5G", "20ms"));
        let (bytes, (low, high)) = suite.buffer_bytes().expect("found");
        let ratio = bytes as f64 / (kib * 1024) as f64;
        assert!(
            (0.85..1.15).contains(&ratio) && low <= bytes && bytes <= high,
            "{kib} KiB: {bytes} ({low} to {high})"
        );
    }
}

#[test]
fn rare_random_loss_fails_the_long_path_only() {
    // One packet in 20000: harmless for 1 Gb/s × 1 ms, not for 10 Gb/s × 92 ms.
    let lossy = section(
        "rate = \"20G\"\ndelay = \"0.2ms\"\nloss = \"0.005%\"\nqueue = { kind = \"bfifo\", limit = \"64MB\" }",
    );
    let long = qualify(&lossy, target("10G", "92ms"));
    assert_eq!(result(&long, "delivery-at-target-rate"), QualifyResult::Fail);
    assert_eq!(long.verdict().0, QualifyResult::Fail);
    let short = qualify(&lossy, target("1G", "1ms"));
    assert_eq!(result(&short, "delivery-at-target-rate"), QualifyResult::Pass, "{:#?}", short.tests());
    let bbr = Target { congestion: QualifyCongestion::Bbr, ..target("10G", "92ms") };
    assert_eq!(qualify(&lossy, bbr).verdict().0, QualifyResult::Pass);
}

#[test]
fn a_policer_fails_bursts_that_it_does_not_pass() {
    let policed = section("rate = \"40G\"\npolicer = { rate = \"12G\", burst = \"100KB\" }");
    let suite = qualify(&policed, target("10G", "92ms"));
    assert_eq!(result(&suite, "slow-start-bursts"), QualifyResult::Fail, "{:#?}", suite.tests());
}

#[test]
fn a_slower_section_with_a_deep_buffer_does_not_pass() {
    let slow = section("rate = \"8G\"\ndelay = \"0.2ms\"\nqueue = { kind = \"bfifo\", limit = \"1GB\" }");
    for congestion in [QualifyCongestion::Bbr, QualifyCongestion::Cubic] {
        let suite = qualify(&slow, Target { congestion, ..target("9G", "1ms") });
        assert_ne!(result(&suite, "delivery-at-target-rate"), QualifyResult::Pass, "{:#?}", suite.tests());
        assert_ne!(suite.verdict().0, QualifyResult::Pass);
    }
}

#[test]
fn too_little_time_is_no_decision() {
    let derived = target("10G", "92ms").derive().expect("a possible target");
    let options = SuiteOptions { line_rate_bps: None, max_test_ns: 10_000_000, gentle: true };
    let mut suite = Suite::new(target("10G", "92ms"), &derived, options);
    let clean = section("rate = \"40G\"");
    while let Some(stream) = suite.next_stream() {
        suite.take(&send(&clean, 1, &stream));
    }
    assert_eq!(suite.verdict().0, QualifyResult::Inconclusive);
    assert_eq!(result(&suite, "delivery-at-target-rate"), QualifyResult::Inconclusive);
}

#[test]
fn disturbed_streams_decide_nothing() {
    let target = target("1G", "10ms");
    let derived = target.derive().expect("a possible target");
    let options = SuiteOptions { line_rate_bps: None, max_test_ns: 60_000_000_000, gentle: false };
    let disturbed = |lost: u64, pass: bool| {
        let why = Some("a host was busy".to_owned());
        let mut suite = Suite::new(target, &derived, options);
        while let Some(stream) = suite.next_stream() {
            let (no_pass, no_fail) = if pass { (why.clone(), None) } else { (None, why.clone()) };
            suite.take(&StreamOutcome { sent: stream.packets, lost, no_pass, no_fail, ..StreamOutcome::default() });
        }
        suite.verdict().0
    };
    assert_eq!(disturbed(0, true), QualifyResult::Inconclusive, "the sender was slower than planned");
    assert_eq!(disturbed(100, false), QualifyResult::Inconclusive, "a host may have lost the packets");
    assert_eq!(disturbed(100, true), QualifyResult::Fail, "a slower sender does not excuse losses");
}

/// Takes streams that lose nothing until the suite sends a test whose name begins so. Returns its first stream.
fn until(suite: &mut Suite, name: &str) -> Stream {
    while let Some(stream) = suite.next_stream() {
        if suite.plans().nth(suite.current()).is_some_and(|plan| plan.name.starts_with(name)) {
            return stream;
        }
        suite.take(&StreamOutcome { sent: stream.packets, ..StreamOutcome::default() });
    }
    panic!("no {name}");
}

fn suite(gentle: bool) -> Suite {
    let target = target("10G", "92ms");
    let derived = target.derive().expect("a possible target");
    let options = SuiteOptions { line_rate_bps: Some(LINE_BPS), max_test_ns: 60_000_000_000, gentle };
    Suite::new(target, &derived, options)
}

#[test]
fn a_stream_that_a_host_disturbed_is_repeated() {
    let mut suite = suite(false);
    let first = until(&mut suite, "delivery-at-target-rate");
    let slow = Some("the sender could not keep the rate".to_owned());
    suite.take(&StreamOutcome { sent: first.packets, no_pass: slow, ..StreamOutcome::default() });
    assert_eq!(suite.next_stream().map(|stream| stream.packets), Some(first.packets), "not a longer one");
    suite.take(&StreamOutcome { sent: first.packets, ..StreamOutcome::default() });
    let longer = suite.next_stream().map_or(0, |stream| stream.packets);
    assert!(longer.abs_diff(2 * first.packets) <= 2, "{longer}");
}

#[test]
fn sustained_bursts_leave_once_each_target_rtt() {
    let mut suite = suite(false);
    let stream = until(&mut suite, "sustained-full-rate-bursts");
    assert_eq!(u64::from(stream.burst_packets), 12_853, "a target window");
    let bursts = stream.packets.div_ceil(u64::from(stream.burst_packets));
    let headway_ns = stream.span_ns() / (bursts - 1);
    assert!((headway_ns as f64 / 92e6 - 1.0).abs() < 0.001, "{headway_ns}");
    // 12853 × 9038 bytes at 100 Gb/s
    assert!((stream.burst_ns as f64 / 9.293e6 - 1.0).abs() < 0.001, "{}", stream.burst_ns);
    suite.take(&StreamOutcome { sent: stream.packets, lost: 500, ..StreamOutcome::default() });
    assert_eq!(result(&suite, "sustained-full-rate-bursts"), QualifyResult::Fail);
    assert_eq!(suite.verdict().0, QualifyResult::Pass, "it does not count");
}

#[test]
fn sustained_bursts_are_not_sent_where_single_ones_are_lost() {
    let suite = qualify(&section(SMALL_BUFFER), target("1G", "10ms"));
    assert_eq!(result(&suite, "sender-rate-bursts-window"), QualifyResult::Fail);
    let tests = suite.tests();
    let sustained = tests.last().expect("tests");
    assert_eq!((sustained.name.as_str(), sustained.measured), ("sustained-full-rate-bursts", None));
    assert_eq!(sustained.sent_packets, 0);
    assert!(sustained.reason.contains("sender-rate-bursts-window"), "{}", sustained.reason);
}

#[test]
fn gentle_tests_take_ten_times_as_long() {
    let ((packets, seconds), (gentle_packets, gentle_seconds)) = (suite(false).expected(), suite(true).expected());
    assert_eq!(packets, gentle_packets);
    assert!((gentle_seconds / seconds - 10.0).abs() < 1e-9, "{gentle_seconds} {seconds}");
}

#[test]
fn short_run_lengths_send_a_whole_stream() {
    let bbr = Target { congestion: QualifyCongestion::Bbr, ..target("1G", "10ms") };
    let derived = bbr.derive().expect("a possible target");
    let options = SuiteOptions { line_rate_bps: None, max_test_ns: 60_000_000_000, gentle: false };
    let mut suite = Suite::new(bbr, &derived, options);
    let expected = suite.expected().0;
    while let Some(stream) = suite.next_stream() {
        suite.take(&StreamOutcome { sent: stream.packets, ..StreamOutcome::default() });
    }
    let sent = suite.sent_packets();
    assert!((sent as f64 / expected as f64 - 1.0).abs() < 0.05, "{sent} of {expected} expected");
}

#[test]
fn tests_that_do_not_count_are_informative() {
    let target = target("1G", "10ms");
    let derived = target.derive().expect("a possible target");
    let options = SuiteOptions { line_rate_bps: Some(LINE_BPS), max_test_ns: 60_000_000_000, gentle: false };
    let mut suite = Suite::new(target, &derived, options);
    let plan = section(SMALL_BUFFER);
    let mut seed = 1;
    while let Some(stream) = suite.next_stream() {
        let is_slow_start = suite.plans().nth(suite.current()).is_some_and(|plan| plan.name == "slow-start-bursts");
        let no_fail = is_slow_start.then(|| "a host was busy".to_owned());
        suite.take(&StreamOutcome { no_fail, ..send(&plan, seed, &stream) });
        seed += 1;
    }
    assert_eq!(result(&suite, "slow-start-bursts"), QualifyResult::Inconclusive);
    assert!(suite.steady_share().is_some_and(|share| share >= 1.0));
    assert_eq!(suite.verdict().0, QualifyResult::Pass);
    let tests = suite.tests();
    let required = tests.iter().filter(|test| test.weight == QualifyWeight::Required);
    assert!(required.clone().count() > 0 && required.clone().all(|test| test.result == QualifyResult::Pass));
}

#[test]
fn a_run_of_losses_counts_once() {
    let verdict = |congestion, lost, loss_periods| {
        let target = Target { congestion, ..target("1G", "10ms") };
        let derived = target.derive().expect("a possible target");
        let options = SuiteOptions { line_rate_bps: Some(LINE_BPS), max_test_ns: 60_000_000_000, gentle: false };
        let mut suite = Suite::new(target, &derived, options);
        let stream = until(&mut suite, "delivery-at-target-rate");
        let mut losses = Some((lost, loss_periods));
        let mut next = Some(stream);
        while let Some(stream) = next {
            let (lost, loss_periods) = losses.take().unwrap_or((0, Some(0)));
            suite.take(&StreamOutcome { sent: stream.packets, lost, loss_periods, ..StreamOutcome::default() });
            next = suite.next_stream();
        }
        result(&suite, "delivery-at-target-rate")
    };
    // A window has 140 packets.
    assert_eq!(verdict(QualifyCongestion::Cubic, 60, Some(1)), QualifyResult::Pass);
    assert_eq!(verdict(QualifyCongestion::Reno, 60, Some(1)), QualifyResult::Pass);
    assert_eq!(verdict(QualifyCongestion::Cubic, 60, Some(60)), QualifyResult::Fail, "no two in a row");
    assert_eq!(verdict(QualifyCongestion::Cubic, 60, None), QualifyResult::Fail, "unknown");
    assert_eq!(verdict(QualifyCongestion::Cubic, 80, Some(1)), QualifyResult::Fail, "may cost an RTO");
    assert_eq!(verdict(QualifyCongestion::Bbr, 3000, Some(1)), QualifyResult::Fail, "BBR compares shares of packets");
}

#[test]
fn reno_counts_slow_start_where_it_would_grow_slowly() {
    let verdict = |rate, rtt| {
        let target = Target { congestion: QualifyCongestion::Reno, ..target(rate, rtt) };
        let derived = target.derive().expect("a possible target");
        let options = SuiteOptions { line_rate_bps: Some(LINE_BPS), max_test_ns: 60_000_000_000, gentle: false };
        let mut suite = Suite::new(target, &derived, options);
        // Bursts lose packets; single packets do not.
        let plan = section("rate = \"10.2G\"\ndelay = \"0.2ms\"\nqueue = { kind = \"bfifo\", limit = \"256KiB\" }");
        while let Some(stream) = suite.next_stream() {
            let test = suite.plans().nth(suite.current()).map(|plan| plan.name.clone()).unwrap_or_default();
            let outcome = match test.as_str() {
                "slow-start-bursts" => StreamOutcome { sent: stream.packets, lost: 9, ..StreamOutcome::default() },
                "sender-rate-bursts-window" | "" => send(&plan, 1, &stream),
                _ => StreamOutcome { sent: stream.packets, ..StreamOutcome::default() },
            };
            suite.take(&outcome);
        }
        assert!(suite.steady_share().is_some_and(|share| share >= 1.0), "{:?}", suite.steady_share());
        suite.verdict().0
    };
    assert_eq!(verdict("1G", "10ms"), QualifyResult::Pass, "140 RTTs are 1.4 s");
    assert_eq!(verdict("1G", "92ms"), QualifyResult::Fail, "1286 RTTs are 2 minutes");
}

#[test]
fn bbr_needs_room_for_its_steady_bursts_only() {
    // A burst of 4 packets fits. CUBIC's offload bursts of 5 do not, nor BBR's of 7 in Startup.
    let shallow = section("rate = \"200M\"\ndelay = \"0.2ms\"\nqueue = { kind = \"bfifo\", limit = \"27500B\" }");
    let target = |congestion| Target { congestion, ..target("180M", "20ms") };
    let bbr = qualify(&shallow, target(QualifyCongestion::Bbr));
    assert_eq!(result(&bbr, "sender-rate-bursts-4"), QualifyResult::Pass, "{:#?}", bbr.tests());
    assert_eq!(result(&bbr, "sender-rate-bursts-7"), QualifyResult::Fail);
    assert_eq!(bbr.verdict().0, QualifyResult::Pass, "{:?}", bbr.steady_share());
    let cubic = qualify(&shallow, target(QualifyCongestion::Cubic));
    assert_eq!(result(&cubic, "sender-rate-bursts-5"), QualifyResult::Fail);
    assert_eq!(cubic.verdict().0, QualifyResult::Fail);
}
