//! Search for the path MTU: decides the next size to probe, and when the result is known. Pure; sizes are bytes
//! of IP packet.
//!
//! A size that passed is proven to pass; a failure is evidence of varying weight. A lost probe is one point,
//! and counts only if a small packet sent right after it arrived. The search treats a size as failing at three
//! points, and accepts the edge — the smallest failing size, one byte above the largest passing one — at nine.
//! Failures explained by ICMP, the sender's kernel or a reported fragment weigh more. With 10 % packet loss in
//! each direction, a probe that fits is lost one time in five: a size in the middle of the search is misjudged
//! once in 150 times, which the check of the edge corrects, and the edge once in three million.

use std::collections::{BTreeMap, BTreeSet};

/// Points at which a size counts as failing.
const FAIL_POINTS: u32 = 3;
/// Points at which the edge is accepted.
const EDGE_POINTS: u32 = 9;
/// Points of an ICMP message from a router. An on-path observer can forge it, so the edge needs three.
const ICMP: u32 = 3;
/// Smallest MTU of an IPv4 link (RFC 791); smaller values in ICMP are ignored.
const MIN_MTU: u32 = 68;
/// Common path MTUs: the minima of IPv4 and IPv6, tunnels over Ethernet (WireGuard 1420, VXLAN 1450, GRE 1476),
/// PPPoE 1492, Ethernet, FDDI 4352, cloud and jumbo Ethernet. A match is confirmed by probing one byte more.
const COMMON_MTUS: &[u32] =
    &[576, 1_280, 1_400, 1_420, 1_450, 1_476, 1_492, 1_500, 2_048, 4_352, 8_000, 8_500, 8_900, 9_000, 9_216, 16_384];

/// Reason why a probe failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// Lost, while the small packet after it arrived.
    Lost,
    /// ICMP "too big" from a router, with the MTU of its link (0: not reported).
    Icmp(u32),
    /// Larger than the interface's MTU as reported by the sender's kernel (0: not reported).
    Interface(u32),
    /// Refused by the sender's kernel for another reason, with the error number.
    Blocked(i32),
    /// Arrived in fragments; size of the largest.
    Fragmented(u32),
}

/// Evidence that a size fails.
#[derive(Debug, Clone, Copy, Default)]
struct Evidence {
    points: u32,
    /// Number of lost probes.
    lost: u32,
    /// Whether any failure had an explanation other than loss.
    explained: bool,
    /// Whether a probe arrived in fragments.
    fragmented: bool,
}

/// Search in one direction.
#[derive(Debug)]
pub struct Search {
    least: u32,
    most: u32,
    passed: u32,
    /// Evidence per size above `passed`.
    failed: BTreeMap<u32, Evidence>,
    /// Lost probes of sizes that pass.
    unrelated_losses: u32,
    hints: BTreeSet<u32>,
    /// Latest explanations of failures, one per kind.
    explanations: Explanations,
}

/// Explanations of failures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Explanations {
    /// MTU reported by a router, bytes.
    pub router_mtu: Option<u32>,
    /// MTU of the sender's interface, bytes.
    pub interface_mtu: Option<u32>,
    /// Largest fragment of a probe, bytes.
    pub fragment: Option<u32>,
    /// Error number of a send that the kernel refused for another reason.
    pub blocked: Option<i32>,
}

impl Search {
    /// Creates a search up to `most`; `least` must be known to pass.
    pub fn new(least: u32, most: u32) -> Self {
        Self {
            least,
            most,
            passed: least,
            failed: BTreeMap::new(),
            unrelated_losses: 0,
            hints: BTreeSet::new(),
            explanations: Explanations::default(),
        }
    }

    /// Returns the next size to probe, and the number of lost probes that would decide it. `None`: the result is
    /// exact.
    pub fn next(&self) -> Option<(u32, u32)> {
        let unsettled = self.failed.iter().find(|(_, evidence)| evidence.points < FAIL_POINTS);
        if let Some((&size, evidence)) = unsettled {
            return Some((size, FAIL_POINTS - evidence.points));
        }
        if self.passed >= self.most {
            return None;
        }
        let (low, high) = (self.passed, self.edge());
        if high == low + 1 {
            let points = self.failed.get(&high).map_or(0, |evidence| evidence.points);
            return (points < EDGE_POINTS).then(|| (high, (EDGE_POINTS - points).min(EDGE_POINTS - FAIL_POINTS)));
        }
        Some((self.between(low, high), FAIL_POINTS))
    }

