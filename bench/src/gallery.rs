//! `cargo xtask gallery`: runs the lab gallery and writes reported and measured figures to
//! `docs/lab-gallery-figures.md`.
//!
//! `crates/lab/gallery.json` keeps the results, one line per exhibit; `landspeed lab gallery` reads it.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use flate2::read::MultiGzDecoder;
use landspeed_lab::gallery::{self, EXHIBITS, Exhibit, MeasuredExhibit, MeasuredRow, Spread};
use landspeed_lab::scenario;
use landspeed_model::{
    CheckedCriterion, ComparedFigure, FigureBasis, LabDocument, Reference, SweepDocument, deviation,
};
use landspeed_results::{check_criteria, compare_reference};

/// File with the results.
const RESULTS: &str = "crates/lab/gallery.json";
/// The generated page.
const PAGE: &str = "docs/lab-gallery-figures.md";

/// Options of `cargo xtask gallery`.
#[derive(clap::Args)]
pub struct Options {
    /// Only these exhibits; all by default
    #[arg(value_name = "EXHIBIT")]
    exhibits: Vec<String>,
    /// Only rewrite the page from the kept results, with current sources and reasons of the scenarios
    #[arg(long, conflicts_with_all = ["exhibits", "from", "repeats", "jobs"])]
    page: bool,
    /// Read DIR/EXHIBIT.json, written by `landspeed lab gallery run`, instead of running; with the runs in DIR/EXHIBIT
    /// (`--out`), figures and claims are those of the current scenario
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,
    /// Seeds per cell, instead of the exhibit's
    #[arg(long)]
    repeats: Option<u32>,
    /// Number of cells to run in parallel
    #[arg(short, long, default_value_t = 1)]
    jobs: u16,
}

/// Measures, and writes results and page after each exhibit so that an interrupted run loses little.
pub fn run(options: &Options) -> Result<()> {
    let root = crate::root();
    let mut results: Vec<MeasuredExhibit> = read(&root.join(RESULTS))?;
    for name in &options.exhibits {
        gallery::find(name).map_err(|message| anyhow::anyhow!(message))?;
    }
    let asked = |exhibit: &&Exhibit| {
        !options.page && (options.exhibits.is_empty() || options.exhibits.iter().any(|name| name == exhibit.name))
    };
    let mut failed = 0;
    for exhibit in EXHIBITS.iter().filter(asked) {
        match measure(exhibit, options, &root) {
            Ok(result) => {
                let (good, measured) = gallery::reproduced(&result.figures);
                println!("{}: {good} of {measured} figures within 10 %", exhibit.name);
                results.retain(|other| other.exhibit != result.exhibit);
                results.push(result);
                write(&root, &mut results)?;
            }
            Err(error) => {
                failed += 1;
                eprintln!("{}: {error:#}", exhibit.name);
            }
        }
    }
    write(&root, &mut results)?;
    ensure!(failed == 0, "{failed} exhibits have no new results");
    Ok(())
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("cannot read {}", path.display()))
}

/// Runs an exhibit, or reads the document of its last run.
fn measure(exhibit: &Exhibit, options: &Options, root: &Path) -> Result<MeasuredExhibit> {
    let directory = tempfile::tempdir().context("cannot create a directory")?;
    let document = match &options.from {
        Some(from) => from.join(format!("{}.json", exhibit.name)),
        None => lab(exhibit, options, root, directory.path())?,
    };
    let text = std::fs::read_to_string(&document).with_context(|| format!("cannot read {}", document.display()))?;
    let hash = hash(exhibit)?;
    let schema: serde_json::Value = serde_json::from_str(&text).context("not a JSON document")?;
    let reference = reference(exhibit)?;
    let result = match schema["schema"].as_str() {
        Some("landspeed.sweep/1") => {
            let mut sweep = serde_json::from_str::<SweepDocument>(&text)?;
            let runs = options.from.as_ref().map(|from| from.join(exhibit.name).join("runs"));
            if let Some((reference, runs)) = reference.zip(runs.filter(|runs| runs.is_dir())) {
                let runs = kept_runs(exhibit, &runs, &sweep)?;
                sweep.reference_figures = compare_reference(&reference, &runs);
                sweep.criteria = check_criteria(&reference, &runs);
            }
            MeasuredExhibit::of_sweep(exhibit.name, &hash, &sweep)
        }
        Some("landspeed.lab/2") => {
            let mut run: LabDocument = serde_json::from_str(&text)?;
            ensure!(run.scenario.hash == hash, "{} is of another scenario", document.display());
            if let Some(reference) = reference {
                run.reference_figures = compare_reference(&reference, std::slice::from_ref(&run));
                run.criteria = check_criteria(&reference, std::slice::from_ref(&run));
            }
            MeasuredExhibit::of_run(exhibit.name, &hash, &run)
        }
        _ => bail!("{} is not a document of the lab", document.display()),
    };
    ensure!(!result.rows.is_empty(), "no cell is complete");
    Ok(result)
}

