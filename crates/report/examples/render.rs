//! Draws documents: `render A.json…` writes A.html beside each.

use std::path::Path;
use std::{env, error::Error, fs};

fn main() -> Result<(), Box<dyn Error>> {
    for argument in env::args().skip(1) {
        let path = Path::new(&argument);
        let document: landspeed_model::RunDocument = serde_json::from_slice(&fs::read(path)?)?;
        fs::write(path.with_extension("html"), landspeed_report::render(&document)?)?;
    }
    Ok(())
}
