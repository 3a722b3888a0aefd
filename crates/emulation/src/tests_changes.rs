//! Tests of paths that change.

use proptest::prelude::*;

use crate::tests::{MS, link, outcomes, path};
use crate::{DirectionModel, DropCause, Event, Frame, load};

/// A link of 1 Mb/s without framing, where 125 bytes take a millisecond, and its events.
fn changing(settings: &str, events: &str) -> crate::DirectionPlan {
    link(&format!("rate = \"1M\"\nframing = \"none\"\n{settings}\n{events}"))
}

#[test]
fn a_new_rate_holds_from_its_time_on() {
    let plan = changing("", "[[event]]\nat = \"2500us\"\nrate = \"10M\"");
    let outcomes = outcomes(&plan, 1, &[(0, 125), (0, 125), (0, 125), (0, 125), (0, 125)]);
    // The frame that is being sent ends as it would have; the next ones take a tenth.
    let times = [MS, 2 * MS, 3 * MS, 3 * MS + MS / 10, 3 * MS + MS / 5];
    assert_eq!(outcomes, times.map(Ok));
}

#[test]
fn a_shorter_delay_lets_no_frame_overtake() {
    let plan = changing("delay = \"20ms\"", "[[event]]\nat = \"2ms\"\ndelay = \"5ms\"");
    let frames: Vec<(u64, u32)> = (0..30).map(|i| (i * MS, 125)).collect();
    let outcomes = outcomes(&plan, 1, &frames);
    let times: Vec<u64> = outcomes.into_iter().map(|outcome| outcome.expect("delivered")).collect();
    // The frame in flight keeps its time, those of the next 15 ms arrive with it, and then the delay is 5 ms.
    assert_eq!(times[0], 21 * MS);
    assert!(times[1..16].iter().all(|at_ns| *at_ns == 21 * MS), "{times:?}");
    assert_eq!(times[20], 20 * MS + MS + 5 * MS);
}

#[test]
fn frames_sent_while_the_link_is_down_are_lost() {
    let plan = changing("", "[[event]]\nat = \"2ms\"\ndown = true\n[[event]]\nat = \"4ms\"\ndown = false");
    let frames: Vec<(u64, u32)> = (0..6).map(|i| (i * MS, 125)).collect();
    let outcomes = outcomes(&plan, 1, &frames);
    let down = Err(DropCause::LinkDown);
    // Sent at 1, 2, 3, 4, 5 and 6 ms.
    assert_eq!(outcomes, [Ok(MS), down, down, Ok(4 * MS), Ok(5 * MS), Ok(6 * MS)]);
}

#[test]
fn a_smaller_queue_drops_what_it_has_no_room_for() {
    let plan = changing("", "[[event]]\nat = \"1ms\"\nqueue = { kind = \"bfifo\", limit = \"1514B\" }");
    let frames = [(0, 1000), (0, 1000), (0, 400), (0, 1000), (0, 100)];
    let outcomes = outcomes(&plan, 1, &frames);
    assert_eq!(outcomes[3], Err(DropCause::QueueFull), "1000 and 400 bytes wait already");
    assert!([0, 1, 2, 4].iter().all(|i| outcomes[*i].is_ok()), "{outcomes:?}");
}

#[test]
fn loss_begins_and_ends_with_its_events() {
    let events = "[[event]]\nat = \"10ms\"\nloss = { every = 2 }\n[[event]]\nat = \"20ms\"\nloss = 0";
    let frames: Vec<(u64, u32)> = (0..30).map(|i| (i * MS, 12)).collect();
    let lost: Vec<usize> = outcomes(&changing("", events), 1, &frames)
        .iter()
        .enumerate()
        .filter_map(|(i, outcome)| outcome.is_err().then_some(i))
        .collect();
    assert_eq!(lost, [11, 13, 15, 17, 19]);
}

#[test]
fn contradictory_events_are_refused_with_their_lines() {
    let base = "name = \"n\"\n[[link]]\nrate = \"1M\"\ndelay = \"5ms\"\n";
    for (events, line, message) in [
        (
            "[[event]]\nat = \"1s\"\nrate = \"2M\"\n[[event]]\nat = \"1s\"\nrate = \"3M\"",
            10,
            "another event sets `rate`",
        ),
        ("[[event]]\nat = \"1s\"\ndown = true\n[[event]]\nat = \"2s\"\ndown = true", 10, "the link is down already"),
        ("[[event]]\nat = \"1s\"\ndown = false", 7, "the link is up already"),
        ("[[event]]\nat = \"1s\"", 6, "the event changes nothing"),
        ("[[event]]\nat = \"1s\"\nrate = 0", 7, "a link with rate 0 carries nothing"),
        ("[[event]]\nat = \"1s\"\nlink = 3\nrate = \"1M\"", 7, "the path has no link 3"),
        ("[[event]]\nat = \"1s\"\njitter = { spread = \"9ms\" }", 7, "jitter of 9ms exceeds the delay of 5ms"),
        ("[[event]]\nat = \"1s\"\nqueue = \"cake\"", 7, "queue kind `cake` needs the lab"),
        ("[[event]]\nat = \"1s\"\nrtae = \"1M\"", 7, "unknown key `rtae`"),
        ("[[event]]\nrate = \"1M\"", 5, "`at` is missing"),
    ] {
        let problems = load(&format!("{base}{events}"), &mut |_| Err(String::new())).expect_err(events);
        let found = problems.list.iter().any(|problem| {
            problem.message.contains(message) && problem.place.as_ref().is_some_and(|place| place.line == line)
        });
        assert!(found, "{events}: {problems}");
    }
}

