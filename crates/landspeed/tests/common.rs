//! Helpers of all tests here: the program under test, and checks of its documents.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use landspeed_testkit::netns::Namespace;
use serde_json::Value;

/// Path of the program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_landspeed");

/// The program under test, without input and colours.
pub fn landspeed() -> Command {
    let mut command = Command::new(PROGRAM);
    command.stdin(Stdio::null()).env("NO_COLOR", "1");
    command
}

/// Path of the program that `LANDSPEED_BINARY` names; without the variable, of the program under test.
pub fn chosen_program() -> PathBuf {
    std::env::var_os("LANDSPEED_BINARY").map_or_else(|| PROGRAM.into(), PathBuf::from)
}

/// [`chosen_program`] in a network namespace.
pub fn in_namespace(namespace: &Namespace, arguments: &[&str]) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace.name()]).arg(chosen_program()).args(arguments);
    command
}

/// Returns the validator of the schema that `landspeed schema NAME` prints.
pub fn schema(name: &str) -> jsonschema::Validator {
    let printed = landspeed().args(["schema", name]).output().expect("the program runs").stdout;
    let schema: Value = serde_json::from_slice(&printed).expect("the schema is JSON");
    jsonschema::validator_for(&schema).expect("the schema is valid")
}

/// Asserts that a document matches the schema of its kind.
#[track_caller]
pub fn assert_valid(name: &str, document: &Value) {
    assert_matches(&schema(name), document);
}

/// As [`assert_valid`], with a schema that was read before.
#[track_caller]
pub fn assert_matches(schema: &jsonschema::Validator, document: &Value) {
    let errors = schema.iter_errors(document).take(5);
    let errors: Vec<String> = errors.map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

/// Returns the only flow of a watch document, after checks that apply to every flow.
#[track_caller]
pub fn only_flow(document: &Value) -> &Value {
    let flows = document["flows"].as_array().expect("a list");
    assert_eq!(flows.len(), 1, "{document:#}");
    let flow = &flows[0];
    let shares = flow["shares"].as_array().expect("a list").iter();
    assert_eq!(shares.filter_map(|share| share["share_permille"].as_u64()).sum::<u64>(), 1000, "{flow:#}");
    assert_ne!(flow["confidence"], "high", "one end is never sure: {flow:#}");
    flow
}

/// Whether a verdict names a thread that waited for a core: the true cause on a busy machine, whatever the test set up.
pub fn names_wait_for_core(verdict: &Value) -> bool {
    let metric = "share of time runnable without a core";
    let waits = |reading: &Value| {
        reading["met"] == true && reading["metric"].as_str().is_some_and(|name| name.starts_with(metric))
    };
    (verdict["cause"] == "sender-cpu" || verdict["cause"] == "receiver-cpu")
        && list(&verdict["evidence"]).iter().any(waits)
}

/// Returns an array of a document, empty if missing.
pub fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Returns a count of a document.
#[track_caller]
pub fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is not a count"))
}
