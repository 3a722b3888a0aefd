//! Which size to try next, and when the answer is known: pure, in bytes of IP packet.
//!
//! A size that passed is proof; a size that failed is evidence, of differing weight. A lost probe is one point, and
//! only counts when a small packet sent right behind it came through. The search treats a size as failing at three
//! points, and believes the edge — the smallest failing size, one byte above the largest passing one — at nine. Bytes
//! that ICMP, the sender's kernel or a reported fragment explain weigh more. With a tenth of all packets lost in each
//! direction, a probe that fits is lost one time in five: a size in the middle of the search is misjudged once in 150
//! times, which the edge then shows, and the edge once in three million.

use std::collections::{BTreeMap, BTreeSet};

/// Points at which the search moves on.
const SETTLED: u32 = 3;
/// Points at which the edge is believed.
const PROVED: u32 = 9;
/// An ICMP message of a router. An observer of the path can forge it: the edge needs three.
const ICMP: u32 = 3;
/// The smallest MTU an IPv4 link may have (RFC 791); a router that names less is mistaken.
const LEAST_MTU: u32 = 68;
/// MTUs that paths have: the minima of both families, tunnels over Ethernet (WireGuard 1420, VXLAN 1450, GRE 1476),
/// PPPoE 1492, Ethernet, FDDI 4352, cloud and jumbo Ethernet. One that fits is confirmed with the byte above it.
const USUAL: &[u32] =
    &[576, 1_280, 1_400, 1_420, 1_450, 1_476, 1_492, 1_500, 2_048, 4_352, 8_000, 8_500, 8_900, 9_000, 9_216, 16_384];

/// Why a probe failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// It vanished; what was sent behind it did not.
    Lost,
    /// A router said so and named the MTU of its link (0: it did not).
    Icmp(u32),
    /// The sender's kernel: larger than the interface's MTU (0: it did not say).
    Interface(u32),
    /// The sender's kernel, for another reason: the error number.
    Blocked(i32),
    /// It arrived in fragments, the largest so long.
    Fragmented(u32),
}

/// What is known against a size.
#[derive(Debug, Clone, Copy, Default)]
struct Evidence {
    points: u32,
    /// Probes that vanished.
    lost: u32,
    /// Whether anything but silence spoke against it.
    explained: bool,
    /// Whether it arrived in fragments.
    fragmented: bool,
}

/// The search for one direction.
#[derive(Debug)]
pub struct Search {
    least: u32,
    most: u32,
    passed: u32,
    /// Sizes above `passed`.
    failed: BTreeMap<u32, Evidence>,
    /// Probes of sizes that pass, and vanished all the same.
    excused: u32,
    hints: BTreeSet<u32>,
    /// What was said on the way, the last of each.
    explanations: Explanations,
}

/// Explanations met.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Explanations {
    /// A router's MTU, bytes.
    pub router_mtu: Option<u32>,
    /// The MTU of the sender's interface, bytes.
    pub interface_mtu: Option<u32>,
    /// The largest fragment of a probe, bytes.
    pub fragment: Option<u32>,
    /// What kept the sender from sending: an error number.
    pub blocked: Option<i32>,
}

impl Search {
    /// A search up to `most`. `least` is known to pass.
    pub fn new(least: u32, most: u32) -> Self {
        Self {
            least,
            most,
            passed: least,
            failed: BTreeMap::new(),
            excused: 0,
            hints: BTreeSet::new(),
            explanations: Explanations::default(),
        }
    }

    /// The size to try next and how many lost probes would settle it. `None`: the answer is exact.
    pub fn next(&self) -> Option<(u32, u32)> {
        let unsettled = self.failed.iter().find(|(_, evidence)| evidence.points < SETTLED);
        if let Some((&size, evidence)) = unsettled {
            return Some((size, SETTLED - evidence.points));
        }
        if self.passed >= self.most {
            return None;
        }
        let (low, high) = (self.passed, self.edge());
        if high == low + 1 {
            let points = self.failed.get(&high).map_or(0, |evidence| evidence.points);
            return (points < PROVED).then(|| (high, (PROVED - points).min(PROVED - SETTLED)));
        }
        Some((self.between(low, high), SETTLED))
    }

    /// A probe arrived whole.
    pub fn pass(&mut self, size: u32) {
        if size <= self.passed {
            return;
        }
        self.passed = size;
        let above = self.failed.split_off(&(size + 1));
        // Failures of sizes at or below this one were chance.
        self.excused += self.failed.values().map(|evidence| evidence.lost).sum::<u32>();
        self.failed = above;
    }

