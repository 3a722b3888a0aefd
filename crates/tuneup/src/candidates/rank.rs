//! Order of candidates by the gain that is expected of them.

use landspeed_model::{Cause, Parameters, TuneupKind as Kind};

use super::{Candidate, short, unrestricted};
use crate::Settings;

/// Categories that multiplied the rate of mis-tuned pairs. Of the others, which gain a few per cent, only the first
/// candidate is tried early, if the cause suggests it.
const LARGE_GAINS: &[Kind] =
    &[Kind::Window, Kind::Buffers, Kind::Congestion, Kind::Streams, Kind::Writes, Kind::Qdisc];

/// Number of combinations tried before changes of a few per cent.
const EARLY_COMBINATIONS: usize = 2;

/// Sorts the candidates from `best`, those with the highest expected gain first, and marks those that undo a restriction and
/// those that come last.
pub(super) fn by_expected_gain(found: Vec<Candidate>, best: &Settings, cause: Cause) -> Vec<Candidate> {
    let free = unrestricted(&best.parameters);
    let first = cause.changes().first();
    let mut seen: Vec<Kind> = Vec::new();
    let mut rank = |candidate: &mut Candidate| {
        candidate.undoes = match candidate.kind {
            Kind::Together => candidate.settings.parameters == free,
            _ => lifts_restriction(&best.parameters, &candidate.settings.parameters),
        };
        let undoes_all = candidate.undoes && candidate.settings.parameters == free;
        if candidate.kind == Kind::Together && !undoes_all {
            candidate.is_last = seen.iter().filter(|kind| **kind == Kind::Together).count() >= EARLY_COMBINATIONS;
        }
        let pointed = candidate.cause.is_some();
        let early = LARGE_GAINS.contains(&candidate.kind) || !seen.contains(&candidate.kind);
        let rank = match candidate.kind {
            _ if undoes_all => return 0,
            Kind::Together if candidate.is_last => 9,
            Kind::Together => 6,
            kind if pointed && early && Some(&kind) == first => 1,
            _ if candidate.undoes => 2,
            kind if pointed && LARGE_GAINS.contains(&kind) => 3,
            _ if pointed && early => 4,
            kind if LARGE_GAINS.contains(&kind) => 5,
            _ if pointed => 7,
            _ => 8,
        };
        seen.push(candidate.kind);
        rank
    };
    let mut ranked: Vec<_> = found.into_iter().map(|mut candidate| (rank(&mut candidate), candidate)).collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, candidate)| candidate).collect()
}

/// Whether `then` lacks a restriction that `now` has.
fn lifts_restriction(now: &Parameters, then: &Parameters) -> bool {
    let pinned = |p: &Parameters| !p.client_cpus.is_empty() || !p.server_cpus.is_empty();
    (now.window_bytes.is_some() && then.window_bytes.is_none())
        || (now.pace_bps.is_some() && then.pace_bps.is_none())
        || (now.mss_bytes.is_some() && then.mss_bytes.is_none())
        || (pinned(now) && !pinned(then))
        || (short(now) && !short(then))
}
