//! `sweep --export kubernetes`.

use std::path::{Path, PathBuf};

use landspeed_testkit::process::Process;
use landspeed_testkit::{needs_lab_kernel, skip};
use serde_json::Value;

use crate::slurm::{Sweep, TIMEOUT_S, plan};

/// Variable with the directory of the Python package `kubernetes_validate` (`cargo xtask test` downloads
/// it).
const VARIABLE: &str = "LANDSPEED_KUBERNETES_SCHEMA";

/// Path of the newest job schema in the package, next to the schemas it refers to.
fn schema(package: &Path) -> PathBuf {
    let versions = std::fs::read_dir(package.join("kubernetes-json-schema")).expect("the package's schemas");
    let mut versions: Vec<PathBuf> = versions
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().ends_with("-strict"))
        .collect();
    let number = |path: &Path| -> Option<u32> { path.file_name()?.to_str()?.split('.').nth(1)?.parse().ok() };
    versions.sort_by_key(|path| number(path));
    versions.last().expect("a version").join("job-batch-v1.json")
}

struct Files(PathBuf);

impl jsonschema::Retrieve for Files {
    fn retrieve(&self, uri: &jsonschema::Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        let name = uri.path().as_str().rsplit('/').next().unwrap_or_default().to_owned();
        Ok(serde_json::from_slice(&std::fs::read(self.0.join(name))?)?)
    }
}

#[test]
fn kubernetes_manifest_matches_the_published_schema() {
    needs_lab_kernel!();
    let Some(package) = std::env::var_os(VARIABLE) else {
        skip!("{VARIABLE} names no schema (`cargo xtask test` sets it)")
    };
    let directory = tempfile::tempdir().expect("a directory");
    let sweep = Sweep::new(directory.path(), &plan(3, "1s"));
    let ended = Process::start(sweep.command(&["--export", "kubernetes", "--jobs", "4"])).end(TIMEOUT_S);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let manifest: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let path = schema(Path::new(&package));
    let text = std::fs::read(&path).expect("the schema");
    let schema: Value = serde_json::from_slice(&text).expect("JSON");
    let place = Files(path.parent().expect("a directory").to_owned());
    let schema = jsonschema::options()
        .with_base_uri(format!("file://{}", path.display()))
        .with_retriever(place)
        .build(&schema)
        .expect("a schema");
    let faults: Vec<_> =
        schema.iter_errors(&manifest).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(faults.is_empty(), "{faults:#?}");
    let mut wrong = manifest.clone();
    wrong["spec"]["completions"] = "three".into();
    assert!(!schema.is_valid(&wrong), "the schema rejects a wrong document");
    assert_eq!(manifest["spec"]["completionMode"], "Indexed");
    let tasks = std::fs::read_to_string(directory.path().join("plan.sweep/kubernetes.tasks")).expect("the tasks");
    assert_eq!(manifest["spec"]["completions"], tasks.lines().count());
    let runs: Value =
        serde_json::from_slice(&std::fs::read(directory.path().join("plan.sweep/runs.json")).expect("a list"))
            .expect("JSON");
    let listed = tasks.split_whitespace().count();
    assert_eq!(Some(listed), runs.as_array().map(Vec::len));
    assert!(directory.path().join("plan.sweep/bundle").is_dir());
}
