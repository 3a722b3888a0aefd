//! Directories of the user (XDG Base Directory Specification).

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::process::is_root;

/// Returns a base directory: `variable` (`XDG_DATA_HOME`), or `below_home` (`.local/share`) in `HOME`. `None` if neither
/// is set. `environment` returns the values of variables.
///
/// Root does not write to a directory of the user who ran sudo, whose variables may still be set: it would leave files
/// there that the user cannot read. It uses its own home instead.
pub fn base_directory(
    variable: &str,
    below_home: &str,
    environment: impl Fn(&str) -> Option<OsString>,
) -> Option<PathBuf> {
    let set = |name: &str| environment(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let is_own = |path: &PathBuf| !is_root() || owner(path) == Some(0);
    // As specified, a relative path is invalid and ignored.
    let base = set(variable).filter(|path| path.is_absolute() && is_own(path));
    base.or_else(|| {
        let home = set("HOME")?;
        Some(if is_own(&home) { home } else { root_home() }.join(below_home))
    })
}

/// Returns the owner of a path or, if it does not exist, of the nearest directory above it.
fn owner(path: &Path) -> Option<u32> {
    path.ancestors().find_map(|path| std::fs::metadata(path).ok()).map(|facts| facts.uid())
}

/// Returns the home directory of root in /etc/passwd.
fn root_home() -> PathBuf {
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let home = users.lines().map(|line| line.split(':').collect::<Vec<_>>()).find_map(|fields| match fields[..] {
        [_, _, "0", _, _, home, ..] if home.starts_with('/') => Some(home.to_owned()),
        _ => None,
    });
    home.unwrap_or_else(|| "/root".to_owned()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_uses_its_own_home_instead_of_another_users() {
        let directory = tempfile::tempdir().expect("a directory");
        let home = directory.path().to_owned();
        let with = |variable: &'static str| {
            let home = home.clone();
            base_directory("XDG_DATA_HOME", ".local/share", move |name| {
                (name == variable || name == "HOME").then(|| home.clone().into())
            })
        };
        assert_eq!(with("HOME"), Some(home.join(".local/share")));
        assert_eq!(with("XDG_DATA_HOME"), Some(home.clone()));
        assert_eq!(base_directory("XDG_DATA_HOME", ".local/share", |_| None), None);
        if !is_root() {
            landspeed_testkit::skip!("giving a directory to another user needs root");
        }
        std::os::unix::fs::chown(&home, Some(4242), None).expect("given away");
        let roots = root_home().join(".local/share");
        assert_eq!(with("HOME"), Some(roots.clone()));
        assert_eq!(with("XDG_DATA_HOME"), Some(roots));
    }
}
