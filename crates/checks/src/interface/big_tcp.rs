use landspeed_model::InterfaceFacts;

use crate::prelude::*;

declare_check! {
    /// Whether a benchmark has tried segments larger than 64 KiB (BIG TCP).
    ///
    /// **Reads** `gso_max_size`, `gro_max_size`, their IPv4 siblings, `tso_max_size` and the kernel's version.
    ///
    /// **Matters** where the CPU is the limit at 100 Gb/s and above: fewer, larger segments pass through the
    /// stack. It came with Linux 5.19 for IPv6 and 6.3 for IPv4. It helps only together with zero copy:
    /// otherwise the copy is the limit.
    ///
    /// **Leave it alone** in production until it was measured: captures show packets that other tools cannot read, and
    /// drivers differ. Sizes of 150 to 185 KB are in use; more than `tso_max_size` is cut by the kernel.
    code: "NIC-016",
    title: "BIG TCP",
    scope: Port,
    severity: Note,
    sources: [
        "Linux kernel, Documentation/netlink/specs/rt-link.yaml: gso-max-size, gro-max-size, gso-ipv4-max-size",
        "ip-link(8): gso_max_size, gro_max_size (BIG TCP)",
        "Recent Linux Improvements that Impact TCP Throughput: Insights from R&E Networks (AmLight, ESnet), INDIS workshop at SC24",
    ],
    good: |facts, goal| {
        goal.role = Role::Benchmark;
        let port = example::port(facts);
        (port.gso_max_size_bytes, port.gro_max_size_bytes) = (Fact::Known(185_000), Fact::Known(185_000));
        (port.gso_ipv4_max_size_bytes, port.gro_ipv4_max_size_bytes) = (Fact::Known(185_000), Fact::Known(185_000));
    },
    bad: |_, goal| goal.role = Role::Benchmark,
}

/// Maximum length in an IP header, bytes: the limit without BIG TCP.
const STANDARD_LIMIT_BYTES: u32 = 65_536;

/// Largest size in use, bytes.
const BIG_TCP_BYTES: u32 = 185_000;

fn evaluate(view: &View<'_>) -> Outcome {
    let port = known!(view.device());
    let device = *known!(port.tso_max_size_bytes.as_ref());
    if device <= STANDARD_LIMIT_BYTES {
        return Outcome::not_applicable(format!("the device cuts segments of at most {}", bytes_text(device.into())));
    }
    let sizes = sizes(port);
    if sizes.is_empty() {
        return Outcome::unknown("the segment sizes cannot be read");
    }
    let text: Vec<_> = sizes.iter().map(|(name, size)| format!("{name} {size}")).collect();
    let text = text.join(", ");
    if sizes.iter().all(|(_, size)| *size > STANDARD_LIMIT_BYTES) {
        return Outcome::pass(text);
    }
    let fast = port.speed_bps.known().is_some_and(|&speed| speed >= FAST_BPS);
    if view.role() != Role::Benchmark || !fast {
        return Outcome::not_applicable(
            "not in use; it is a trial for benchmarks at 100 Gb/s and above, and pays only with zero copy",
        );
    }
    let wanted = BIG_TCP_BYTES.min(device);
    let small = sizes.iter().filter(|(_, size)| *size <= STANDARD_LIMIT_BYTES);
    let change = |(name, _): &(&str, u32)| {
        let target = Target::SegmentLimit { interface: port.name.clone(), name: (*name).to_owned() };
        Change::new(target, wanted.to_string())
    };
    Outcome::found(Problem {
        observed: format!("{text} bytes; the device takes {device}"),
        recommended: format!("a trial with {wanted} bytes, together with zero copy"),
        why: "Fewer, larger segments pass through the stack.".into(),
        by_hand: format!("ip -d link show {} | grep -o 'g[sr]o[a-z0-9_]* [0-9]*'", shell_word(&port.name)),
        applicability: Applicability::NeedsCare,
        changes: small.map(change).collect(),
        ..Problem::default()
    })
}

/// Returns the size limits that this kernel has, in the order in which they must be set: the general one before
/// the IPv4 one.
fn sizes(port: &InterfaceFacts) -> Vec<(&'static str, u32)> {
    let all = [
        ("gso_max_size", &port.gso_max_size_bytes),
        ("gro_max_size", &port.gro_max_size_bytes),
        ("gso_ipv4_max_size", &port.gso_ipv4_max_size_bytes),
        ("gro_ipv4_max_size", &port.gro_ipv4_max_size_bytes),
    ];
    all.into_iter().filter_map(|(name, size)| Some((name, *size.known()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recommended_sizes_stay_within_the_device_limit() {
        let mut facts = example::facts();
        example::port(&mut facts).tso_max_size_bytes = Fact::Known(131_072);
        let goal = landspeed_model::Goal { role: Role::Benchmark, ..example::goal() };
        let audit = CHECK.audit_alone(&facts, &goal);
        assert!(audit.findings[0].changes.iter().all(|change| change.desired == "131072"));
        assert_eq!(audit.findings[0].changes.len(), 4);
    }
}
