//! Tests that apply to every report, whatever its document.

#[path = "../examples/samples/documents.rs"]
mod documents;
#[expect(dead_code, reason = "the example prints what the test compares")]
#[path = "../examples/schema.rs"]
mod schema;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use landspeed_model::{Drawing, FiguresDocument, RunDocument};
use landspeed_report::{
    ReportError, Source, figures, gnuplot, markdown, render, render_audit, render_figures, render_lab, render_trace,
    render_trace_comparison, render_watch, scene, svg,
};
use landspeed_results::Document;
use serde_json::Value;
use sha2::{Digest, Sha256};

fn web() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web")
}

fn document(name: &str) -> RunDocument {
    let (_, make) = documents::RUNS.iter().find(|(n, _)| *n == name).expect("a sample of this name");
    make()
}

/// Returns the JSON in a page.
fn embedded(page: &str) -> Value {
    let open = "<script type=\"application/json\" id=\"document\">";
    let start = page.find(open).expect("the page holds the document") + open.len();
    let end = start + page[start..].find("</script>").expect("the element ends");
    serde_json::from_str(&page[start..end]).expect("what is embedded is JSON")
}

#[test]
fn a_page_needs_no_other_file_and_no_network() {
    let page = render(&document("bulk")).unwrap();
    assert!(page.starts_with("<!doctype html>"));
    assert!(page.contains("default-src 'none'"));
    for fetcher in [" src=", "@import", "url(", "<link rel=\"stylesheet\"", "<iframe", "<base"] {
        let head = page.split("<script").next().unwrap();
        assert!(!head.contains(fetcher), "{fetcher} before the scripts");
    }
}

#[test]
fn hostile_strings_stay_inert() {
    let document = document("hostile");
    let page = render(&document).unwrap();
    assert_inert("hostile", &page);
    let json = embedded(&page);
    assert_eq!(json["verdict"]["summary"], Value::from(document.verdict.summary));
}

/// Asserts that the page's only scripts are its own: the document and the program.
fn assert_inert(name: &str, page: &str) {
    assert_eq!(page.matches("<script").count(), 2, "{name}");
    assert_eq!(page.matches("</script").count(), 2, "{name}");
    assert_eq!(page.matches("<img").count(), 0, "{name}");
    assert_eq!(page.matches("<!--").count(), 0, "{name}");
}

#[test]
fn hostile_strings_of_other_documents_stay_inert() {
    assert_all_inert(documents::LABS, render_lab);
    assert_all_inert(documents::AUDITS, render_audit);
    assert_all_inert(documents::TRACES, render_trace);
    assert_all_inert(documents::TRACE_COMPARISONS, render_trace_comparison);
    assert_all_inert(documents::WATCHES, render_watch);
    assert_all_inert(documents::FIGURES, |document| render_figures(&drawn("a document", document.clone())));
}

/// Checks the first document of a kind, and the hostile ones.
fn assert_all_inert<T>(samples: &[documents::Entry<T>], draw: impl Fn(&T) -> Result<String, ReportError>) {
    for (number, (name, make)) in samples.iter().enumerate() {
        if number == 0 || name.ends_with("-hostile") {
            assert_inert(name, &draw(&make()).unwrap());
        }
    }
}

fn drawn(name: &str, document: Document) -> FiguresDocument {
    figures(&[Source { name: name.to_owned(), document }], &[])
}

#[test]
fn hostile_strings_stay_text_in_svg_and_tables() {
    for (name, make) in documents::FIGURES.iter().filter(|(name, _)| name.ends_with("hostile")) {
        let page = drawn(name, make());
        assert!(serde_json::to_string(&page).unwrap().contains("<img"), "{name} is hostile");
        let texts = page.figures.iter().map(|figure| svg(&scene(figure))).chain([markdown(&page)]);
        for text in texts {
            assert!(!text.contains("<script") && !text.contains("<img") && !text.contains("<!--"), "{name}: {text}");
        }
        let ids: Vec<&str> = page.figures.iter().map(|figure| figure.id.as_str()).collect();
        let safe = |id: &&str| id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        assert!(ids.iter().all(safe), "{ids:?}");
    }
}

