//! `/proc/interrupts` and `/proc/softirqs`: a column for each core.

use std::collections::BTreeMap;

use super::interrupts::action_names;

/// Rows that count for the whole host (arch/x86/kernel/irq.c, arch/arm64/kernel/smp.c).
const NOT_PER_CORE: [&str; 3] = ["ERR", "MIS", "Err"];
/// A 32-bit counter that changed by this much or more was reset (serial number arithmetic, RFC 1982).
const MAX_INCREASE: u32 = 1 << 31;

/// Rows of counters with a column for each core.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CoreTable {
    /// Core number of each column.
    pub cores: Vec<u32>,
    pub rows: Vec<CoreRow>,
}

/// An interrupt line or a kind of softirq.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CoreRow {
    /// First word of the row: `34`, `LOC`, `NET_RX`.
    pub label: String,
    /// Names of its actions; for a row without a number, the text after its counts.
    pub name: String,
    /// One count for each column; 32 bits, they wrap.
    pub counts: Vec<u32>,
}

/// Parses the rows that have a count for each core in the header line.
pub(crate) fn core_table(text: &str) -> CoreTable {
    let mut lines = text.lines();
    let head = lines.next().unwrap_or_default();
    let cores: Vec<u32> =
        head.split_ascii_whitespace().map_while(|word| word.strip_prefix("CPU")?.parse().ok()).collect();
    let rows = lines.filter_map(|line| row(line, cores.len())).collect();
    CoreTable { cores, rows }
}

fn row(line: &str, columns: usize) -> Option<CoreRow> {
    let (label, rest) = line.split_once(':')?;
    let label = label.trim();
    let mut words = rest.split_ascii_whitespace();
    let counts: Vec<u32> =
        words.by_ref().take(columns).map_while(|word| Some(word.parse::<u64>().ok()? as u32)).collect();
    if columns == 0 || counts.len() < columns || NOT_PER_CORE.contains(&label) {
        return None;
    }
    let words: Vec<&str> = words.collect();
    let numbered = label.bytes().all(|byte| byte.is_ascii_digit());
    let name = if numbered { action_names(&words) } else { words.join(" ") };
    Some(CoreRow { label: label.to_owned(), name, counts })
}

impl CoreTable {
    /// Passes every count that changed since `before` to `add`: row, core, difference. Rows and cores that only
    /// one of the tables has are skipped, as are counters that were reset. Returns how many were reset.
    pub(crate) fn since(&self, before: &Self, mut add: impl FnMut(&CoreRow, u32, u64)) -> u64 {
        let known: BTreeMap<(&str, &str), &CoreRow> = before.rows.iter().map(|row| (row.key(), row)).collect();
        let column = |core: &u32| before.cores.iter().position(|other| other == core);
        let columns: Vec<Option<usize>> = self.cores.iter().map(column).collect();
        let mut reset = 0;
        for row in &self.rows {
            let Some(then) = known.get(&row.key()) else { continue };
            for ((core, column), now) in self.cores.iter().zip(&columns).zip(&row.counts) {
                let Some(then) = column.and_then(|column| then.counts.get(column)) else { continue };
                match now.wrapping_sub(*then) {
                    0 => {}
                    moved if moved < MAX_INCREASE => add(row, *core, moved.into()),
                    _ => reset += 1,
                }
            }
        }
        reset
    }
}

impl CoreRow {
    fn key(&self) -> (&str, &str) {
        (&self.label, &self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EARLIER: &str = "           CPU0       CPU2\n\
        \x20 24:          1          9   IO-APIC   5-edge      ACPI:Ged\n\
        \x20 34: 4294967295          5  PCI-MSIX-0000:00:03.0   1-edge      virtio0-input.0\n\
        \x20 35:       7000          5  PCI-MSIX-0000:00:03.0   2-edge      virtio0-output.0\n\
        LOC:        100        200   Local timer interrupts\n\
        ERR:          0\n\
        MIS:          0          0\n";

    #[test]
    fn count_changes_are_reported_by_row_and_core() {
        let now =
            EARLIER.replace("4294967295", "3").replace("7000", "12").replace("100        200", "110        200");
        let mut moved = Vec::new();
        let reset =
            core_table(&now).since(&core_table(EARLIER), |row, core, by| moved.push((row.name.clone(), core, by)));
        let expected = [("virtio0-input.0".to_owned(), 0, 4), ("Local timer interrupts".to_owned(), 0, 10)];
        assert_eq!((moved.as_slice(), reset), (expected.as_slice(), 1), "line 35 was reset");
    }

    #[test]
    fn cores_and_lines_in_only_one_reading_are_skipped() {
        let now = EARLIER
            .replace("CPU0       CPU2", "CPU1       CPU2")
            .replace("       5  ", "       6  ")
            .replace("34:", "36:");
        let mut moved = Vec::new();
        core_table(&now).since(&core_table(EARLIER), |row, core, by| moved.push((row.label.clone(), core, by)));
        assert_eq!(moved, [("35".to_owned(), 2, 1)]);
    }

    #[test]
    fn softirqs_have_no_names() {
        let table = core_table("                    CPU0       CPU1\n      NET_RX:       1214       1926\n");
        assert_eq!(table.cores, [0, 1]);
        assert_eq!(table.rows, [CoreRow { label: "NET_RX".into(), name: String::new(), counts: vec![1214, 1926] }]);
        for text in ["", "CPU0\n", "x\n1: 2\n", "CPU0 CPU1\n1: 2\n:\n"] {
            assert!(core_table(text).rows.is_empty(), "{text}");
        }
    }
}
