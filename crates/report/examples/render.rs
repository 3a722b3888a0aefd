//! Renders documents as reports: `render A.json…` writes A.html next to each.

use std::path::Path;
use std::{env, error::Error, fs};

use landspeed_report::{render, render_lab, render_trace, render_trace_comparison, render_watch};

fn main() -> Result<(), Box<dyn Error>> {
    for argument in env::args().skip(1) {
        let path = Path::new(&argument);
        let text = fs::read(path)?;
        let kind: serde_json::Value = serde_json::from_slice(&text)?;
        let page = match kind["schema"].as_str() {
            Some(landspeed_model::LAB_SCHEMA | landspeed_model::LAB_SCHEMA_1) => {
                render_lab(&serde_json::from_slice(&text)?)?
            }
            Some(landspeed_model::TRACE_SCHEMA | landspeed_model::TRACE_SCHEMA_1) => {
                render_trace(&serde_json::from_slice(&text)?)?
            }
            Some(landspeed_model::TRACE_COMPARISON_SCHEMA) => {
                render_trace_comparison(&serde_json::from_slice(&text)?)?
            }
            Some(landspeed_model::WATCH_SCHEMA) => render_watch(&serde_json::from_slice(&text)?)?,
            _ => render(&serde_json::from_slice(&text)?)?,
        };
        fs::write(path.with_extension("html"), page)?;
    }
    Ok(())
}
