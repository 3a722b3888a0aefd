//! Candidate changes, those that the verdict suggests first.

mod rank;
mod together;

use std::collections::BTreeSet;

use landspeed_model::{Cause, Change, PaceScope, Parameters, SendMode, Target, TuneupKind as Kind, Verdict};
use landspeed_units::{BitRate, Bytes};

use crate::command::send_mode_name;
use crate::facts::{EndFacts, Facts};
use crate::placement::placements;
use crate::{Settings, placement};

/// Write sizes that amortise the cost of a system call: one that fits the L2 cache, and the default of `run`.
const WRITES: [u64; 2] = [1 << 20, 128 << 10];
/// Congestion controls to try if the kernel has them: one that does not treat loss as congestion, the default, and the
/// simplest, which costs the least CPU time on a short path.
const CONGESTION: [&str; 3] = ["bbr", "cubic", "reno"];
/// Largest window to ask for, bytes: the kernel doubles it within a signed 32-bit integer.
const MAX_WINDOW: u64 = 1 << 29;
/// Pacing rate as a share of the slower link's rate: leaves room for headers and for the bursts that pacing
/// leaves.
const PACE_SHARE: f64 = 0.94;
/// Queueing disciplines that pace or manage their queue; candidates do not replace them.
const GOOD_QDISCS: [&str; 4] = ["fq", "fq_codel", "cake", "noqueue"];
/// Queueing disciplines that hold all flows of an interface to a rate, whatever their leaves are.
const SHAPING_QDISCS: [&str; 4] = ["tbf", "htb", "hfsc", "cbq"];
/// Replacements for other queueing disciplines; the first one available is used. Every kernel has the last one.
const NEW_QDISCS: [(&str, &str); 3] = [
    ("fq", "fq paces each flow and its queue is not shared"),
    ("fq_codel", "fq_codel gives each flow a queue of its own and keeps it short"),
    ("pfifo_fast", "the kernel's own queue holds as many packets as the interface asks for (txqueuelen)"),
];
/// Offloads that save CPU time on any path.
const OFFLOADS: [&str; 5] =
    ["tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-generic-segmentation", "rx-gro", "tx-scatter-gather"];

/// A change to the best settings so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Key of the change, independent of the settings it starts from.
    pub key: String,
    /// Description of the change.
    pub change: String,
    /// Reason why the change may help.
    pub reason: String,
    /// Cause in the verdict that suggests it; `None` if it is tried with any verdict.
    pub cause: Option<Cause>,
    /// The settings with this change.
    pub settings: Settings,
    kind: Kind,
    /// Whether it undoes restrictions that were given: one, or all of them together.
    pub(crate) undoes: bool,
    /// Whether it is tried after all others, and after changes that nearly helped.
    pub(crate) is_last: bool,
}

impl Candidate {
    /// Whether it lifts a limit of the rate. Such a limit hides the queue and the losses of the path itself.
    pub(crate) fn lifts_rate_limit(&self, best: &Settings) -> bool {
        let limit = |settings: &Settings| settings.parameters.pace_bps.unwrap_or(u64::MAX);
        limit(&self.settings) > limit(best)
    }
}

/// Categories tried with any cause, in this order: those that multiplied the rate of mis-tuned pairs first, those of a few
/// per cent last.
const STANDARD: &[Kind] = &[
    Kind::Window,
    Kind::Congestion,
    Kind::Streams,
    Kind::Writes,
    Kind::Qdisc,
    Kind::Placement,
    Kind::ZeroCopy,
    Kind::Pacing,
    Kind::Mss,
    Kind::Offloads,
    Kind::Together,
];

