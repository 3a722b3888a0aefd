//! Comparison of two hosts: differences that matter to transfers between them.

use landspeed_model::{Difference, Fact, Facts, InterfaceFacts};

use crate::view::{bytes_text, rate_text};

/// Sysctls that both hosts of a path should agree on, with the reason.
const SYSCTLS: &[(&str, &str)] = &[
    ("net.ipv4.tcp_sack", "selective ACKs are used only if both ends offer them"),
    ("net.ipv4.tcp_timestamps", "timestamps are used only if both ends offer them"),
    ("net.ipv4.tcp_window_scaling", "windows beyond 64 KiB need both ends"),
    ("net.ipv4.tcp_rmem", "the receiver's buffer bounds the window, in whichever direction the data goes"),
    ("net.ipv4.tcp_wmem", "the sender's buffer bounds what is in flight, in whichever direction the data goes"),
    ("net.ipv4.tcp_congestion_control", "each sender uses its own: the two directions will behave differently"),
    ("net.core.default_qdisc", "pacing happens at the sender: the two directions will behave differently"),
];

/// Returns the differences between `here` and `there`. `interfaces` are the ones that carry the data on each
/// host.
pub fn compare(
    (here, here_interface): (&Facts, Option<&str>),
    (there, there_interface): (&Facts, Option<&str>),
) -> Vec<Difference> {
    let mut differences = Vec::new();
    let mut add = |what: &str, here: Option<String>, there: Option<String>, why: &str| {
        if let (Some(here), Some(there)) = (here, there)
            && here != there
        {
            differences.push(Difference { what: what.into(), here, there, why: why.into() });
        }
    };
    let near = interface(here, here_interface);
    let far = interface(there, there_interface);
    let both = |read: fn(&InterfaceFacts) -> Option<String>| (near.and_then(read), far.and_then(read));
    let (a, b) = both(|i| (i.mtu_bytes > 0).then(|| format!("{} bytes", i.mtu_bytes)));
    add("MTU", a, b, "the smaller one bounds every segment, and larger UDP datagrams are fragmented or lost");
    let (a, b) = both(|i| i.speed_bps.known().map(|&bps| rate_text(bps)));
    add("link speed", a, b, "a faster sender overruns a slower receiver's last switch port: pace to the slower one");
    let (a, b) = both(|i| i.pause.known().map(|pause| format!("rx {}, tx {}", on(pause.rx), on(pause.tx))));
    add(
        "pause frames",
        a,
        b,
        "flow control that one end has and the other has not moves drops, it does not avoid them",
    );
    for (name, why) in SYSCTLS {
        let text = |facts: &Facts| facts.sysctls.get(*name).and_then(Fact::known).cloned();
        add(name, text(here), text(there), why);
    }
    let release = |facts: &Facts| (!facts.kernel.release.is_empty()).then(|| facts.kernel.release.clone());
    add("kernel", release(here), release(there), "defaults and congestion control change between versions");
    let memory = |facts: &Facts| facts.memory_bytes.known().map(|&bytes| bytes_text(bytes));
    add("memory", memory(here), memory(there), "the default tcp_mem follows it");
    let clock = |facts: &Facts| facts.time.synchronised.known().map(|&yes| if yes { "yes" } else { "no" }.to_owned());
    add("clock synchronised", clock(here), clock(there), "one-way delays and logs of the two cannot be compared");
    differences
}

fn on(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

fn interface<'a>(facts: &'a Facts, name: Option<&str>) -> Option<&'a InterfaceFacts> {
    facts.interfaces.iter().find(|interface| Some(interface.name.as_str()) == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn equal_hosts_do_not_differ_except_in_mtu() {
        let (here, mut there) = (example::facts(), example::facts());
        let name = Some("ens1f0np0");
        assert_eq!(compare((&here, name), (&there, name)), []);
        example::port(&mut there).mtu_bytes = 1500;
        let differences = compare((&here, name), (&there, name));
        assert_eq!(differences.len(), 1);
        assert_eq!((differences[0].here.as_str(), differences[0].there.as_str()), ("9000 bytes", "1500 bytes"));
    }

    #[test]
    fn facts_unknown_on_one_host_are_not_differences() {
        assert_eq!(compare((&example::facts(), None), (&Facts::default(), None)), []);
    }
}
