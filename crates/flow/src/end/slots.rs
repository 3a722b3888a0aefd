//! Timing of request/response measurements and latency probes within a test.

use landspeed_model::{Parameters, RrSize};

use crate::rr::{self, Load, ProbePlan, RrPlan};

/// Time a latency probe measures the idle path before the load starts, nanoseconds.
pub const IDLE_NS: u64 = 1_000_000_000;

/// One request/response measurement of a test; times are nanoseconds after the agreed start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RrSlot {
    /// Sizes of request and response.
    pub size: RrSize,
    /// Timing of the requests: open or closed loop.
    pub load: Load,
    /// Time of the first request.
    pub from_ns: i64,
    /// Requests before this time are omitted.
    pub measure_from_ns: i64,
    /// Time of the last request.
    pub to_ns: i64,
}

impl RrSlot {
    /// Returns the measurements of a test: message sizes one after the other, each with an equal share of the time
    /// and of the omitted phase. Empty when the parameters have no request/response.
    pub fn all(parameters: &Parameters) -> Result<Vec<Self>, rr::PlanError> {
        let Some(wanted) = &parameters.rr else { return Ok(Vec::new()) };
        let load = Load::from_parameters(wanted)?;
        let n = wanted.sizes.len().max(1) as i64;
        let time = parameters.time_ns.unwrap_or(10_000_000_000) as i64 / n;
        let omit = parameters.omit_ns as i64 / n;
        Ok(wanted
            .sizes
            .iter()
            .enumerate()
            .map(|(i, &size)| {
                let from_ns = i as i64 * (time + omit);
                Self { size, load, from_ns, measure_from_ns: from_ns + omit, to_ns: from_ns + omit + time }
            })
            .collect())
    }

    /// Returns the probe that runs next to the bulk streams, starting [`IDLE_NS`] before them.
    pub fn probe(parameters: &Parameters) -> Option<Self> {
        let rate_per_s = parameters.probe_rate_per_s?;
        let time = parameters.time_ns.unwrap_or(10_000_000_000) as i64;
        let omit = parameters.omit_ns as i64;
        Some(Self {
            size: ProbePlan::SIZE,
            load: Load::OpenLoop { rate_per_s },
            from_ns: -(IDLE_NS as i64),
            measure_from_ns: omit,
            to_ns: omit + time,
        })
    }

    /// Returns its plan for a test that starts at `t0_ns` on this host's monotonic clock.
    pub(super) fn plan(&self, t0_ns: u64) -> RrPlan {
        let at = |t: i64| t0_ns.saturating_add_signed(t);
        RrPlan {
            measure_from_ns: at(self.measure_from_ns),
            ..RrPlan::new(self.size, self.load, at(self.from_ns), at(self.to_ns))
        }
    }

    /// Returns the plan of a probe, for the same start time.
    pub(super) fn probe_plan(&self, t0_ns: u64) -> ProbePlan {
        let at = |t: i64| t0_ns.saturating_add_signed(t);
        let Load::OpenLoop { rate_per_s } = self.load else {
            return ProbePlan::new(at(self.from_ns), t0_ns, at(self.to_ns));
        };
        ProbePlan {
            rate_per_s,
            size: self.size,
            // The load starts at zero on the peer's clock; on the local clock its first packets may be
            // slightly earlier.
            loaded_from_ns: at(self.measure_from_ns),
            ..ProbePlan::new(at(self.from_ns), t0_ns, at(self.to_ns))
        }
    }
}
