//! Terminal output of a search: progress lines, and the waterfall at the end.

use std::fmt::Write as _;

use landspeed_model::{Status, TuneupBound, TuneupDocument, TuneupEnd, TuneupResult, TuneupRung, TuneupSanity};
use landspeed_tuneup::Ladder;
use landspeed_units::{BitRate, Nanos};

use crate::terminal::Stream;
use crate::text::{Page, confidence, percent};

/// Width of the waterfall's bars, columns.
const BAR_WIDTH: usize = 36;

/// Progress output of a search.
pub struct Progress {
    prints: bool,
    /// Whether to show the running test in a line that is overwritten.
    terminal: bool,
    baseline: bool,
    diagnosed: bool,
    rungs: usize,
}

impl Progress {
    /// Creates the output; it prints nothing unless `prints`.
    pub fn new(prints: bool) -> Self {
        let terminal = prints && Stream::Out.is_terminal();
        Self { prints, terminal, baseline: false, diagnosed: false, rungs: 0 }
    }

    fn line(&self, label: &str, content: &str) {
        if self.prints {
            self.clear();
            let mut page = Page::default();
            page.line(label, content);
            out!("{}", page.text);
        }
    }

    fn clear(&self) {
        if self.terminal {
            Stream::Out.clear_line();
        }
    }

    /// Prints target, budget and seed.
    pub fn begin(&self, target: &str, budget: Nanos, seed: u64) {
        self.line("tuneup", &format!("{target}, at most {budget}, seed {seed}"));
    }

    /// Shows the test that starts now.
    pub fn show_running(&self, what: &str, number: u32) {
        if self.terminal {
            let text: String = format!("  test {number}: {what}").chars().take(78).collect();
            Stream::Out.redraw_line(&text);
        }
    }

    /// Prints new results.
    pub fn shows(&mut self, ladder: &Ladder) {
        if let Some(diagnosis) = ladder.diagnosis().filter(|_| !self.diagnosed) {
            self.diagnosed = true;
            let verdict = &diagnosis.verdict;
            let sure = confidence(verdict.confidence);
            self.line("cause", &format!("{}, {sure}: {}", verdict.cause.phrase(), verdict.summary));
        }
        if !self.baseline
            && let Some(baseline) = ladder.baseline().filter(|baseline| baseline.goodputs_bps.len() >= 8)
        {
            self.baseline = true;
            self.line("baseline", &format!("{} ± {}", rate(baseline.goodput_bps), percent(baseline.cv)));
        }
        for rung in &ladder.rungs()[self.rungs..] {
            let label = if rung.kept { "kept" } else { "rejected" };
            self.line(label, &format!("{}: {}", rung.change, brief(rung)));
        }
        self.rungs = ladder.rungs().len();
    }

    /// Clears the line of the running test.
    pub fn end(&self) {
        self.clear();
    }
}

