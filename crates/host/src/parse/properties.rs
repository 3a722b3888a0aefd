//! Property tests of the parsers, with any file content.

use proptest::prelude::*;

use super::*;

/// Generates texts similar to real files, and arbitrary ones.
fn any_text() -> impl Strategy<Value = String> {
    let like = "((cpu[0-9]{0,5}|Tcp:|TcpExt:|some|TCP:|processor\t:|cpu MHz :|eth0|[a-f0-9]{1,9})[ \t]?([ -~]{0,40})\n){0,12}";
    prop_oneof![any::<String>(), like.prop_map(String::from)]
}

proptest! {
    #[test]
    fn parsers_never_panic(text in any_text()) {
        core_ticks(&text, &mut Vec::new());
        softnet_rows(&text, &mut Vec::new());
        let mut counters = Counters::default();
        paired_lines(&text, &mut counters);
        named_values(&text, &mut counters);
        let _ = (pressure_total_us(&text), tcp_memory_pages(&text), cpu_list(&text), default_route_interface(&text));
        let table = core_table(&text);
        table.since(&core_table(&format!("CPU0 CPU3\n{text}")), |_, _, _| {});
        let _ = (interrupt_rows(&text), sysctl_assignments(&text), device_control(text.as_bytes()));
        let _ = (field_of_words(&text, "some"), list_numbers(&text).map(|numbers| assert!(numbers.len() <= 8192)));
        let _ = (field(&text, "MemTotal"), quoted_value(&text, "PRETTY_NAME"), CpuInfo::parse(&text));
    }

    #[test]
    fn sysctl_assignments_round_trip(name in "[a-z0-9_]{1,8}(\\.[a-z0-9_]{1,8}){0,4}", value in "[0-9a-z]{1,9}( [0-9a-z]{1,9}){0,3}", blank in "[ \t]{0,3}", dash in "-?") {
        let read = sysctl_assignments(&format!("\n{dash}{name}{blank}={blank}{value}{blank}\n"));
        prop_assert_eq!(read.len(), 1);
        prop_assert_eq!((read[0].line, &read[0].name, &read[0].value), (2, &name, &value));
    }

    #[test]
    fn interrupt_counts_are_summed_over_cpus(counts in prop::collection::vec(any::<u32>(), 1..40), number in 0_u32..5000, name in "[a-z0-9@:.]{1,20}") {
        let head = "CPU0 ".repeat(counts.len());
        let words: Vec<_> = counts.iter().map(u32::to_string).collect();
        let rows = interrupt_rows(&format!("{head}\n {number}: {} PCI-MSIX-0000:00:03.0 1-edge {name}\n", words.join("  ")));
        prop_assert_eq!(rows.len(), 1);
        prop_assert_eq!((rows[0].number, &rows[0].name), (number, &name));
        prop_assert_eq!(rows[0].count, counts.iter().map(|&n| u64::from(n)).sum::<u64>());
    }

    #[test]
    fn device_control_is_found_at_any_capability_offset(at in 0x11_u8..0x3c, control in any::<u16>()) {
        let config = pci::config_with_express_at(at * 4, control);
        let found = device_control(&config).expect("a PCI Express device");
        prop_assert_eq!(found.max_read_request_bytes, 128 << (control >> 12 & 7));
        prop_assert_eq!(found.max_payload_bytes, 128 << (control >> 5 & 7));
        prop_assert_eq!(found.relaxed_ordering, control & 0x10 != 0);
    }

    #[test]
    fn cpu_lists_round_trip(numbers in prop::collection::btree_set(0_u32..8192, 0..60)) {
        let numbers: Vec<_> = numbers.into_iter().collect();
        prop_assert_eq!(list_numbers(&crate::collect::list_text(&numbers)), Some(numbers));
    }

    #[test]
    fn shares_of_a_core_add_up_to_one(ticks in any::<[u32; 7]>()) {
        let [user, system, softirq, irq, steal, iowait, idle] = ticks.map(u64::from);
        let shares = CoreTicks { user, system, softirq, irq, steal, iowait, idle }.shares();
        let sum = shares.busy() + shares.iowait + shares.idle;
        let expected = if ticks.iter().all(|&n| n == 0) { 0.0 } else { 1.0 };
        prop_assert!((sum - expected).abs() < 1e-5, "{sum}");
    }

    #[test]
    fn generated_stat_rows_are_parsed(ticks in any::<[u32; 8]>(), core in 0_usize..300) {
        let words: Vec<_> = ticks.iter().map(u32::to_string).collect();
        let mut cores = Vec::new();
        core_ticks(&format!("cpu{core} {}\n", words.join(" ")), &mut cores);
        prop_assert_eq!(cores.len(), core + 1);
        let read = cores[core].expect("a row");
        prop_assert_eq!(read.user, u64::from(ticks[0]) + u64::from(ticks[1]));
        prop_assert_eq!(read.steal, u64::from(ticks[7]));
        prop_assert!(cores[..core].iter().all(Option::is_none));
    }

    #[test]
    fn counter_differences_add_up_to_the_later_reading(before in any::<[u32; 4]>(), after in any::<[u32; 4]>()) {
        let write = |values: [u32; 4]| {
            let words: Vec<_> = values.iter().map(u32::to_string).collect();
            let mut counters = Counters::default();
            paired_lines(&format!("Tcp: a b c d\nTcp: {}\n", words.join(" ")), &mut counters);
            counters
        };
        let (then, now) = (write(before), write(after));
        let moved = now.moved_since(&then);
        for (name, &value) in &now.0 {
            let delta = moved.iter().find(|d| &d.name == name).map_or(0, |d| d.delta);
            prop_assert_eq!(i128::from(then.0[name]) + i128::from(delta), i128::from(value));
        }
        prop_assert!(moved.iter().all(|d| d.delta != 0));
    }
}
