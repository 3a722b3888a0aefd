//! Criteria beside measured figures: of a suite, or of one scenario.

use landspeed_model::{
    CheckedCriterion, Drawing, Figure, FigureAxis, FigureNote, FigureRow, FigureRows, FiguresDocument, ReferenceUnit,
    SuiteDocument, figure_text::number,
};

/// Returns the page of a suite: a figure for each case.
pub(crate) fn figures(document: &SuiteDocument) -> FiguresDocument {
    let all = || document.cases.iter().flat_map(|case| &case.criteria);
    let of = |met: bool| all().filter(|criterion| criterion.met == Some(met)).count();
    let cases = document.cases.iter().filter(|case| !case.criteria.is_empty());
    let figures = cases.clone().map(|case| {
        let title = format!("{}: {}", case.name, case.title);
        let mut figure = figure(&case.name, &title, &case.criteria);
        figure.caption = format!("{} ({}). {}", case.section, document.source, figure.caption);
        if let Some(hidden) = &case.hidden {
            figure.caption = format!("{} Not visible from outside: {hidden}.", figure.caption);
        }
        figure
    });
    let unseen = document.cases.iter().filter(|case| case.criteria.is_empty());
    let unseen = unseen.map(|case| FigureNote {
        serious: false,
        text: match &case.hidden {
            Some(hidden) => format!("{} did not run: nothing of it is visible from outside ({hidden}).", case.name),
            None => format!("{} did not run.", case.name),
        },
    });
    let problems = document.cases.iter().flat_map(|case| {
        let missing = (case.unusable > 0).then(|| FigureNote {
            serious: true,
            text: format!("{}: {} runs are not complete.", case.name, case.unusable),
        });
        let problems = case.problems.iter();
        let problems = problems.map(|text| FigureNote { serious: false, text: format!("{}: {text}", case.name) });
        missing.into_iter().chain(problems)
    });
    FiguresDocument {
        about: "suite".to_owned(),
        title: document.title.clone(),
        description: Some(document.about.clone()),
        answer: format!("{} of {} criteria are met.", of(true), of(true) + of(false)),
        started: document.started.clone(),
        facts: vec![
            ["source".to_owned(), document.source.clone()],
            ["congestion control".to_owned(), document.congestion.join(", ")],
            ["runs".to_owned(), format!("{} of each case and congestion control", document.runs)],
            ["kernel".to_owned(), document.kernels.join(", ")],
        ],
        notes: problems.chain(unseen).collect(),
        figures: figures.collect(),
        ..FiguresDocument::default()
    }
}

/// Returns a row for each criterion and cell: the measured value as a share of its limit.
pub(crate) fn figure(id: &str, title: &str, criteria: &[CheckedCriterion]) -> Figure {
    Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        caption: "Median of the runs as a share of the limit (the upper one where there are two), with minimum and \
                  maximum."
            .to_owned(),
        drawing: Drawing::Rows(FigureRows {
            axis: FigureAxis {
                title: "Measured / limit".to_owned(),
                unit: "ratio".to_owned(),
                ..FigureAxis::default()
            },
            neutral: Some(1.0),
            rows: criteria.iter().map(row).collect(),
        }),
    }
}

fn row(criterion: &CheckedCriterion) -> FigureRow {
    let unit = match criterion.unit {
        ReferenceUnit::Ratio | ReferenceUnit::Segments => "",
        unit => unit.as_str(),
    };
    let with_unit = |value: f64| format!("{} {unit}", number(value)).trim_end().to_owned();
    let limit = match (criterion.at_least, criterion.at_most) {
        (Some(least), Some(most)) => format!("{} to {}", number(least), with_unit(most)),
        (Some(least), None) => format!("at least {}", with_unit(least)),
        (None, Some(most)) => format!("at most {}", with_unit(most)),
        (None, None) => "no limit".to_owned(),
    };
    let measured = match criterion.measured {
        Some(value) => {
            format!("{}, {limit}; {} of {} runs meet it", with_unit(value), criterion.met_runs, criterion.runs)
        }
        None => format!("not measured, {limit}"),
    };
    let base = criterion.at_most.or(criterion.at_least).filter(|base| *base > 0.0);
    let share = |value: Option<f64>| value.zip(base).map(|(value, base)| value / base);
    let cell: Vec<String> =
        criterion.cell.values().map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned)).collect();
    let cell = if cell.is_empty() { String::new() } else { format!("{}: ", cell.join(", ")) };
    FigureRow {
        label: format!("{cell}{}", criterion.name),
        text: measured,
        detail: match criterion.reason.as_ref().filter(|_| criterion.met == Some(false)) {
            Some(reason) => format!("{reason}; {}", criterion.source),
            None => criterion.source.clone(),
        },
        to: share(criterion.measured),
        low: share(criterion.min),
        high: share(criterion.max),
        better: criterion.met,
        ..FigureRow::default()
    }
}
