//! Circles of files: files of one crate that use each other, directly or through others.
//!
//! A file uses the file that defines what it names; names are followed through imports and re-exports. A `mod`
//! declaration is not a use, nor is a module's re-export of what its own submodules define. Tests are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::paths::{Code, PathUsage};
use super::tree::File;
use super::{Tree, Violation};

/// Files that are in a circle, per crate; a crate without a row has none. A number may only be lowered.
const FILES_IN_CIRCLES: &[(&str, usize)] = &[
    ("checks", 65),
    ("cli", 26),
    ("diagnose", 4),
    ("emulate", 4),
    ("flow", 15),
    ("host", 2),
    ("iperf3", 7),
    ("lab", 16),
    ("model", 8),
    ("netlink", 6),
    ("report", 10),
    ("results", 5),
    ("stats", 2),
    ("sweep", 3),
    ("sys", 4),
    ("trace", 3),
    ("tune", 4),
    ("tuneup", 6),
    ("watch", 2),
    ("wire", 8),
    ("xtask", 3),
];

/// Longest chain of imports that is followed to a definition.
const MAX_IMPORTS: usize = 8;

/// No crate has more files in circles than [`FILES_IN_CIRCLES`] allows, or fewer without its row being lowered.
pub fn files_do_not_use_each_other(tree: &Tree) -> Vec<Violation> {
    violations(tree, FILES_IN_CIRCLES)
}

fn violations(tree: &Tree, recorded: &[(&str, usize)]) -> Vec<Violation> {
    let crates: BTreeSet<&str> = tree.files.iter().filter_map(File::crate_name).collect();
    let mut violations = Vec::new();
    for name in crates {
        let allowed = recorded.iter().find(|(row, _)| *row == name).map_or(0, |&(_, files)| files);
        let circles = Modules::of_crate(tree, name).circles();
        let files = circles.iter().map(Vec::len).sum::<usize>();
        if files > allowed {
            let circles: Vec<String> = circles.iter().map(|files| files.join(", ")).collect();
            violations.push(Violation::new(
                if name == "xtask" { name.to_owned() } else { format!("crates/{name}") },
                format!(
                    "{files} files use each other in circles, {allowed} are allowed: {}. \
                     Move what they share into a file below them",
                    circles.join("; ")
                ),
            ));
        } else if files < allowed {
            violations.push(Violation::new(
                "xtask/src/law/circles.rs",
                format!("{name} has {files} files in circles, not {allowed}: lower its row"),
            ));
        }
    }
    violations
}

/// Path of a module from the crate root: empty for `lib.rs`.
type ModulePath = Vec<String>;

/// The modules of a crate that are files of their own, without tests.
struct Modules<'a>(BTreeMap<ModulePath, (&'a File, &'a Code)>);

/// The definition a path leads to.
#[derive(Debug)]
enum Definition {
    /// A module.
    Module(ModulePath),
    /// An item in the file of this module.
    Item(ModulePath),
    /// Another crate, the standard library, or something local.
    Elsewhere,
}

impl<'a> Modules<'a> {
    fn of_crate(tree: &'a Tree, name: &str) -> Self {
        let files = tree.rust_files().filter(|(file, _)| file.crate_name() == Some(name));
        let mut modules: BTreeMap<_, _> =
            files.filter_map(|(file, code)| Some((module_path(&file.path)?, (file, code)))).collect();
        let tests: Vec<ModulePath> = modules.iter().flat_map(|(path, (_, code))| test_modules(path, code)).collect();
        modules.retain(|path, _| !tests.iter().any(|test| path.starts_with(test)));
        Self(modules)
    }

