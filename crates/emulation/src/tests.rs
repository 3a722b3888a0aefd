//! Tests of whole lines in virtual time.

use proptest::prelude::*;

use crate::{DirectionModel, DirectionPlan, DropCause, Event, Frame, LoadedPath, load, predict_store};

pub(crate) const MS: u64 = 1_000_000;

pub(crate) fn path(text: &str) -> LoadedPath {
    load(text, &mut |name| Err(format!("no file {name}"))).unwrap_or_else(|problems| panic!("{problems}"))
}

pub(crate) fn link(settings: &str) -> DirectionPlan {
    path(&format!("name = \"one link\"\n[[link]]\n{settings}\n")).forward
}

/// Offers frames (time, bytes); returns for each its departure time, or the reason of its drop.
pub(crate) fn outcomes(plan: &DirectionPlan, seed: u64, frames: &[(u64, u32)]) -> Vec<Result<u64, DropCause>> {
    let mut line = DirectionModel::new(plan, seed);
    let mut events = Vec::new();
    for (number, (at_ns, bytes)) in frames.iter().enumerate() {
        line.offer(*at_ns, Frame::new(number, *bytes), &mut events);
    }
    line.take(u64::MAX, &mut events);
    assert_eq!(line.counters().in_flight, 0);
    let mut outcomes = vec![None; frames.len()];
    for event in events {
        match event {
            Event::Deliver { frame, due_ns } => outcomes[frame.item] = Some(Ok(due_ns)),
            Event::Drop { item, cause } => outcomes[item] = Some(Err(cause)),
            Event::Copy { .. } => {}
        }
    }
    outcomes.into_iter().map(|fate| fate.expect("every frame has a fate")).collect()
}

#[test]
fn departure_is_serialisation_plus_delay() {
    // 1476 bytes and 24 bytes of framing take 12 µs at 1 Gb/s.
    let plan = link("rate = \"1G\"\ndelay = \"25ms\"");
    let outcomes = outcomes(&plan, 1, &[(0, 1476), (1_000, 1476), (100_000, 1476)]);
    assert_eq!(outcomes, [Ok(25 * MS + 12_000), Ok(25 * MS + 24_000), Ok(25 * MS + 112_000)]);
}

#[test]
fn byte_limited_queue_drops_exactly_what_exceeds_it() {
    // The first frame is being sent; ten frames of 1000 bytes fit into the queue.
    let plan = link("rate = \"1M\"\nframing = \"none\"\nqueue = { kind = \"bfifo\", limit = \"10999B\" }");
    let mut frames = vec![(0, 1000); 20];
    frames[15].1 = 999;
    let outcomes = outcomes(&plan, 1, &frames);
    let dropped: Vec<usize> = (0..20).filter(|i| outcomes[*i] == Err(DropCause::QueueFull)).collect();
    assert_eq!(dropped, [11, 12, 13, 14, 16, 17, 18, 19], "999 bytes still fit");
    assert_eq!(outcomes[10], Ok(88 * MS), "eleven frames of 8 ms");
}

#[test]
fn queue_length_matches_the_calculation() {
    // 2 Mb/s into 1 Mb/s: after 100 frames of 1000 bytes, one every 4 ms, half of them are queued, minus the one
    // being sent.
    let plan = link("rate = \"1M\"\nframing = \"none\"");
    let mut line = DirectionModel::new(&plan, 1);
    let mut events = Vec::new();
    for i in 0..100 {
        line.offer(i * 4 * MS, Frame::new((), 1000), &mut events);
    }
    let hop = line.hops().next().expect("one hop");
    assert_eq!((hop.queue_packets_max, hop.queue_bytes_max), (50, 50_000));
    line.take(u64::MAX, &mut events);
    // The queue grows by a frame every 8 ms until 396 ms, and shrinks by one every 8 ms until 792 ms.
    let hop = line.hops().next().expect("one hop");
    let mean = hop.queue_byte_ns as f64 / (800 * MS) as f64;
    assert!((mean - 24_750.0).abs() < 500.0, "{mean}");
}