    /// Records a probe that arrived unfragmented.
    pub fn pass(&mut self, size: u32) {
        if size <= self.passed {
            return;
        }
        self.passed = size;
        let above = self.failed.split_off(&(size + 1));
        // Failures of sizes at or below this one were random loss.
        self.unrelated_losses += self.failed.values().map(|evidence| evidence.lost).sum::<u32>();
        self.failed = above;
    }

    /// Records a probe that was lost, refused or fragmented.
    pub fn fail(&mut self, size: u32, why: Failure) {
        if size <= self.passed {
            self.unrelated_losses += u32::from(why == Failure::Lost);
            return;
        }
        let evidence = self.failed.entry(size).or_default();
        let points = match why {
            Failure::Lost => 1,
            Failure::Blocked(_) => FAIL_POINTS,
            Failure::Icmp(_) => ICMP,
            Failure::Interface(_) | Failure::Fragmented(_) => EDGE_POINTS,
        };
        evidence.points = evidence.points.saturating_add(points);
        evidence.lost += u32::from(why == Failure::Lost);
        evidence.explained |= why != Failure::Lost;
        evidence.fragmented |= matches!(why, Failure::Fragmented(_));
        let sensible = |mtu: u32| (MIN_MTU..size).contains(&mtu);
        match why {
            Failure::Blocked(errno) => self.explanations.blocked = Some(errno),
            Failure::Icmp(mtu) if sensible(mtu) => {
                self.explanations.router_mtu = Some(mtu);
                self.hints.insert(mtu);
            }
            Failure::Interface(mtu) if sensible(mtu) => {
                self.explanations.interface_mtu = Some(mtu);
                self.hints.insert(mtu);
            }
            Failure::Fragmented(largest) if sensible(largest) => {
                self.explanations.fragment = Some(largest);
                // All fragments but the last carry a multiple of 8 bytes: the MTU is less than 8 bytes above
                // the largest.
                self.hints.extend([largest, largest + 8]);
            }
            Failure::Lost | Failure::Icmp(_) | Failure::Interface(_) | Failure::Fragmented(_) => {}
        }
    }

    /// Returns the largest size that passed.
    pub fn passed(&self) -> u32 {
        self.passed
    }

    /// Returns the smallest size that counts as failing.
    pub fn smallest_failed(&self) -> Option<u32> {
        self.failed.iter().find(|(_, evidence)| evidence.points >= FAIL_POINTS).map(|(&size, _)| size)
    }

    fn limit(&self) -> Option<&Evidence> {
        self.failed.values().find(|evidence| evidence.points >= FAIL_POINTS)
    }

    /// Number of lost probes of failing sizes without an explanation.
    pub fn silent(&self) -> u32 {
        self.failed.values().filter(|evidence| !evidence.explained).map(|evidence| evidence.lost).sum()
    }

    /// Whether the smallest failing size failed by loss alone.
    pub fn is_black_hole(&self) -> bool {
        self.limit().is_some_and(|evidence| !evidence.explained)
    }

    /// Whether the smallest failing size arrived in fragments.
    pub fn is_fragmented(&self) -> bool {
        self.limit().is_some_and(|evidence| evidence.fragmented)
    }

    /// Whether any size above the initial one passed.
    pub fn has_passed_any(&self) -> bool {
        self.passed > self.least
    }

    /// Number of lost probes of sizes that pass.
    pub fn unrelated_losses(&self) -> u32 {
        self.unrelated_losses
    }

    /// Returns the latest explanations of failures.
    pub fn explanations(&self) -> Explanations {
        self.explanations
    }

    /// Returns the smallest size with evidence against it, or one above the maximum.
    fn edge(&self) -> u32 {
        self.failed.keys().next().copied().unwrap_or(self.most + 1)
    }

