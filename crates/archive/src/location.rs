//! Location of the archive.

use std::ffi::OsString;
use std::path::PathBuf;

/// Environment variable: a directory, or `off`.
pub const ENV_VARIABLE: &str = "LANDSPEED_ARCHIVE";

/// Location where results are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// Storing is disabled: `LANDSPEED_ARCHIVE=off`.
    Off,
    /// Unknown, because none of `LANDSPEED_ARCHIVE`, `XDG_DATA_HOME` and `HOME` is set.
    Unknown,
    /// Holds the index, the documents and the series.
    Directory(PathBuf),
}

impl Location {
    /// Determines the location from the environment: `$LANDSPEED_ARCHIVE`, `$XDG_DATA_HOME/landspeed/archive` or
    /// `~/.local/share/landspeed/archive` (XDG Base Directory Specification).
    pub fn from_environment() -> Self {
        Self::from(|name| std::env::var_os(name))
    }

    fn from(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        if let Some(value) = set(ENV_VARIABLE) {
            return if value == "off" { Self::Off } else { Self::Directory(value.into()) };
        }
        // As specified, relative paths in XDG_DATA_HOME are invalid and ignored.
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
    fn environment_variable_sets_or_disables_the_archive() {
        let home = ("HOME", "/home/ada");
        let directory = |path: &str| Location::Directory(path.into());
        assert_eq!(with(&[home]), directory("/home/ada/.local/share/landspeed/archive"));
        assert_eq!(with(&[home, ("XDG_DATA_HOME", "/data")]), directory("/data/landspeed/archive"));
        assert_eq!(with(&[home, ("XDG_DATA_HOME", "data")]), with(&[home]));
        assert_eq!(with(&[home, (ENV_VARIABLE, "/srv/results")]), directory("/srv/results"));
        assert_eq!(with(&[home, (ENV_VARIABLE, "off")]), Location::Off);
        assert_eq!(with(&[home, (ENV_VARIABLE, "")]), with(&[home]));
        assert_eq!(with(&[]), Location::Unknown);
    }
}
