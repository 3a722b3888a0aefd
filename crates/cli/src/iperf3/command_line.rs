//! How landspeed is called as `iperf3`.

/// Subcommand name; a program called by this name is the subcommand.
pub const NAME: &str = "iperf3";

/// Returns the command line. If the program is called as `iperf3`, the subcommand of that name is inserted.
pub fn command_line() -> Vec<std::ffi::OsString> {
    let mut words: Vec<_> = std::env::args_os().collect();
    let name = words.first().map(|called| std::path::Path::new(called).file_name().unwrap_or_default().to_owned());
    if name.is_some_and(|name| name == NAME) {
        words.insert(1, NAME.into());
    }
    words
}
