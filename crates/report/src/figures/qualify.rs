//! Figures of a tested section: evidence between the decision lines, loss by length of a burst, onset of congestion.

use landspeed_model::{
    Drawing, Figure, FigureAxis, FigureChart, FigureLine, FigureMark, FigureNote, FigurePanel, FiguresDocument,
    QualifyDocument, QualifyOnset, QualifyResult, QualifyTest,
};

use super::quantity;

/// Returns the page of a tested section.
pub(crate) fn figures(document: &QualifyDocument) -> FiguresDocument {
    let target = &document.target_performance;
    let (rate, rtt) = (quantity::text(target.rate_bps as f64, "bit/s"), quantity::text(target.rtt_ns as f64, "ns"));
    let mut facts = vec![
        ["target".to_owned(), format!("{rate} × {rtt}, MTU {}", target.mtu_bytes)],
        ["target window".to_owned(), format!("{} packets", document.derived.window_packets)],
        ["target run length".to_owned(), format!("{} packets between losses", document.derived.run_length_packets)],
    ];
    for test in &document.tests {
        facts.push([test.name.clone(), format!("{}: {}", word(test.result), test.reason)]);
    }
    if let Some(bytes) = document.bottleneck_buffer_bytes {
        facts.push(["smallest buffer".to_owned(), quantity::text(bytes as f64, "B")]);
    }
    let load = format!("{} packets, {}", document.sent_packets, quantity::text(document.sent_bytes as f64, "B"));
    facts.push(["load".to_owned(), load]);
    let drawn =
        [evidence(document), bursts(document), document.onset.as_ref().and_then(|onset| congestion(document, onset))];
    FiguresDocument {
        about: "qualify".to_owned(),
        title: format!("Section to {} for {rate} × {rtt}", document.target),
        answer: format!("{}: {}.", word(document.verdict), document.reason),
        started: document.started.clone(),
        facts,
        notes: document
            .errors
            .iter()
            .map(|error| FigureNote { serious: true, text: error.message.clone() })
            .collect(),
        figures: drawn.into_iter().flatten().collect(),
        ..FiguresDocument::default()
    }
}

fn word(result: QualifyResult) -> &'static str {
    match result {
        QualifyResult::Pass => "pass",
        QualifyResult::Fail => "fail",
        QualifyResult::Inconclusive => "inconclusive",
    }
}

fn axis(title: &str, unit: &str) -> FigureAxis {
    FigureAxis { title: title.to_owned(), unit: unit.to_owned(), ..FigureAxis::default() }
}

/// Evidence of each test that counts packets, between the lines at which it passes and fails.
fn evidence(document: &QualifyDocument) -> Option<Figure> {
    let counted = document.tests.iter().filter(|test| test.unit.ends_with("/ packets") && !test.evidence.is_empty());
    let panels: Vec<FigurePanel> = counted.map(evidence_panel).collect();
    (!panels.is_empty()).then(|| Figure {
        id: "evidence".to_owned(),
        title: "Lost packets between the decision lines".to_owned(),
        caption: "After each stream. A test passes at or below the lower line, and fails at or above the upper one (RFC 8337 section \
                  7.2)."
            .to_owned(),
        drawing: Drawing::Chart(FigureChart {
            x: axis("Packets", ""),
            y: axis("Lost packets", ""),
            series: ["lost", "passes", "fails"].map(str::to_owned).to_vec(),
            panels,
            marks: Vec::new(),
        }),
    })
}

