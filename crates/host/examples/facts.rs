//! Prints all facts about this host that a check may use, and how long collecting them took: `cargo run
//! --release -p landspeed-host --example facts`, or of a recorded host: `-- DIR`.

use std::path::Path;

use landspeed_host::{LiveHost, RecordedHost, collect};

fn main() {
    let facts = match std::env::args().nth(1) {
        None => collect(&LiveHost::new()),
        Some(directory) => match RecordedHost::open(Path::new(&directory)) {
            Ok(host) => collect(&host),
            Err(why) => return eprintln!("{why}"),
        },
    };
    println!("{}", serde_json::to_string_pretty(&facts).expect("plain data"));
    eprintln!("collect_ns {}", facts.collect_ns);
}
