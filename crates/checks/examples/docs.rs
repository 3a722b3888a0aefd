//! Writes the checks' pages into a directory: `cargo run -p landspeed-checks --example docs -- docs/checks`.

use std::{env, fs, io, path::PathBuf};

fn main() -> io::Result<()> {
    let directory = PathBuf::from(env::args().nth(1).unwrap_or_else(|| "docs/checks".into()));
    fs::create_dir_all(&directory)?;
    for check in landspeed_checks::all() {
        fs::write(directory.join(format!("{}.md", check.code)), landspeed_checks::page(check))?;
    }
    fs::write(directory.join("README.md"), landspeed_checks::index())
}
