//! Parser for `/proc/interrupts`.

/// One hardware interrupt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct InterruptRow {
    pub number: u32,
    /// Names of its actions; empty without a handler.
    pub name: String,
    /// Sum over all CPUs since boot.
    pub count: u64,
}

/// Parses the rows that have a number; those of the architecture (`LOC`, `NMI`) have letters.
///
/// A row is its number, a count for each online CPU, the chip, the hardware number with the trigger
/// (`1048576-edge`; Arm: `27 Level`), the names (kernel/irq/proc.c). A chip may have spaces in its name
/// (`Hyper-V PCIe MSI`), so the names are the words after the trigger.
pub(crate) fn interrupt_rows(text: &str) -> Vec<InterruptRow> {
    let mut lines = text.lines();
    let processors = lines.next().map_or(0, |head| head.split_whitespace().count());
    lines.filter_map(|line| row(line, processors)).collect()
}

fn row(line: &str, processors: usize) -> Option<InterruptRow> {
    let (number, rest) = line.split_once(':')?;
    let number = number.trim().parse().ok()?;
    let mut words = rest.split_whitespace().peekable();
    let mut count = 0_u64;
    for _ in 0..processors {
        let Some(ticks) = words.peek().and_then(|word| word.parse::<u64>().ok()) else { break };
        count = count.saturating_add(ticks);
        words.next();
    }
    Some(InterruptRow { number, name: action_names(&words.collect::<Vec<_>>()), count })
}

/// Returns the names of the actions in the words after the counts.
pub(super) fn action_names(words: &[&str]) -> String {
    let names = match words.iter().position(|word| is_trigger(word)) {
        Some(at) => words.get(at + 1..),
        // Without a trigger: skip the chip and its number.
        None => words.get(2..),
    };
    names.unwrap_or_default().join(" ")
}

fn is_trigger(word: &str) -> bool {
    let bare = word.split_once('-').filter(|(number, _)| number.bytes().all(|b| b.is_ascii_digit()));
    match bare {
        Some((_, kind)) => ["edge", "level", "fasteoi", "edge-eoi", "none"].contains(&kind),
        None => matches!(word, "Edge" | "Level"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupt_names_are_parsed_after_any_chip_name() {
        let text = "            CPU0       CPU1       \n\
                    \x20  9:          0          2   IO-APIC    9-fasteoi   acpi\n\
                    \x20 34:    1000000          1   IR-PCI-MSI 30932993-edge      mlx5_comp0@pci:0000:3b:00.0\n\
                    \x20 35:          5          0  PCI-MSIX-0000:00:03.0   1-edge      virtio0-input.0\n\
                    \x20 24:          1          0  Hyper-V PCIe MSI 1744830464-edge      mlx5_async0@pci:c0d1:00:02.0\n\
                    \x20 48:          7          8     GICv3  27 Level     arch_timer, other\n\
                    \x20 52:          0          0   ITS-MSI 524288 Edge      ena-mgmnt@pci:0000:00:05.0\n\
                    \x20  7:          0          0   xen-dyn    -event     xenbus\n\
                    \x20  0:         33          0\n\
                    NMI:          1          1   Non-maskable interrupts\n\
                    ERR:          0\n";
        let rows: Vec<_> = interrupt_rows(text).into_iter().map(|row| (row.number, row.count, row.name)).collect();
        let expected = [
            (9, 2, "acpi"),
            (34, 1_000_001, "mlx5_comp0@pci:0000:3b:00.0"),
            (35, 5, "virtio0-input.0"),
            (24, 1, "mlx5_async0@pci:c0d1:00:02.0"),
            (48, 15, "arch_timer, other"),
            (52, 0, "ena-mgmnt@pci:0000:00:05.0"),
            (7, 0, "xenbus"),
            (0, 33, ""),
        ];
        assert_eq!(rows, expected.map(|(number, count, name)| (number, count, name.to_owned())));
    }

    #[test]
    fn overflowing_interrupt_counts_saturate() {
        let rows =
            interrupt_rows("CPU0 CPU1\n1: 18446744073709551615 7 x 1-edge y\n2: 99999999999999999999 z\n3: -1 2\n");
        assert_eq!((rows[0].count, rows[0].name.as_str()), (u64::MAX, "y"));
        assert_eq!((rows[1].count, rows[2].count), (0, 0));
    }
}