#[test]
fn slowest_link_determines_the_rate() {
    let two =
        path("name = \"two\"\n[[link]]\nrate = \"10G\"\ndelay = \"1ms\"\n[[link]]\nrate = \"1G\"\ndelay = \"2ms\"\n");
    let frames = vec![(0, 1476); 100];
    let outcomes = outcomes(&two.forward, 1, &frames);
    // 1.2 µs for the first link, then 12 µs per frame for the second.
    let expected: Vec<_> = (1..=100_u64).map(|n| Ok(3 * MS + 1_200 + n * 12_000)).collect();
    assert_eq!(outcomes, expected);
}

#[test]
fn drop_patterns_count_frames_at_the_link() {
    let plan = link("rate = \"1G\"\nloss = { every = 5 }");
    let outcomes = outcomes(&plan, 1, &[(0, 100); 20]);
    let lost: Vec<usize> = (0..20).filter(|i| outcomes[*i] == Err(DropCause::Lost)).map(|i| i + 1).collect();
    assert_eq!(lost, [5, 10, 15, 20]);
}

#[test]
fn reordered_frames_skip_the_delay_and_are_counted() {
    let plan = link("rate = \"1G\"\ndelay = \"1ms\"\nreorder = \"10%\"");
    let mut line = DirectionModel::new(&plan, 3);
    let mut events = Vec::new();
    for i in 0..10_000_u64 {
        line.offer(i * 10_000, Frame::new((), 100), &mut events);
    }
    line.take(u64::MAX, &mut events);
    let counters = line.counters();
    // Each of the 90 % with delay is overtaken: of the hundred frames within its millisecond, ten skip the delay.
    assert!((8_800..=9_100).contains(&counters.reordered), "{counters:?}");
    assert_eq!(counters.delivered, 10_000);
}

#[test]
fn duplicates_arrive_twice_and_are_counted() {
    let plan = link("rate = \"1G\"\ndelay = \"1ms\"\nduplicate = \"20%\"");
    let mut line = DirectionModel::new(&plan, 3);
    let mut events = Vec::new();
    for i in 0..10_000_u64 {
        line.offer(i * 10_000, Frame::new(i, 100), &mut events);
    }
    line.take(u64::MAX, &mut events);
    let counters = line.counters();
    assert!((1_850..=2_150).contains(&counters.duplicated), "{counters:?}");
    assert_eq!(counters.delivered, 10_000 + counters.duplicated);
    assert_eq!(counters.reordered, 0);
}

#[test]
fn frames_sent_during_an_outage_are_lost() {
    let plan = link("rate = \"1G\"\ndown = [{ at = \"10ms\", for = \"5ms\" }]");
    let frames: Vec<(u64, u32)> = (0..30).map(|ms| (ms * MS, 100)).collect();
    let outcomes = outcomes(&plan, 1, &frames);
    let down: Vec<usize> = (0..30).filter(|i| outcomes[*i] == Err(DropCause::LinkDown)).collect();
    assert_eq!(down, [10, 11, 12, 13, 14]);
}

#[test]
fn directions_can_have_different_settings() {
    let path = path("name = \"adsl\"\n[[link]]\nrate = \"10M\"\ndelay = \"5ms\"\n[link.reverse]\nrate = \"1M\"\n");
    assert_eq!((path.forward.rate_bps(), path.reverse.rate_bps()), (10_000_000, 1_000_000));
    assert_eq!((path.forward.delay_ns(), path.reverse.delay_ns()), (5 * MS, 5 * MS));
}

