//! Writes invented but realistic run documents and their reports, for working on the page without a test bed.
//!
//! `cargo run -p landspeed-report --example synthesize -- DIRECTORY [NAME…]`

mod documents;

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let directory = PathBuf::from(arguments.next().ok_or("usage: synthesize DIRECTORY [NAME…]")?);
    let wanted: Vec<String> = arguments.collect();
    fs::create_dir_all(&directory)?;
    for (name, make) in documents::ALL {
        if !wanted.is_empty() && !wanted.iter().any(|w| w == name) {
            continue;
        }
        let document = make();
        let page = landspeed_report::render(&document)?;
        fs::write(directory.join(format!("{name}.json")), serde_json::to_string(&document)?)?;
        fs::write(directory.join(format!("{name}.html")), &page)?;
        println!("{name}: {} bytes", page.len());
    }
    Ok(())
}