#[test]
fn figures_for_papers_match_the_golden_files() {
    let of = |name: &str| {
        let (_, make) = documents::FIGURES.iter().find(|(known, _)| *known == name).expect("a sample");
        drawn(name, make()).figures.swap_remove(0)
    };
    for name in ["sweep-names", "sweep-matrix", "comparison"] {
        landspeed_testkit::golden::same(&format!("figures/{name}.svg"), &svg(&scene(&of(name))));
    }
    let (data, script) = gnuplot(&of("sweep-names"));
    landspeed_testkit::golden::same("figures/sweep-names.gp", &format!("{script}\n{data}"));
}

#[test]
fn every_cell_of_a_large_sweep_is_in_its_page() {
    let (name, make) = documents::FIGURES.iter().find(|(name, _)| *name == "sweep-large").expect("a sample");
    let page = drawn(name, make());
    let Drawing::Grid(grid) = &page.figures[0].drawing else { panic!("not a heat map") };
    assert_eq!((grid.cells.len(), grid.cells.iter().flatten().count()), (10_000, 10_000));
    let html = render_figures(&page).unwrap();
    assert_eq!(embedded(&html)["figures"][0]["drawing"]["grid"]["cells"].as_array().map(Vec::len), Some(10_000));
}

#[test]
fn lab_page_titles_begin_with_the_status() {
    let title = |name: &str| {
        let (_, make) = documents::LABS.iter().find(|(n, _)| *n == name).unwrap();
        let page = render_lab(&make()).unwrap();
        let (_, after) = page.split_once("<title>").unwrap();
        let (noscript, _) = page.split_once("</noscript>").unwrap();
        assert!(noscript.contains("infinite CPU and no NIC"), "{name}");
        after.split_once("</title>").unwrap().0.to_owned()
    };
    assert!(title("lab").starts_with("Two TCP flows"));
    assert!(title("lab-invalid").starts_with("INVALID · "));
    assert!(title("lab-failed").starts_with("failed · "));
}

#[test]
fn a_lab_page_has_all_series_and_runs() {
    let (_, make) = documents::LABS[0];
    let lab = make();
    let json = embedded(&render_lab(&lab).unwrap());
    for (i, queue) in lab.queues.iter().enumerate() {
        let packed = &json["queues"][i]["series"]["backlog_bytes_max"];
        let length = packed.as_array().map_or_else(|| packed["$n"].clone(), |values| values.len().into());
        assert_eq!(length, queue.series.backlog_bytes_max.len(), "{}", queue.name);
    }
    for (i, flow) in lab.flows.iter().enumerate() {
        assert_eq!(json["flows"][i]["run"]["schema"], "landspeed.run/1", "{}", flow.name);
        assert_eq!(json["flows"][i]["goodput_bps"], serde_json::json!(flow.goodput_bps), "{}", flow.name);
    }
}

#[test]
fn trace_pages_have_all_series() {
    for (name, make) in documents::TRACES.iter().filter(|(name, _)| *name != "trace-hostile") {
        let trace = make();
        let page = render_trace(&trace).unwrap();
        let json = embedded(&page);
        let series = &trace.graphs.as_ref().expect("series").series[0];
        let there = &json["graphs"]["series"][0];
        assert_eq!(there["detail"].as_array().map(Vec::len), Some(series.detail.len()), "{name}");
        assert_eq!(there["rate"]["bytes"]["$n"], series.rate.bytes.len(), "{name}");
        if !series.buckets.at.is_empty() {
            assert_eq!(there["buckets"]["data_high"]["$n"], series.buckets.at.len(), "{name}");
            // Values of one sign that grow have short differences.
            let (packed, plain) =
                (&there["buckets"]["data_high"], serde_json::to_string(&series.buckets.data_high).unwrap());
            assert!(packed.to_string().len() < plain.len(), "{name}");
        }
    }
}

#[test]
fn every_sample_run_can_be_rendered() {
    for (name, make) in documents::RUNS {
        let document = make();
        let json = embedded(&render(&document).unwrap());
        assert_eq!(json["schema"], "landspeed.run/1", "{name}");
        assert_eq!(json["status"], serde_json::to_value(document.status).unwrap(), "{name}");
    }
}

#[test]
fn raw_tcp_info_is_left_out() {
    let bulk = document("bulk");
    let sender = bulk.streams[0].sender.as_ref().unwrap();
    let raw = sender.samples[0].tcp_info_raw.as_ref().expect("one is kept in the sample");
    assert!(!render(&bulk).unwrap().contains(&raw[..20]));
}

