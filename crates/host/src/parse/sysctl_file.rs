//! Parser for files of sysctl.d(5).

use super::collapse_whitespace;

/// One assignment: line number from 1, sysctl with dots, value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Assignment {
    pub line: u32,
    pub name: String,
    pub value: String,
}

/// Parses the assignments of a file. `-name = value` (a failure is ignored) is one. Not assignments: `-name`
/// alone, which excludes the name from patterns, and comments (`#`, `;`). Patterns
/// (`net.ipv4.conf.*.rp_filter`) are not expanded.
pub(crate) fn sysctl_assignments(text: &str) -> Vec<Assignment> {
    let assignment = |(number, line): (usize, &str)| {
        let line = line.trim();
        if line.starts_with(['#', ';']) {
            return None;
        }
        let (name, value) = line.split_once('=')?;
        let name = with_dots(name.trim().strip_prefix('-').unwrap_or(name.trim()).trim());
        (!name.is_empty()).then(|| Assignment { line: number as u32 + 1, name, value: collapse_whitespace(value) })
    };
    text.lines().enumerate().filter_map(assignment).collect()
}

/// Converts a name to dots as separators. By sysctl.d(5), the first separator decides: if it is a slash,
/// slashes separate and dots belong to a name (`net/ipv4/conf/enp3s0.200/forwarding`); in the form with dots,
/// such a dot becomes a slash.
fn with_dots(name: &str) -> String {
    if name.find(['.', '/']).is_some_and(|at| name.as_bytes()[at] == b'/') {
        let swap = |c| match c {
            '/' => '.',
            '.' => '/',
            c => c,
        };
        name.chars().map(swap).collect()
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_are_parsed_as_in_sysctl() {
        let text = "# net.core.rmem_max = 1\n; so is this = 2\n\n  net.ipv4.tcp_rmem=4096  87380\t67108864 \n\
                    -net.core.default_qdisc = fq\n-net.ipv4.conf.all.rp_filter\nnet/ipv4/conf/eth0.7/forwarding = 1\n\
                    net.ipv4.conf.*.rp_filter = 2\nnonsense\n=3\nnet.ipv4.conf.eth0/7.arp_filter=1\nkernel.x=\n";
        let read: Vec<_> = sysctl_assignments(text).into_iter().map(|a| (a.line, a.name, a.value)).collect();
        let expected = [
            (4, "net.ipv4.tcp_rmem", "4096 87380 67108864"),
            (5, "net.core.default_qdisc", "fq"),
            (7, "net.ipv4.conf.eth0/7.forwarding", "1"),
            (8, "net.ipv4.conf.*.rp_filter", "2"),
            (11, "net.ipv4.conf.eth0/7.arp_filter", "1"),
            (12, "kernel.x", ""),
        ];
        assert_eq!(read, expected.map(|(line, name, value)| (line, name.to_owned(), value.to_owned())));
    }
}
