//! Where the archive is.

use std::ffi::OsString;
use std::path::PathBuf;

/// The one setting: a directory, or `off`.
pub const SETTING: &str = "LANDSPEED_ARCHIVE";

/// Where results are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// Nowhere: `LANDSPEED_ARCHIVE=off`.
    Off,
    /// Nowhere: neither `LANDSPEED_ARCHIVE` nor `XDG_DATA_HOME` nor `HOME` is set.
    Unknown,
    /// In this directory.
    Directory(PathBuf),
}

impl Location {
    /// By the environment: `$LANDSPEED_ARCHIVE`, `$XDG_DATA_HOME/landspeed/archive` or `~/.local/share/landspeed/archive` (XDG Base
    /// Directory Specification).
    pub fn from_environment() -> Self {
        Self::from(|name| std::env::var_os(name))
    }

    fn from(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        if let Some(value) = set(SETTING) {
            return if value == "off" { Self::Off } else { Self::Directory(value.into()) };
        }
        // The specification: relative paths in XDG_DATA_HOME are invalid and ignored.
        let data = set("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let data = data.or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".local/share")));
        data.map_or(Self::Unknown, |data| Self::Directory(data.join("landspeed/archive")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)]) -> Location {
        Location::from(|name| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into()))
    }

    #[test]
    fn one_setting_moves_the_archive_or_turns_it_off() {
        let home = ("HOME", "/home/ada");
        let directory = |path: &str| Location::Directory(path.into());
        assert_eq!(with(&[home]), directory("/home/ada/.local/share/landspeed/archive"));
        assert_eq!(with(&[home, ("XDG_DATA_HOME", "/data")]), directory("/data/landspeed/archive"));
        assert_eq!(with(&[home, ("XDG_DATA_HOME", "data")]), with(&[home]));
        assert_eq!(with(&[home, (SETTING, "/srv/results")]), directory("/srv/results"));
        assert_eq!(with(&[home, (SETTING, "off")]), Location::Off);
        assert_eq!(with(&[home, (SETTING, "")]), with(&[home]));
        assert_eq!(with(&[]), Location::Unknown);
    }
}