#[test]
fn rate_traces_are_read_from_their_files() {
    let text =
        "name = \"cell\"\n[[link]]\nrate = { mahimahi = \"down\" }\n[link.reverse]\nrate = { rattan = \"up\" }\n";
    let mut files = |name: &str| match name {
        "down" => Ok("1\n2\n3\n".to_owned()),
        _ => Ok("{\"StaticBwConfig\":{\"bw\":\"2Mbps\",\"duration\":\"1s\"}}".to_owned()),
    };
    let loaded = load(text, &mut files).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!((loaded.forward.rate_bps(), loaded.reverse.rate_bps()), (12_032_000, 2_000_000));
    assert!(loaded.forward.rate_varies());
    let outcomes = outcomes(&loaded.forward, 1, &[(0, 1514), (0, 1514)]);
    assert_eq!(outcomes, [Ok(MS), Ok(2 * MS)]);
}

#[test]
fn predicted_memory_is_bandwidth_delay_product_plus_queues() {
    let plan = link("rate = \"10G\"\ndelay = \"1600ms\"");
    let prediction = predict_store(&plan);
    assert_eq!(prediction.flight_bytes, 2_000_000_000);
    assert_eq!(prediction.queue_bytes, 1_001_514);
    assert!(prediction.total_bytes > 2_001_000_000 && prediction.total_bytes < 2_003_000_000);
}

#[test]
fn template_is_a_valid_path() {
    let loaded = path(crate::TEMPLATE);
    assert_eq!((loaded.forward.rate_bps(), loaded.forward.delay_ns()), (1_000_000_000, 25 * MS));
    assert_eq!(loaded.warnings, [""; 0]);
    // The commented-out settings must be valid too.
    let all = crate::TEMPLATE.replace("# loss", "loss").replace("# jitter", "jitter").replace("# reorder", "reorder");
    let all = all.replace("# duplicate", "duplicate").replace("# policer", "policer").replace("# down", "down");
    let all = all.replace("# [link.reverse]", "[link.reverse]").replace("# rate", "rate");
    let all = all.replace("# [[event]]", "[[event]]").replace("# at", "at");
    assert_eq!(path(&all).reverse.rate_bps(), 100_000_000);
}

#[test]
fn path_errors_match_the_golden_file() {
    use std::fmt::Write as _;
    let base = "name = \"a path\"\n[[link]]\nrate = \"1G\"\ndelay = \"25ms\"\n";
    let plus = |more: &str| format!("{base}{more}\n");
    let cases = [
        ("not TOML", base.replace("\"1G\"", "1G")),
        ("no link", "name = \"a path\"\n".to_owned()),
        ("one bracket", base.replace("[[link]]", "[link]")),
        ("an unknown key", plus("dealy = \"1ms\"")),
        ("a missing rate", base.replace("rate = \"1G\"\n", "")),
        ("bytes where bits are meant", base.replace("\"1G\"", "\"1GB/s\"")),
        ("two mistakes", base.replace("1G", "0").replace("25ms", "61s")),
        ("a rate of another kind", base.replace("\"1G\"", "{ mahimai = \"x\" }")),
        ("a trace that is not there", base.replace("\"1G\"", "{ mahimahi = \"x.trace\" }")),
        ("a rate that ends at zero", base.replace("\"1G\"", "{ steps = [{ for = \"1s\", rate = \"0\" }] }")),
        ("jitter beyond the delay", plus("jitter = { spread = \"30ms\" }")),
        ("reordering without a delay", plus("reorder = \"1%\"").replace("25ms", "0s")),
        ("everything lost", plus("loss = \"100%\"")),
        ("two kinds of loss", plus("loss = { every = 3, random = \"1%\" }")),
        ("a queue of the lab only", plus("queue = \"cake\"")),
        ("a setting of the lab only", plus("slot = \"1ms\"\n[link.reverse]\nframe-clock = \"125us\"")),
        ("netem as a queue", plus("queue = { kind = \"netem\", delay = \"25ms\" }")),
        ("a queue below a frame", plus("queue = { kind = \"bfifo\", limit = \"1KB\" }")),
        ("a setting of another kind", plus("queue = { kind = \"pie\", limit = \"1MB\" }")),
        ("thresholds upside down", plus("queue = { kind = \"red\", min = \"500KB\", max = \"100KB\" }")),
        ("a burst below a frame", plus("policer = { rate = \"1G\", burst = \"100B\" }")),
        ("outages that overlap", plus("down = [{ at = \"1s\", for = \"2s\" }, { at = \"2s\", for = \"1s\" }]")),
        ("in one direction only", plus("[link.reverse]\nrate = \"0\"")),
        ("an MTU out of range", format!("mtu = 20\n{base}")),
    ];
    let mut messages = String::new();
    for (what, text) in cases {
        let problems = load(&text, &mut |_| Err("cannot read x.trace: No such file or directory".to_owned()))
            .map(|_| ())
            .expect_err(what)
            .named("path.toml");
        let _ = write!(messages, "## {what}\n{problems}\n\n");
    }
    landspeed_testkit::golden::same("emulate-path-errors.txt", &messages);
}