/// Returns all candidates from `best`, those with the highest expected gain first: all restrictions that were given undone
/// together; what the cause suggests first; each restriction undone alone; the cause's other suggestions; then the
/// standard order, with two combinations before the changes of a few per cent, and the others last. A change that
/// several causes suggest is listed once. Host settings are changed only with `host_changes`. `refused` has the keys of
/// changes that a host could not make; for these the next alternative is listed.
pub fn candidates(
    best: &Settings,
    verdict: &Verdict,
    facts: &Facts,
    host_changes: bool,
    refused: &BTreeSet<String>,
) -> Vec<Candidate> {
    let pointed = verdict.cause.changes().iter().map(|kind| (*kind, Some(verdict.cause)));
    let all = pointed.chain(STANDARD.iter().map(|kind| (*kind, None)));
    let mut found: Vec<Candidate> = Vec::new();
    for (kind, cause) in all {
        let source = Source { kind, best, facts, cause, refused };
        let new = match kind {
            Kind::Buffers | Kind::Qdisc | Kind::Offloads if !host_changes => Vec::new(),
            Kind::Window => source.window(),
            Kind::Buffers => source.buffers(),
            Kind::Writes => source.writes(),
            Kind::Placement => source.placement(),
            Kind::ZeroCopy => source.zero_copy(),
            Kind::Streams => source.streams(),
            Kind::Congestion => source.congestion(),
            Kind::Pacing => source.pacing(),
            Kind::Mss => source.mss(),
            Kind::Qdisc => source.qdisc(),
            Kind::Offloads => source.offloads(),
            Kind::Together => together::together(best, facts),
        };
        for candidate in new {
            if candidate.settings != *best && found.iter().all(|other| other.key != candidate.key) {
                found.push(candidate);
            }
        }
    }
    rank::by_expected_gain(found, best, verdict.cause)
}

/// The parameters without the restrictions that were given; the kernel's own choice is usually better.
pub(crate) fn unrestricted(p: &Parameters) -> Parameters {
    Parameters {
        window_bytes: None,
        pace_bps: None,
        pace_scope: PaceScope::default(),
        mss_bytes: None,
        client_cpus: Vec::new(),
        server_cpus: Vec::new(),
        write_bytes: if short(p) { WRITES[0] } else { p.write_bytes },
        ..p.clone()
    }
}

/// Whether each write is so short that the system calls dominate.
fn short(p: &Parameters) -> bool {
    p.write_bytes < 64 << 10
}

struct Source<'a> {
    kind: Kind,
    best: &'a Settings,
    facts: &'a Facts,
    cause: Option<Cause>,
    refused: &'a BTreeSet<String>,
}

