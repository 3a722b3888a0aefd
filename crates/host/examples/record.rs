//! Records this host: `cargo run -p landspeed-host --example record -- DIR [redact]`.

use std::path::Path;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(directory) = arguments.next() else { return eprintln!("name a directory") };
    match landspeed_host::record(Path::new(&directory), arguments.next().as_deref() == Some("redact")) {
        Ok(facts) => println!("{} interfaces", facts.interfaces.len()),
        Err(why) => eprintln!("{why}"),
    }
}