/// Formats a gain: `×3.42 (3.30 to 3.55), 2.10 Gb/s → 7.20 Gb/s`, or why the change was rejected.
fn brief(rung: &TuneupRung) -> String {
    let measured = ratio(rung).map(|ratio| {
        let rates = rung.best_bps.zip(rung.goodput_bps);
        match rates.filter(|_| rung.kept) {
            Some((before, after)) => format!("{ratio}, {} → {}", rate(before), rate(after)),
            None => ratio,
        }
    });
    let parts = [exceeded(rung).map(cost).or_else(|| rung.rejected.clone()), measured];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The bound for which a change that was faster was refused.
fn exceeded(rung: &TuneupRung) -> Option<&TuneupBound> {
    let faster = !rung.kept && rung.low.is_some_and(|low| low > 1.0);
    rung.bounds.iter().find(|bound| faster && !bound.within)
}

/// Formats a cost above its limit: `retransmits 120 → 8078 per GB (limit 3620)`.
fn cost(bound: &TuneupBound) -> String {
    let TuneupBound { name, unit, best, candidate, limit, .. } = bound;
    match unit.as_str() {
        "us" => {
            let time = |us: f64| Nanos::new((us.max(0.0) * 1e3) as u64);
            format!("{name} {} → {} (limit {})", time(*best), time(*candidate), time(*limit))
        }
        _ => format!("{name} {} → {} {unit} (limit {})", figure(*best), figure(*candidate), figure(*limit)),
    }
}

/// Formats a figure with three significant digits, or as a whole number.
fn figure(value: f64) -> String {
    if value == 0.0 || value >= 1000.0 { format!("{value:.0}") } else { three(value) }
}

/// Formats a ratio with its interval: `×3.42 (3.30 to 3.55)`.
fn ratio(rung: &TuneupRung) -> Option<String> {
    Some(times(rung.ratio?, rung.low?, rung.high?))
}

fn times(ratio: f64, low: f64, high: f64) -> String {
    format!("×{} ({} to {})", three(ratio), three(low), three(high))
}

/// Formats a ratio with three significant digits.
fn three(ratio: f64) -> String {
    let digits = match ratio {
        r if r >= 100.0 => 0,
        r if r >= 10.0 => 1,
        r if r >= 0.1 => 2,
        _ => 4,
    };
    format!("{ratio:.digits$}")
}

fn rate(bps: f64) -> String {
    BitRate::from_bps(bps.max(0.0).round() as u64).to_string()
}

/// Formats the result: waterfall, validity checks and the final commands. [`Progress`] has printed rejected
/// changes.
pub fn summary(document: &TuneupDocument) -> String {
    let mut page = Page::default();
    page.text.push('\n');
    if document.ended == TuneupEnd::DryRun {
        dry_run(document, &mut page);
        return page.text;
    }
    headline(document, &mut page);
    match &document.map {
        Some(map) => super::map::draw(document, map, &mut page),
        None => waterfall(document, &mut page),
    }
    page.text.push('\n');
    for sanity in &document.sanity {
        page.line("check", &sanity_text(sanity, document.map.is_some()));
    }
    if let Some(again) = &document.baseline_again {
        let moved = if again.moved {
            "the first settings are not what they were: hosts or path changed meanwhile, and the gains may be theirs"
        } else {
            "the first settings give what they gave at the beginning"
        };
        page.line("check", &format!("{moved}: {}", times(again.ratio, again.low, again.high)));
    }
    for note in &document.notes {
        page.line("note", note);
    }
    page.line("ended", &document.ended_because);
    if let Some(result) = &document.result {
        if let (Some(cause), Some(summary)) = (result.cause, &result.summary) {
            page.line("cause", &format!("{} now; in the last test for a verdict {summary}", cause.phrase()));
        }
        page.raw("command", &result.command);
        for (end, changes) in [("client", &result.plan.client), ("server", &result.plan.server)] {
            if !changes.is_empty() {
                page.raw(end, &crate::tune::text::plan_command(changes));
            }
        }
    }
    page.text
}

fn headline(document: &TuneupDocument, page: &mut Page) {
    let spent = Nanos::new(document.spent_ns / 1_000_000_000 * 1_000_000_000);
    let effort = format!("{} tests in {spent}, seed {}", document.tests, document.seed);
    let kept = document.rungs.iter().filter(|rung| rung.kept).count();
    let text = match (&document.baseline, &document.result) {
        (Some(baseline), Some(result)) if document.map.is_some() && document.status == Status::Complete => {
            let first = rate(baseline.goodput_bps);
            let gain = gain(result).unwrap_or_default();
            if result.low.is_some_and(|low| low > 1.0) {
                format!("{first} → {} with the fastest placement, {gain}; {effort}", rate(result.goodput_bps))
            } else {
                format!("{first}: the fastest placement is no better than the first settings, {gain}; {effort}")
            }
        }
        (Some(baseline), Some(result)) if kept > 0 => {
            let gain = gain(result).map(|gain| format!(", {gain}")).unwrap_or_default();
            format!("{} → {}{gain}; {effort}", rate(baseline.goodput_bps), rate(result.goodput_bps))
        }
        (Some(baseline), _) if document.status != Status::Complete => {
            format!("{} with the first settings, which nothing has replaced; {effort}", rate(baseline.goodput_bps))
        }
        (Some(baseline), _) => {
            format!("unchanged at {}: no change is better; {effort}", rate(baseline.goodput_bps))
        }
        _ => format!("nothing was measured; {effort}"),
    };
    page.line(if document.status == Status::Complete { "result" } else { "cut short" }, &text);
}

/// Formats the gain over the initial settings.
fn gain(result: &TuneupResult) -> Option<String> {
    Some(times(result.ratio?, result.low?, result.high?))
}

/// Prints a bar for each kept change, from the rate before to the rate after.
fn waterfall(document: &TuneupDocument, page: &mut Page) {
    let Some(baseline) = &document.baseline else { return };
    let kept: Vec<&TuneupRung> = document.rungs.iter().filter(|rung| rung.kept).collect();
    let highest = kept.iter().filter_map(|rung| rung.goodput_bps).fold(baseline.goodput_bps, f64::max);
    let noise = format!("A/A {}", times(baseline.ratio, baseline.low, baseline.high));
    let first = format!("first settings ({})", baseline.cause.phrase());
    row(page, ("start", &first, &noise), (0.0, baseline.goodput_bps), highest);
    for rung in kept {
        let (Some(before), Some(after)) = (rung.best_bps, rung.goodput_bps) else { continue };
        row(page, ("kept", &rung.change, &ratio(rung).unwrap_or_default()), (before, after), highest);
        page.line("", &cause_text(rung));
    }
    let refused = document.rungs.iter().filter_map(|rung| Some((rung, exceeded(rung)?)));
    for (number, (rung, bound)) in refused.enumerate() {
        if number == 0 {
            page.text.push('\n');
        }
        page.line("refused", &format!("{}: {}, but {}", rung.change, ratio(rung).unwrap_or_default(), cost(bound)));
    }
}

/// Prints a title, a rate, its ratio and a bar from one rate to the other.
fn row(page: &mut Page, (label, title, ratio): (&str, &str, &str), (from, to): (f64, f64), highest: f64) {
    let columns = |bps: f64| (bps / highest * BAR_WIDTH as f64).round() as usize;
    let (begin, end) = (columns(from.min(to)).min(BAR_WIDTH - 1), columns(to));
    let bar = format!("{}{}", " ".repeat(begin), "█".repeat(end.saturating_sub(begin).max(1)));
    page.text.push('\n');
    page.line(label, title);
    let _ = writeln!(page.text, "  {:>10}  {ratio:<24}  {bar}", rate(to));
}

/// Returns the cause that suggested a change with its first evidence, or another reason.
fn cause_text(rung: &TuneupRung) -> String {
    let reading = rung.evidence.iter().find(|reading| reading.met);
    match (rung.cause, reading) {
        (Some(cause), Some(reading)) => {
            let value = if reading.unit == "ratio" {
                percent(reading.value)
            } else {
                format!("{} {}", three(reading.value), reading.unit)
            };
            format!("{}: {} {value} (threshold {})", cause.phrase(), reading.metric, reading.threshold)
        }
        _ => rung.reason.clone(),
    }
}

fn sanity_text(sanity: &TuneupSanity, mapped: bool) -> String {
    let shows = match (sanity.shows, mapped) {
        (true, false) => "is slower, as it must be",
        (true, true) => "is slower than the fastest, in tests of their own",
        (false, _) => "makes no difference here",
    };
    format!("{} {shows}: {}", sanity.change, times(sanity.ratio, sanity.low, sanity.high))
}

fn dry_run(document: &TuneupDocument, page: &mut Page) {
    if document.rungs.is_empty() {
        page.line("would try", "nothing: no change fits this pair");
    }
    for (number, rung) in document.rungs.iter().enumerate() {
        let cause = rung.cause.map(|cause| format!(" ({})", cause.phrase())).unwrap_or_default();
        page.line(&format!("{}", number + 1), &format!("{}{cause}: {}", rung.change, rung.reason));
    }
}
