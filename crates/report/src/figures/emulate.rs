//! Figures of an emulated path's certificate: delivery in each second, and deviations from the requested path.

use landspeed_model::{
    Drawing, EmulateDatapath, EmulateDocument, EmulateSecond, EmulateSecondDirection, Figure, FigureAxis,
    FigureChart, FigureLine, FigureMark, FigureNote, FigurePanel, FiguresDocument,
};

use super::quantity;

/// Maximum number of invalid seconds that are listed individually.
const MAX_LISTED: usize = 10;

/// Returns the page of a certificate.
pub(crate) fn figures(document: &EmulateDocument) -> FiguresDocument {
    let (asked, delivered) = (&document.asked, &document.delivered);
    let rate = |bps: u64| quantity::text(bps as f64, "bit/s");
    let time = |ns: u64| quantity::text(ns as f64, "ns");
    let whole = document.duration_ns.div_ceil(1_000_000_000);
    let answer = if document.invalid.is_empty() {
        format!("All {whole} seconds are valid: the path was what its file says.")
    } else {
        format!(
            "{} of {whole} seconds are invalid: figures measured in them do not describe the path.",
            document.invalid.len()
        )
    };
    let datapath = match document.datapath {
        EmulateDatapath::Userspace => "userspace",
        EmulateDatapath::Kernel => "kernel",
    };
    let mut facts =
        vec![["placement".to_owned(), document.placement.to_string()], ["datapath".to_owned(), datapath.to_owned()]];
    for (name, asked, delivered) in
        [("forward", &asked.forward, &delivered.forward), ("reverse", &asked.reverse, &delivered.reverse)]
    {
        facts.push([format!("{name}, asked"), format!("{}, {} one way", rate(asked.rate_bps), time(asked.delay_ns))]);
        let delay = delivered.delay_ns.map_or_else(String::new, |delay| {
            format!("; delay min {}, p50 {}, p99 {}", time(delay.min), time(delay.p50), time(delay.p99))
        });
        facts.push([
            format!("{name}, delivered"),
            format!(
                "{} of {} packets, busiest second {}{delay}",
                delivered.delivered_packets,
                delivered.offered_packets,
                rate(delivered.peak_rate_bps)
            ),
        ]);
        facts.push([
            format!("{name}, not delivered"),
            format!(
                "{} dropped on the path, {} not handled, {} in flight at the end",
                delivered.dropped_packets, delivered.unhandled_packets, delivered.inside_packets
            ),
        ]);
    }
    let error = &document.delay_error_ns;
    let errors = match (error.p50, error.p99, error.max) {
        (Some(p50), Some(p99), Some(max)) => format!("p50 {}, p99 {}, max {}", time(p50), time(p99), time(max)),
        _ => "unknown".to_owned(),
    };
    facts.push(["delay error".to_owned(), errors]);
    if let Some(cpu) = &document.cpu {
        let busiest = format!("{} in the busiest second", quantity::text(cpu.work_share_max, ""));
        facts.push(["CPU".to_owned(), busiest]);
    }
    facts.push(["seed".to_owned(), document.path.seed.to_string()]);
    let mut notes: Vec<FigureNote> = document
        .invalid
        .iter()
        .take(MAX_LISTED)
        .map(|second| FigureNote { serious: true, text: format!("Second {}: {}.", second.second, second.message) })
        .collect();
    if document.invalid.len() > MAX_LISTED {
        let text = format!("{} more invalid seconds: see the certificate.", document.invalid.len() - MAX_LISTED);
        notes.push(FigureNote { serious: true, text });
    }
    notes
        .extend(document.warnings.iter().map(|warning| FigureNote { serious: false, text: warning.message.clone() }));
    FiguresDocument {
        about: "emulate".to_owned(),
        title: document.path.name.clone(),
        answer,
        started: started(document.start_unix_ns),
        facts,
        notes,
        figures: drawn(document),
        ..FiguresDocument::default()
    }
}

fn started(unix_ns: u64) -> String {
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_nanos(unix_ns);
    humantime::format_rfc3339_seconds(time).to_string()
}

fn drawn(document: &EmulateDocument) -> Vec<Figure> {
    if document.seconds.is_empty() {
        return Vec::new();
    }
    let asked = &document.asked;
    let mark = |label: &str, bps: u64| FigureMark { label: label.to_owned(), x: None, y: bps as f64 };
    let marks = if asked.forward.rate_bps == asked.reverse.rate_bps {
        vec![mark("asked", asked.forward.rate_bps)]
    } else {
        vec![mark("asked, forward", asked.forward.rate_bps), mark("asked, reverse", asked.reverse.rate_bps)]
    };
    let mut figures = vec![
        both(document, ("delivered", "Delivered"), ("Rate with framing", "bit/s"), |second| second.rate_bps, marks),
        both(document, ("queue", "Queues"), ("Mean occupancy", "B"), |second| second.queue_bytes, Vec::new()),
        both(
            document,
            ("dropped", "Dropped or lost on the path"),
            ("Packets per second", "packets"),
            |second| second.dropped_packets,
            Vec::new(),
        ),
    ];
    let late = FigureLine { series: 0, ..line(document, |second| second.late_max_ns) };
    figures.push(figure(
        document,
        ("late", "Latest departure"),
        ("After its time", "ns"),
        vec!["both directions".to_owned()],
        vec![late],
        Vec::new(),
    ));
    figures
}

/// Returns a line for each direction.
fn both(
    document: &EmulateDocument,
    name: (&str, &str),
    axis: (&str, &str),
    value: fn(&EmulateSecondDirection) -> u64,
    marks: Vec<FigureMark>,
) -> Figure {
    let lines = vec![
        FigureLine { series: 0, ..line(document, move |second| Some(value(&second.directions.forward))) },
        FigureLine { series: 1, ..line(document, move |second| Some(value(&second.directions.reverse))) },
    ];
    figure(document, name, axis, vec!["forward".to_owned(), "reverse".to_owned()], lines, marks)
}

fn line(document: &EmulateDocument, value: impl Fn(&EmulateSecond) -> Option<u64>) -> FigureLine {
    FigureLine {
        joined: true,
        x: document.seconds.iter().map(|second| second.second as f64).collect(),
        y: document.seconds.iter().map(|second| value(second).map(|value| value as f64)).collect(),
        ..FigureLine::default()
    }
}

/// Returns a chart over time; dots at the bottom are invalid seconds.
fn figure(
    document: &EmulateDocument,
    (id, title): (&str, &str),
    (value, unit): (&str, &str),
    mut series: Vec<String>,
    mut lines: Vec<FigureLine>,
    marks: Vec<FigureMark>,
) -> Figure {
    let invalid: Vec<f64> =
        document.seconds.iter().filter(|second| !second.valid).map(|second| second.second as f64).collect();
    let mut caption = "Each second.".to_owned();
    if !invalid.is_empty() {
        caption.push_str(" Dots on the time axis are invalid seconds.");
        lines.push(FigureLine {
            series: series.len(),
            joined: false,
            y: vec![Some(0.0); invalid.len()],
            x: invalid,
            ..FigureLine::default()
        });
        series.push("invalid".to_owned());
    }
    Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        caption,
        drawing: Drawing::Chart(FigureChart {
            x: FigureAxis { title: "Time".to_owned(), unit: "s".to_owned(), ..FigureAxis::default() },
            y: FigureAxis { title: value.to_owned(), unit: unit.to_owned(), ..FigureAxis::default() },
            series,
            panels: vec![FigurePanel { title: String::new(), lines }],
            marks,
        }),
    }
}
