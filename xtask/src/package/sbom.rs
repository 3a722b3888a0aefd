//! What is linked into the program: a CycloneDX document, and the texts of the licences. `cargo tree` names exactly the crates of the
//! program's features and target, so cargo-cyclonedx, which would have to be compiled first, is not needed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

use super::build::{Build, SUMMARY, VERSION, format_date, output, sha256};

/// A crate in the program: name and version.
type Name = (String, String);

/// A crate in the program.
#[derive(Debug, Default, PartialEq)]
struct Linked {
    /// SPDX expression.
    licence: String,
    /// Whether it is part of the workspace.
    own: bool,
    uses: BTreeSet<Name>,
}

/// Builds the CycloneDX document.
pub fn build(build: &Build<'_>) -> Result<PathBuf> {
    let linked = linked(build)?;
    let program = ("landspeed".to_owned(), VERSION.to_owned());
    ensure!(linked.contains_key(&program), "cargo tree does not name landspeed {VERSION}");
    let mut components: Vec<Value> =
        linked.iter().filter(|(name, _)| **name != program).map(|(name, linked)| component(name, linked)).collect();
    components.push(json!({
        "type": "library", "bom-ref": "glibc", "name": "glibc", "description": "GNU C Library, linked statically",
        "licenses": [{ "license": { "id": "LGPL-2.1-or-later" } }],
    }));
    let mut dependencies: Vec<Value> = linked
        .iter()
        .map(|(name, linked)| json!({ "ref": reference(name), "dependsOn": linked.uses.iter().map(reference).collect::<Vec<_>>() }))
        .collect();
    dependencies.push(json!({ "ref": "glibc", "dependsOn": [] }));
    let mut main = component(&program, &linked[&program]);
    main["type"] = json!("application");
    main["description"] = json!(SUMMARY);
    let mut document = json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": format_date(build.epoch, "%Y-%m-%dT%H:%M:%SZ")?,
            "tools": { "components": [{ "type": "application", "name": "cargo xtask package", "version": VERSION }] },
            "component": main,
        },
        "components": components,
        "dependencies": dependencies,
    });
    document["serialNumber"] = json!(format!("urn:uuid:{}", uuid(&document.to_string())));
    let path = build.root.join(&build.scratch).join(format!("landspeed-{VERSION}-{}.cdx.json", build.machine.kernel));
    std::fs::write(&path, serde_json::to_string_pretty(&document)? + "\n").context("cannot write the SBOM")?;
    Ok(path)
}

/// The licences of all linked crates, each text once, with the crates that it came with.
pub fn notices(build: &Build<'_>) -> Result<String> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    #[derive(Deserialize)]
    struct Package {
        name: String,
        version: String,
        manifest_path: PathBuf,
    }
    let mut cargo = cargo(build);
    cargo.args(["metadata", "--locked", "--format-version=1", "--filter-platform", &target(build)]);
    let metadata: Metadata = serde_json::from_str(&output(&mut cargo)?).context("cargo metadata is unreadable")?;
    let places: BTreeMap<Name, PathBuf> = metadata
        .packages
        .into_iter()
        .map(|package| ((package.name, package.version), package.manifest_path))
        .collect();
    let mut text = "The libraries in landspeed, and their licences. The GNU C Library, linked statically, is under the LGPL-2.1 or later.\n\n".to_owned();
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, linked) in linked(build)?.iter().filter(|(_, linked)| !linked.own) {
        let label = format!("{} {}", name.0, name.1);
        let _ = writeln!(text, "{label}: {}", linked.licence);
        let manifest = places.get(name).with_context(|| format!("cargo metadata does not name {label}"))?;
        for file in licence_files(manifest.parent().unwrap_or(Path::new("/")))? {
            let contents = String::from_utf8_lossy(&std::fs::read(&file)?).replace('\r', "");
            texts.entry(contents.trim_end().to_owned()).or_default().push(label.clone());
        }
    }
    for (contents, mut crates) in texts {
        crates.dedup();
        let _ = write!(text, "\n{}\n{}\n\n{contents}\n", "-".repeat(80), crates.join(", "));
    }
    Ok(text)
}

