//! Tests of the evidence for recommendations: figures are in the cited passages, passages are on their slides,
//! and no check claims a cost without a source, a calculation or a lab figure.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use landspeed_model::{Goal, Role, Severity};

use crate::audit::outcomes;
use crate::check::{Check, Effect, Outcome, Problem};
use crate::gain::{Verdict, gains};
use crate::source::{Document, ESNET_2014, ESNET_2016, LBNL_2015, RED_HAT_2012, TOKYO_2006};
use crate::{docs, registry};

/// Maximum length from a slide's title to the end of the slide, characters.
const MAX_SLIDE_CHARS: usize = 2500;

const ROLES: [Role; 5] = [Role::Dtn, Role::Benchmark, Role::Latency, Role::Guest, Role::Router];

/// Returns every finding of every check on its failing example, in every role.
fn findings() -> impl Iterator<Item = (&'static Check, Problem)> {
    registry::all().flat_map(|check| {
        let (facts, goal) = docs::failing_example(check);
        let mut answers = Vec::new();
        for goal in std::iter::once(goal.clone()).chain(ROLES.map(|role| Goal { role, ..goal.clone() })) {
            answers.extend(outcomes(&facts, &goal, check).expect("asked").into_iter().map(|(_, outcome)| outcome));
        }
        answers.into_iter().filter_map(move |outcome| match outcome {
            Outcome::Finding(problem) => Some((check, *problem)),
            _ => None,
        })
    })
}

/// Returns the numbers in a text, each with its number of decimals.
fn numbers(text: &str) -> Vec<(f64, usize)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        // `.0046` has no digit before its point.
        let start = if rest[..at].ends_with('.') { at - 1 } else { at };
        let end = rest[at..].find(|c: char| !c.is_ascii_digit() && c != '.').map_or(rest.len(), |n| at + n);
        // `IPv6` and `-w1m` are names.
        let named = rest[..start].ends_with(|c: char| c.is_alphabetic());
        let number = rest[start..end].trim_end_matches('.');
        let decimals = number.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        found.extend(number.parse::<f64>().ok().filter(|_| !named).map(|value| (value, decimals)));
        rest = &rest[end..];
    }
    found
}

fn rounded(value: f64, decimals: usize) -> f64 {
    let scale = 10_f64.powi(i32::try_from(decimals).expect("few decimals"));
    (value * scale).round() / scale
}

/// Returns whether a figure is one of `known` (netperf reports Mb/s where texts have Gb/s), or a ratio, a sum
/// or a difference in per cent of two of them.
fn matches_any(figure: f64, decimals: usize, known: &[f64], derived: bool) -> bool {
    let is = |value: f64| (rounded(value, decimals) - figure).abs() < 1e-9;
    let pairs = || known.iter().flat_map(|a| known.iter().map(move |b| (*a, *b))).filter(|(_, b)| *b != 0.0);
    known.iter().any(|&value| is(value) || is(value / 1000.0))
        || derived && pairs().any(|(a, b)| is(a / b) || is((1.0 - a / b) * 100.0) || is(a + b))
}

#[test]
fn figures_are_parsed_with_their_decimals() {
    assert_eq!(
        numbers("~1.25Gbps @ 10Gbps, .0046% and 34106.58."),
        [(1.25, 2), (10.0, 0), (0.0046, 4), (34106.58, 2)]
    );
    assert!(matches_any(34.1, 1, &[34106.58], false) && !matches_any(35.0, 0, &[34106.58], false));
    assert!(matches_any(39.0, 0, &[3095.0, 5051.0], true) && !matches_any(30.0, 0, &[3095.0, 5051.0], true));
}

#[test]
fn every_cited_figure_is_in_its_passage() {
    let mut cited = 0;
    for (check, problem) in findings() {
        let Effect::Measured(text, passages) = &problem.effect else { continue };
        cited += 1;
        let known: Vec<f64> = passages.iter().flat_map(|p| numbers(p.text)).map(|(value, _)| value).collect();
        for (figure, decimals) in numbers(text) {
            let after = text.split(&format!("{figure:.decimals$}")).nth(1).unwrap_or_default();
            let derived = [" %", " times", " and", " to"].iter().any(|unit| after.starts_with(unit));
            assert!(
                matches_any(figure, decimals, &known, derived),
                "{}: {figure} of `{text}` is not in {passages:?}",
                check.code
            );
        }
    }
    assert!(cited > 60, "{cited} findings cite a figure");
}

/// A rate calculated for this host beside one that others measured reads as a comparison of the two.
#[test]
fn measured_rates_stand_beside_no_calculated_ones() {
    let mut mixed = BTreeSet::new();
    for (check, problem) in findings() {
        let measured = matches!(&problem.effect, Effect::Measured(text, _) if text.contains("b/s"));
        let calculated = problem.why.split("at most ").skip(1).any(|after| {
            after
                .split_whitespace()
                .nth(1)
                .is_some_and(|unit| unit.trim_end_matches(['.', ',', ';']).ends_with("b/s"))
        });
        if measured && calculated {
            mixed.insert(format!("{}: {} | {:?}", check.code, problem.why, problem.effect));
        }
    }
    assert!(mixed.is_empty(), "{mixed:#?}");
}

