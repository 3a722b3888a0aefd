//! Combinations of changes. A change can be slower alone and faster with another: `splice` needs a core for
//! each host's thread, a large window more than one core.

use landspeed_model::{Parameters, SendMode, TuneupKind};

use super::{Candidate, WRITES, bytes, congestion_control, congestion_controls, max_streams, unrestricted};
use crate::Settings;
use crate::command::{run_options, send_mode_name};
use crate::facts::Facts;
use crate::placement::{Placement, placements};

/// Maximum number of combinations tried with one verdict.
const MAX_COMBINATIONS: usize = 8;

/// Returns combinations that differ from `best` in at least two settings: without restrictions, and with more
/// streams, each congestion control and each send mode.
pub(super) fn together(best: &Settings, facts: &Facts) -> Vec<Candidate> {
    let now = &best.parameters;
    let undone = unrestricted(now);
    let free = Parameters { write_bytes: WRITES[0], ..undone.clone() };
    let pinned = placements(facts, &free).into_iter().next();
    let pinned = pinned.map(|Placement { client, server, .. }| Parameters {
        client_cpus: client,
        server_cpus: server,
        ..free.clone()
    });
    let streams = (now.streams.max(1) * 2).min(max_streams(facts)).max(now.streams);
    let controls: Vec<_> = std::iter::once(None).chain(congestion_controls(facts, now).map(Some)).collect();
    let with = |base: &Parameters, streams: u32, send: SendMode, control: Option<&str>| Parameters {
        streams,
        send,
        congestion: control.map(str::to_owned).or_else(|| base.congestion.clone()),
        ..base.clone()
    };
    // More streams with another congestion control gain more often than one stream with it.
    let others = [streams, now.streams].into_iter();
    let others = others.flat_map(|streams| controls.iter().map(move |control| (streams, *control)));
    let mut found = vec![undone];
    found.extend(others.map(|(streams, control)| with(&free, streams, now.send, control)));
    found.extend([SendMode::Splice, SendMode::Sendfile].map(|send| with(&free, now.streams, send, None)));
    found.extend(controls.iter().flatten().map(|control| with(&free, now.streams, SendMode::Splice, Some(control))));
    found.extend(pinned.iter().map(|pinned| with(pinned, now.streams, SendMode::Splice, None)));
    let mut candidates: Vec<Candidate> = Vec::new();
    for parameters in found {
        let changes = differences(now, &parameters, facts);
        let key = format!("together:{}", run_options(&parameters).join(" "));
        if changes.len() < 2 || candidates.iter().any(|other| other.key == key) {
            continue;
        }
        candidates.push(Candidate {
            key,
            change: format!("together: {}", changes.join("; ")),
            reason: "changes that do not help alone may help together".to_owned(),
            cause: None,
            settings: Settings { parameters, plan: best.plan.clone() },
            kind: TuneupKind::Together,
            undoes: false,
            is_last: false,
        });
    }
    candidates.truncate(MAX_COMBINATIONS);
    candidates
}

/// Descriptions of the differences between two settings.
fn differences(now: &Parameters, then: &Parameters, facts: &Facts) -> Vec<String> {
    let size = |bytes_or_none: Option<u64>, none: &str| bytes_or_none.map_or(none.to_owned(), bytes);
    let placed = |p: &Parameters| {
        Placement { client: p.client_cpus.clone(), server: p.server_cpus.clone(), reason: String::new() }
            .description()
    };
    let mut found = Vec::new();
    let mut compare = |what: &str, from: String, to: String| {
        if from != to {
            found.push(format!("{what} {from} → {to}"));
        }
    };
    compare("streams", now.streams.to_string(), then.streams.to_string());
    compare("window", size(now.window_bytes, "autotuned"), size(then.window_bytes, "autotuned"));
    compare("write size", bytes(now.write_bytes), bytes(then.write_bytes));
    compare("CPUs:", placed(now), placed(then));
    compare("--send", send_mode_name(now.send).to_owned(), send_mode_name(then.send).to_owned());
    let control = congestion_control(facts, now).unwrap_or("default");
    let then_control = if then.congestion == now.congestion { None } else { then.congestion.as_deref() };
    compare("congestion control", control.to_owned(), then_control.unwrap_or(control).to_owned());
    let limit = |set: bool| if set { "set" } else { "off" }.to_owned();
    compare("pacing", limit(now.pace_bps.is_some()), limit(then.pace_bps.is_some()));
    compare("MSS", limit(now.mss_bytes.is_some()), limit(then.mss_bytes.is_some()));
    found
}

#[cfg(test)]
mod tests {
    use landspeed_model::TuneupPlan;

    use super::*;
    use crate::facts::EndFacts;

    fn facts() -> Facts {
        let end = EndFacts {
            cores: vec![0, 1],
            congestion_available: vec!["cubic".to_owned(), "bbr".to_owned()],
            ..EndFacts::default()
        };
        Facts {
            client_sends: true,
            same_host: true,
            client: end.clone(),
            server: end,
            congestion: Some("bbr".to_owned()),
            ..Facts::default()
        }
    }

    #[test]
    fn combinations_lift_restrictions_with_each_send_mode() {
        let parameters = Parameters {
            window_bytes: Some(65_536),
            client_cpus: vec![0],
            server_cpus: vec![0],
            ..Parameters::default()
        };
        let found = together(&Settings { parameters, plan: TuneupPlan::default() }, &facts());
        let first = "together: window 64.0 KiB → autotuned; CPUs: client core 0, server core 0 → no pinning";
        assert_eq!(found[0].change, first);
        let wanted = |candidate: &&Candidate| {
            let p = &candidate.settings.parameters;
            p.send == SendMode::Splice && p.congestion.as_deref() == Some("cubic") && p.client_cpus.is_empty()
        };
        assert_eq!(found.iter().filter(wanted).count(), 1);
        assert!(found.iter().any(|candidate| candidate.settings.parameters.streams == 2));
        assert!(found.len() <= MAX_COMBINATIONS);
    }

    #[test]
    fn combinations_differ_in_at_least_two_settings() {
        let best = Settings { parameters: Parameters::default(), plan: TuneupPlan::default() };
        let facts = facts();
        let found = together(&best, &facts);
        assert!(!found.is_empty());
        assert!(
            found
                .iter()
                .all(|candidate| differences(&best.parameters, &candidate.settings.parameters, &facts).len() >= 2)
        );
    }
}
