//! Hardware interrupts and their CPU affinity.

use landspeed_model::{Fact, Interrupt};

use crate::host::{FactReader, known};
use crate::parse::interrupt_rows;

pub(super) fn read(look: FactReader<'_>) -> Fact<Vec<Interrupt>> {
    known(look.read("/proc/interrupts")).map(|text| {
        let affinity = |number: u32, file: &str| look.fact(&format!("/proc/irq/{number}/{file}"));
        let interrupt = |row: crate::parse::InterruptRow| Interrupt {
            affinity: affinity(row.number, "smp_affinity_list"),
            effective: affinity(row.number, "effective_affinity_list"),
            number: row.number,
            name: row.name,
            count: row.count,
        };
        interrupt_rows(&text).into_iter().map(interrupt).collect()
    })
}