    /// A probe did not arrive whole.
    pub fn fail(&mut self, size: u32, why: Failure) {
        if size <= self.passed {
            self.excused += u32::from(why == Failure::Lost);
            return;
        }
        let evidence = self.failed.entry(size).or_default();
        let points = match why {
            Failure::Lost => 1,
            Failure::Blocked(_) => SETTLED,
            Failure::Icmp(_) => ICMP,
            Failure::Interface(_) | Failure::Fragmented(_) => PROVED,
        };
        evidence.points = evidence.points.saturating_add(points);
        evidence.lost += u32::from(why == Failure::Lost);
        evidence.explained |= why != Failure::Lost;
        evidence.fragmented |= matches!(why, Failure::Fragmented(_));
        let sensible = |mtu: u32| (LEAST_MTU..size).contains(&mtu);
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
                // All fragments but the last carry a multiple of eight bytes: the MTU is less than eight above.
                self.hints.extend([largest, largest + 8]);
            }
            Failure::Lost | Failure::Icmp(_) | Failure::Interface(_) | Failure::Fragmented(_) => {}
        }
    }

    /// Largest size that passed.
    pub fn passed(&self) -> u32 {
        self.passed
    }

    /// Smallest size that settled as failing.
    pub fn smallest_failed(&self) -> Option<u32> {
        self.failed.iter().find(|(_, evidence)| evidence.points >= SETTLED).map(|(&size, _)| size)
    }

    fn limit(&self) -> Option<&Evidence> {
        self.failed.values().find(|evidence| evidence.points >= SETTLED)
    }

    /// Probes of failing sizes that nothing but silence spoke against.
    pub fn silent(&self) -> u32 {
        self.failed.values().filter(|evidence| !evidence.explained).map(|evidence| evidence.lost).sum()
    }

    /// Whether silence alone spoke against the smallest failing size.
    pub fn is_black_hole(&self) -> bool {
        self.limit().is_some_and(|evidence| !evidence.explained)
    }

    /// Whether the smallest failing size arrived, but in fragments.
    pub fn is_fragmented(&self) -> bool {
        self.limit().is_some_and(|evidence| evidence.fragmented)
    }

    /// Whether anything passed beyond what was known at the start.
    pub fn has_passed_any(&self) -> bool {
        self.passed > self.least
    }

    /// Probes of passing sizes that vanished.
    pub fn excused(&self) -> u32 {
        self.excused
    }

    /// What was said on the way.
    pub fn explanations(&self) -> Explanations {
        self.explanations
    }

    /// Smallest size that may not be tried again for better.
    fn edge(&self) -> u32 {
        self.failed.keys().next().copied().unwrap_or(self.most + 1)
    }

    /// A size between two others that have at least one between them.
    fn between(&self, low: u32, high: u32) -> u32 {
        if self.failed.is_empty() {
            return self.most;
        }
        if let Some(&hint) = self.hints.range(low + 1..high).next_back() {
            return hint;
        }
        if self.hints.contains(&low) || USUAL.contains(&low) {
            return low + 1;
        }
        let usual: Vec<u32> = USUAL.iter().copied().filter(|size| (low + 1..high).contains(size)).collect();
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

    /// Runs a search against a path; returns it and the number of tries.
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
        fn a_lying_router_costs_time_and_not_the_answer(mtu in 600_u32..=9_000, lie in any::<u32>()) {
            let (search, _) = run(9_000, |size| fits(size, mtu, Failure::Icmp(lie)));
            prop_assert_eq!(search.passed(), mtu);
        }

        #[test]
        fn twenty_percent_loss_does_not_change_the_result(mtu in 600_u32..=9_000, seed in any::<u64>()) {
            // Two in ten thousand searches of 22 tries would err at worst; the cases of a run are 256.
            let mut random = SplitMix64::new(seed);
            let (search, _) = run(9_000, |size| {
                if random.happens(0.19) { Err(Failure::Lost) } else { fits(size, mtu, Failure::Lost) }
            });
            prop_assert_eq!(search.passed(), mtu);
        }
    }

    #[test]
    fn usual_paths_are_settled_in_few_tries() {
        for (mtu, why) in [(1_500, Failure::Interface(1_500)), (1_400, Failure::Icmp(1_400))] {
            let (search, tries) = run(65_535, |size| fits(size, mtu, why));
            assert_eq!(search.passed(), mtu);
            assert!(tries <= 5, "{mtu}: {tries} tries");
        }
        let (_, tries) = run(9_000, |size| fits(size, 1_420, Failure::Lost));
        assert!(tries <= 24, "{tries} tries, lost probes counted one by one");
    }

    #[test]
    fn one_forged_message_is_overruled_by_a_probe_that_passes() {
        let mut forged = true;
        let (search, _) =
            run(9_000, |_| if std::mem::take(&mut forged) { Err(Failure::Icmp(1_000)) } else { Ok(()) });
        assert_eq!((search.passed(), search.smallest_failed()), (9_000, None));
    }

    #[test]
    fn random_losses_are_distinguished_from_silence() {
        let mut first = true;
        let (search, _) = run(1_500, |_| if std::mem::take(&mut first) { Err(Failure::Lost) } else { Ok(()) });
        assert_eq!((search.silent(), search.excused()), (0, 1));
    }
}
