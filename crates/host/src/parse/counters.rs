//! Named counters: SNMP, netstat, pressure, socket memory.

use std::collections::BTreeMap;

use landspeed_model::CounterDelta;

/// Counters by name, as 64-bit values; a negative one (`Tcp.MaxConn` is −1) is in two's complement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counters(pub BTreeMap<String, u64>);

impl Counters {
    /// Returns the counters that changed since `before`, by name. A counter that did not exist before counts
    /// from zero: the kernel omits some until they are first used.
    pub(crate) fn moved_since(&self, before: &Self) -> Vec<CounterDelta> {
        let delta = |(name, &now): (&String, &u64)| {
            let then = before.0.get(name).copied().unwrap_or(0);
            (now != then).then(|| CounterDelta { name: name.clone(), delta: now.wrapping_sub(then) as i64 })
        };
        self.0.iter().filter_map(delta).collect()
    }
}

/// Parses `/proc/net/snmp` and `/proc/net/netstat`: a line of names, a line of values, both after the same
/// `Group:`. Keys are `Group.Name`. Of a pair of different lengths, the common part is used.
pub(crate) fn paired_lines(text: &str, into: &mut Counters) {
    let mut lines = text.lines().peekable();
    while let Some(names) = lines.next() {
        let Some((group, names)) = names.split_once(':') else { continue };
        let Some((_, values)) = lines
            .next_if(|l| l.split_once(':').is_some_and(|(g, _)| g == group))
            .and_then(|line| line.split_once(':'))
        else {
            continue;
        };
        for (name, value) in names.split_ascii_whitespace().zip(values.split_ascii_whitespace()) {
            if let Some(value) = counter(value) {
                into.0.insert(format!("{group}.{name}"), value);
            }
        }
    }
}

/// Parses `/proc/net/snmp6`: a name and a value on each line. The names include their group (`Ip6InReceives`).
pub(crate) fn named_values(text: &str, into: &mut Counters) {
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        if let (Some(name), Some(value)) = (words.next(), words.next().and_then(counter)) {
            into.0.insert(name.to_owned(), value);
        }
    }
}

/// Parses `/proc/pressure/*`: the stall time of the `some` line since boot, microseconds.
pub(crate) fn pressure_total_us(text: &str) -> Option<u64> {
    let some = text.lines().find(|line| line.starts_with("some "))?;
    some.split_ascii_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()
}

/// Parses `/proc/net/sockstat`: pages of TCP memory in use, over all network namespaces.
pub(crate) fn tcp_memory_pages(sockstat: &str) -> Option<u64> {
    let mut words = sockstat.lines().find_map(|line| line.strip_prefix("TCP:"))?.split_ascii_whitespace();
    words.find(|&word| word == "mem")?;
    words.next()?.parse().ok()
}

fn counter(word: &str) -> Option<u64> {
    word.parse::<u64>().ok().or_else(|| word.parse::<i64>().ok().map(|n| n as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paired(text: &str) -> Counters {
        let mut counters = Counters::default();
        paired_lines(text, &mut counters);
        counters
    }

    #[test]
    fn only_changes_are_reported_and_new_counters_start_at_zero() {
        let before = paired("Tcp: MaxConn CurrEstab RetransSegs\nTcp: -1 5 100\n");
        let after = paired("Tcp: MaxConn CurrEstab RetransSegs\nTcp: -1 3 107\nIcmpMsg: OutType3\nIcmpMsg: 2\n");
        let moved: Vec<_> = after.moved_since(&before).into_iter().map(|d| (d.name, d.delta)).collect();
        let expected = [("IcmpMsg.OutType3", 2), ("Tcp.CurrEstab", -2), ("Tcp.RetransSegs", 7)];
        assert_eq!(moved, expected.map(|(name, delta)| (name.to_owned(), delta)));
    }

    #[test]
    fn a_group_without_values_does_not_shift_the_next() {
        let counters = paired("Ip: A B\nTcp: C\nTcp: 4\nnonsense\nUdp: D E\nUdp: 1\nUdpLite: F");
        let expected = [("Tcp.C".to_owned(), 4), ("Udp.D".to_owned(), 1)];
        assert_eq!(counters.0, expected.into());
    }

    #[test]
    fn pressure_and_socket_memory_are_found_by_name() {
        let text = "some avg10=0.00 avg60=0.10 avg300=0.00 total=12345\nfull avg10=0.00 total=7\n";
        assert_eq!(pressure_total_us(text), Some(12_345));
        assert_eq!(pressure_total_us("full total=7"), None);
        assert_eq!(tcp_memory_pages("sockets: used 9\nTCP: inuse 5 orphan 0 tw 0 alloc 6 mem 321\n"), Some(321));
        assert_eq!(tcp_memory_pages("TCP: inuse 5 mem"), None);
    }
}
