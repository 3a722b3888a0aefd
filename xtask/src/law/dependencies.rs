//! Checks the manifests against the table of allowed dependencies.

use super::edges::{CONFINED_DEPENDENCIES, PURE_CRATES, TABLE, TOP_CRATES, allowed};
use super::tree::{Dependency, Package, short_name};
use super::{Tree, Violation};

/// Every dependency is in the table, every crate has a row, and every row has a crate.
pub fn dependencies_are_in_the_table(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for package in &tree.packages {
        let from = package.short_name();
        let Some(to) = allowed(from) else {
            violations
                .push(Violation::new(manifest(package), format!("{from} has no row in xtask/src/law/edges.rs")));
            continue;
        };
        for dependency in ours(package) {
            let name = short_name(&dependency.name);
            // Tests may use any crate except the binary.
            let fine = if dependency.is_dev() {
                from == "landspeed" || !TOP_CRATES.contains(&name)
            } else {
                to.contains(&name)
            };
            if !fine {
                violations.push(Violation::new(
                    manifest(package),
                    format!("{from} must not depend on {name}; it may use {}", listed(to)),
                ));
            }
        }
    }
    for row in TABLE {
        if !tree.packages.iter().any(|package| package.short_name() == row.from) {
            violations.push(Violation::new("xtask/src/law/edges.rs", format!("there is no crate {}", row.from)));
        }
    }
    violations
}

/// Confines dependencies to certain crates: `anyhow` to the top, `testkit` to tests, system calls to `sys`.
pub fn confined_dependencies(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for package in &tree.packages {
        for dependency in package.dependencies.iter().filter(|dependency| !dependency.is_dev()) {
            let name = short_name(&dependency.name);
            let Some((_, users)) = CONFINED_DEPENDENCIES.iter().find(|(confined, _)| *confined == name) else {
                continue;
            };
            if !users.contains(&package.short_name()) {
                violations.push(Violation::new(
                    manifest(package),
                    format!("{} must not use {name}: it is for {}", package.short_name(), listed(users)),
                ));
            }
        }
    }
    violations
}

/// Pure crates may use data libraries, but not the I/O libraries listed here.
pub fn pure_crates_have_no_io_dependency(tree: &Tree) -> Vec<Violation> {
    const IO_CRATES: &[&str] = &["libc", "socket2", "nix", "rustix", "mio", "tokio", "tempfile", "rayon"];
    let mut violations = Vec::new();
    for package in tree.packages.iter().filter(|package| PURE_CRATES.contains(&package.short_name())) {
        for dependency in package.dependencies.iter().filter(|dependency| !dependency.is_dev()) {
            if IO_CRATES.contains(&dependency.name.as_str()) {
                violations.push(Violation::new(
                    manifest(package),
                    format!("{} is pure and must not use {}", package.short_name(), dependency.name),
                ));
            }
        }
    }
    violations
}

fn ours(package: &Package) -> impl Iterator<Item = &Dependency> {
    package.dependencies.iter().filter(|dependency| dependency.path.is_some())
}

fn manifest(package: &Package) -> String {
    match package.short_name() {
        "xtask" => "xtask/Cargo.toml".to_owned(),
        short_name => format!("crates/{short_name}/Cargo.toml"),
    }
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() { "none of the workspace's crates".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, dependencies: &[(&str, Option<&str>)]) -> Package {
        let dependencies = dependencies.iter().map(|&(name, kind)| Dependency {
            name: name.to_owned(),
            kind: kind.map(str::to_owned),
            path: name.starts_with("landspeed").then(|| "somewhere".into()),
        });
        Package { name: name.to_owned(), dependencies: dependencies.collect() }
    }

    /// Returns the violations in the manifest of `package`; those about crates missing from this one-crate tree are
    /// left out.
    fn violations(rule: fn(&Tree) -> Vec<Violation>, package: Package) -> Vec<String> {
        let tree = Tree { packages: vec![package], ..Tree::default() };
        let own = |breach: &&Violation| breach.place.ends_with("/Cargo.toml");
        rule(&tree).iter().filter(own).map(ToString::to_string).collect()
    }

    #[test]
    fn unlisted_dependency_is_a_breach() {
        let found =
            violations(dependencies_are_in_the_table, package("landspeed-report", &[("landspeed-flow", None)]));
        assert_eq!(
            found,
            [
                "crates/report/Cargo.toml: report must not depend on flow; it may use model, quote, results, stats, units"
            ]
        );
    }

    #[test]
    fn tests_may_use_any_crate_except_the_binary() {
        let dev = Some("dev");
        let fine = package("landspeed-flow", &[("landspeed-testkit", dev), ("landspeed-diagnose", dev)]);
        assert_eq!(violations(dependencies_are_in_the_table, fine), Vec::<String>::new());
        let not = package("landspeed-flow", &[("landspeed-cli", dev)]);
        assert_eq!(violations(dependencies_are_in_the_table, not).len(), 1);
    }

    #[test]
    fn a_crate_without_a_row_is_a_breach() {
        assert_eq!(violations(dependencies_are_in_the_table, package("landspeed-novelty", &[])).len(), 1);
    }

    #[test]
    fn testkit_and_anyhow_are_breaches_in_libraries() {
        let found = violations(
            confined_dependencies,
            package("landspeed-host", &[("landspeed-testkit", None), ("anyhow", None), ("tempfile", Some("dev"))]),
        );
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn a_pure_crate_with_a_system_library_is_a_breach() {
        assert_eq!(
            violations(pure_crates_have_no_io_dependency, package("landspeed-stats", &[("libc", None)])).len(),
            1
        );
    }
}
