//! Writes sample documents and their reports, for working on the page without a test bed.
//!
//! `cargo run -p landspeed-report --example samples -- DIRECTORY [NAME…]`

mod documents;

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use landspeed_report::{
    ReportError, render, render_audit, render_lab, render_lab_set, render_trace, render_trace_comparison,
    render_watch,
};
use serde::Serialize;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let directory = PathBuf::from(arguments.next().ok_or("usage: samples DIRECTORY [NAME…]")?);
    let wanted: Vec<String> = arguments.collect();
    fs::create_dir_all(&directory)?;
    let out = Out { directory, wanted };
    out.all(documents::RUNS, render)?;
    out.all(documents::LABS, render_lab)?;
    out.all(documents::LAB_SETS, render_lab_set)?;
    out.all(documents::AUDITS, render_audit)?;
    out.all(documents::TRACES, render_trace)?;
    out.all(documents::TRACE_COMPARISONS, render_trace_comparison)?;
    out.all(documents::WATCHES, render_watch)
}

struct Out {
    directory: PathBuf,
    wanted: Vec<String>,
}

impl Out {
    /// Writes those that are wanted, all if none is named.
    fn all<T: Serialize>(
        &self,
        entries: &[documents::Entry<T>],
        render: fn(&T) -> Result<String, ReportError>,
    ) -> Result<(), Box<dyn Error>> {
        for (name, make) in entries {
            if !self.wanted.is_empty() && !self.wanted.iter().any(|w| w == name) {
                continue;
            }
            let document = make();
            let page = render(&document)?;
            fs::write(self.directory.join(format!("{name}.json")), serde_json::to_string(&document)?)?;
            fs::write(self.directory.join(format!("{name}.html")), &page)?;
            println!("{name}: {} bytes", page.len());
        }
        Ok(())
    }
}
