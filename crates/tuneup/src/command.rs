//! Command-line options of `landspeed run` for the parameters of a test.

use landspeed_model::{Direction, Family, NumaPolicy, PaceScope, Parameters, ReceiveMode, SendMode};

/// Returns the options of `run` for the settings of a TCP test, each option and value as a separate argument;
/// without duration, sampling and title.
pub fn run_options(p: &Parameters) -> Vec<String> {
    let defaults = Parameters::default();
    let mut words: Vec<String> = Vec::new();
    let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
    if p.streams != defaults.streams {
        option("-P", p.streams.to_string());
    }
    if p.write_bytes != defaults.write_bytes {
        option("-l", size(p.write_bytes));
    }
    if let Some(window) = p.window_bytes {
        option("-w", size(window));
    }
    if let Some(mss) = p.mss_bytes {
        option("-M", mss.to_string());
    }
    if let Some(name) = &p.congestion {
        option("-C", name.clone());
    }
    if let Some(rate) = p.pace_bps {
        option("--pace", rate.to_string());
    }
    if p.send != SendMode::Copy {
        option("--send", send_mode_name(p.send).to_owned());
    }
    if p.receive == ReceiveMode::Discard {
        option("--receive", "discard".to_owned());
    }
    for (name, cores) in [("--cpus", &p.client_cpus), ("--peer-cpus", &p.server_cpus)] {
        if !cores.is_empty() {
            option(name, comma_separated(cores));
        }
    }
    for (name, policy) in [("--numa", p.client_numa), ("--peer-numa", p.server_numa)] {
        if let Some(policy) = policy {
            option(name, numa(policy));
        }
    }
    if let Some(bind) = &p.bind {
        option("-B", bind.clone());
    }
    let flags = [
        (p.direction == Direction::Download, "-R"),
        (p.nodelay, "-N"),
        (p.pace_bps.is_some() && p.pace_scope == PaceScope::Total, "--pace-total"),
        (p.family == Family::V4, "-4"),
        (p.family == Family::V6, "-6"),
    ];
    words.extend(flags.into_iter().filter(|(set, _)| *set).map(|(_, flag)| flag.to_owned()));
    words
}

/// Value of the option `--send`.
pub(crate) fn send_mode_name(mode: SendMode) -> &'static str {
    match mode {
        SendMode::Copy => "copy",
        SendMode::Sendfile => "sendfile",
        SendMode::Splice => "splice",
        SendMode::Zerocopy => "zerocopy",
    }
}

fn numa(policy: NumaPolicy) -> String {
    match policy {
        NumaPolicy::Local => "local".to_owned(),
        NumaPolicy::Bind(node) => format!("bind:{node}"),
        NumaPolicy::Preferred(node) => format!("preferred:{node}"),
    }
}

/// Comma-separated list, such as `0,2,3`.
pub(crate) fn comma_separated(cores: &[u32]) -> String {
    cores.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// A size with a unit where exact: `64K`, `1M`, `1500`.
fn size(bytes: u64) -> String {
    let whole = |shift: u32| bytes > 0 && bytes.trailing_zeros() >= shift;
    match bytes {
        _ if whole(20) => format!("{}M", bytes >> 20),
        _ if whole(10) => format!("{}K", bytes >> 10),
        _ => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_parameters_need_no_options() {
        assert!(run_options(&Parameters::default()).is_empty());
    }

    #[test]
    fn sizes_are_short_and_exact() {
        assert_eq!([65536, 1 << 20, 1500, 3 << 19].map(size), ["64K", "1M", "1500", "1536K"]);
    }
}
