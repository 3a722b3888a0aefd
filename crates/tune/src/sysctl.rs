//! Sysctl names: the path below `/proc/sys`, and the interface a sysctl belongs to.

use std::path::PathBuf;

use landspeed_model::Target;

/// Entries among the interfaces that are not interfaces.
const NO_INTERFACE: &[&str] = &["all", "default"];

/// Path of a sysctl, such as `net.ipv4.tcp_rmem`; with slashes if a part contains dots
/// (`net/ipv4/conf/eth0.100/arp_filter`).
pub(crate) fn path(name: &str) -> PathBuf {
    PathBuf::from("/proc/sys").join(relative(name))
}

/// Returns the name with dots as separators; dots of an interface name become slashes (sysctl.d(5)).
pub(crate) fn dotted(name: &str) -> String {
    let swap = |c| match c {
        '/' => '.',
        '.' => '/',
        other => other,
    };
    relative(name).chars().map(swap).collect()
}

fn relative(name: &str) -> String {
    if name.find(['.', '/']).is_some_and(|at| &name[at..=at] == "/") {
        return name.to_owned();
    }
    let swap = |c| match c {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    name.chars().map(swap).collect()
}

/// Interface of a setting, including sysctls of an interface (`net.ipv4.conf.eth0.arp_filter`).
pub(crate) fn interface(target: &Target) -> Option<String> {
    let Target::Sysctl { name } = target else { return target.interface().map(ToOwned::to_owned) };
    let relative = relative(name);
    let words: Vec<&str> = relative.split('/').collect();
    match words.as_slice() {
        ["net", _, "conf" | "neigh", interface, _] if !NO_INTERFACE.contains(interface) => {
            Some((*interface).to_owned())
        }
        _ => None,
    }
}

/// The same setting under another name of its interface.
pub(crate) fn on_interface(target: &Target, new: &str) -> Target {
    match (target, interface(target)) {
        (Target::Sysctl { .. }, Some(old)) if old == new => target.clone(),
        (Target::Sysctl { name }, Some(_)) => {
            let relative = relative(name);
            let words = relative.split('/').enumerate().map(|(at, word)| if at == 3 { new } else { word });
            Target::Sysctl { name: words.collect::<Vec<_>>().join("/") }
        }
        _ => target.on_interface(new),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sysctl(name: &str) -> Target {
        Target::Sysctl { name: name.into() }
    }

    #[test]
    fn interface_sysctls_follow_a_renamed_interface() {
        for (name, of) in [
            ("net.ipv4.conf.eth0.arp_filter", Some("eth0")),
            ("net/ipv4/conf/eth0.100/arp_filter", Some("eth0.100")),
            ("net.ipv4.conf.eth0/100.arp_filter", Some("eth0.100")),
            ("net.ipv6.neigh.eth0.gc_stale_time", Some("eth0")),
            ("net.ipv4.conf.all.arp_filter", None),
            ("net.ipv4.tcp_rmem", None),
        ] {
            assert_eq!(interface(&sysctl(name)).as_deref(), of, "{name}");
        }
        let renamed = on_interface(&sysctl("net.ipv4.conf.eth0.arp_filter"), "lan.7");
        assert_eq!(renamed, sysctl("net/ipv4/conf/lan.7/arp_filter"));
        assert_eq!(path("net/ipv4/conf/lan.7/arp_filter"), path("net.ipv4.conf.lan/7.arp_filter"));
        assert_eq!(on_interface(&sysctl("net.ipv4.tcp_rmem"), "x"), sysctl("net.ipv4.tcp_rmem"));
    }
}
