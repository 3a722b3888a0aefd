//! Validity of verdicts on an emulated path: a verdict is withdrawn if it rests on seconds in which the
//! emulator could not keep up.

use landspeed_model::{Cause, Confidence, EmulationSource, InvalidSpan, RunDocument, Verdict, Warning};

use crate::flow::Flow;
use crate::text;

/// Returns the verdict, or an undetermined one if it rests on seconds in which the path did not match its
/// file.
pub(crate) fn withdraw_invalid(verdict: Verdict, flow: &Flow) -> Verdict {
    // Any host on the path can answer in its place: its word changes no verdict.
    let local = flow.document.emulation.as_ref().filter(|emulation| emulation.source == EmulationSource::Local);
    let Some(emulation) = local else { return verdict };
    let (start_ns, end_ns) = flow.span_ns;
    let within: Vec<&InvalidSpan> =
        emulation.invalid.iter().filter(|span| span.start_ns < end_ns && span.end_ns > start_ns).collect();
    if within.is_empty() || verdict.cause == Cause::Undetermined || !rests_on_path(verdict.cause) {
        return verdict;
    }
    let lasted_ns = length_ns(&within, start_ns, end_ns);
    let of = format!("{} of {}", text::nanos(lasted_ns as f64), text::nanos((end_ns - start_ns) as f64));
    Verdict {
        cause: Cause::Undetermined,
        confidence: Confidence::Low,
        summary: format!(
            "{}: the cause is undetermined: for {of} the emulated path was not what its file says ({}).",
            flow.headline(),
            within[0].message
        ),
        place: None,
        evidence: Vec::new(),
        ruled_out: Vec::new(),
        missing: vec![format!("the path as its file describes it, for {of}")],
        next_step: "Leave more cores idle, or emulate a slower path, until the certificate has no invalid second; then run again."
            .to_owned(),
        ..verdict
    }
}

/// Whether the cause concerns the network or is inferred from its behaviour. Other causes come from the
/// hosts' own counters.
fn rests_on_path(cause: Cause) -> bool {
    !matches!(
        cause,
        Cause::Pacing | Cause::Application | Cause::SenderCpu | Cause::ReceiverCpu | Cause::CpuQuota | Cause::Storage
    )
}

/// Total time covered by `spans` between two times, nanoseconds; spans do not overlap.
fn length_ns(spans: &[&InvalidSpan], start_ns: u64, end_ns: u64) -> u64 {
    spans.iter().map(|span| span.end_ns.min(end_ns).saturating_sub(span.start_ns.max(start_ns))).sum()
}

/// Warning for a run whose emulated path was invalid at times.
pub(crate) fn warning(document: &RunDocument) -> Option<Warning> {
    let emulation = document.emulation.as_ref()?;
    let first = emulation.invalid.first()?;
    let spans: Vec<&InvalidSpan> = emulation.invalid.iter().collect();
    let lasted_ns = length_ns(&spans, 0, u64::MAX);
    let (subject, effect) = match emulation.source {
        EmulationSource::Local => {
            ("The emulated path could not keep up", "Figures of that time do not describe the path")
        }
        EmulationSource::Path => (
            "An unauthenticated answer from the path says that the emulation could not keep up",
            "It does not change the verdict",
        ),
    };
    let (lasted, at) = (text::nanos(lasted_ns as f64), text::nanos(first.start_ns as f64));
    Some(Warning {
        code: "emulation-invalid".to_owned(),
        message: format!("{subject} for {lasted} of the run, first at {at}: {}. {effect}.", first.message),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start_ns: u64, end_ns: u64) -> InvalidSpan {
        InvalidSpan { start_ns, end_ns, reasons: Vec::new(), message: String::new() }
    }

    #[test]
    fn invalid_time_is_counted_within_the_phase_only() {
        let (a, b) = (span(0, 1_000), span(4_000, 5_000));
        assert_eq!(length_ns(&[&a, &b], 500, 4_200), 700);
    }

    #[test]
    fn host_causes_do_not_depend_on_the_path() {
        for cause in [Cause::NetworkLoss, Cause::NetworkCongestion, Cause::NetworkPath, Cause::ReceiverWindow] {
            assert!(rests_on_path(cause), "{cause:?}");
        }
        assert!(!rests_on_path(Cause::SenderCpu) && !rests_on_path(Cause::Pacing));
    }
}
