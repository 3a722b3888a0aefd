//! Registry of all checks.

use crate::check::Check;
use crate::{buffers, cpu, environment, folklore, interface, interrupts, pci, qdisc, tcp};

/// Returns every check, in the order of the groups.
pub fn all() -> impl Iterator<Item = &'static Check> {
    let groups = [
        cpu::CHECKS,
        pci::CHECKS,
        interrupts::CHECKS,
        interface::CHECKS,
        qdisc::CHECKS,
        buffers::CHECKS,
        tcp::CHECKS,
        environment::CHECKS,
        folklore::CHECKS,
    ];
    groups.into_iter().flat_map(|group| group.iter().copied())
}
