//! Parsers for single values in small text files.

/// Values in `/proc/cpuinfo`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CpuInfo {
    /// `model name` of the first core.
    pub model: Option<String>,
    /// Whether the CPU has the hypervisor bit (x86).
    pub hypervisor: bool,
    /// `cpu MHz` by core number; 0 for a core without one. Empty on architectures that do not report it.
    pub mhz: Vec<f32>,
}

impl CpuInfo {
    pub(crate) fn parse(text: &str) -> Self {
        const MAX_CORES: usize = 8192;
        let mut info = Self::default();
        let mut core = None;
        for line in text.lines() {
            let Some((key, value)) = line.split_once(':') else { continue };
            let value = value.trim();
            match key.trim_end() {
                "processor" => core = value.parse::<usize>().ok().filter(|&n| n < MAX_CORES),
                "model name" if info.model.is_none() && !value.is_empty() => {
                    info.model = Some(collapse_whitespace(value));
                }
                "flags" if !info.hypervisor => info.hypervisor = value.split(' ').any(|flag| flag == "hypervisor"),
                "cpu MHz" => {
                    let mhz = value.parse::<f32>().ok().filter(|mhz| mhz.is_finite() && *mhz >= 0.0);
                    if let (Some(core), Some(mhz)) = (core, mhz) {
                        if info.mhz.len() <= core {
                            info.mhz.resize(core + 1, 0.0);
                        }
                        info.mhz[core] = mhz;
                    }
                }
                _ => {}
            }
        }
        info
    }
}

/// Returns the number of entries of a kernel list: 16 for `0-7,16-23`. `None` if it is invalid.
pub(crate) fn cpu_list(list: &str) -> Option<u32> {
    let list = list.trim();
    if list.is_empty() {
        return Some(0);
    }
    list.split(',').try_fold(0_u32, |sum, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        sum.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

/// Returns the numbers of a kernel list; `None` if it is invalid, or names more CPUs than any kernel supports.
pub(crate) fn list_numbers(list: &str) -> Option<Vec<u32>> {
    const MAX_CPUS: u32 = 8192;
    cpu_list(list).filter(|&count| count <= MAX_CPUS)?;
    let ranges = list.trim().split(',').filter(|range| !range.is_empty());
    let numbers = ranges.map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.trim().parse::<u32>().ok()?..=last.trim().parse().ok()?)
    });
    numbers.collect::<Option<Vec<_>>>().map(|ranges| ranges.into_iter().flatten().collect())
}

/// Returns the number after `key` in a file of two words per line, such as `cpu.stat`.
pub(crate) fn field_of_words(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        (words.next() == Some(key)).then(|| words.next()?.parse().ok()).flatten()
    })
}

/// Returns the number after `key:` in a file such as `/proc/meminfo`.
pub(crate) fn field(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// Returns the value of `KEY=value` or `KEY="value"` in a file such as `/etc/os-release`.
pub(crate) fn quoted_value(text: &str, key: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.trim().strip_prefix(key)?.strip_prefix('='))?;
    let bare = value.trim().trim_matches(|c| c == '"' || c == '\'');
    (!bare.is_empty()).then(|| bare.to_owned())
}

/// Returns the interface of the IPv4 default route with the lowest metric, from `/proc/net/route`.
pub(crate) fn default_route_interface(text: &str) -> Option<String> {
    let routes = text.lines().skip(1).filter_map(|line| {
        // Columns: Iface Destination Gateway Flags RefCnt Use Metric Mask …; addresses are hexadecimal.
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        let (interface, destination, metric, mask) = (words.first()?, words.get(1)?, words.get(6)?, words.get(7)?);
        (*destination == "00000000" && *mask == "00000000").then_some((metric.parse::<u32>().ok()?, *interface))
    });
    routes.min().map(|(_, interface)| interface.to_owned())
}

/// Replaces each run of white space by one space, and trims both ends.
pub(crate) fn collapse_whitespace(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_are_counted_and_invalid_ones_rejected() {
        assert_eq!(cpu_list("0-7,16-23\n"), Some(16));
        assert_eq!(cpu_list("3"), Some(1));
        assert_eq!(cpu_list(""), Some(0));
        for bad in ["7-0", "a", "1-", "0-4294967295", ",", "1,,2"] {
            assert_eq!(cpu_list(bad), None, "{bad}");
        }
    }

    #[test]
    fn cpuinfo_gives_model_hypervisor_and_frequency_by_core() {
        let text = "processor\t: 0\nmodel name\t: Fast  CPU\nflags\t\t: fpu hypervisor sse\ncpu MHz\t\t: 2500.5\n\n\
                    processor\t: 2\ncpu MHz\t\t: 1000\n\nprocessor : 99999999\ncpu MHz : 7\n";
        let info = CpuInfo::parse(text);
        assert_eq!(info.model.as_deref(), Some("Fast CPU"));
        assert!(info.hypervisor);
        assert_eq!(info.mhz, [2500.5, 0.0, 1000.0]);
        assert_eq!(CpuInfo::parse("BogoMIPS : 50\nFeatures : fp asimd\n"), CpuInfo::default());
    }

    #[test]
    fn the_default_route_with_the_lowest_metric_wins() {
        let head = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n";
        let routes = "eth1 00000000 0102A8C0 0003 0 0 600 00000000 0 0 0\neth0 00000000 0102A8C0 0003 0 0 100 00000000 0 0 0\n";
        assert_eq!(default_route_interface(&format!("{head}{routes}")).as_deref(), Some("eth0"));
        assert_eq!(default_route_interface(head), None);
    }

    #[test]
    fn values_are_found_by_their_whole_key() {
        assert_eq!(field("MemTotalX: 1 kB\nMemTotal:  2048 kB\n", "MemTotal"), Some(2048));
        assert_eq!(quoted_value("NAME=x\nPRETTY_NAME=\"An OS 1\"\n", "PRETTY_NAME").as_deref(), Some("An OS 1"));
        assert_eq!(quoted_value("PRETTY_NAME=\"\"", "PRETTY_NAME"), None);
    }
}