/// Random plans; with `orderly`, only links that neither reorder nor duplicate.
fn plans(orderly: bool) -> impl Strategy<Value = DirectionPlan> {
    let queue = prop_oneof![
        Just("\"bfifo\""),
        Just("{ kind = \"bfifo\", limit = \"20KB\" }"),
        Just("{ kind = \"pfifo\", packets = 7 }"),
        Just("{ kind = \"red\", limit = \"60KB\", probability = \"10%\" }"),
        Just("{ kind = \"codel\", target = \"1ms\", interval = \"10ms\" }"),
        Just("{ kind = \"pie\", target = \"2ms\", packets = 60 }"),
        Just("{ kind = \"fq_codel\", packets = 60 }"),
    ];
    let rate = prop_oneof![
        Just("\"10M\""),
        Just("\"3.3M\""),
        Just(
            "{ steps = [{ for = \"7ms\", rate = \"1M\" }, { for = \"3ms\", rate = 0 }, { for = \"1ms\", rate = \"20M\" }] }"
        ),
        Just("{ mahimahi = \"trace\" }"),
    ];
    let extra = prop_oneof![
        Just(""),
        Just("loss = \"5%\""),
        Just("loss = { gilbert-elliott = { p = 0.05, r = 0.3 } }"),
        Just("jitter = { spread = \"3ms\", distribution = \"normal\" }"),
        Just("policer = { rate = \"4M\", burst = \"10KB\" }"),
        Just("down = [{ at = \"20ms\", for = \"15ms\" }]"),
    ];
    let disorder = prop_oneof![Just(""), Just("reorder = \"10%\""), Just("duplicate = \"10%\"")];
    let one = (queue, rate, extra, disorder).prop_map(move |(queue, rate, extra, disorder)| {
        let disorder = if orderly { "" } else { disorder };
        let queue = if orderly && queue.contains("fq_codel") { "\"bfifo\"" } else { queue };
        format!("[[link]]\nrate = {rate}\ndelay = \"4ms\"\nqueue = {queue}\n{extra}\n{disorder}\n")
    });
    prop::collection::vec(one, 1..4).prop_map(|links| {
        let text = format!("name = \"any\"\n{}", links.concat());
        let mut files = |_: &str| Ok("1\n1\n2\n4\n4\n9\n".to_owned());
        load(&text, &mut files).unwrap_or_else(|problems| panic!("{problems}")).forward
    })
}

