//! Writes sample documents and their reports, for working on the page without a test bed.
//!
//! `cargo run -p landspeed-report --example samples -- DIRECTORY [NAME…]`

mod documents;

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use landspeed_report::{
    Limit, ReportError, Source, figures, render, render_audit, render_figures, render_lab, render_trace,
    render_trace_comparison, render_watch, scene, svg,
};
use landspeed_results::Document;
use serde::Serialize;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let directory = PathBuf::from(arguments.next().ok_or("usage: samples DIRECTORY [NAME…]")?);
    let wanted: Vec<String> = arguments.collect();
    fs::create_dir_all(&directory)?;
    let out = Out { directory, wanted };
    out.all(documents::RUNS, render)?;
    out.all(documents::LABS, render_lab)?;
    out.all(documents::AUDITS, render_audit)?;
    out.all(documents::TRACES, render_trace)?;
    out.all(documents::TRACE_COMPARISONS, render_trace_comparison)?;
    out.all(documents::WATCHES, render_watch)?;
    out.figures()
}

struct Out {
    directory: PathBuf,
    wanted: Vec<String>,
}

impl Out {
    /// Writes the pages of figures, their data, and every figure as SVG.
    fn figures(&self) -> Result<(), Box<dyn Error>> {
        let made = documents::FIGURES.iter().map(|(name, make)| (*name, vec![(*name, *make)]));
        let runs = documents::RUNS.iter().take(3).map(|(name, make)| (*name, Document::Run(Box::new(make()))));
        let overlay: Vec<Source> = runs.map(|(name, document)| Source { name: name.to_owned(), document }).collect();
        let mut pages: Vec<(&str, Vec<Source>)> = vec![("overlay", overlay)];
        for (name, entries) in made {
            let sources = entries.into_iter().map(|(name, make)| Source { name: name.to_owned(), document: make() });
            pages.push((name, sources.collect()));
        }
        let limits = [
            Limit { level: None, rate: "10G".parse()? },
            Limit { level: Some(("NIC".to_owned(), "T110 opteron".to_owned())), rate: "8G".parse()? },
        ];
        for (name, sources) in pages {
            if !self.wanted.is_empty() && !self.wanted.iter().any(|w| w == name) {
                continue;
            }
            let limits = if name == "sweep-matrix" { limits.as_slice() } else { &[] };
            let page = figures(&sources, limits);
            let html = render_figures(&page)?;
            println!("{name}: {} bytes, {} figures", html.len(), page.figures.len());
            fs::write(self.directory.join(format!("{name}.json")), serde_json::to_string(&page)?)?;
            fs::write(self.directory.join(format!("{name}.html")), html)?;
            for figure in &page.figures {
                fs::write(self.directory.join(format!("{name}.{}.svg", figure.id)), svg(&scene(figure)))?;
            }
        }
        Ok(())
    }

    /// Writes the requested samples, or all if none is named.
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
