//! Onset of congestion: the rate from which packets queue, and what a section does above it (RFC 8337 section 8.2).

use landspeed_model::{QualifyOnset, QualifyOnsetStep};

use crate::outcome::StreamOutcome;

/// Rates of the steps, in target rates.
const STEPS: [f64; 8] = [0.5, 0.7, 0.85, 1.0, 1.15, 1.3, 1.6, 2.0];
/// Length of a step, seconds: with the tolerance below, a rate 1% above the section's shows.
pub const STEP_S: f64 = 0.5;
/// Share of a step that queues or is lost from which the section is congested, and nanoseconds for the clocks. Fewer losses are not
/// congestion: random loss does not depend on the rate.
const EXCESS_SHARE: f64 = 0.01;
const EXCESS_NS: f64 = 1e6;

/// Streams of rising rate, until one loses [`EXCESS_SHARE`] of its packets.
#[derive(Debug)]
pub struct OnsetSearch {
    /// Highest rate of the sender's interface, in target rates.
    highest: f64,
    steps: Vec<QualifyOnsetStep>,
    next: usize,
    ended: bool,
}

impl OnsetSearch {
    pub fn new(highest: f64) -> Self {
        Self { highest, steps: Vec::new(), next: 0, ended: false }
    }

    /// Returns the rates of all steps, in target rates.
    pub fn shares(&self) -> impl Iterator<Item = f64> {
        STEPS.into_iter().filter(|share| *share <= self.highest)
    }

    /// Returns the rate of the next step, in target rates; `None` at the end.
    pub fn next_share(&self) -> Option<f64> {
        STEPS.get(self.next).copied().filter(|share| !self.ended && *share <= self.highest)
    }

    /// Takes the outcome of a step at this rate of TCP payload, bits/s. A step that a host disturbed shows nothing and is not repeated.
    pub fn take(&mut self, rate_bps: u64, outcome: &StreamOutcome) {
        self.next += 1;
        let is_disturbed = outcome.no_fail.is_some() || (outcome.no_pass.is_some() && outcome.lost == 0);
        let (Some(sent_ns), Some(received_ns)) = (outcome.send_span_ns, outcome.receive_span_ns) else { return };
        if is_disturbed || outcome.sent == 0 {
            return;
        }
        let queueing_ns = received_ns.saturating_sub(sent_ns);
        let loss_ratio = outcome.lost as f64 / outcome.sent as f64;
        let excess_ns = queueing_ns as f64 + loss_ratio * sent_ns as f64;
        self.steps.push(QualifyOnsetStep {
            rate_bps,
            queueing_ns,
            loss_ratio,
            is_congested: excess_ns > EXCESS_SHARE * sent_ns as f64 + EXCESS_NS,
        });
        self.ended = loss_ratio >= EXCESS_SHARE;
    }

    /// Returns the steps and the onset; `None` without a step.
    pub fn document(&self) -> Option<QualifyOnset> {
        let last = self.steps.last()?;
        // A single congested step below others is not the onset: congestion must last to the highest step.
        let first = self.steps.iter().rposition(|step| !step.is_congested).map_or(0, |at| at + 1);
        Some(QualifyOnset {
            onset_bps: self.steps.get(first).filter(|_| last.is_congested).map(|step| step.rate_bps),
            standing_queue_ns: self.steps.iter().map(|step| step.queueing_ns).max(),
            steps: self.steps.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the steps over a link of `capacity` target rates with a queue of `buffer_ns`.
    fn onset(capacity: f64, buffer_ns: f64) -> QualifyOnset {
        let mut search = OnsetSearch::new(4.0);
        while let Some(share) = search.next_share() {
            let sent_ns = STEP_S * 1e9;
            let queue_ns = (sent_ns * (share / capacity - 1.0)).max(0.0);
            let lost_ns = (queue_ns - buffer_ns).max(0.0);
            let outcome = StreamOutcome {
                sent: 10_000,
                lost: (10_000.0 * lost_ns / (sent_ns + queue_ns)) as u64,
                send_span_ns: Some(sent_ns as u64),
                receive_span_ns: Some((sent_ns + queue_ns - lost_ns) as u64),
                ..StreamOutcome::default()
            };
            search.take((share * 1e9) as u64, &outcome);
        }
        search.document().expect("steps")
    }

    #[test]
    fn the_onset_is_the_first_step_above_the_section() {
        let found = onset(1.2, 60e6);
        assert_eq!(found.onset_bps, Some(1_300_000_000), "{found:?}");
        assert_eq!(found.steps.last().map(|step| step.rate_bps), Some(1_600_000_000), "ends with the first loss");
        assert!(found.standing_queue_ns.is_some_and(|ns| (59_000_000..=61_000_000).contains(&ns)), "{found:?}");
    }

    #[test]
    fn random_loss_is_not_an_onset() {
        let mut search = OnsetSearch::new(4.0);
        while let Some(share) = search.next_share() {
            let span_ns = Some((STEP_S * 1e9) as u64);
            let outcome = StreamOutcome {
                sent: 10_000,
                lost: 5,
                send_span_ns: span_ns,
                receive_span_ns: span_ns,
                ..StreamOutcome::default()
            };
            search.take((share * 1e9) as u64, &outcome);
        }
        let found = search.document().expect("steps");
        assert_eq!((found.onset_bps, found.steps.len()), (None, STEPS.len()), "{found:?}");
    }

    #[test]
    fn a_fast_section_has_no_onset() {
        let found = onset(8.0, 40e6);
        assert_eq!((found.onset_bps, found.steps.len()), (None, STEPS.len()), "{found:?}");
    }
}
