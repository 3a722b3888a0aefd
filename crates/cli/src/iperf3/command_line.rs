//! How landspeed is called as `iperf3` or `netperf`.

/// Subcommand name; a program called by this name is the subcommand.
pub const NAME: &str = "iperf3";

/// Returns the command line. If the program is called by the name of a front, the subcommand of that name is inserted.
pub fn command_line() -> Vec<std::ffi::OsString> {
    let mut words: Vec<_> = std::env::args_os().collect();
    let name = words.first().map(|called| std::path::Path::new(called).file_name().unwrap_or_default().to_owned());
    if let Some(front) =
        [NAME, crate::netperf::NAME].into_iter().find(|front| name.as_ref().is_some_and(|name| name == front))
    {
        words.insert(1, front.into());
    }
    words
}
