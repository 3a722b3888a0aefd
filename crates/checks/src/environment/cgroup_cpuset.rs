use crate::prelude::*;

declare_check! {
    /// CPUs that programs in this cgroup may use.
    ///
    /// **Reads** `cpuset.cpus.effective` of this cgroup, the CPUs online and those on the NUMA node of the NIC.
    ///
    /// **Matters** because a group without a CPU on the NIC's NUMA node crosses the interconnect with every
    /// packet.
    ///
    /// **Leave it alone** where the CPUs were picked for the NIC.
    code: "ENV-005",
    title: "Cpuset of this cgroup",
    scope: Port,
    severity: Note,
    sources: ["Linux Documentation/admin-guide/cgroup-v2.rst, cpuset.cpus.effective", esnet_2016!("Don't Forget about NUMA Issues")],
    bad: |facts, _| facts.cgroup.cpus = Fact::Known("16-31".into()),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let text = known!(&view.facts.cgroup.cpus);
    let Some(allowed) = cpu_list(text).filter(|cpus| !cpus.is_empty()) else {
        return Outcome::unknown(format!("`{text}` is not a list of CPUs"));
    };
    let online = &view.facts.cpu.online;
    if online.is_empty() {
        return Outcome::unknown("the CPUs online are not known");
    }
    let missing = online.iter().filter(|cpu| !allowed.contains(cpu)).count();
    if missing == 0 {
        return Outcome::pass(format!("all {} CPUs", online.len()));
    }
    let local = match view.port() {
        Fact::Known(port) => port.pci.known().and_then(|pci| pci.local_cpus.known()),
        Fact::Absent(_) | Fact::Unknown(_) => None,
    };
    let near = local.and_then(|local| cpu_list(local)).filter(|cpus| !cpus.is_empty());
    let far = near.is_some_and(|near| !near.iter().any(|cpu| allowed.contains(cpu)));
    let observed = format!("CPUs {text} of {}", online.len());
    let (recommended, why) = match (far, local) {
        (true, Some(local)) => (
            format!("some of {local}, which are on the NUMA node of the NIC"),
            "None of them is on the NUMA node of the NIC: every packet crosses between sockets.",
        ),
        _ => (
            "nothing, if they were chosen; else all of them".to_owned(),
            "Measurements here describe these CPUs, not the whole machine.",
        ),
    };
    Outcome::found(Problem {
        severity: far.then_some(Severity::Major),
        effect: if far {
            Effect::measured("Up to 2x difference if you use the wrong core", &[&source::CORE_CHOICE_EFFECT])
        } else {
            Effect::NotMeasured
        },
        ..advice::manual_problem(observed, recommended, why, "cat /proc/self/status | grep Cpus_allowed_list")
    })
}
