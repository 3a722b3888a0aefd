//! What the checks of CPUs, buses, interrupts and devices share.

use landspeed_model::{Change, CpuFacts, Fact, InterfaceFacts, Interrupt, PciFacts, Role, Severity, Target};
use landspeed_units::Ratio;

use crate::view::{View, cpu_list};

/// The kernel's largest number of CPUs (`CONFIG_NR_CPUS`): what a damaged recording says beyond it is left out.
const MOST_CPUS: u32 = 8192;

/// Bits/s that one flow brings into one CPU: ESnet's figure for jumbo frames and 3 GHz or more.
pub(crate) const FLOW_BPS: u64 = 30_000_000_000;

/// The rate from which ESnet's page on 100 Gb/s hosts applies, bits/s.
pub(crate) const FAST_BPS: u64 = 100_000_000_000;

/// Loss that a long path cannot bear: the decks of 2014 to 2016 plot 0.0046 % on a 10 Gb/s link over growing RTTs and call
/// the difference huge; a fifth of it is bad enough.
const LOSS_MAJOR: f64 = 1e-5;

/// Loss that is worth a finding. Counters run since boot and hold what was lost while links came up: below one in ten
/// million packets the two cannot be distinguished.
const LOSS_MINOR: f64 = 1e-7;

/// Where a single CPU is no longer enough without care: below, the settings of CPUs and interrupts are worth
/// a note. The decks begin at 10 Gb/s.
const CARE_BPS: u64 = 10_000_000_000;

/// The severity of a finding about CPUs or interrupts, from that at a rate which needs them: less for slow links, and
/// where the rate is not known. Benchmarks and latency need them at any rate.
pub(crate) fn weigh(view: &View<'_>, severity: Severity) -> Severity {
    if matches!(view.role(), Role::Benchmark | Role::Latency) {
        return severity;
    }
    match view.rate_bps() {
        Fact::Known(rate) if rate >= CARE_BPS => severity,
        Fact::Known(_) => Severity::Note,
        Fact::Absent(_) | Fact::Unknown(_) => severity.min(Severity::Minor),
    }
}

/// The severity of a loss since boot; `None` if it is too small.
pub(crate) fn loss_severity(lost: u64, of: u64) -> Option<Severity> {
    // Fewer than this many were lost: an accident rather than a pattern, however few packets there were.
    const SOME: u64 = 100;
    let share = Ratio::of(lost, of).map_or(0.0, |_| lost as f64 / of as f64);
    match share {
        _ if lost < SOME => None,
        share if share >= LOSS_MAJOR => Some(Severity::Major),
        share if share >= LOSS_MINOR => Some(Severity::Minor),
        _ => None,
    }
}

/// `12 of 3400000 (0.00035%)`.
pub(crate) fn share_text(part: u64, whole: u64) -> String {
    Ratio::of(part, whole)
        .map_or_else(|| format!("{part} of {whole}"), |ratio| format!("{part} of {whole} ({ratio})"))
}

impl<'a> View<'a> {
    /// What this host is a tenant of, in words; `None` on bare metal and where it is unknown.
    pub(crate) fn tenant(&self) -> Option<String> {
        if let Some(container) = self.facts.virtualization.container.known() {
            return Some(format!("this is a container ({container})"));
        }
        if let Some(hypervisor) = self.facts.virtualization.hypervisor.known() {
            return Some(format!("this is a virtual machine ({hypervisor})"));
        }
        self.is_guest().then(|| "the role is that of a virtual machine".into())
    }

