//! `/proc/net/softnet_stat`: packets received by each core.

use landspeed_model::SoftnetDelta;

/// Counters of one core; 32 bits, they wrap (in seven minutes at 10 million packets per second).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SoftnetRow {
    /// Core number, which kernels since 5.10 report; the row's number before.
    pub core: u32,
    pub processed: u32,
    pub dropped: u32,
    pub time_squeeze: u32,
    pub received_rps: u32,
    pub flow_limit: u32,
}

impl SoftnetRow {
    /// Returns the difference since `before`.
    pub(crate) fn since(self, before: Self) -> SoftnetDelta {
        let delta = |now: u32, then: u32| u64::from(now.wrapping_sub(then));
        SoftnetDelta {
            processed: delta(self.processed, before.processed),
            dropped: delta(self.dropped, before.dropped),
            time_squeeze: delta(self.time_squeeze, before.time_squeeze),
            received_rps: delta(self.received_rps, before.received_rps),
            flow_limit: delta(self.flow_limit, before.flow_limit),
        }
    }
}

/// Fills `rows` in the file's order. Columns, hexadecimal: processed, dropped, time_squeeze, five zeros, cpu_collision,
/// received_rps, flow_limit, backlog length, core, then two queue lengths (net/core/net-procfs.c). Offline cores have
/// no row; a row without its first three columns is skipped.
pub(crate) fn softnet_rows(text: &str, rows: &mut Vec<SoftnetRow>) {
    rows.clear();
    for (number, line) in text.lines().enumerate() {
        let mut columns = [None; 13];
        for (column, word) in columns.iter_mut().zip(line.split_ascii_whitespace()) {
            *column = u32::from_str_radix(word, 16).ok();
        }
        if let [Some(processed), Some(dropped), Some(time_squeeze), ..] = columns {
            rows.push(SoftnetRow {
                core: columns[12].unwrap_or(number as u32),
                processed,
                dropped,
                time_squeeze,
                received_rps: columns[9].unwrap_or(0),
                flow_limit: columns[10].unwrap_or(0),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn softnet_cores_come_from_the_column_or_the_row_order() {
        let mut rows = Vec::new();
        let new = "0000000a 00000001 00000002 0 0 0 0 0 0 00000003 00000004 00000000 00000007 0 0\n";
        softnet_rows(new, &mut rows);
        let expected =
            SoftnetRow { core: 7, processed: 10, dropped: 1, time_squeeze: 2, received_rps: 3, flow_limit: 4 };
        assert_eq!(rows, [expected]);
        softnet_rows("00000001 0 0\ngarbage\n00000002 0 0\n00000003 0\n", &mut rows);
        assert_eq!(rows.iter().map(|r| (r.core, r.processed)).collect::<Vec<_>>(), [(0, 1), (2, 2)]);
    }

    #[test]
    fn wrapped_counters_have_a_positive_difference() {
        let before = SoftnetRow { processed: u32::MAX - 1, ..SoftnetRow::default() };
        assert_eq!(SoftnetRow { processed: 3, ..before }.since(before).processed, 5);
    }
}
