//! `lab run --kernels` compares kernels over the same seeds.

use std::path::Path;
use std::process::{Command, Output};

use landspeed_testkit::lab_kernel;
use serde_json::{Value, json};

use crate::common::chosen_program;

const SCENARIO: &str = "\
name = \"two kernels\"
time = \"200ms\"
[host.a]
[host.b]
[[link]]
between = [\"a\", \"b\"]
rate = \"20M\"
delay = \"5ms\"
[[flow]]
from = \"a\"
to = \"b\"
";

/// Makes a cache with the newest kernel, and the same one as if it were built with a patch called `copy`.
fn cache(directory: &Path) -> Option<String> {
    let executable = lab_kernel::newest()?;
    let kernel = executable.parent()?;
    let id = kernel.file_name()?.to_str()?.to_owned();
    for (id, name) in [(id.clone(), None), (format!("{id}-c0ffee00"), Some("copy"))] {
        let into = directory.join(&id);
        std::fs::create_dir_all(&into).expect("made");
        for file in ["vmlinux", "config"] {
            std::fs::copy(kernel.join(file), into.join(file)).expect("copied");
        }
        let record = std::fs::read(kernel.join("kernel.json")).expect("a record");
        let mut record: Value = serde_json::from_slice(&record).expect("JSON");
        record["id"] = id.into();
        if name.is_some() {
            record["name"] = json!(name);
            record["patches"] = json!([{ "file": "copy.patch", "hash": "00" }]);
        }
        std::fs::write(into.join("kernel.json"), record.to_string()).expect("written");
    }
    Some(id)
}

fn run(directory: &Path, arguments: &[&str]) -> Output {
    let scenario = directory.join("path.toml");
    std::fs::write(&scenario, SCENARIO).expect("written");
    let mut command = Command::new(chosen_program());
    command.args(["lab", "run"]).arg(scenario).arg("--cache").arg(directory.join("kernels")).args(arguments);
    command.output().expect("the program runs")
}

#[test]
fn the_same_code_on_both_sides_shows_no_difference() {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(id) = cache(&directory.path().join("kernels")) else {
        landspeed_testkit::skip!("{}", lab_kernel::NOT_BUILT)
    };
    let file = directory.path().join("sweep.json");
    let file = file.to_str().expect("UTF-8");
    let spread = "flow.*.start-spread=10ms";
    let output =
        run(directory.path(), &["--kernels", "stock,copy", "--set", "repeats=7", "--set", spread, "--json", file]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("copy against stock: no detectable difference"), "{text}");
    let words: Vec<&str> = text.split_whitespace().collect();
    assert!(words.join(" ").contains("median ratio within 7 blocks"), "a seed is a pair: {text}");
    assert!(text.contains("unit     the seed") && !text.contains("do not differ in"), "{text}");
    for metric in ["goodput", "retransmits", "rtt_p50"] {
        let row = text.lines().find(|line| line.trim_start().starts_with(&format!("{metric} ")));
        assert!(row.is_some_and(|row| row.contains("no detectable difference")), "{metric}: {text}");
    }
    let sweep: Value = serde_json::from_slice(&std::fs::read(file).expect("a document")).expect("JSON");
    let factors = sweep["factors"].as_array().expect("factors");
    let levels = factors.iter().find(|factor| factor["key"] == "kernel").map(|factor| &factor["levels"]);
    assert_eq!(levels, Some(&json!(["stock", "copy"])));
    let runs = |cell: usize| sweep["cells"][cell]["runs"].as_array().expect("runs").clone();
    let (stock, copy) = (runs(0), runs(1));
    assert_eq!((stock.len(), copy.len()), (7, 7));
    for (stock, copy) in stock.iter().zip(&copy) {
        // The digests differ: they cover the id of the kernel.
        let figures = |run: &Value| (run["seed"].clone(), run["flows"][0]["figures"].clone());
        assert_eq!(figures(stock), figures(copy), "{id}");
    }
}

#[test]
fn lists_that_compare_nothing_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    if cache(&directory.path().join("kernels")).is_none() {
        landspeed_testkit::skip!("{}", lab_kernel::NOT_BUILT);
    }
    let refused = |kernels: &str| {
        let output = run(directory.path(), &["--kernels", kernels]);
        assert_eq!(output.status.code(), Some(2), "{kernels}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(refused("copy").contains("--kernels names one"));
    assert!(refused("copy,c0ffee").contains("copy and c0ffee are the same kernel"));
    assert!(refused("stock,iw20").contains("no kernel 'iw20'"));
    let alike = refused("stock,copy");
    assert!(alike.contains("every seed gives the same run") && alike.contains("start-spread=10ms"), "{alike}");
}