impl Source<'_> {
    fn parameters(&self) -> &Parameters {
        &self.best.parameters
    }

    fn with(&self, key: String, change: String, reason: &str, set: impl FnOnce(&mut Parameters)) -> Candidate {
        let mut settings = self.best.clone();
        set(&mut settings.parameters);
        self.candidate(key, change, reason, settings)
    }

    fn candidate(&self, key: String, change: String, reason: &str, settings: Settings) -> Candidate {
        let (cause, kind, reason) = (self.cause, self.kind, reason.to_owned());
        Candidate { key, change, reason, cause, settings, kind, undoes: false, is_last: false }
    }

    fn window(&self) -> Vec<Candidate> {
        let mut found = Vec::new();
        let now = self.parameters().window_bytes;
        if let Some(now) = now {
            let change = format!("window {} → autotuned", bytes(now));
            let reason = "a fixed socket buffer turns the kernel's autotuning off";
            found.push(self.with("window=auto".to_owned(), change, reason, |p| p.window_bytes = None));
        }
        // A requested window is bounded by rmem_max and wmem_max, not by autotuning's limit.
        let limited = matches!(self.cause, Some(Cause::ReceiverWindow | Cause::SendBuffer));
        let wanted = self.facts.bdp_bytes().map(|bdp| (2.0 * bdp).max(65_536.0) as u64);
        let most = [&self.facts.client, &self.facts.server].into_iter().filter_map(|end| end.window_max).min();
        if let (true, Some(wanted), Some(most)) = (limited, wanted, most) {
            let size = wanted.saturating_mul(2).next_power_of_two().min(most).min(MAX_WINDOW);
            if now.is_none_or(|now| size > now) && size >= wanted / 2 {
                let change = format!("window {} → {}", now.map_or("autotuned".to_owned(), bytes), bytes(size));
                let reason = "the window is smaller than the bandwidth-delay product allows for";
                found.push(self.with(format!("window={size}"), change, reason, |p| p.window_bytes = Some(size)));
            }
        }
        found
    }

    /// Changes of autotuning's limits.
    fn buffers(&self) -> Vec<Candidate> {
        let Some(bdp) = self.facts.bdp_bytes() else { return Vec::new() };
        // Half of a buffer is overhead, and the rate should be able to grow.
        let wanted = ((bdp * 8.0) as u64).next_power_of_two().clamp(16 << 20, 1 << 30);
        let ends = [
            (self.facts.receiver(), !self.facts.client_sends, "net.ipv4.tcp_rmem", self.facts.receiver().rmem),
            (self.facts.sender(), self.facts.client_sends, "net.ipv4.tcp_wmem", self.facts.sender().wmem),
        ];
        let raise = |(_, client, name, now): (&EndFacts, bool, &str, Option<[u64; 3]>)| {
            let [least, default, most] = now.filter(|now| now[2] < wanted)?;
            let change = Change::sysctl(name, format!("{least} {default} {wanted}"));
            let description = format!("{name} limit {} → {}", bytes(most), bytes(wanted));
            Some(self.host(client, change, &description, "autotuning stops at this limit, below what the path holds"))
        };
        ends.into_iter().filter_map(raise).collect()
    }

    fn writes(&self) -> Vec<Candidate> {
        let now = self.parameters().write_bytes;
        let reason = "a larger write costs fewer system calls; a smaller one stays in the cache";
        let to = |size: u64| {
            let change = format!("write size {} → {}", bytes(now), bytes(size));
            self.with(format!("write={size}"), change, reason, |p| p.write_bytes = size)
        };
        WRITES.into_iter().filter(|size| *size != now).map(to).collect()
    }

    fn placement(&self) -> Vec<Candidate> {
        let p = self.parameters();
        let now = placement::Placement {
            client: p.client_cpus.clone(),
            server: p.server_cpus.clone(),
            reason: String::new(),
        };
        let to = |to: placement::Placement| {
            let change = format!("CPUs: {} → {}", now.description(), to.description());
            self.with(to.key(), change, &to.reason, |p| {
                p.client_cpus.clone_from(&to.client);
                p.server_cpus.clone_from(&to.server);
            })
        };
        placements(self.facts, p).into_iter().map(to).collect()
    }

    fn zero_copy(&self) -> Vec<Candidate> {
        let modes = [SendMode::Sendfile, SendMode::Zerocopy, SendMode::Splice, SendMode::Copy];
        let now = self.parameters().send;
        let useful = |mode: &SendMode| match mode {
            // Loopback copies MSG_ZEROCOPY sends anyway.
            SendMode::Zerocopy => !self.facts.loopback,
            SendMode::Splice => self.cause == Some(Cause::SenderCpu),
            SendMode::Sendfile | SendMode::Copy => true,
        };
        let to = |mode: SendMode| {
            let change = format!("--send {} → {}", send_mode_name(now), send_mode_name(mode));
            let reason = match mode {
                SendMode::Copy => "a copy may cost less than keeping track of pages",
                _ => "zero copy saves the sender's copy",
            };
            self.with(format!("send={}", send_mode_name(mode)), change, reason, |p| p.send = mode)
        };
        modes.into_iter().filter(|mode| *mode != now).filter(useful).map(to).collect()
    }

    fn streams(&self) -> Vec<Candidate> {
        let now = self.parameters().streams.max(1);
        let of_cpu = matches!(
            self.cause,
            None | Some(Cause::SenderCpu | Cause::ReceiverCpu | Cause::Application | Cause::SlowReader)
        );
        // More flows get a larger share of a lossy path.
        let most = if of_cpu { max_streams(self.facts) } else { 16 };
        let to = |streams: u32| {
            let change = format!("streams {now} → {streams}");
            let reason = "each stream has its own thread, window and congestion window";
            self.with(format!("streams={streams}"), change, reason, |p| p.streams = streams)
        };
        let mut wanted = vec![now * 2, now * 4];
        if now > 1 {
            wanted.push(1);
        }
        wanted.into_iter().filter(|streams| *streams <= most.max(2)).map(to).collect()
    }

    fn congestion(&self) -> Vec<Candidate> {
        let now = congestion_control(self.facts, self.parameters());
        let to = |name: &str| {
            let change = format!("congestion control {} → {name}", now.unwrap_or("default"));
            let reason = "loss and delay are answered differently";
            self.with(format!("congestion={name}"), change, reason, |p| p.congestion = Some(name.to_owned()))
        };
        congestion_controls(self.facts, self.parameters()).map(to).collect()
    }

    fn pacing(&self) -> Vec<Candidate> {
        let p = self.parameters();
        let mut found = Vec::new();
        let rate = |bps: u64| BitRate::from_bps(bps).to_string();
        let now = p.pace_bps.map_or("off".to_owned(), rate);
        if p.pace_bps.is_some() {
            let change = format!("pacing {now} → off");
            let reason = "a pacing rate is an upper limit";
            found.push(self.with("pace=off".to_owned(), change, reason, |p| {
                // A scope without a rate is refused.
                (p.pace_bps, p.pace_scope) = (None, PaceScope::default());
            }));
        }
        let slower = self.facts.slower_link_bps().map(|link| (link as f64 * PACE_SHARE) as u64);
        // Without losses, pacing has nothing to avoid.
        let lossy = self.facts.retransmits > Some(0);
        let wanted =
            slower.or(self.cause.and_then(|_| Some((self.facts.goodput_bps? * 1.05) as u64))).filter(|_| lossy);
        if let Some(total) = wanted.filter(|total| *total >= 1_000_000) {
            let change = format!("pacing {now} → {} in all", rate(total));
            let reason = match slower {
                Some(_) => "bursts beyond the slower link overflow its queue",
                None => "bursts beyond the rate of the bottleneck overflow its queue",
            };
            found.push(self.with(format!("pace={total}"), change, reason, |p| {
                p.pace_bps = Some(total);
                p.pace_scope = PaceScope::Total;
            }));
        }
        found
    }

    fn mss(&self) -> Vec<Candidate> {
        let now = self.parameters().mss_bytes;
        let named = |mss: Option<u32>| mss.map_or("path MTU".to_owned(), |mss| format!("{mss} B"));
        let to = |mss: Option<u32>, reason: &str| {
            let change = format!("MSS {} → {}", named(now), named(mss));
            self.with(format!("mss={mss:?}"), change, reason, |p| p.mss_bytes = mss)
        };
        let mut found = Vec::new();
        if now.is_some() {
            found.push(to(None, "larger segments cost less for each byte"));
        }
        if self.cause == Some(Cause::PathMtu) {
            found.push(to(Some(1200), "packets of the path MTU in use do not pass"));
        }
        found
    }

    /// A candidate that changes a setting of the client or the server host.
    fn host(&self, client: bool, change: Change, description: &str, reason: &str) -> Candidate {
        let mut settings = self.best.clone();
        let (end, list) =
            if client { ("client", &mut settings.plan.client) } else { ("server", &mut settings.plan.server) };
        list.retain(|other| other.target != change.target);
        let key = format!("{end}:{}={}", change.target, change.desired);
        list.push(change);
        self.candidate(key, format!("{end}: {description}"), reason, settings)
    }

    fn qdisc(&self) -> Vec<Candidate> {
        let end = self.facts.sender();
        let root = end.qdiscs.first().map_or("", String::as_str);
        let Some(interface) = &end.interface else { return Vec::new() };
        let shapes = SHAPING_QDISCS.contains(&root);
        let good = !shapes && end.qdiscs.iter().any(|kind| GOOD_QDISCS.contains(&kind.as_str()));
        if self.facts.loopback || root.is_empty() || good {
            return Vec::new();
        }
        let to = |(kind, reason): (&str, &str)| {
            let change = Change::new(Target::Qdisc { interface: interface.clone() }, kind);
            self.host(self.facts.client_sends, change, &format!("{interface} qdisc {root} → {kind}"), reason)
        };
        let in_use = if shapes { &end.qdiscs[..1] } else { &end.qdiscs[..] };
        let others = NEW_QDISCS.into_iter().filter(|(kind, _)| in_use.iter().all(|now| now != kind));
        others.map(to).find(|candidate| !self.refused.contains(&candidate.key)).into_iter().collect()
    }

    fn offloads(&self) -> Vec<Candidate> {
        let ends =
            [(self.facts.client_sends, self.facts.sender()), (!self.facts.client_sends, self.facts.receiver())];
        let of = |(client, end): (bool, &EndFacts)| -> Vec<Candidate> {
            let Some(interface) = &end.interface else { return Vec::new() };
            let off = OFFLOADS.iter().filter(|name| end.offloads_off.iter().any(|off| off == *name));
            off.map(|name| {
                let target = Target::Feature { interface: interface.clone(), name: (*name).to_owned() };
                let description = format!("{interface} {name} off → on");
                self.host(
                    client,
                    Change::new(target, "on"),
                    &description,
                    "one large packet costs less than many small ones",
                )
            })
            .collect()
        };
        ends.into_iter().flat_map(of).collect()
    }
}