/// Reads the usable runs of a sweep from its directory; refuses those of another scenario.
fn kept_runs(exhibit: &Exhibit, runs: &Path, sweep: &SweepDocument) -> Result<Vec<LabDocument>> {
    let cells = scenario::read(exhibit.text).map_err(|problems| anyhow::anyhow!("{problems}"))?;
    let usable = sweep.cells.iter().flat_map(|cell| &cell.runs).filter(|run| run.usable && !run.control);
    usable
        .map(|run| {
            let (path, bytes) = kept_run(runs, &run.id)?;
            match landspeed_results::Document::read(&bytes) {
                Ok(landspeed_results::Document::Lab(lab)) => {
                    let is_current = cells.iter().any(|cell| cell.hash == lab.scenario.hash);
                    ensure!(is_current, "{} is of another scenario", path.display());
                    Ok(*lab)
                }
                _ => bail!("{} is not a document of the lab", path.display()),
            }
        })
        .collect()
}

/// Reads the document of a run, which is compressed if it is large.
fn kept_run(runs: &Path, id: &str) -> Result<(PathBuf, Vec<u8>)> {
    let plain = runs.join(format!("{id}.json"));
    if let Ok(bytes) = std::fs::read(&plain) {
        return Ok((plain, bytes));
    }
    let path = runs.join(format!("{id}.json.gz"));
    let file = std::fs::File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut bytes = Vec::new();
    MultiGzDecoder::new(file).read_to_end(&mut bytes).with_context(|| format!("cannot read {}", path.display()))?;
    Ok((path, bytes))
}

fn lab(exhibit: &Exhibit, options: &Options, root: &Path, directory: &Path) -> Result<PathBuf> {
    let document = directory.join("exhibit.json");
    let mut command = Command::new(crate::validate::program(root)?);
    command.args(["lab", "gallery", "run", exhibit.name, "--yes", "--jobs", &options.jobs.to_string()]);
    command.arg("--json").arg(&document).arg("--report").arg(directory.join("exhibit.html"));
    if let Some(repeats) = options.repeats {
        command.args(["--set", &format!("repeats={repeats}")]);
    }
    let status = command.status().context("cannot run landspeed")?;
    // Exit status 1: a check failed; the results count the unusable cells.
    ensure!(matches!(status.code(), Some(0 | 1)), "landspeed lab gallery run {}: {status}", exhibit.name);
    Ok(document)
}

fn hash(exhibit: &Exhibit) -> Result<String> {
    let cells = scenario::read(exhibit.text).map_err(|problems| anyhow::anyhow!("{problems}"))?;
    Ok(cells[0].hash.clone())
}

fn reference(exhibit: &Exhibit) -> Result<Option<Reference>> {
    let cells = scenario::read(exhibit.text).map_err(|problems| anyhow::anyhow!("{problems}"))?;
    Ok(cells[0].scenario.reference.clone())
}