fn evidence_panel(test: &QualifyTest) -> FigurePanel {
    let end = test.evidence.last().map_or(1.0, |point| point.0 as f64).max(test.lines.accept / test.lines.slope);
    let first = test.lines.accept / test.lines.slope;
    let line = |series: usize, points: [(f64, f64); 2]| FigureLine {
        series,
        joined: true,
        x: points.map(|point| point.0).to_vec(),
        y: points.map(|point| Some(point.1)).to_vec(),
        ..FigureLine::default()
    };
    let lost = FigureLine {
        series: 0,
        joined: true,
        x: std::iter::once(0.0).chain(test.evidence.iter().map(|point| point.0 as f64)).collect(),
        y: std::iter::once(Some(0.0)).chain(test.evidence.iter().map(|point| Some(point.1 as f64))).collect(),
        ..FigureLine::default()
    };
    // Without a loss, the lower line is reached where it leaves zero.
    let accept = line(1, [(first, 0.0), (end * 1.1, test.lines.slope * end * 1.1 - test.lines.accept)]);
    let reject = line(2, [(0.0, test.lines.reject), (end * 1.1, test.lines.slope * end * 1.1 + test.lines.reject)]);
    FigurePanel { title: test.name.clone(), lines: vec![lost, accept, reject] }
}

/// Loss by length of a burst at interface rate.
fn bursts(document: &QualifyDocument) -> Option<Figure> {
    let mut bursts = document.bursts.clone();
    bursts.sort_unstable();
    let line = FigureLine {
        series: 0,
        joined: false,
        x: bursts.iter().map(|burst| burst.0 as f64).collect(),
        y: bursts.iter().map(|burst| Some(burst.1 as f64 / burst.0.max(1) as f64)).collect(),
        ..FigureLine::default()
    };
    (!bursts.is_empty()).then(|| Figure {
        id: "bursts".to_owned(),
        title: "Loss by length of a burst".to_owned(),
        caption: format!("{} bursts at interface rate, each once in the network; a dot is a burst.", bursts.len()),
        drawing: Drawing::Chart(FigureChart {
            x: axis("Packets of the burst", ""),
            y: axis("Lost", "ratio"),
            series: vec!["bursts".to_owned()],
            panels: vec![FigurePanel { title: String::new(), lines: vec![line] }],
            marks: Vec::new(),
        }),
    })
}

/// Queueing delay and loss by rate.
fn congestion(document: &QualifyDocument, onset: &QualifyOnset) -> Option<Figure> {
    let line = |series: usize, value: &dyn Fn(usize) -> f64| FigureLine {
        series,
        joined: true,
        x: onset.steps.iter().map(|step| step.rate_bps as f64).collect(),
        y: (0..onset.steps.len()).map(|at| Some(value(at))).collect(),
        ..FigureLine::default()
    };
    let target = document.target_performance.rate_bps;
    (!onset.steps.is_empty()).then(|| Figure {
        id: "onset".to_owned(),
        title: "Onset of congestion".to_owned(),
        caption: format!(
            "Evenly spaced packets, one stream at each rate until one loses packets (RFC 8337 section 8.2). The target is {}.",
            quantity::text(target as f64, "bit/s")
        ),
        drawing: Drawing::Chart(FigureChart {
            x: axis("Rate (TCP payload)", "bit/s"),
            y: axis("Queueing delay at the end", "ns"),
            series: vec!["queueing delay".to_owned()],
            panels: vec![FigurePanel {
                title: String::new(),
                lines: vec![line(0, &|at| onset.steps[at].queueing_ns as f64)],
            }],
            marks: vec![FigureMark { label: "target".to_owned(), x: Some(target as f64), y: 0.0 }],
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_lies_between_the_decision_lines() {
        let document: QualifyDocument =
            serde_json::from_str(include_str!("../../../../fixtures/documents/qualify.json")).expect("a document");
        let page = figures(&document);
        let ids: Vec<&str> = page.figures.iter().map(|figure| figure.id.as_str()).collect();
        assert_eq!(ids, ["evidence", "bursts", "onset"], "{}", page.answer);
        let Drawing::Chart(chart) = &page.figures[0].drawing else { panic!("a chart") };
        let delivery = chart.panels.iter().find(|panel| panel.title == "delivery-at-target-rate").expect("a panel");
        let last = |series: usize| delivery.lines[series].x.last().copied().expect("points");
        assert!(last(0) <= last(2), "the lines reach beyond the evidence");
        assert!(page.answer.starts_with("fail: "), "{}", page.answer);
    }
}