    /// Chooses a size between `low` and `high`, which must not be adjacent.
    fn between(&self, low: u32, high: u32) -> u32 {
        if self.failed.is_empty() {
            return self.most;
        }
        if let Some(&hint) = self.hints.range(low + 1..high).next_back() {
            return hint;
        }
        if self.hints.contains(&low) || COMMON_MTUS.contains(&low) {
            return low + 1;
        }
        let usual: Vec<u32> = COMMON_MTUS.iter().copied().filter(|size| (low + 1..high).contains(size)).collect();
        match usual.get(usual.len() / 2) {
            Some(&size) => size,
            None => low + (high - low) / 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use landspeed_stats::SplitMix64;
    use proptest::prelude::*;

    use super::*;

    /// Runs a search against a simulated path; returns it and the number of probes.
    fn run(most: u32, mut path: impl FnMut(u32) -> Result<(), Failure>) -> (Search, u32) {
        let mut search = Search::new(64, most);
        let mut tries = 0;
        while let Some((size, _)) = search.next() {
            tries += 1;
            assert!(tries < 10_000, "the search does not end: {search:?}");
            match path(size) {
                Ok(()) => search.pass(size),
                Err(why) => search.fail(size, why),
            }
        }
        (search, tries)
    }

    fn fits(size: u32, mtu: u32, why: Failure) -> Result<(), Failure> {
        if size <= mtu { Ok(()) } else { Err(why) }
    }

    proptest! {
        #[test]
        fn every_mtu_is_found_to_the_byte(mtu in 64_u32..=65_535, kind in 0..5) {
            let (search, tries) = run(65_535, |size| fits(size, mtu, match kind {
                0 => Failure::Lost,
                1 => Failure::Icmp(mtu),
                2 => Failure::Icmp(0),
                3 => Failure::Interface(mtu),
                _ => Failure::Fragmented(((mtu - 20) & !7) + 20),
            }));
            prop_assert_eq!(search.passed(), mtu);
            prop_assert_eq!(search.smallest_failed(), (mtu < 65_535).then_some(mtu + 1));
            prop_assert_eq!(search.silent() > 0, kind == 0 && mtu < 65_535);
            prop_assert!(tries < 100, "{} tries", tries);
        }

        #[test]
        fn wrong_router_mtus_do_not_change_the_result(mtu in 600_u32..=9_000, lie in any::<u32>()) {
            let (search, _) = run(9_000, |size| fits(size, mtu, Failure::Icmp(lie)));
            prop_assert_eq!(search.passed(), mtu);
        }

        #[test]
        fn twenty_percent_loss_does_not_change_the_result(mtu in 600_u32..=9_000, seed in any::<u64>()) {
            // Per search of 22 probes the error probability is at most 2 in 10,000; proptest runs 256 cases.
            let mut random = SplitMix64::new(seed);
            let (search, _) = run(9_000, |size| {
                if random.random_bool(0.19) { Err(Failure::Lost) } else { fits(size, mtu, Failure::Lost) }
            });
            prop_assert_eq!(search.passed(), mtu);
        }
    }

    #[test]
    fn common_mtus_are_found_with_few_probes() {
        for (mtu, why) in [(1_500, Failure::Interface(1_500)), (1_400, Failure::Icmp(1_400))] {
            let (search, tries) = run(65_535, |size| fits(size, mtu, why));
            assert_eq!(search.passed(), mtu);
            assert!(tries <= 5, "{mtu}: {tries} tries");
        }
        let (_, tries) = run(9_000, |size| fits(size, 1_420, Failure::Lost));
        assert!(tries <= 24, "{tries} tries, lost probes counted one by one");
    }

    #[test]
    fn a_passing_probe_overrides_a_forged_icmp_message() {
        let mut forged = true;
        let (search, _) =
            run(9_000, |_| if std::mem::take(&mut forged) { Err(Failure::Icmp(1_000)) } else { Ok(()) });
        assert_eq!((search.passed(), search.smallest_failed()), (9_000, None));
    }

    #[test]
    fn random_loss_does_not_count_as_a_black_hole() {
        let mut first = true;
        let (search, _) = run(1_500, |_| if std::mem::take(&mut first) { Err(Failure::Lost) } else { Ok(()) });
        assert_eq!((search.silent(), search.unrelated_losses()), (0, 1));
    }
}