/// Writes results and page in the order of the gallery. Results of exhibits that are no longer in the gallery are
/// removed.
fn write(root: &Path, results: &mut Vec<MeasuredExhibit>) -> Result<()> {
    let place = |name: &str| EXHIBITS.iter().position(|exhibit| exhibit.name == name);
    results.retain(|result| place(&result.exhibit).is_some());
    results.sort_by_key(|result| place(&result.exhibit));
    for result in results.iter_mut() {
        let exhibit = gallery::find(&result.exhibit).map_err(|message| anyhow::anyhow!(message))?;
        update_reference(result, reference(exhibit)?.as_ref());
    }
    let lines: Vec<_> = results.iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
    replace(&root.join(RESULTS), &format!("[\n{}\n]\n", lines.join(",\n")))?;
    replace(&root.join(PAGE), &page(results)?)
}

fn replace(path: &Path, text: &str) -> Result<()> {
    let fresh = path.with_extension("new");
    std::fs::write(&fresh, text).with_context(|| format!("cannot write {}", fresh.display()))?;
    std::fs::rename(&fresh, path).with_context(|| format!("cannot write {}", path.display()))
}

/// Copies reported value, source and reason from the current scenario; measured values stay. Figures are matched
/// by name.
fn update_reference(result: &mut MeasuredExhibit, reference: Option<&Reference>) {
    let Some(reference) = reference else { return };
    for figure in &mut result.figures {
        let Some(now) = reference.figures.iter().find(|now| now.name == figure.name) else { continue };
        figure.reported = now.value;
        figure.deviation = figure.measured.and_then(|measured| deviation(now.value, measured));
        figure.source = now.source.clone().unwrap_or_else(|| reference.source.clone());
        figure.reason.clone_from(&now.reason);
        figure.basis = now.basis;
    }
    for criterion in &mut result.criteria {
        let Some(now) = reference.criteria.iter().find(|now| now.name == criterion.name) else { continue };
        criterion.source.clone_from(&now.source);
        criterion.reason.clone_from(&now.reason);
    }
}

fn page(results: &[MeasuredExhibit]) -> Result<String> {
    let all: Vec<ComparedFigure> = results.iter().flat_map(|result| result.figures.clone()).collect();
    let (good, measured) = gallery::reproduced(&all);
    let claims: Vec<CheckedCriterion> = results.iter().flat_map(|result| result.criteria.clone()).collect();
    let (met, decided) = gallery::met(&claims);
    let mut text = format!(
        "# Lab gallery: every figure beside the reported one\n\n\
         {good} of the {measured} figures that a source prints are within 10 % of it. Computed values (set-ups, formulas, \
         balances of printed\nrates: *computed*) and zeros are compared and not counted. {met} of {decided} claims without a number are met, as \
         limits of ramp, variation,\norder or slope. Every other figure and claim has its reason here.\n\n\
         `cargo xtask gallery` runs the exhibits and writes this page; [lab-gallery.md](lab-gallery.md) explains them. Measured values are\n\
         medians over the seeds, with (min..max). All are network-limited: the lab's hosts have infinite CPU and no NIC.\n"
    );
    for exhibit in EXHIBITS {
        let _ = write!(text, "\n## {}\n\n", exhibit.name);
        let Some(result) = results.iter().find(|result| result.exhibit == exhibit.name) else {
            let name = exhibit.name;
            let _ = writeln!(
                text,
                "Not measured since; [lab-gallery.md](lab-gallery.md#{name}) has the last result, with its date and build."
            );
            continue;
        };
        let reference = reference(exhibit)?;
        if let Some(reference) = &reference {
            let _ = write!(text, "{}: {}\n\n", reference.source, reference.reported);
        }
        figures(&mut text, &result.figures, reference.as_ref().map_or("", |reference| &reference.source));
        claims_table(&mut text, result);
        rows(&mut text, result);
        let day = result.started.get(..10).unwrap_or_default();
        let _ = writeln!(text, "{day}, Linux {}.{}", result.kernels.join(" and Linux "), unusable(result.unusable));
    }
    Ok(text)
}

fn unusable(count: usize) -> String {
    if count == 0 { String::new() } else { format!(" {count} cells failed a check and are not in the table.") }
}

