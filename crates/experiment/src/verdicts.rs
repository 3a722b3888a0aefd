//! Verdicts of the flows in a lab run.

use landspeed_diagnose::{diagnose_lab, diagnose_path_epochs};
use landspeed_model::{LabDocument, LabEpoch, LabFlow, Status, Verdict, Warning};

/// Sets the verdict of each flow, using the lab's knowledge of the path.
pub fn add(document: &mut LabDocument) {
    let verdicts: Vec<_> = document.flows.iter().map(|flow| of_flow(document, flow)).collect();
    let epochs: Vec<_> = document.flows.iter().map(|flow| epochs_of(document, flow)).collect();
    let prediction = document.prediction();
    for ((flow, (verdict, reverse)), epochs) in document.flows.iter_mut().zip(verdicts).zip(epochs) {
        flow.epochs = epochs;
        let Some(run) = &mut flow.run else { continue };
        run.warnings.extend(landspeed_diagnose::warnings(run));
        run.verdict = verdict.unwrap_or_else(|| run.verdict.clone());
        run.reverse_verdict = reverse;
        run.warnings.push(Warning { code: "virtual".to_owned(), message: prediction.to_owned() });
    }
}

/// Returns what limited a flow between the changes of its path, in each of its directions.
fn epochs_of(document: &LabDocument, flow: &LabFlow) -> Vec<LabEpoch> {
    let Some(run) = flow.run.as_ref().filter(|run| run.status != Status::Failed) else { return Vec::new() };
    let directions = run.requested.direction.parts();
    directions.iter().flat_map(|&direction| diagnose_path_epochs(document, flow, direction)).collect()
}

/// Returns the verdicts of a flow's first direction, and of its second if it has one.
fn of_flow(document: &LabDocument, flow: &LabFlow) -> (Option<Verdict>, Option<Verdict>) {
    let Some(run) = flow.run.as_ref().filter(|run| run.status != Status::Failed) else { return (None, None) };
    let mut each = run.requested.direction.parts().iter().map(|&direction| diagnose_lab(document, flow, direction));
    (each.next().flatten(), each.next().flatten())
}