    /// The CPUs; absent where they belong to a host below.
    pub(crate) fn cpus(&self) -> Fact<&'a CpuFacts> {
        match self.tenant() {
            Some(tenant) => Fact::Absent(format!("{tenant}: its CPUs are set up on the host below")),
            None => Fact::Known(&self.facts.cpu),
        }
    }

    /// The port, where it is a device rather than something made of software.
    pub(crate) fn device(&self) -> Fact<&'a InterfaceFacts> {
        match self.port() {
            Fact::Known(port) => match &port.kind {
                Some(kind) => Fact::Absent(format!("{} is a {kind}: it has no own hardware", port.name)),
                None => Fact::Known(port),
            },
            other => other,
        }
    }

    /// The port's place on the bus; absent in a virtual machine, which sees what it is shown.
    pub(crate) fn pci(&self) -> Fact<(&'a InterfaceFacts, &'a PciFacts)> {
        if self.is_guest() {
            let tenant = self.tenant().unwrap_or_default();
            return Fact::Absent(format!("{tenant}: the bus it sees is not the one the device sits on"));
        }
        match self.device() {
            Fact::Known(port) => port.pci.as_ref().map(|pci| (port, pci)),
            Fact::Absent(why) => Fact::Absent(why),
            Fact::Unknown(why) => Fact::Unknown(why),
        }
    }

    /// CPUs next to the port; absent where every CPU is equally near.
    pub(crate) fn local_cpus(&self) -> Fact<Vec<u32>> {
        match &self.facts.numa {
            Fact::Known(nodes) if nodes.len() < 2 => return Fact::Absent("there is one NUMA node".into()),
            _ => {}
        }
        let list = match self.pci() {
            Fact::Known((_, pci)) => match (&pci.numa_node, &pci.local_cpus) {
                (Fact::Absent(why), _) => {
                    return Fact::Absent(format!("the device's NUMA node is not known: {why}"));
                }
                (_, list) => list.as_ref(),
            },
            Fact::Absent(why) => return Fact::Absent(why),
            Fact::Unknown(why) => return Fact::Unknown(why),
        };
        match list.map(|text| cpu_list(text)) {
            Fact::Known(Some(cpus)) if !cpus.is_empty() => Fact::Known(cpus),
            Fact::Known(_) => Fact::Unknown("the list of CPUs near the device cannot be read".into()),
            Fact::Absent(why) => Fact::Absent(why),
            Fact::Unknown(why) => Fact::Unknown(why),
        }
    }

    /// The interrupts of the port's queues, in the order of their numbers. Those that never fired are left out where some
    /// did: drivers allocate one for each CPU and use as many as there are queues.
    pub(crate) fn queue_interrupts(&self) -> Fact<Vec<&'a Interrupt>> {
        if self.is_container() {
            return Fact::Absent("this is a container: interrupts belong to the host below".into());
        }
        let port = match self.device() {
            Fact::Known(port) => port,
            Fact::Absent(why) => return Fact::Absent(why),
            Fact::Unknown(why) => return Fact::Unknown(why),
        };
        let all = match &self.facts.interrupts {
            Fact::Known(all) => all,
            Fact::Absent(why) => return Fact::Absent(why.clone()),
            Fact::Unknown(why) => return Fact::Unknown(why.clone()),
        };
        let mut own: Vec<_> =
            all.iter().filter(|i| port.interrupts.contains(&i.number) && serves_a_queue(&i.name)).collect();
        if own.iter().any(|interrupt| interrupt.count > 0) {
            own.retain(|interrupt| interrupt.count > 0);
        }
        own.sort_by_key(|interrupt| interrupt.number);
        if own.is_empty() {
            return Fact::Absent(format!("{} has no interrupts for its queues", port.name));
        }
        Fact::Known(own)
    }
}

/// Whether an interrupt is a queue's rather than the device's own business (firmware events, mailboxes, link changes), by
/// the names that drivers give those.
fn serves_a_queue(name: &str) -> bool {
    const OTHER: &[&str] =
        &["async", "pages", "misc", "mbx", "mailbox", "mgm", "config", "control", "ctrl", "fdir", "lsc"];
    let name = name.to_ascii_lowercase();
    !OTHER.iter().any(|word| name.contains(word))
}

/// CPUs that handle an interrupt: where it was last directed, else where it may be.
pub(crate) fn handled_by(interrupt: &Interrupt) -> Option<Vec<u32>> {
    let effective = interrupt.effective.known().and_then(|list| cpu_list(list)).filter(|cpus| !cpus.is_empty());
    effective.or_else(|| interrupt.affinity.known().and_then(|list| cpu_list(list)).filter(|cpus| !cpus.is_empty()))
}