    /// Returns the circles, each as the sorted names of its files under `src`.
    fn circles(&self) -> Vec<Vec<String>> {
        let uses: BTreeMap<_, _> = self.0.keys().map(|module| (module, self.used_by(module))).collect();
        let reached: BTreeMap<_, _> = uses.keys().map(|&module| (module, reachable(module, &uses))).collect();
        let circle = |module: &ModulePath| -> BTreeSet<&ModulePath> {
            reached[module].iter().copied().filter(|other| reached[other].contains(module)).collect()
        };
        let circles: BTreeSet<_> = self.0.keys().map(circle).filter(|circle| circle.len() > 1).collect();
        circles.iter().map(|circle| circle.iter().map(|module| file_name(self.0[*module].0)).collect()).collect()
    }

    /// Returns the modules that define what the file of `module` uses.
    fn used_by(&self, module: &[String]) -> BTreeSet<ModulePath> {
        let usage = self.0[module].1.usage.iter().filter(|usage| !usage.in_test);
        usage
            .filter_map(|usage| {
                if usage.segments.len() < 2 {
                    return None;
                }
                let Definition::Item(target) = self.definition(module, &usage.segments, MAX_IMPORTS) else {
                    return None;
                };
                let is_reexport = usage.import.as_ref().is_some_and(|import| import.is_public);
                (!(is_reexport && target.starts_with(module)) && target != module).then_some(target)
            })
            .collect()
    }

    fn definition(&self, from: &[String], path: &[String], imports: usize) -> Definition {
        let mut module = from.to_vec();
        for (i, name) in path.iter().enumerate() {
            match name.as_str() {
                "crate" => module.clear(),
                "super" => drop(module.pop()),
                "self" => {}
                "*" => return Definition::Item(module),
                name => match self.member(&module, name, i + 1 == path.len(), imports) {
                    Some(Definition::Module(member)) => module = member,
                    Some(other) => return other,
                    // Nothing of the workspace is found by a name that is neither a submodule nor an import.
                    None if i == 0 => return Definition::Elsewhere,
                    None => return Definition::Item(module),
                },
            }
        }
        Definition::Module(module)
    }

    /// Looks up a submodule or an import. At the end of a path an import comes first: in `pub use probe::probe`, a
    /// function has the name of its module.
    fn member(&self, module: &[String], name: &str, is_last: bool, imports: usize) -> Option<Definition> {
        let child: ModulePath = module.iter().cloned().chain([name.to_owned()]).collect();
        let child = self.0.contains_key(&child).then_some(Definition::Module(child));
        if child.is_some() && !is_last {
            return child;
        }
        let imported = self.import(module, name).filter(|_| imports > 0);
        imported.map(|usage| self.definition(module, &usage.segments, imports - 1)).or(child)
    }

    fn import(&self, module: &[String], name: &str) -> Option<&PathUsage> {
        let (_, code) = self.0.get(module)?;
        let is_import = |usage: &&PathUsage| usage.import.as_ref().is_some_and(|import| import.name == name);
        code.usage.iter().filter(|usage| !usage.in_test).find(is_import)
    }
}

/// Returns the module path of a source file: `[flights, sent]` for `crates/trace/src/flights/sent.rs`.
pub(super) fn module_path(path: &Path) -> Option<ModulePath> {
    let mut parts = path.iter().map(|part| part.to_str().unwrap_or_default());
    parts.by_ref().find(|part| *part == "src")?;
    let mut module: ModulePath = parts.map(str::to_owned).collect();
    let file = module.pop()?;
    let stem = file.strip_suffix(".rs")?;
    let is_own_directory = stem == "mod" || module.is_empty() && matches!(stem, "lib" | "main");
    module.extend((!is_own_directory).then(|| stem.to_owned()));
    Some(module)
}

fn file_name(file: &File) -> String {
    let path = file.path.display().to_string();
    path.split_once("src/").map_or(path.clone(), |(_, name)| name.to_owned())
}

/// Returns the submodules that `module` declares for tests only.
pub(super) fn test_modules(module: &[String], code: &Code) -> Vec<ModulePath> {
    let declared = code.usage.windows(2).filter(|pair| pair[0].segments == ["mod"] && pair[1].in_test);
    declared.map(|pair| module.iter().chain(&pair[1].segments).cloned().collect()).collect()
}

