//! Search for the highest loss-free rate, the same bounded search for every tool.

use anyhow::Result;

/// Result of one run at an offered rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Probe {
    /// Actual send rate, bits/s of payload.
    pub sent_bps: f64,
    /// Goodput, bits/s of payload.
    pub goodput_bps: f64,
    /// Datagrams lost: the larger of the tool's count and the kernel's.
    pub lost: u64,
}

/// Maximum halvings of the rate until a run is loss-free; fast senders need most.
const MAX_HALVINGS: u32 = 12;
/// Bisection steps between a rate with loss and one without.
const BISECTION_STEPS: u32 = 5;

/// Result of a search, bits/s of payload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Highest {
    /// Highest goodput of a loss-free run; 0 if every run had loss.
    pub loss_free_bps: f64,
    /// Goodput of the unlimited run, with or without loss.
    pub unlimited_bps: f64,
}

/// Searches for the highest goodput of a loss-free run: first unlimited, then halving the rate until nothing is
/// lost, then by bisection.
///
/// `probe` takes the rate to offer, bits/s; `None` is unlimited. A run with loss is repeated once at the same
/// rate: a disturbance of a shared machine is not the tool's limit.
pub fn highest(mut probe: impl FnMut(Option<f64>) -> Result<Probe>) -> Result<Highest> {
    let mut twice = |rate| {
        let first = probe(rate)?;
        if first.lost == 0 { Ok::<_, anyhow::Error>(first) } else { probe(rate) }
    };
    let unlimited = twice(None)?;
    let unlimited_bps = unlimited.goodput_bps;
    if unlimited.lost == 0 {
        return Ok(Highest { loss_free_bps: unlimited_bps, unlimited_bps });
    }
    let (mut low, mut high, mut best) = (0.0, unlimited.sent_bps, 0.0_f64);
    let (mut halvings, mut steps) = (0, 0);
    while steps < BISECTION_STEPS && halvings < MAX_HALVINGS {
        let rate = f64::midpoint(low, high);
        let run = twice(Some(rate))?;
        if low > 0.0 {
            steps += 1;
        } else {
            halvings += 1;
        }
        if run.lost == 0 {
            low = rate;
            best = best.max(run.goodput_bps);
        } else {
            high = rate;
        }
    }
    Ok(Highest { loss_free_bps: best, unlimited_bps })
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "zero is exact here")]
mod tests {
    use super::*;

    /// Simulates a tool that sends at most `fastest` and loses datagrams above `limit`.
    fn tool(limit: f64, fastest: f64) -> impl FnMut(Option<f64>) -> Result<Probe> {
        move |rate| {
            let sent_bps = rate.unwrap_or(fastest).min(fastest);
            let lost = u64::from(sent_bps > limit) * 10;
            Ok(Probe { sent_bps, goodput_bps: sent_bps.min(limit), lost })
        }
    }

    #[test]
    fn a_sender_that_cannot_outrun_its_receiver_needs_one_run() {
        let mut runs = 0;
        let mut inner = tool(9e9, 5e9);
        let found = highest(|rate| {
            runs += 1;
            inner(rate)
        });
        assert_eq!((found.unwrap(), runs), (Highest { loss_free_bps: 5e9, unlimited_bps: 5e9 }, 1));
    }

    #[test]
    fn the_limit_is_found_within_three_percent() {
        for limit in [1e7, 1e8, 3.3e9, 9.9e9] {
            let found = highest(tool(limit, 10e9)).unwrap().loss_free_bps;
            assert!(found <= limit && limit - found <= limit / 30.0, "{limit}: {found}");
        }
    }

    #[test]
    fn single_lossy_run_is_repeated_at_the_same_rate() {
        let mut inner = tool(8e9, 10e9);
        let mut hiccup = true;
        let found = highest(|rate| {
            let mut run = inner(rate)?;
            if rate == Some(5e9) && std::mem::take(&mut hiccup) {
                run.lost = 1;
            }
            Ok(run)
        });
        assert!(found.unwrap().loss_free_bps > 7.8e9);
    }

    #[test]
    fn a_tool_that_always_loses_has_no_loss_free_rate() {
        assert_eq!(highest(tool(0.0, 1e9)).unwrap().loss_free_bps, 0.0);
    }
}
