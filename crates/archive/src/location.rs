//! Location of the archive.

use std::ffi::OsString;
use std::path::PathBuf;

use landspeed_sys::home::base_directory;

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
    /// `~/.local/share/landspeed/archive` (XDG Base Directory Specification). Root uses its own home.
    pub fn from_environment() -> Self {
        Self::from(|name| std::env::var_os(name))
    }

    fn from(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        if let Some(value) = variable(ENV_VARIABLE).filter(|value| !value.is_empty()) {
            return if value == "off" { Self::Off } else { Self::Directory(value.into()) };
        }
        let data = base_directory("XDG_DATA_HOME", ".local/share", &variable);
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