/// One stream per core of the host with fewer cores; more threads would only take turns.
fn max_streams(facts: &Facts) -> u32 {
    facts.client.cores.len().min(facts.server.cores.len()).max(1) as u32
}

/// The effective congestion control.
fn congestion_control<'a>(facts: &'a Facts, parameters: &'a Parameters) -> Option<&'a str> {
    facts.congestion.as_deref().or(parameters.congestion.as_deref())
}

/// Other congestion controls to try that the sender has.
fn congestion_controls(facts: &Facts, parameters: &Parameters) -> impl Iterator<Item = &'static str> {
    let others = CONGESTION.into_iter().filter(|name| Some(*name) != congestion_control(facts, parameters));
    others.filter(|name| facts.sender().congestion_available.iter().any(|other| other == name))
}

fn bytes(n: u64) -> String {
    Bytes::new(n).to_string()
}

#[cfg(test)]
mod tests {
    use landspeed_model::Confidence;

    use super::*;

    fn verdict(cause: Cause) -> Verdict {
        Verdict {
            cause,
            confidence: Confidence::Medium,
            summary: String::new(),
            place: None,
            evidence: Vec::new(),
            ruled_out: Vec::new(),
            missing: Vec::new(),
            next_step: String::new(),
            epochs: Vec::new(),
        }
    }