/// Returns the modules that can be reached from `start`, itself included.
fn reachable<'m>(
    start: &'m ModulePath,
    uses: &'m BTreeMap<&ModulePath, BTreeSet<ModulePath>>,
) -> BTreeSet<&'m ModulePath> {
    let mut reached = BTreeSet::from([start]);
    let mut open = vec![start];
    while let Some(module) = open.pop() {
        open.extend(uses.get(module).into_iter().flatten().filter(|next| reached.insert(next)));
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the circles among files under `crates/a/src`.
    fn circles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        Modules::of_crate(&tree(files), "a").circles()
    }

    fn tree(files: &[(&str, &str)]) -> Tree {
        let file = |(name, text): &(&str, &str)| File::new(format!("crates/a/src/{name}"), *text).unwrap();
        Tree { files: files.iter().map(file).collect(), ..Tree::default() }
    }

    #[test]
    fn files_that_use_each_other_are_a_circle() {
        for (b, c) in [
            ("use crate::c::C;", "use super::b::B;"),
            ("use crate::{c::C as D};", "fn f() -> crate::b::B { crate::b::new() }"),
            ("use crate::c; fn f() { c::f() }", "use crate::b::*;"),
        ] {
            assert_eq!(circles(&[("lib.rs", "mod b; mod c;"), ("b.rs", b), ("c.rs", c)]), [["b.rs", "c.rs"]], "{b}");
        }
        let long = [("b.rs", "use crate::c::C;"), ("c.rs", "use crate::d::D;"), ("d.rs", "use crate::b::B;")];
        assert_eq!(circles(&long), [["b.rs", "c.rs", "d.rs"]]);
    }

    #[test]
    fn one_direction_tests_and_other_crates_are_no_circle() {
        let b = ("b.rs", "use crate::c::C; use landspeed_units::d::D;");
        assert!(circles(&[b, ("c.rs", "use std::c::C; pub struct C;")]).is_empty());
        assert!(circles(&[b, ("c.rs", "#[cfg(test)] mod tests { use crate::b::B; }")]).is_empty());
        assert!(
            circles(&[b, ("c.rs", "#[cfg(test)] mod e;"), ("c/e.rs", "use crate::b::B; use super::C;")]).is_empty()
        );
    }

    #[test]
    fn parents_may_declare_and_reexport_but_not_use_what_uses_them() {
        let child = ("b/c.rs", "use super::B;");
        assert!(circles(&[("b/mod.rs", "mod c; pub use c::C; pub(crate) use self::c::f;"), child]).is_empty());
        assert_eq!(circles(&[("b/mod.rs", "mod c; use c::C;"), child]), [["b/mod.rs", "b/c.rs"]]);
        assert_eq!(circles(&[("b.rs", "mod c; fn f() { c::f() }"), child]), [["b.rs", "b/c.rs"]]);
    }

    #[test]
    fn names_are_followed_to_the_file_that_defines_them() {
        let parent = ("b/mod.rs", "mod c; pub use c::c; use crate::d::D;");
        let child = ("b/c.rs", "use super::D;");
        assert_eq!(circles(&[parent, child, ("d.rs", "use crate::b::c;")]), [["b/c.rs", "d.rs"]]);
        assert_eq!(circles(&[parent, child, ("d.rs", "use crate::b::E;")]), [["b/mod.rs", "d.rs"]]);
    }

    #[test]
    fn numbers_must_match_the_record() {
        let tree = tree(&[("b.rs", "use crate::c::C;"), ("c.rs", "use crate::b::B;")]);
        assert!(violations(&tree, &[("a", 2)]).is_empty());
        let more = violations(&tree, &[]);
        assert_eq!(more.len(), 1);
        assert!(more[0].what.contains("b.rs, c.rs"), "{}", more[0]);
        let fewer = violations(&tree, &[("a", 3)]);
        assert_eq!(fewer[0].what, "a has 2 files in circles, not 3: lower its row");
    }
}