#[test]
fn capacity_adds_up_over_changes() {
    let plan = changing("", "[[event]]\nat = \"10ms\"\nrate = \"10M\"\n[[event]]\nat = \"30ms\"\nrate = \"2M\"");
    assert_eq!(plan.capacity_bits(0, 0, 10 * MS), 10_000);
    assert_eq!(plan.capacity_bits(0, 5 * MS, 40 * MS), 5_000 + 200_000 + 20_000);
    assert_eq!((plan.at(0, 0).0, plan.at(0, 20 * MS).0, plan.at(0, 30 * MS).0), (1_000_000, 10_000_000, 2_000_000));
    assert_eq!(plan.extremes(0).0, 10_000_000);
    let steps = link(
        "rate = { repeat = true, steps = [{ for = \"1ms\", rate = \"1M\" }, { for = \"1ms\", rate = \"3M\" }] }",
    );
    assert_eq!(steps.capacity_bits(0, 0, 10 * MS), 20_000);
    let trace = link("rate = { opportunities = [1, 1, 5] }");
    assert_eq!(trace.capacity_bits(0, 0, 10 * MS), 6 * 1504 * 8 * 1538 / 1500);
}

#[test]
fn a_delayed_start_moves_everything_but_the_phase_of_a_trace() {
    let (plan, shift_ns) = changing("", "[[event]]\nat = \"2500us\"\nrate = \"10M\"").delayed(7 * MS);
    assert_eq!(shift_ns, 7 * MS);
    let shifted = outcomes(&plan, 1, &[(7 * MS, 125), (7 * MS, 125), (7 * MS, 125), (7 * MS, 125)]);
    assert_eq!(shifted, [8 * MS, 9 * MS, 10 * MS, 10 * MS + MS / 10].map(Ok));
    let (trace, shift_ns) = link("rate = { opportunities = [1, 5] }").delayed(7 * MS);
    assert_eq!(shift_ns, 10 * MS);
    // As without a delay: the period before the start ends with an opportunity at 10 ms, which is not one of the trace.
    for at_ns in [0, 1, MS, 4 * MS] {
        let plain = outcomes(&link("rate = { opportunities = [1, 5] }"), 1, &[(at_ns, 1000)]);
        let delayed = outcomes(&trace, 1, &[(shift_ns + at_ns, 1000)]);
        assert_eq!(delayed, plain.iter().map(|left| left.map(|left| left + shift_ns)).collect::<Vec<_>>(), "{at_ns}");
    }
    // An opportunity at 0 stays, and the periods after it end with theirs.
    let (trace, shift_ns) = link("rate = { opportunities = [0, 5, 5] }").delayed(7 * MS);
    let at = |ns| (shift_ns + ns, 1466);
    let left = outcomes(&trace, 1, &[at(0), at(0), at(0), at(0)]);
    assert_eq!(left, [0, 5 * MS, 5 * MS, 5 * MS].map(|ns| Ok(shift_ns + ns)));
}

proptest! {
    /// However late the model is asked, and whatever changes: nothing is reordered or lost from the books, and
    /// departures are announced early enough.
    #[test]
    fn changes_keep_order_accounting_and_announcements(
        events in prop::collection::vec((1_u64..60, 0_u8..4, 1_u64..50), 0..12),
        gaps in prop::collection::vec(0_u64..3_000_000, 1..200),
    ) {
        let mut text = "name = \"n\"\n[[link]]\nrate = \"5M\"\ndelay = \"20ms\"\n".to_owned();
        let mut times: Vec<u64> = Vec::new();
        for (at_ms, kind, value) in events {
            if times.contains(&at_ms) {
                continue;
            }
            times.push(at_ms);
            let change = match kind {
                0 => format!("rate = \"{value}M\""),
                1 => format!("delay = \"{value}ms\""),
                2 => format!("loss = \"{value}%\""),
                _ => format!("queue = {{ kind = \"pfifo\", packets = {value} }}"),
            };
            text += &format!("[[event]]\nat = \"{at_ms}ms\"\n{change}\n");
        }
        let plan = path(&text).forward;
        let run = |every: usize| {
            let mut line = DirectionModel::new(&plan, 3);
            let (mut events, mut at_ns) = (Vec::new(), 0);
            for (number, gap) in gaps.iter().enumerate() {
                at_ns += gap;
                if number % every == 0 {
                    let before = line.next_departure();
                    let seen = events.len();
                    line.take(at_ns, &mut events);
                    for event in &events[seen..] {
                        if let Event::Deliver { due_ns, .. } = event {
                            assert!(before.is_some_and(|before| before <= *due_ns), "{before:?} {due_ns}");
                        }
                    }
                }
                line.offer(at_ns, Frame::new(number, 1000), &mut events);
            }
            line.take(u64::MAX / 2, &mut events);
            let counters = line.counters();
            assert_eq!(counters.offered, counters.delivered + counters.dropped + counters.in_flight);
            assert_eq!((counters.reordered, counters.in_flight), (0, 0));
            events.into_iter().filter_map(|event| match event {
                Event::Deliver { frame, due_ns } => Some((frame.item, due_ns)),
                _ => None,
            }).collect::<Vec<_>>()
        };
        prop_assert_eq!(run(1), run(7));
    }
}