/// Gaps and lengths of frames, and whether the line is polled after each.
fn traffic() -> impl Strategy<Value = Vec<(u64, u32, bool)>> {
    prop::collection::vec((0_u64..2 * MS, 60_u32..1515, any::<bool>()), 1..300)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_frame_is_accounted_for(plan in plans(false), traffic in traffic(), seed: u64) {
        let mut line = DirectionModel::new(&plan, seed);
        let (mut events, mut now_ns, mut seen) = (Vec::new(), 0, 0_i64);
        for (gap_ns, bytes, looks) in &traffic {
            now_ns += gap_ns;
            line.offer(now_ns, Frame { flow: *bytes, ..Frame::new((), *bytes) }, &mut events);
            if *looks {
                line.take(now_ns, &mut events);
            }
            let counters = line.counters();
            prop_assert_eq!(
                counters.offered + counters.duplicated,
                counters.delivered + counters.dropped + counters.in_flight
            );
            for event in events.drain(..) {
                seen += match event {
                    Event::Deliver { due_ns, .. } => { prop_assert!(due_ns <= now_ns); 1 }
                    Event::Drop { .. } => 1,
                    Event::Copy { .. } => -1,
                };
            }
            prop_assert_eq!(seen + counters.in_flight as i64, counters.offered as i64);
        }
        line.take(u64::MAX, &mut events);
        prop_assert_eq!(line.counters().in_flight, 0);
        prop_assert_eq!(line.next_departure(), None);
        let hops: Vec<_> = line.hops().collect();
        for (hop, next) in hops.iter().zip(hops.iter().skip(1).map(|hop| hop.arrived).chain([line.counters().delivered])) {
            prop_assert_eq!(hop.arrived, hop.policed + hop.queue_full + hop.aqm + hop.sent);
            prop_assert_eq!(hop.sent + hop.duplicated, hop.lost + hop.down + next);
        }
    }

    #[test]
    fn frames_keep_their_order(plan in plans(true), traffic in traffic(), seed: u64) {
        let mut line = DirectionModel::new(&plan, seed);
        let (mut events, mut now_ns) = (Vec::new(), 0);
        for (gap_ns, bytes, _) in &traffic {
            now_ns += gap_ns;
            line.offer(now_ns, Frame::new((), *bytes), &mut events);
        }
        line.take(u64::MAX, &mut events);
        prop_assert_eq!(line.counters().reordered, 0);
        let mut last = None;
        for event in events {
            if let Event::Deliver { frame, due_ns } = event {
                prop_assert!(last.is_none_or(|(number, at_ns)| frame.number > number && due_ns >= at_ns));
                last = Some((frame.number, due_ns));
            }
        }
    }

    #[test]
    fn results_do_not_depend_on_polling(plan in plans(false), traffic in traffic(), seed: u64) {
        let run = |always: Option<bool>| {
            let mut line = DirectionModel::new(&plan, seed);
            let (mut events, mut now_ns) = (Vec::new(), 0);
            for (number, (gap_ns, bytes, looks)) in traffic.iter().enumerate() {
                now_ns += gap_ns;
                line.offer(now_ns, Frame { flow: *bytes, ..Frame::new(number, *bytes) }, &mut events);
                if always.unwrap_or(*looks) {
                    while let Some(at_ns) = line.next_departure().filter(|at_ns| *at_ns < now_ns + MS / 2) {
                        line.take(at_ns, &mut events);
                    }
                    now_ns += MS / 2;
                } else {
                    now_ns += MS / 2;
                }
            }
            line.take(u64::MAX, &mut events);
            let mut departures: Vec<_> = events
                .iter()
                .filter_map(|event| match event {
                    Event::Deliver { frame, due_ns } => Some((*due_ns, frame.item, frame.marked)),
                    _ => None,
                })
                .collect();
            departures.sort_unstable();
            (departures, line.hops().collect::<Vec<_>>())
        };
        let reference = run(Some(false));
        prop_assert_eq!(&run(None), &reference);
        prop_assert_eq!(&run(Some(true)), &reference);
    }

    #[test]
    fn arbitrary_text_never_panics_the_parser(text in "[a-z\\[\\]=\"{} .0-9\n,-]{0,200}") {
        let _ = load(&text, &mut |_| Err(String::new()));
        let _ = load(&format!("name = \"x\"\n[[link]]\nrate = {text}"), &mut |_| Ok(text.clone()));
    }
}
