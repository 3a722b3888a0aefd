//! Command-line options of `landspeed run` for the parameters of a test.

use landspeed_model::{Parameters, SendMode};

/// Settings that a search does not vary: duration, sampling, title.
const LEFT_OUT: &[&str] = &["time", "bytes", "omit", "interval", "title", "distance"];

/// Returns the options of `run` for the settings of a test, each option and value as a separate argument; without duration,
/// sampling and title.
pub fn run_options(p: &Parameters) -> Vec<String> {
    landspeed_settings::options(p, |setting| !LEFT_OUT.contains(&setting.name))
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

/// Comma-separated list, such as `0,2,3`.
pub(crate) fn comma_separated(cores: &[u32]) -> String {
    cores.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}