/// Files with licences or notices at the top of a crate, sorted.
fn licence_files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if path.is_file()
            && ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"]
                .iter()
                .any(|begin| name.starts_with(begin))
        {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The crates that are linked into the program.
fn linked(build: &Build<'_>) -> Result<BTreeMap<Name, Linked>> {
    let mut cargo = cargo(build);
    cargo.args([
        "tree",
        "--locked",
        "--package",
        "landspeed",
        "--edges",
        "normal,no-proc-macro",
        "--prefix",
        "depth",
    ]);
    cargo.args(["--format", "\t{p}\t{l}", "--target", &target(build)]);
    parse(&output(&mut cargo)?)
}

/// Reads lines `DEPTH`, tab, `NAME vVERSION (PLACE)`, tab, licence. What a crate uses follows it once, where it is named first.
fn parse(tree: &str) -> Result<BTreeMap<Name, Linked>> {
    let mut crates: BTreeMap<Name, Linked> = BTreeMap::new();
    let mut above: Vec<Name> = Vec::new();
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let mut fields = line.trim_end_matches(" (*)").split('\t');
        let mut next = || fields.next().with_context(|| format!("cargo tree printed {line:?}"));
        let (depth, package, licence) = (next()?.parse::<usize>()?, next()?, next()?);
        let mut words = package.split(' ');
        let mut word = || words.next().with_context(|| format!("cargo tree printed {line:?}"));
        let name = (word()?.to_owned(), word()?.trim_start_matches('v').to_owned());
        let own = package.contains(" (");
        above.truncate(depth);
        if let Some(user) = above.last() {
            crates.entry(user.clone()).or_default().uses.insert(name.clone());
        }
        let linked = crates.entry(name.clone()).or_default();
        // An old form of "or".
        linked.licence = licence.replace('/', " OR ").replace("  ", " ");
        linked.own = own;
        above.push(name);
    }
    Ok(crates)
}

fn component(name: &Name, linked: &Linked) -> Value {
    let mut component = json!({
        "type": "library", "bom-ref": reference(name), "name": name.0, "version": name.1,
        "licenses": [{ "expression": linked.licence }],
    });
    if !linked.own {
        component["purl"] = json!(reference(name));
    }
    component
}

/// The package URL of a crate.
fn reference(name: &Name) -> String {
    format!("pkg:cargo/{}@{}", name.0, name.1.replace('+', "%2B"))
}

/// A UUID of version 8 (RFC 9562), made from the document.
fn uuid(document: &str) -> String {
    let sum = sha256(document.as_bytes());
    format!("{}-{}-8{}-a{}-{}", &sum[..8], &sum[8..12], &sum[13..16], &sum[17..20], &sum[20..32])
}

fn target(build: &Build<'_>) -> String {
    format!("{}-unknown-linux-gnu", build.machine.kernel)
}

fn cargo(build: &Build<'_>) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(build.root).env_remove("CARGO_TERM_COLOR").arg("--color=never");
    cargo
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_uses_what_follows_one_level_deeper() {
        let tree = "0\tlandspeed v1.0.0 (/a)\tMIT\n1\ta v1.2.0\tMIT/Apache-2.0\n2\tb v2.0.0+x\tMIT\n1\tb v2.0.0+x\tMIT (*)\n";
        let crates = parse(tree).unwrap();
        let name = |name: &str, version: &str| (name.to_owned(), version.to_owned());
        let (program, a, b) = (name("landspeed", "1.0.0"), name("a", "1.2.0"), name("b", "2.0.0+x"));
        assert_eq!(crates.len(), 3);
        assert!(crates[&program].own && !crates[&a].own);
        assert_eq!(crates[&program].uses, BTreeSet::from([a.clone(), b.clone()]));
        assert_eq!(
            (crates[&a].licence.as_str(), &crates[&a].uses),
            ("MIT OR Apache-2.0", &BTreeSet::from([b.clone()]))
        );
        assert_eq!((crates[&b].licence.as_str(), reference(&b)), ("MIT", "pkg:cargo/b@2.0.0%2Bx".to_owned()));
    }
}