/// Writes the table of reported figures. A source equal to the exhibit's (`whole`) is not repeated.
fn figures(text: &mut String, figures: &[ComparedFigure], whole: &str) {
    if figures.is_empty() {
        text.push_str("No number is printed for this set-up.\n\n");
        return;
    }
    text.push_str("| figure | reported | measured | deviation | where reported |\n|---|---|---|---|---|\n");
    for figure in figures {
        let [name, reported, measured, deviation] = gallery::row(figure);
        let source = if figure.source == whole { "" } else { &figure.source };
        let reported = if figure.basis == FigureBasis::Computed { format!("*{reported}*") } else { reported };
        let _ = writeln!(text, "| {name} | {reported} | {measured} | {deviation} | {source} |");
    }
    text.push('\n');
    let off = || figures.iter().filter(|figure| figure.reproduced() == Some(false));
    for figure in off() {
        let _ = writeln!(text, "- **{}**: {}.", figure.name, figure.reason.as_deref().unwrap_or("no known reason"));
    }
    if off().next().is_some() {
        text.push('\n');
    }
}

/// Writes the table of claims: limits that follow from the source, and what each cell measured.
fn claims_table(text: &mut String, result: &MeasuredExhibit) {
    if result.criteria.is_empty() {
        return;
    }
    text.push_str("| claim | cell | limit | measured | runs | result | source |\n|---|---|---|---|---|---|---|\n");
    for criterion in &result.criteria {
        let _ = writeln!(text, "| {} | {} |", gallery::criterion_row(criterion).join(" | "), criterion.source);
    }
    text.push('\n');
    let mut reasons: Vec<String> = Vec::new();
    for criterion in result.criteria.iter().filter(|criterion| criterion.met == Some(false)) {
        let reason =
            format!("- **{}**: {}.\n", criterion.name, criterion.reason.as_deref().unwrap_or("no known reason"));
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    if !reasons.is_empty() {
        text.push_str(&reasons.concat());
        text.push('\n');
    }
}

/// Writes the table of cells.
fn rows(text: &mut String, result: &MeasuredExhibit) {
    let Some(first) = result.rows.first() else { return };
    let mut head: Vec<String> = result.varied.clone();
    head.push("seeds".to_owned());
    for flow in &first.flows {
        head.push(flow.name.clone());
        head.push(if flow.retransmits.is_some() { "retransmits" } else { "loss" }.to_owned());
    }
    head.push("drops in switches".to_owned());
    let _ = writeln!(text, "| {} |\n|{}", head.join(" | "), "---|".repeat(head.len()));
    for row in &result.rows {
        let _ = writeln!(text, "| {} |", cells(row).join(" | "));
    }
    text.push('\n');
}

fn cells(row: &MeasuredRow) -> Vec<String> {
    let mut cells = row.values.clone();
    cells.push(row.runs.to_string());
    for flow in &row.flows {
        cells.push(flow.goodput_bps.map_or_else(|| "-".to_owned(), rate));
        let loss = || flow.loss_ratio.map(|Spread(a, b, c)| spread(a * 100.0, b * 100.0, c * 100.0, " %"));
        let count = flow.retransmits.map(|Spread(a, b, c)| spread(a, b, c, ""));
        cells.push(count.or_else(loss).unwrap_or_else(|| "-".to_owned()));
    }
    let Spread(median, min, max) = row.drops;
    cells.push(spread(median, min, max, ""));
    cells
}

fn rate(Spread(median, min, max): Spread) -> String {
    let (scale, unit) = if median >= 1e9 { (1e9, " Gb/s") } else { (1e6, " Mb/s") };
    spread(median / scale, min / scale, max / scale, unit)
}

fn spread(median: f64, min: f64, max: f64, unit: &str) -> String {
    let [median, min, max] = [median, min, max].map(gallery::number);
    if min == max { format!("{median}{unit}") } else { format!("{median}{unit} ({min}..{max})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_matches_the_kept_results() {
        let page = page(&gallery::measured()).expect("the exhibits read");
        let kept = std::fs::read_to_string(crate::root().join(PAGE)).expect("the page");
        assert!(page == kept, "{PAGE} is out of date: run `cargo xtask gallery --page`");
    }
}
