//! Routes through a scenario's network, computed from the scenario alone.

use std::collections::{BTreeMap, VecDeque};

use super::{DEFAULT_MTU, ETHERNET_HEADER, Scenario};

/// The links between the nodes, by name.
pub(super) struct Paths<'a> {
    scenario: &'a Scenario,
    adjacent: BTreeMap<&'a str, Vec<(&'a str, usize, bool)>>,
    /// Of links that change: the highest rate (bits/s) and the longest delay (nanoseconds), forward and reverse.
    extremes: BTreeMap<usize, [(u64, u64); 2]>,
}

/// One link of a route, in the direction in which it is used.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hop<'a> {
    /// Position of the link in the scenario.
    pub link: usize,
    /// Whether it is used from its first node to its second.
    pub forward: bool,
    /// Node that sends into the link.
    pub out_of: &'a str,
    /// Node that the link leads to.
    pub into: &'a str,
    /// Rate in this direction, bits/s; the highest of a link that changes.
    pub rate_bps: u64,
    /// Delay in this direction, nanoseconds; the longest of a link that changes.
    pub delay_ns: u64,
    pub mtu: u32,
    /// Bytes of a frame on the link in addition to its IP packet.
    pub overhead: u64,
}

/// A route from one host to another.
#[derive(Debug, Clone)]
pub(super) struct Route<'a> {
    /// Its links, in order; not empty.
    pub hops: Vec<Hop<'a>>,
    /// One-way delay of the reverse route, nanoseconds.
    pub reverse_ns: u64,
}

impl Route<'_> {
    /// Returns the rate of the slowest link, bits/s.
    pub(super) fn rate_bps(&self) -> u64 {
        self.hops.iter().map(|hop| hop.rate_bps).min().unwrap_or(0)
    }

    /// Returns the round-trip propagation delay, nanoseconds.
    pub(super) fn rtt_ns(&self) -> u64 {
        self.hops.iter().fold(self.reverse_ns, |sum, hop| sum.saturating_add(hop.delay_ns))
    }

    /// Returns the smallest MTU, bytes.
    pub(super) fn mtu(&self) -> u32 {
        self.hops.iter().map(|hop| hop.mtu).min().unwrap_or(DEFAULT_MTU)
    }

    /// Returns the bandwidth-delay product, bytes.
    pub(super) fn bdp_bytes(&self) -> u64 {
        let bits = u128::from(self.rate_bps()) * u128::from(self.rtt_ns()) / 1_000_000_000;
        u64::try_from(bits / 8).unwrap_or(u64::MAX)
    }
}

impl<'a> Paths<'a> {
    pub(super) fn new(scenario: &'a Scenario) -> Self {
        let mut adjacent: BTreeMap<&str, Vec<(&str, usize, bool)>> = BTreeMap::new();
        for (index, link) in scenario.link.iter().enumerate() {
            let [a, b] = &link.between;
            adjacent.entry(a).or_default().push((b, index, true));
            adjacent.entry(b).or_default().push((a, index, false));
        }
        let extremes = (0..scenario.link.len()).filter_map(|index| {
            let path = scenario.changing_link(index)?;
            Some((index, [path.forward.extremes(0), path.reverse.extremes(0)]))
        });
        Self { scenario, adjacent, extremes: extremes.collect() }
    }

    /// Returns the links from a node to its neighbours.
    pub(super) fn neighbours(&self, node: &str) -> impl Iterator<Item = Hop<'a>> + '_ {
        let (node, next) =
            self.adjacent.get_key_value(node).map_or(("", &[][..]), |(name, next)| (*name, next.as_slice()));
        next.iter().map(move |&(into, link, forward)| self.hop(node, into, link, forward))
    }

    /// Returns the route with the fewest links, or `None` if there is none.
    pub(super) fn route(&self, from: &'a str, to: &'a str) -> Option<Route<'a>> {
        let mut before: BTreeMap<&str, Hop<'a>> = BTreeMap::new();
        let mut queue = VecDeque::from([from]);
        while let Some(at) = queue.pop_front() {
            for hop in self.neighbours(at) {
                if hop.into != from && !before.contains_key(hop.into) {
                    before.insert(hop.into, hop);
                    queue.push_back(hop.into);
                }
            }
        }
        let mut hops = Vec::new();
        let mut at = to;
        while at != from {
            let hop = *before.get(at)?;
            hops.push(hop);
            at = hop.out_of;
        }
        hops.reverse();
        let back = hops.iter().map(|h| self.hop(h.into, h.out_of, h.link, !h.forward).delay_ns);
        let reverse_ns = back.fold(0, u64::saturating_add);
        (!hops.is_empty()).then_some(Route { hops, reverse_ns })
    }

    fn hop(&self, out_of: &'a str, into: &'a str, link: usize, forward: bool) -> Hop<'a> {
        let at = link;
        let link = &self.scenario.link[at];
        let own = if forward { &link.forward } else { &link.reverse };
        let fixed = || {
            let rate_bps = own.rate.as_ref().unwrap_or(&link.rate).fixed_bps().unwrap_or(0);
            (rate_bps, own.delay.or(link.delay).map_or(0, |t| t.0.get()))
        };
        let changing = self.extremes.get(&at).map(|extremes| extremes[usize::from(!forward)]);
        let (rate_bps, delay_ns) = changing.unwrap_or_else(fixed);
        Hop {
            link: at,
            forward,
            out_of,
            into,
            rate_bps,
            delay_ns,
            mtu: link.mtu.unwrap_or(DEFAULT_MTU),
            overhead: u64::from(ETHERNET_HEADER) + link.framing_bytes(),
        }
    }
}