    fn facts() -> Facts {
        let end = EndFacts {
            cores: vec![0, 1],
            interface: Some("eth0".to_owned()),
            qdiscs: vec!["pfifo".to_owned()],
            offloads_off: vec!["rx-gro".to_owned(), "rx-lro".to_owned()],
            congestion_available: vec!["reno".to_owned(), "cubic".to_owned(), "bbr".to_owned()],
            rmem: Some([4096, 131_072, 6 << 20]),
            wmem: Some([4096, 16_384, 4 << 20]),
            window_max: Some(4 << 20),
            ..EndFacts::default()
        };
        Facts {
            client_sends: true,
            client: end.clone(),
            server: end,
            goodput_bps: Some(1e9),
            min_rtt_us: Some(20_000),
            congestion: Some("cubic".to_owned()),
            ..Facts::default()
        }
    }

    fn settings(parameters: Parameters) -> Settings {
        Settings { parameters, plan: landspeed_model::TuneupPlan::default() }
    }

    fn keys(found: &[Candidate]) -> Vec<&str> {
        found.iter().map(|candidate| candidate.key.as_str()).collect()
    }

    #[test]
    fn cause_determines_the_first_candidate() {
        let plain = settings(Parameters { write_bytes: 128 << 10, ..Parameters::default() });
        let first = |cause| candidates(&plain, &verdict(cause), &facts(), false, &BTreeSet::new()).remove(0);
        assert_eq!(first(Cause::ReceiverWindow).cause, Some(Cause::ReceiverWindow));
        assert_eq!(first(Cause::SenderCpu).key, "write=1048576");
        assert_eq!(first(Cause::NetworkLoss).key, "congestion=bbr");
        assert_eq!(first(Cause::Undetermined).key, "congestion=bbr");
        assert_eq!(first(Cause::Undetermined).cause, None);
    }

    #[test]
    fn restrictions_are_undone_first_together_then_alone() {
        let given = Parameters { window_bytes: Some(65_536), mss_bytes: Some(500), ..Parameters::default() };
        let found =
            candidates(&settings(given.clone()), &verdict(Cause::NetworkLoss), &facts(), false, &BTreeSet::new());
        assert_eq!(found[0].settings.parameters, Parameters { window_bytes: None, mss_bytes: None, ..given });
        assert_eq!(keys(&found)[1..3], ["congestion=bbr", "congestion=reno"]);
        let alone: Vec<&str> = keys(&found).into_iter().filter(|key| !key.starts_with("together")).collect();
        assert_eq!(alone[2..4], ["window=auto", "mss=None"]);
        assert!(found.iter().filter(|candidate| candidate.undoes).count() == 3);

        let one = settings(Parameters { mss_bytes: Some(500), ..Parameters::default() });
        let found = candidates(&one, &verdict(Cause::SenderCpu), &facts(), false, &BTreeSet::new());
        assert_eq!(keys(&found)[0], "mss=None", "the only restriction");
    }

