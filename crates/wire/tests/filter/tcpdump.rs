//! The compiler against tcpdump's: random expressions and frames, both programs in the same interpreter.

use std::cell::Cell;
use std::process::Command;

use landspeed_testkit::skip;
use landspeed_wire::LinkType;
use landspeed_wire::filter::{FilterError, Instruction, compile};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use crate::filter::expressions::expression;
use crate::filter::frames::seen;
use crate::filter::machine::{FilterInput, run};

pub const SNAP_BYTES: u32 = 96;
/// Number of frames per expression.
const FRAMES: usize = 40;

/// Returns tcpdump's program, or its error message.
pub fn tcpdump(arguments: &[&str], text: &str) -> Result<Vec<Instruction>, String> {
    let output = Command::new("tcpdump").args(arguments).args(["-s", "96", "-ddd", "--", text]).output();
    let output = output.map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let lines = String::from_utf8(output.stdout).expect("numbers");
    let program = lines.lines().skip(1).map(|line| {
        let fields: Vec<u32> = line.split(' ').map(|field| field.parse().expect("a number")).collect();
        Instruction { code: fields[0] as u16, jt: fields[1] as u8, jf: fields[2] as u8, k: fields[3] }
    });
    Ok(program.collect())
}

/// Parameters of a comparison with tcpdump.
#[derive(Clone, Copy)]
struct Oracle {
    arguments: &'static [&'static str],
    link: LinkType,
    /// Whether tcpdump compiles for an interface, which has tags and direction. Its optimizer (libpcap 1.10.3) then
    /// generates wrong programs: that of `not ip or not vlan 5` never reads the tag.
    live: bool,
    cases: u32,
}

/// Runs the programs of both compilers on every frame. Truncated frames are compared with tcpdump's unoptimized
/// program only: its optimizer may remove a load that would have rejected them.
fn compare(oracle: Oracle, text: &str, seen: &[FilterInput], passed: &Cell<usize>) -> Result<(), TestCaseError> {
    let unoptimized = tcpdump(&[oracle.arguments, &["-O"]].concat(), text).map_err(TestCaseError::fail)?;
    let optimized = if oracle.live { Ok(unoptimized.clone()) } else { tcpdump(oracle.arguments, text) };
    let optimized = match optimized {
        Err(error) if error.contains("rejects all packets") => vec![Instruction::pass(0)],
        optimized => optimized.map_err(TestCaseError::fail)?,
    };
    let ours = match compile(text, oracle.link, SNAP_BYTES) {
        Err(FilterError::RejectsAll) => vec![Instruction::pass(0)],
        ours => ours.map_err(|refusal| TestCaseError::fail(refusal.to_string()))?,
    };
    for seen in seen {
        let verdict = run(&ours, seen);
        passed.set(passed.get() + usize::from(verdict != 0));
        prop_assert_eq!(verdict, run(&unoptimized, seen), "{} on {:x?}\n{:?}", text, seen, ours);
        if seen.whole {
            prop_assert_eq!(verdict, run(&optimized, seen), "{} (optimized) on {:x?}\n{:?}", text, seen, ours);
        }
    }
    Ok(())
}

fn compare_all(oracle: Oracle) {
    if let Err(why) = tcpdump(oracle.arguments, "tcp") {
        skip!("tcpdump does not compile filters here: {why}");
    }
    let passed = Cell::new(0);
    let config = Config { failure_persistence: None, max_shrink_iters: 200, ..Config::with_cases(oracle.cases) };
    let strategy = (expression(oracle.link, oracle.live), prop::collection::vec(seen(oracle.link), FRAMES));
    let outcome = TestRunner::new(config).run(&strategy, |(text, seen)| compare(oracle, &text, &seen, &passed));
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
    // Guards against frames and expressions that have nothing in common.
    let compared = oracle.cases as usize * FRAMES;
    assert!((compared / 10..compared * 9 / 10).contains(&passed.get()), "{} of {compared} passed", passed.get());
}

#[test]
fn verdicts_on_ethernet_frames_match_tcpdump() {
    compare_all(Oracle { arguments: &["-y", "EN10MB"], link: LinkType::ETHERNET, live: false, cases: 128 });
}

#[test]
fn verdicts_on_raw_ip_packets_match_tcpdump() {
    compare_all(Oracle { arguments: &["-y", "RAW"], link: LinkType::RAW, live: false, cases: 128 });
}

#[test]
fn verdicts_on_tags_and_direction_match_live_tcpdump() {
    compare_all(Oracle { arguments: &["-i", "lo"], link: LinkType::ETHERNET, live: true, cases: 96 });
}