/// Counters since boot are any numbers: no share of them is above 100 %.
#[test]
fn no_share_is_above_one_hundred_percent() {
    let counters = ["Tcp.OutSegs", "Tcp.InSegs", "Tcp.RetransSegs", "Tcp.PassiveOpens", "Udp.InDatagrams"];
    let mut percentages = 0;
    for check in registry::all() {
        // Its share is that of a setting.
        if check.code == "BUF-014" {
            continue;
        }
        let (mut facts, goal) = docs::failing_example(check);
        for name in counters {
            facts.counters.entry(name.to_owned()).and_modify(|count| *count = (*count).min(50));
        }
        for port in &mut facts.interfaces {
            port.statistics.entry("rx_packets".to_owned()).and_modify(|count| *count = 50);
            port.statistics.entry("tx_packets".to_owned()).and_modify(|count| *count = 50);
        }
        for (_, outcome) in outcomes(&facts, &goal, check).expect("asked") {
            let texts = match outcome {
                Outcome::Finding(problem) => vec![problem.observed, problem.effect.sentence().unwrap_or_default()],
                Outcome::Pass(text) => vec![text],
                Outcome::NotApplicable(_) | Outcome::Unknown(_) => continue,
            };
            for text in texts {
                for before in text.split('%').rev().skip(1) {
                    let number = before.trim_end().rsplit([' ', '(']).next().unwrap_or_default();
                    let Ok(share) = number.parse::<f64>() else { continue };
                    percentages += 1;
                    assert!(share <= 100.0, "{}: {text}", check.code);
                }
            }
        }
    }
    assert!(percentages > 10, "{percentages} percentages");
}

#[test]
fn effects_cite_only_sources_of_their_check() {
    let mut missing = BTreeSet::new();
    for (check, problem) in findings() {
        let cited: Vec<&str> = match &problem.effect {
            Effect::Measured(_, passages) => passages.iter().map(|passage| passage.document.citation).collect(),
            Effect::Stated(_, source) => vec![source],
            Effect::Arithmetic(_) | Effect::NotMeasured => Vec::new(),
        };
        for source in cited.into_iter().filter(|cited| !check.sources.iter().any(|known| known.starts_with(cited))) {
            missing.insert(format!("{}: {source}", check.code));
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn findings_above_notes_have_a_source_or_figure() {
    let mut without = Vec::new();
    for (check, problem) in findings() {
        let severity = problem.severity.unwrap_or(check.severity);
        let lab = gains()
            .iter()
            .any(|gain| gain.verdict() == Verdict::Helps && gain.codes.iter().any(|code| code == check.code));
        if severity > Severity::Note && problem.effect == Effect::NotMeasured && !lab {
            without.push(format!("{} {severity:?}: {}", check.code, problem.observed));
        }
    }
    without.dedup();
    assert!(without.is_empty(), "{without:#?}");
}

#[test]
fn findings_without_an_effect_are_notes() {
    let mut above = BTreeSet::new();
    for (check, problem) in findings() {
        let severity = problem.severity.unwrap_or(check.severity);
        let sentence = problem.effect.sentence().unwrap_or_default();
        let none = sentence.starts_with("None") || sentence.starts_with("Up to 0 ") || sentence.contains("neither");
        if severity > Severity::Note && none {
            above.insert(format!("{} {severity:?}: {sentence}", check.code));
        }
    }
    assert!(above.is_empty(), "{above:#?}");
}

/// Returns the texts of the decks; `None` if they are not available.
fn decks() -> Option<Vec<String>> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/seeds");
    let directory = std::env::var_os("LANDSPEED_DECKS").map_or(beside, PathBuf::from);
    let files = fs::read_dir(directory).ok()?.filter_map(Result::ok);
    let texts: Vec<String> = files.filter_map(|file| fs::read_to_string(file.path()).ok()).collect();
    (!texts.is_empty()).then_some(texts)
}

/// Removes emphasis, list marks, table rules and line ends.
fn plain(text: &str) -> String {
    let text: String = text.chars().filter(|c| !"*`\\#".contains(*c)).collect();
    text.split_whitespace().filter(|word| !matches!(*word, "-" | "•")).collect::<Vec<_>>().join(" ")
}

fn deck<'d>(document: &Document, decks: &'d [String]) -> &'d str {
    let mark = document.identifying_text.expect("a deck");
    let found = decks.iter().find(|text| plain(text).contains(mark));
    found.unwrap_or_else(|| panic!("no deck has `{mark}`"))
}

#[test]
fn every_passage_is_on_its_slide() {
    let Some(decks) = decks() else {
        landspeed_testkit::skip!("the decks' texts are not here; LANDSPEED_DECKS names their directory");
    };
    for (check, problem) in findings() {
        let Effect::Measured(_, passages) = &problem.effect else { continue };
        for passage in passages.iter().filter(|passage| passage.document.identifying_text.is_some()) {
            let text = plain(deck(passage.document, &decks));
            let slide = plain(passage.place);
            // Titles repeat: the passage must follow one of them within a slide's length.
            let after = text.match_indices(&slide).any(|(at, _)| {
                let rest = &text[at..];
                let end =
                    rest.char_indices().map(|(at, _)| at).find(|at| *at >= MAX_SLIDE_CHARS).unwrap_or(rest.len());
                rest[..end].contains(&plain(passage.text))
            });
            assert!(after, "{}: `{}` is not on the slide `{}`", check.code, passage.text, passage.place);
        }
    }
}

#[test]
fn every_cited_slide_is_in_its_deck() {
    let Some(decks) = decks() else {
        landspeed_testkit::skip!("the decks' texts are not here; LANDSPEED_DECKS names their directory");
    };
    let mut named = 0;
    for check in registry::all() {
        for document in [&ESNET_2016, &LBNL_2015, &ESNET_2014, &RED_HAT_2012, &TOKYO_2006] {
            for slide in check.sources.iter().filter_map(|source| source.strip_prefix(document.citation)) {
                named += 1;
                let slide = slide.strip_prefix(": ").unwrap_or_else(|| panic!("{}: which slide?", check.code));
                let there = plain(deck(document, &decks)).contains(&plain(slide));
                assert!(there, "{}: {} has no slide `{slide}`", check.code, document.short);
            }
        }
    }
    assert!(named > 40, "{named} slides are named");
}