#[test]
fn a_document_of_another_schema_is_refused() {
    let mut document = document("failed");
    document.schema = "landspeed.run/99".to_owned();
    let error = render(&document).unwrap_err();
    assert!(matches!(error, ReportError::UnknownSchema { .. }));
    assert!(error.to_string().contains("landspeed.run/99"));
    let mut lab = documents::LABS[0].1();
    lab.schema = "landspeed.run/1".to_owned();
    assert!(render_lab(&lab).unwrap_err().to_string().contains("reads `landspeed.lab/2`"));
}

#[test]
fn lab_documents_of_version_1_are_drawn() {
    let (before, after) = ("back_rate_bps", "reverse_rate_bps");
    let text = serde_json::to_string(&documents::LABS[0].1()).unwrap();
    let old = text.replace(landspeed_model::LAB_SCHEMA, landspeed_model::LAB_SCHEMA_1).replace(after, before);
    let page = embedded(&render_lab(&serde_json::from_str(&old).unwrap()).unwrap());
    assert_eq!(page["schema"], landspeed_model::LAB_SCHEMA);
    assert!(page["topology"]["links"][0][after].is_u64());
}

#[test]
fn trace_documents_of_version_1_are_drawn() {
    let mut old = documents::TRACES[1].1();
    old.schema = landspeed_model::TRACE_SCHEMA_1.to_owned();
    let page = embedded(&render_trace(&old).unwrap());
    assert_eq!(page["schema"], landspeed_model::TRACE_SCHEMA);
    assert_eq!(page["graphs"]["series"][0]["direction"], "forward");
}

#[test]
fn the_policy_allows_the_script_in_the_page() {
    let page = render(&document("failed")).unwrap();
    let start = page.rfind("<script>").unwrap() + "<script>".len();
    let script = &page[start..page.rfind("</script>").unwrap()];
    let hash = STANDARD.encode(Sha256::digest(script));
    assert!(page.contains(&format!("script-src 'sha256-{hash}'")));
}

#[test]
fn the_built_page_matches_its_sources() {
    let root = web();
    let list = fs::read_to_string(root.join("dist/SOURCES.sha256")).unwrap();
    let mut listed = BTreeSet::new();
    for line in list.lines() {
        let (expected, path) = line.split_once("  ").expect("`hash  path`");
        let found = hex(&Sha256::digest(fs::read(root.join(path)).unwrap()));
        assert_eq!(found, expected, "web/{path} changed: run `npm --prefix web run build`");
        listed.insert(path.to_owned());
    }
    for file in files(&root.join("src")) {
        let path = file.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
        // Generated from schema.json, which is listed.
        assert!(
            listed.contains(&path) || path == "src/document.ts",
            "web/{path} is new: run `npm --prefix web run build`"
        );
    }
}

#[test]
fn the_model_has_every_field_the_page_reads() {
    let known: BTreeMap<String, Value> =
        serde_json::from_str(&fs::read_to_string(web().join("schema.json")).unwrap()).unwrap();
    let current = schema::types();
    let mut missing = Vec::new();
    for (name, known) in &known {
        compare(name, known, current.get(name).unwrap_or(&Value::Null), &mut missing);
    }
    assert!(
        missing.is_empty(),
        "a document lost or changed {missing:#?}: see the head of web/schema.mjs for how to follow"
    );
}

/// Checks that `current` contains everything of `known`. Additions are harmless: the page ignores them.
fn compare(path: &str, known: &Value, current: &Value, missing: &mut Vec<String>) {
    match (known, current) {
        (Value::Object(known), Value::Object(current)) => {
            for (key, value) in known {
                let here = format!("{path}/{key}");
                // A field that became required does not break a reader.
                if key == "required" && !path.ends_with("/properties") {
                    continue;
                }
                match current.get(key) {
                    Some(now) => compare(&here, value, now, missing),
                    None => missing.push(here),
                }
            }
        }
        (Value::Array(known), Value::Array(current)) => {
            for value in known {
                let mut trouble = Vec::new();
                let found = current.iter().any(|now| {
                    trouble.clear();
                    compare(path, value, now, &mut trouble);
                    trouble.is_empty()
                });
                if !found {
                    missing.push(format!("{path}: {value}"));
                }
            }
        }
        (known, current) if known == current => {}
        (known, current) => missing.push(format!("{path}: {known} is now {current}")),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        write!(out, "{byte:02x}").expect("a String takes everything");
        out
    })
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            out.extend(files(&path));
        } else {
            out.push(path);
        }
    }
    out
}
