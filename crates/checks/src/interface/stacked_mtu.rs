use landspeed_model::InterfaceFacts;

use crate::prelude::*;

declare_check! {
    /// Whether the devices below a bond or VLAN have at least its MTU.
    ///
    /// **Reads** the MTUs of the interface and of everything below it.
    ///
    /// **Matters** because an interface may have a larger MTU than its device: full-size packets are then
    /// dropped, small ones pass, and connections hang once they carry data.
    ///
    /// **Leave it alone** never, if the upper MTU is larger. The tag of a VLAN is not part of the MTU.
    code: "NIC-005",
    title: "MTU of stacked interfaces",
    scope: Interface,
    severity: Critical,
    sources: [
        "Linux kernel, Documentation/networking/bonding.rst",
        "IEEE 802.1Q: the tag's four bytes come on top of the payload",
    ],
    good: |facts, goal| vlan(facts, goal, 9000),
    bad: |facts, goal| vlan(facts, goal, 9500),
}

/// Adds a VLAN on the example's interface.
fn vlan(facts: &mut landspeed_model::Facts, goal: &mut landspeed_model::Goal, mtu_bytes: u32) {
    facts.interfaces.push(InterfaceFacts {
        name: "vlan7".into(),
        kind: Some("vlan".into()),
        lower: vec!["ens1f0np0".into()],
        state: "up".into(),
        mtu_bytes,
        ..InterfaceFacts::default()
    });
    goal.interface = Some("vlan7".into());
}

fn evaluate(view: &View<'_>) -> Outcome {
    let top = known!(view.interface());
    if top.lower.is_empty() {
        return Outcome::not_applicable(format!("nothing is below {}", top.name));
    }
    // Pairs of an interface and one below it. A corrupt recording may contain a cycle: visit each interface
    // once.
    let mut visited: Vec<&str> = Vec::new();
    let mut waiting = vec![top];
    let mut wrong = Vec::new();
    let mut pairs = 0;
    while let Some(upper) = waiting.pop() {
        if visited.contains(&upper.name.as_str()) {
            continue;
        }
        visited.push(&upper.name);
        for lower in view.facts.interfaces.iter().filter(|lower| upper.lower.contains(&lower.name)) {
            waiting.push(lower);
            if upper.mtu_bytes == 0 || lower.mtu_bytes == 0 {
                return Outcome::unknown(format!("the MTU of {} or {} cannot be read", upper.name, lower.name));
            }
            pairs += 1;
            if upper.mtu_bytes > lower.mtu_bytes {
                wrong.push((upper, lower));
            }
        }
    }
    if pairs == 0 {
        return Outcome::unknown(format!("what is below {} cannot be read", top.name));
    }
    if wrong.is_empty() {
        return Outcome::pass(format!("{} bytes, and no less below", top.mtu_bytes));
    }
    let text = |(upper, lower): &(&InterfaceFacts, &InterfaceFacts)| {
        format!("{} {} bytes on {} {} bytes", upper.name, upper.mtu_bytes, lower.name, lower.mtu_bytes)
    };
    // The smaller MTU is the one that works today.
    let smallest = wrong.iter().map(|(_, lower)| lower.mtu_bytes).min().unwrap_or(1500);
    let change = Change::new(Target::Mtu { interface: top.name.clone() }, smallest.to_string());
    Outcome::found(Problem {
        severity: None,
        observed: wrong.iter().map(text).collect::<Vec<_>>().join("; "),
        recommended: format!("{smallest} bytes for {}, or more for what is below it", top.name),
        why: "Packets that the upper interface builds in full do not fit through the lower one.".into(),
        effect: Effect::arithmetic("Every full-size packet is dropped."),
        by_hand: "ip -d link show".into(),
        applicability: Applicability::NeedsCare,
        changes: vec![change],
    })
}
