use landspeed_model::{Fact, Severity};

use crate::advice;
use crate::check::{Outcome, Problem};
use crate::example;
use crate::view::{View, cpu_list};

declare_check! {
    /// On which processors programs may run here.
    ///
    /// **Reads** `cpuset.cpus.effective` of this control group, the processors online and those next to the card.
    ///
    /// **Matters** because a group without a processor on the card's memory node pays for the way across with every
    /// packet.
    ///
    /// **Leave it alone** where the processors were picked for the card.
    code: "ENV-005",
    name: "cgroup-cpuset",
    group: Environment,
    title: "Processors of this control group",
    scope: Port,
    severity: Note,
    since: "0.1",
    sources: ["Linux Documentation/admin-guide/cgroup-v2.rst, cpuset.cpus.effective", advice::ESNET_2016],
    example: { good: example::as_is, bad: |facts, _| facts.cgroup.cpus = Fact::Known("16-31".into()) },
}

fn evaluate(view: &View<'_>) -> Outcome {
    let text = known!(&view.facts.cgroup.cpus);
    let Some(allowed) = cpu_list(text).filter(|cpus| !cpus.is_empty()) else {
        return Outcome::unknown(format!("`{text}` is no list of processors"));
    };
    let online = &view.facts.cpu.online;
    if online.is_empty() {
        return Outcome::unknown("the processors online are not known");
    }
    let missing = online.iter().filter(|cpu| !allowed.contains(cpu)).count();
    if missing == 0 {
        return Outcome::pass(format!("all {} processors", online.len()));
    }
    let local = match view.port() {
        Fact::Known(port) => port.pci.known().and_then(|pci| pci.local_cpus.known()),
        Fact::Absent(_) | Fact::Unknown(_) => None,
    };
    let near = local.and_then(|local| cpu_list(local)).filter(|cpus| !cpus.is_empty());
    let far = near.is_some_and(|near| !near.iter().any(|cpu| allowed.contains(cpu)));
    let observed = format!("processors {text} of {}", online.len());
    let (recommended, why) = match (far, local) {
        (true, Some(local)) => (
            format!("some of {local}, which are next to the card"),
            "None of them is next to the card: every packet crosses between the sockets.",
        ),
        _ => (
            "nothing, if they were chosen; else all of them".to_owned(),
            "Measurements here tell of these processors, not of the machine.",
        ),
    };
    Outcome::found(Problem {
        severity: far.then_some(Severity::Major),
        effect: if far {
            "Up to a factor of two between the right and the wrong socket in the 2016 ESnet deck.".into()
        } else {
            advice::NOT_MEASURED.into()
        },
        ..advice::by_person(observed, recommended, why, "cat /proc/self/status | grep Cpus_allowed_list")
    })
}
