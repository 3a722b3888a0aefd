//! Worst case of tests, and the load that a schedule puts on hosts and links.

use landspeed_model::{Parameters, Protocol};

use crate::budget::{Amount, Budget, DAY_NS};
use crate::inventory::{Inventory, Pair};

/// Part of a test's bytes that is added to its worst case: rates are kept on average, not at every instant.
const MARGIN_PART: u64 = 50;
/// Time that a test gets beyond its own, for connections, drain and reports, nanoseconds.
const SETUP_NS: u64 = 30_000_000_000;
/// Limit of a test that ends after a number of bytes, nanoseconds.
const BYTES_LIMIT_NS: u64 = 300_000_000_000;
/// Time that a stopped test may take to end, nanoseconds.
pub const STOP_NS: u64 = 10_000_000_000;

/// Worst case of one test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestCost {
    /// Time after which the caller stops the test, nanoseconds.
    pub limit_ns: u64,
    /// Payload bytes; `None` if nothing limits them.
    pub bytes: Option<u64>,
}

impl TestCost {
    /// Returns the worst case of a test with these parameters between hosts with this capacity, bits/s. `limit_ns`
    /// replaces the default limit.
    pub fn of(parameters: &Parameters, limit_ns: Option<u64>, capacity_bps: Option<u64>) -> Self {
        let own_ns = parameters.time_ns.map(|time_ns| time_ns.saturating_add(parameters.omit_ns));
        let default_ns = own_ns.map_or(BYTES_LIMIT_NS, |own_ns| own_ns.saturating_add(SETUP_NS));
        let limit_ns = limit_ns.unwrap_or(default_ns);
        let sends_ns = match parameters.protocol {
            // The time applies to each size.
            Protocol::TcpRr | Protocol::UdpRr => limit_ns,
            Protocol::Tcp | Protocol::Udp => own_ns.unwrap_or(limit_ns).min(limit_ns),
        };
        Self { limit_ns, bytes: worst_case_bytes(parameters, sends_ns, capacity_bps) }
    }

    /// Returns what the test reserves: its worst case, or no bytes if they are not limited.
    pub fn reservation(&self) -> Amount {
        Amount { bytes: self.bytes.unwrap_or(0), time_ns: self.limit_ns.saturating_add(STOP_NS) }
    }
}

/// Returns the most payload bytes, over all directions, of a test that sends for `sends_ns`; `None` if neither its
/// parameters nor the capacity limit them.
pub fn worst_case_bytes(parameters: &Parameters, sends_ns: u64, capacity_bps: Option<u64>) -> Option<u64> {
    let of_rate = |bps: f64| (bps * sends_ns as f64 / 8e9).ceil() as u64;
    let capacity = capacity_bps.map(|bps| of_rate(bps as f64));
    let streams = f64::from(parameters.streams.max(1));
    let each_way = match parameters.protocol {
        Protocol::Tcp | Protocol::Udp => {
            let of_streams = parameters.rate_bps.map(|bps| of_rate(bps as f64 * streams));
            // The last write or burst begins within the time or the bytes, and ends after them.
            let last = match &parameters.udp {
                Some(udp) => u64::from(udp.payload_bytes) * u64::from(udp.burst_packets.max(1)),
                None => parameters.write_bytes,
            };
            let whole = parameters.bytes;
            let least = [of_streams, whole, capacity].into_iter().flatten().min()?;
            least.saturating_add(last.saturating_mul(u64::from(parameters.streams)))
        }
        Protocol::TcpRr | Protocol::UdpRr => {
            let requests = parameters.rr.as_ref().and_then(|rr| {
                let largest = rr.sizes.iter().map(|size| size.request_bytes.max(size.response_bytes)).max()?;
                Some(of_rate(rr.rate_per_s? * f64::from(largest) * 8.0 * streams))
            });
            [requests, capacity].into_iter().flatten().min()?
        }
    };
    let both = matches!(parameters.protocol, Protocol::TcpRr | Protocol::UdpRr);
    let directions = if both { 2 } else { parameters.direction.parts().len() as u64 };
    let bytes = each_way.saturating_mul(directions);
    Some(bytes.saturating_add(bytes / MARGIN_PART))
}

/// Expected load of a host or a link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ResourceLoad {
    /// Number of tests per day that use the host or link.
    pub tests: f64,
    /// Worst case of their payload bytes per day; `None` if a test has no limit.
    pub bytes: Option<f64>,
    /// Worst case of their time per day, nanoseconds.
    pub time_ns: f64,
    /// Budget that the load is compared with.
    pub budget: Budget,
}

impl ResourceLoad {
    /// Returns the largest ratio of load to budget and to a day; above 1, tests are less frequent than their interval.
    pub fn ratio(&self) -> f64 {
        let bytes = self.bytes.zip(self.budget.bytes).map(|(load, most)| load / most as f64);
        let time = self.time_ns / self.budget.time_ns.unwrap_or(DAY_NS) as f64;
        bytes.unwrap_or(0.0).max(time)
    }
}

/// Expected load of a whole inventory.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadEstimate {
    /// Load of each host.
    pub hosts: Vec<ResourceLoad>,
    /// Load of each link.
    pub links: Vec<ResourceLoad>,
}

impl LoadEstimate {
    /// Adds up the worst cases of all tests of an inventory; `cost` returns that of one pair of a test.
    pub fn of(inventory: &Inventory, cost: impl Fn(usize, Pair) -> TestCost) -> Self {
        let empty = |budget| ResourceLoad { tests: 0.0, bytes: Some(0.0), time_ns: 0.0, budget };
        let mut load = Self {
            hosts: inventory.hosts.iter().map(|host| empty(host.budget)).collect(),
            links: inventory.links.iter().map(|link| empty(link.budget)).collect(),
        };
        for (number, test) in inventory.tests.iter().enumerate() {
            let per_day = DAY_NS as f64 / test.interval_ns as f64;
            for &pair in &test.pairs {
                let cost = cost(number, pair);
                let add = |load: &mut ResourceLoad| {
                    load.tests += per_day;
                    load.bytes = load.bytes.zip(cost.bytes).map(|(sum, bytes)| sum + bytes as f64 * per_day);
                    load.time_ns += cost.reservation().time_ns as f64 * per_day;
                };
                add(&mut load.hosts[pair.from]);
                add(&mut load.hosts[pair.to]);
                for link in inventory.links_of(pair) {
                    add(&mut load.links[link]);
                }
            }
        }
        load
    }
}

#[cfg(test)]
mod tests {
    use landspeed_model::Direction;

    use super::*;

    #[test]
    fn worst_case_is_the_lowest_of_rate_bytes_and_capacity() {
        let base = Parameters { time_ns: Some(10_000_000_000), write_bytes: 0, ..Parameters::default() };
        let cost = |parameters: &Parameters, capacity| TestCost::of(parameters, None, capacity).bytes;
        assert_eq!(cost(&base, None), None, "nothing limits it");
        assert_eq!(cost(&base, Some(8_000_000_000)), Some(10_200_000_000));
        let paced = Parameters { rate_bps: Some(8_000_000), streams: 2, ..base.clone() };
        assert_eq!(cost(&paced, Some(8_000_000_000)), Some(20_400_000));
        let both = Parameters { direction: Direction::Both, ..paced };
        assert_eq!(cost(&both, None), Some(40_800_000));
        let sized = Parameters { bytes: Some(1000), time_ns: None, ..base };
        assert_eq!(cost(&sized, Some(8_000_000_000)), Some(1020));
        assert_eq!(TestCost::of(&sized, None, None).limit_ns, BYTES_LIMIT_NS);
    }
}
