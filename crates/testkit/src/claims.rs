//! Holding a verdict against what was provoked. A confident wrong answer fails; a machine that is too busy to measure on
//! is said to be, loudly, and fails nothing.

use serde_json::Value;

/// How sure a verdict must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sure {
    /// A hint is enough.
    Low,
    /// An alternative may be open.
    Medium,
    /// No doubt.
    High,
}

/// Runs again before a busy machine is given as the excuse.
const ATTEMPTS: usize = 3;

/// Warnings of a document that excuse a verdict that is less sure than it should be, or undetermined.
const EXCUSES: &[&str] = &["other-load", "steal"];

/// Repeats `run` until its document's verdict is one of `causes` (the first is the one provoked), at least `sure`.
///
/// A wrong verdict at high confidence fails at once. Anything else that falls short is tried again, and in the end is
/// excused, as a skip, only if each document itself warned of other load.
///
/// # Panics
/// If the claim does not hold.
pub fn holds(what: &str, causes: &[&str], sure: Sure, mut run: impl FnMut() -> Value) -> Value {
    let mut seen = Vec::new();
    let mut excused = true;
    let mut last = Value::Null;
    for _ in 0..ATTEMPTS {
        let document = run();
        keep(what, &document);
        let verdict = &document["verdict"];
        let cause = verdict["cause"].as_str().unwrap_or_default();
        let confidence = confidence(verdict);
        println!("{what}: {cause}, {confidence:?}: {}", verdict["summary"].as_str().unwrap_or_default());
        assert_eq!(document["conservation"]["holds"], true, "{what}: {:#}", document["conservation"]);
        let right = causes.contains(&cause);
        assert!(right || confidence != Sure::High, "{what}: wrong, and sure of it: {verdict:#}");
        if right && confidence >= sure {
            return document;
        }
        seen.push(format!("{cause} ({confidence:?})"));
        let warnings = document["warnings"].as_array().map(Vec::as_slice).unwrap_or_default();
        excused &= warnings.iter().any(|warning| EXCUSES.iter().any(|&code| warning["code"] == code));
        last = document;
    }
    let seen = seen.join(", ");
    assert!(excused, "{what}: {} at {sure:?} was expected, seen: {seen}: {:#}", causes[0], last["verdict"]);
    crate::skip::record(&format!("{what}: this machine is too busy to tell: {seen}"));
    last
}

/// Runs once, and fails if the verdict is more than a hint at something not in `causes`.
///
/// # Panics
/// If one is.
pub fn never_misleads(what: &str, causes: &[&str], mut run: impl FnMut() -> Value) {
    let document = run();
    keep(what, &document);
    let verdict = &document["verdict"];
    let cause = verdict["cause"].as_str().unwrap_or_default();
    println!("{what}: {cause}, {:?}: {}", confidence(verdict), verdict["summary"].as_str().unwrap_or_default());
    assert!(causes.contains(&cause) || confidence(verdict) == Sure::Low, "{what}: {verdict:#}");
}

fn confidence(verdict: &Value) -> Sure {
    match verdict["confidence"].as_str() {
        Some("high") => Sure::High,
        Some("medium") => Sure::Medium,
        _ => Sure::Low,
    }
}

/// Keeps the document in the directory the environment's `LANDSPEED_KEEP` names, for a look by a person.
fn keep(what: &str, document: &Value) {
    let Some(directory) = std::env::var_os("LANDSPEED_KEEP") else { return };
    let name: String = what.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let stamp = landspeed_sys::clock::monotonic_ns() / 1_000_000;
    let path = std::path::Path::new(&directory).join(format!("{name}.{stamp}.json"));
    if let Err(why) = std::fs::write(&path, document.to_string()) {
        println!("cannot keep {}: {why}", path.display());
    }
}
