//! `--xplot` graphs other than the time-sequence graph, dot by dot against tcptrace's files of the same
//! capture. docs/trace.md has a table of the differences; each of its lines is an assertion here.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use landspeed_testkit::skip;

use crate::trace::trace;
use crate::trace::truth::{run, scenario};

/// Dots of one colour: time in microseconds (text) and value.
type Dots = Vec<(String, f64)>;

fn dots(file: &Path) -> BTreeMap<String, Dots> {
    let text = fs::read_to_string(file).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
    let (mut color, mut found) = (String::new(), BTreeMap::<String, Dots>::new());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["title" | "xlabel" | "ylabel"] | ["ltext" | "atext", ..] => {
                lines.next();
            }
            [alone] => (*alone).clone_into(&mut color),
            ["dot", time, value, own @ ..] => {
                let (whole, rest) = time.split_once('.').expect("seconds");
                let of = own.first().map_or(&*color, |own| *own).to_owned();
                let value = value.parse().expect("a number");
                found.entry(of).or_default().push((format!("{whole}.{}", &rest[..6]), value));
            }
            _ => {}
        }
    }
    found
}

/// Dots that `some` contains more often than `others`.
fn surplus_dots(some: impl Iterator<Item = (String, f64)>, others: &[(String, f64)]) -> Vec<(String, f64)> {
    let mut left = BTreeMap::<(String, u64), u32>::new();
    for (time, value) in others {
        *left.entry((time.clone(), value.to_bits())).or_default() += 1;
    }
    let more = some.filter(|(time, value)| match left.get_mut(&(time.clone(), value.to_bits())) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    });
    more.collect()
}

#[test]
fn xplot_graphs_have_tcptraces_dots() {
    landspeed_testkit::needs_lab_kernel!();
    let lab_run = run(&scenario("loss = { every = 1500 }", "cubic", ""), 4);
    let directory = tempfile::tempdir().expect("a directory");
    for tap in ["sender", "receiver"] {
        let (ours, theirs) = (directory.path().join(tap), directory.path().join(format!("{tap}-judge")));
        fs::create_dir(&theirs).expect("room");
        let file = lab_run.file(tap);
        assert!(trace(&[&file, "--xplot", ours.to_str().expect("plain")]).status.success());
        let judge = Command::new("tcptrace").args(["-G", "-n", "-zy", &file]).current_dir(&theirs).output();
        if !judge.is_ok_and(|output| output.status.success()) {
            skip!("tcptrace is not installed");
        }
        let both = |kind: &str, color: &str| {
            let of =
                |directory: &Path| dots(&directory.join(format!("a2b_{kind}.xpl"))).remove(color).unwrap_or_default();
            (of(&ours), of(&theirs))
        };

        // Outstanding data: tcptrace counts one byte more, and draws the SYN, the FIN and their ACKs.
        let (mine, judged) = both("owin", "red");
        assert!(judged.len() > 10_000, "{tap}: {} dots say nothing", judged.len());
        let missing = surplus_dots(judged.iter().map(|(time, value)| (time.clone(), value - 1.0)), &mine);
        assert!(missing.len() <= 4 && missing.iter().all(|(_, value)| *value == 0.0), "{tap}: {missing:?}");
        let (mine, judged) = both("owin", "yellow");
        let missing = surplus_dots(judged.into_iter(), &mine);
        assert!(missing.len() <= 4, "{tap}: {missing:?}");

        // Rates: tcptrace has times in microseconds, landspeed in nanoseconds; segments in the same microsecond
        // have no rate there.
        let (mine, judged) = both("tput", "yellow");
        assert!(mine.len() > 5_000);
        let mut at = BTreeMap::<&str, Vec<f64>>::new();
        for (time, value) in &judged {
            at.entry(time).or_default().push(*value);
        }
        let agrees = |(time, value): &&(String, f64)| {
            let span_us = 1448.0 / value * 1e6;
            let theirs = at.get(time.as_str()).map(Vec::as_slice).unwrap_or_default();
            let (least, most) = (value * span_us / (span_us + 1.0) - 1.0, value * span_us / (span_us - 1.0) + 1.0);
            span_us <= 1.0 || theirs.iter().any(|theirs| (least..=most).contains(theirs))
        };
        let others: Vec<_> = mine.iter().filter(|dot| !agrees(dot)).collect();
        // The last segment of a write is shorter.
        assert!(others.len() <= 2, "{tap}: {others:?}");

        // RTT: tcptrace has whole milliseconds, and none below one.
        let (mine, judged) = both("rtt", "red");
        if tap == "receiver" {
            assert!(mine.len() > 1_000 && judged.len() < 20, "{} and {}", mine.len(), judged.len());
            continue;
        }
        let mut at = BTreeMap::<&str, Vec<f64>>::new();
        for (time, value) in &judged {
            at.entry(time).or_default().push(*value);
        }
        let alike = |(time, value): &&(String, f64)| {
            at.get(time.as_str()).is_some_and(|all| all.iter().any(|theirs| (theirs - value).abs() <= 1.0))
        };
        let (same, other): (Vec<_>, Vec<_>) = mine.iter().partition(alike);
        assert!(same.len() > 1_000 && other.len() * 20 < same.len(), "{} and {}", same.len(), other.len());
        // For an ACK of two segments landspeed uses the first one, tcptrace the last.
        for (time, value) in other {
            assert!(
                at.get(time.as_str()).is_some_and(|all| all.iter().all(|theirs| theirs < value)),
                "{time} {value}"
            );
        }
        // Segments that waited 40 ms and more behind a hole are not RTT samples; the delayed ACK of the last segment is one.
        let long = mine.iter().filter(|(_, value)| *value > 30.0).count();
        assert!(long <= 1, "{long}");
        let times: BTreeSet<&str> = mine.iter().map(|(time, _)| time.as_str()).collect();
        assert!(times.iter().all(|time| at.contains_key(time)), "no round trip that tcptrace has not");
    }
}
