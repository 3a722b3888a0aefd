//! The CycloneDX document.

use std::path::{Path, PathBuf};

use landspeed_testkit::{or_skip, skip};
use serde_json::Value;

use super::Program;

/// Names the directory of the published schemas (`cargo xtask test` downloads them).
const VARIABLE: &str = "LANDSPEED_CYCLONEDX_SCHEMA";

/// Schemas that the schema refers to.
struct Files(PathBuf);

impl jsonschema::Retrieve for Files {
    fn retrieve(&self, uri: &jsonschema::Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        let name = uri.path().as_str().rsplit('/').next().unwrap_or_default().to_owned();
        Ok(serde_json::from_slice(&std::fs::read(self.0.join(name))?)?)
    }
}

#[test]
fn sbom_matches_the_published_schema() {
    let Some(place) = std::env::var_os(VARIABLE) else {
        skip!("{VARIABLE} names no schema (`cargo xtask test` sets it)")
    };
    let program = or_skip!(Program::new());
    let out = tempfile::tempdir().expect("a temporary directory");
    let path = program.build_twice("sbom", out.path());
    let document: Value = serde_json::from_slice(&std::fs::read(path).expect("the SBOM")).expect("JSON");
    let text = std::fs::read(Path::new(&place).join("bom-1.6.SNAPSHOT.schema.json")).expect("the schema");
    let schema: Value = serde_json::from_slice(&text).expect("JSON");
    let schema = jsonschema::options().with_retriever(Files(place.into())).build(&schema).expect("a schema");
    let faults: Vec<_> =
        schema.iter_errors(&document).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(faults.is_empty(), "{faults:#?}");
    let mut wrong = document.clone();
    wrong["components"][0]["type"] = "crate".into();
    assert!(!schema.is_valid(&wrong), "the schema rejects a wrong document");

    let components = document["components"].as_array().expect("a list");
    let names: Vec<&str> = components.iter().filter_map(|component| component["name"].as_str()).collect();
    for name in ["clap", "aws-lc-sys", "libsqlite3-sys", "glibc", "landspeed-flow"] {
        assert!(names.contains(&name), "{name} is not in {names:?}");
    }
    // Only what is linked: nothing that tests, builds or expands macros.
    for name in ["jsonschema", "cc", "serde_derive", "landspeed-xtask"] {
        assert!(!names.contains(&name), "{name} is in {names:?}");
    }
}
