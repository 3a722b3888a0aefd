//! Parts of the sweep document that need the whole documents of the runs: reference figures, and flows over time.

use landspeed_model::{LabDocument, Reference, SweepCell, SweepDocument, SweepRun};
use landspeed_results::{Document, check_criteria, compare_reference, flow_series};

use crate::setup::Setup;

/// Adds charts, the flows that they draw over time, and the reference figures.
pub fn complete(document: &mut SweepDocument, setup: &Setup) {
    document.charts.clone_from(&setup.charts);
    let read = |run: &SweepRun| match Document::read(&setup.directory.bytes(&run.id)?) {
        Ok(Document::Lab(lab)) => Some(*lab),
        _ => None,
    };
    if setup.charts.iter().any(|chart| chart.over.is_some()) {
        document.cells.iter_mut().for_each(|cell| add_series(cell, setup, read));
    }
    let is_compared = |reference: &&Reference| !(reference.figures.is_empty() && reference.criteria.is_empty());
    if let Some(reference) = document.reference.as_ref().filter(is_compared) {
        let runs = document.cells.iter().flat_map(|cell| &cell.runs).filter(|run| run.usable && !run.control);
        let labs: Vec<LabDocument> = runs.filter_map(read).collect();
        document.reference_figures = compare_reference(reference, &labs);
        document.criteria = check_criteria(reference, &labs);
    }
}

/// Adds the flows over time to the first usable run of a cell.
fn add_series(cell: &mut SweepCell, setup: &Setup, read: impl Fn(&SweepRun) -> Option<LabDocument>) {
    let Some(run) = cell.runs.iter_mut().find(|run| run.usable && !run.control) else { return };
    let Some(lab) = read(&*run) else { return };
    for flow in &mut run.flows {
        let is_drawn = setup
            .charts
            .iter()
            .any(|chart| chart.over.is_some() && (chart.flow.is_none() || chart.flow == flow.name));
        let own = lab.flows.iter().find(|other| Some(&other.name) == flow.name.as_ref());
        flow.series = own.filter(|_| is_drawn).and_then(|own| flow_series(own.run.as_ref()?));
    }
}