    #[test]
    fn host_settings_are_changed_only_with_permission() {
        let plain = settings(Parameters::default());
        let changes = |allowed| {
            let found = candidates(&plain, &verdict(Cause::ReceiverWindow), &facts(), allowed, &BTreeSet::new());
            found.into_iter().filter(|candidate| candidate.settings.plan != plain.plan).collect::<Vec<_>>()
        };
        assert!(changes(false).is_empty());
        let found = changes(true);
        assert_eq!(
            keys(&found),
            [
                "server:net.ipv4.tcp_rmem=4096 131072 33554432",
                "client:net.ipv4.tcp_wmem=4096 16384 33554432",
                "client:eth0 qdisc=fq",
                "client:eth0 rx-gro=on",
                "server:eth0 rx-gro=on",
            ]
        );
        assert!(found.iter().all(|candidate| candidate.settings.parameters == plain.parameters));
    }

    #[test]
    fn candidates_are_unique_and_differ_from_the_best() {
        for cause in [Cause::SenderCpu, Cause::ReceiverWindow, Cause::Policer, Cause::Pacing, Cause::PathMtu] {
            let p = Parameters { pace_bps: Some(1_000_000_000), mss_bytes: Some(1000), ..Parameters::default() };
            let best = settings(p);
            let found = candidates(&best, &verdict(cause), &facts(), true, &BTreeSet::new());
            let mut unique = keys(&found);
            unique.sort_unstable();
            unique.dedup();
            assert_eq!(unique.len(), found.len(), "{:?}", keys(&found));
            assert!(found.iter().all(|candidate| candidate.settings != best));
        }
    }

    #[test]
    fn shaping_roots_are_replaced_whatever_their_leaves() {
        let offered = |qdiscs: &[&str]| {
            let mut facts = facts();
            facts.client.qdiscs = qdiscs.iter().map(|&kind| kind.to_owned()).collect();
            let plain = settings(Parameters::default());
            let found = candidates(&plain, &verdict(Cause::LocalQdisc), &facts, true, &BTreeSet::new());
            keys(&found).into_iter().find(|key| key.contains("qdisc")).map(str::to_owned)
        };
        for shaped in [&["htb", "fq_codel"][..], &["tbf", "fq"], &["tbf", "bfifo"]] {
            assert_eq!(offered(shaped).as_deref(), Some("client:eth0 qdisc=fq"), "{shaped:?}");
        }
        for good in [&["fq"][..], &["mq", "fq_codel", "fq_codel"], &["noqueue"]] {
            assert_eq!(offered(good), None, "{good:?}");
        }
    }

    #[test]
    fn refused_qdiscs_are_followed_by_the_next_alternative() {
        let plain = settings(Parameters::default());
        let mut refused = BTreeSet::new();
        let mut offered = Vec::new();
        for _ in 0..4 {
            let found = candidates(&plain, &verdict(Cause::LocalQdisc), &facts(), true, &refused);
            let qdiscs: Vec<_> = keys(&found).into_iter().filter(|key| key.contains("qdisc")).collect();
            offered.push(qdiscs.join(" "));
            refused.extend(qdiscs.into_iter().map(str::to_owned));
        }
        assert_eq!(
            offered,
            ["client:eth0 qdisc=fq", "client:eth0 qdisc=fq_codel", "client:eth0 qdisc=pfifo_fast", ""]
        );
    }

    #[test]
    fn pacing_is_removed_together_with_its_scope() {
        let (pace_bps, pace_scope) = (Some(1_000_000_000), PaceScope::Total);
        let paced = settings(Parameters { pace_bps, pace_scope, mss_bytes: Some(500), ..Parameters::default() });
        let found = candidates(&paced, &verdict(Cause::Pacing), &facts(), false, &BTreeSet::new());
        for candidate in found.iter().filter(|candidate| candidate.settings.parameters.pace_bps.is_none()) {
            let problems = landspeed_settings::problems(&candidate.settings.parameters);
            assert!(problems.is_empty(), "{}: {problems:?}", candidate.change);
            assert!(candidate.lifts_rate_limit(&paced), "{}", candidate.change);
        }
    }

    #[test]
    fn pacing_is_tried_only_with_retransmits() {
        let plain = settings(Parameters::default());
        let paced = |retransmits| {
            let facts = Facts { retransmits, ..facts() };
            let found = candidates(&plain, &verdict(Cause::Policer), &facts, false, &BTreeSet::new());
            found.iter().any(|candidate| candidate.key.starts_with("pace="))
        };
        assert!(paced(Some(10)) && !paced(Some(0)) && !paced(None));
    }
}
