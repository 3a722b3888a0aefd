//! `lab run --kernels`: the same scenario and seeds on several kernels, and the differences between them.

use std::path::Path;

use anyhow::{anyhow, ensure};
use landspeed_compare::Options as CompareOptions;
use landspeed_experiment::edit;
use landspeed_lab::kernel::{Cache, STOCK};
use landspeed_lab::scenario;
use landspeed_model::{BuildInfo, Metric, SweepDocument};
use landspeed_results::Document;

use crate::compare;

/// Number of seeds unless the scenario or `--set repeats=N` says another.
pub const DEFAULT_SEEDS: u32 = 10;

/// The key of a scenario that names its kernel, and the factor of the sweep.
const KEY: &str = "kernel";

/// Recorded properties that differ between kernels on purpose, if they differ: a patched kernel has the release of the stock one.
const PROPERTIES: [&str; 2] = ["kernel_build", "kernel_release"];

/// Unit of replication of the intervals.
const UNIT: &str = "  unit     the seed: each block is a pair of runs with one seed\n";

/// The metrics compared, as far as the runs have them. Each one more widens all intervals.
const METRICS: [Metric; 5] = [Metric::Goodput, Metric::Retransmits, Metric::RttP50, Metric::Loss, Metric::LatencyP50];

/// Returns the scenario with kernels of a cache as values of its key `kernel`, and enough seeds unless `set` sets them.
///
/// # Errors
/// If a kernel is not in the cache or named twice, or if all seeds would give the same run.
pub fn vary(
    name: &str,
    text: &str,
    kernels: &[String],
    cache: Option<&Path>,
    set: &[String],
) -> anyhow::Result<String> {
    let kernels = Cache::open(cache)?.find_each(kernels)?;
    ensure!(
        kernels.len() > 1,
        "cannot compare kernels: --kernels names one\nName two, such as --kernels stock,{}.",
        kernels.first().map(|(name, _)| name.as_str()).filter(|name| *name != STOCK).unwrap_or("NAME")
    );
    for (at, (name, kernel)) in kernels.iter().enumerate() {
        if let Some((same, _)) = kernels[..at].iter().find(|(_, other)| other.id == kernel.id) {
            return Err(anyhow!(
                "cannot compare kernels: {same} and {name} are the same kernel, {}\nSee `landspeed lab kernel list`.",
                kernel.id
            ));
        }
    }
    let values: Vec<String> = kernels.iter().map(|(name, _)| format!("{name:?}")).collect();
    let mut text = edit::set(text, &[format!("{KEY}={}", values.join(","))]);
    let load = |text: &str| scenario::load(text).map_err(|problems| anyhow!("{}", problems.named(name)));
    let asked = set.iter().any(|set| set.split('=').next().is_some_and(|key| key.trim() == "repeats"));
    if load(&text)?.cells[0].repeats == 1 && !asked {
        text = edit::set(&text, &[format!("repeats={DEFAULT_SEEDS}")]);
    }
    ensure!(
        load(&text)?.warnings.iter().all(|warning| warning.code != "seeds-alike"),
        "cannot compare kernels over several seeds: nothing in the scenario is random, so every seed gives the same run\nAdd \
         --set 'flow.*.start-spread=10ms', or compare single runs with --set repeats=1."
    );
    Ok(text)
}

/// Returns the comparison of the kernels as text: the first is the baseline, and a seed is one pair of runs.
pub fn differences(sweep: &SweepDocument) -> String {
    let records = Document::Sweep(Box::new(sweep.clone())).records();
    let Some(factor) = sweep.factors.iter().find(|factor| factor.key == KEY) else { return String::new() };
    let groups = compare::groups::of_levels(factor, &records, "this run");
    let measured = |metric: &Metric| sweep.metrics.iter().any(|known| known.name == metric.name());
    let differs = |property: &&str| {
        let key = format!("lab.{property}");
        records.iter().any(|record| record.hosts.get(&key) != records[0].hosts.get(&key))
    };
    let options = CompareOptions {
        metrics: METRICS.into_iter().filter(measured).collect(),
        factors: std::iter::once(KEY).chain(PROPERTIES.into_iter().filter(differs)).map(str::to_owned).collect(),
        ..CompareOptions::default()
    };
    let build = BuildInfo { version: env!("CARGO_PKG_VERSION").to_owned(), server_version: None };
    let document = landspeed_compare::document(groups, &options, &[], build);
    if document.metrics.is_empty() {
        return "kernels cannot be compared: no flow has figures on both\n".to_owned();
    }
    format!("\n{}{UNIT}", compare::text::report(&document))
}