/// Changes that give each of `moving` the CPU among `allowed` that handles the fewest interrupts, counting those in
/// `staying`; the lowest first.
pub(crate) fn spread(moving: &[&Interrupt], staying: &[&Interrupt], allowed: &[u32]) -> Vec<Change> {
    let mut load: Vec<(usize, u32)> = allowed.iter().map(|&cpu| (0, cpu)).collect();
    for cpu in staying.iter().filter_map(|interrupt| handled_by(interrupt)?.first().copied()) {
        if let Some(entry) = load.iter_mut().find(|(_, known)| *known == cpu) {
            entry.0 += 1;
        }
    }
    let place = |interrupt: &&Interrupt| {
        let least = load.iter_mut().min()?;
        least.0 += 1;
        let target = Target::InterruptAffinity { number: interrupt.number, name: interrupt.name.clone() };
        Some(Change::new(target, least.1.to_string()))
    };
    moving.iter().filter_map(place).collect()
}

/// CPUs of a hexadecimal mask with commas (`00000000,0000ffff`); `None` if it is not one.
pub(crate) fn cpu_mask(text: &str) -> Option<Vec<u32>> {
    let digits: Vec<u32> =
        text.trim().chars().filter(|c| *c != ',').map(|c| c.to_digit(16)).collect::<Option<_>>()?;
    if digits.is_empty() || digits.len() > MOST_CPUS as usize / 4 {
        return None;
    }
    let bits = |(place, digit): (usize, &u32)| {
        let digit = *digit;
        (0..4).filter(move |bit| digit >> bit & 1 == 1).map(move |bit| place as u32 * 4 + bit)
    };
    Some(digits.iter().rev().enumerate().flat_map(bits).collect())
}

/// The mask of some CPUs as the kernel writes it: groups of eight digits with commas.
pub(crate) fn mask_text(cpus: &[u32]) -> String {
    let cpus: Vec<u32> = cpus.iter().copied().filter(|cpu| *cpu < MOST_CPUS).collect();
    let groups = cpus.iter().max().map_or(1, |most| most / 32 + 1);
    let group = |group: u32| {
        let bits = cpus.iter().filter(|cpu| **cpu / 32 == group).fold(0_u32, |bits, cpu| bits | 1 << (cpu % 32));
        if group + 1 == groups { format!("{bits:x}") } else { format!("{bits:08x}") }
    };
    (0..groups).rev().map(group).collect::<Vec<_>>().join(",")
}

/// Numbers in the kernel's list format (`0-3,8`).
pub(crate) fn list_text(numbers: &[u32]) -> String {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for number in sorted {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let run = |(first, last): (u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    runs.into_iter().map(run).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_and_lists_are_read_back_as_they_were_written() {
        for cpus in [vec![0], vec![0, 1, 2, 3], vec![31, 32], vec![5, 64, 127]] {
            assert_eq!(cpu_mask(&mask_text(&cpus)), Some(cpus.clone()));
            assert_eq!(cpu_list(&list_text(&cpus)), Some(cpus));
        }
        assert_eq!(mask_text(&[32]), "1,00000000");
        assert_eq!(mask_text(&[]), "0");
        assert_eq!(cpu_mask("00000000,0000000f"), Some(vec![0, 1, 2, 3]));
        assert_eq!(cpu_mask("xyz"), None);
    }

    #[test]
    fn only_many_lost_packets_are_a_finding() {
        assert_eq!(loss_severity(99, 1000), None);
        assert_eq!(loss_severity(100, 10_000_000_000), None);
        assert_eq!(loss_severity(100_000, 100_000_000_000), Some(Severity::Minor));
        assert_eq!(loss_severity(46_000, 1_000_000_000), Some(Severity::Major));
    }

    #[test]
    fn interrupts_go_to_the_least_loaded_of_the_allowed_processors() {
        let at = |number, cpu: u32| Interrupt {
            number,
            name: format!("q{number}"),
            effective: Fact::Known(cpu.to_string()),
            ..Interrupt::default()
        };
        let (a, b, c) = (at(1, 0), at(2, 9), at(3, 9));
        let changes = spread(&[&b, &c], &[&a], &[0, 1]);
        let desired: Vec<_> = changes.iter().map(|change| change.desired.as_str()).collect();
        assert_eq!(desired, ["1", "0"]);
    }
}
