//! Kernel versions.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// The oldest kernel that the lab can use: the first whose User-Mode port runs guests under seccomp.
pub const MIN_VERSION: Version = Version { numbers: [6, 16, 0], components: 2, candidate: None };

/// A version such as `7.3.4`, `7.3` or `6.17-rc2`. The order is that of the releases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    numbers: [u32; 3],
    components: usize,
    candidate: Option<u32>,
}

/// A text that is not a kernel version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a kernel version\nUse a version such as 7.3 or 7.3.4.")]
pub struct NotAVersion(pub String);

impl Version {
    /// Returns whether this is `other` or one of its point releases: `7.3.4` is within `7.3` and `7`, not within
    /// `7.3.0`.
    pub fn is_within(&self, other: &Self) -> bool {
        let components = other.components;
        self.components >= components
            && self.numbers[..components] == other.numbers[..components]
            && (other.candidate.is_none() || self.candidate == other.candidate)
    }

    /// Parses the version in the top-level `Makefile` of a kernel source.
    pub fn from_makefile(text: &str) -> Option<Self> {
        let value = |name: &str| {
            text.lines().take(40).find_map(|line| {
                let (key, value) = line.split_once('=')?;
                (key.trim() == name).then(|| value.trim())
            })
        };
        let numbers =
            [value("VERSION")?, value("PATCHLEVEL")?, value("SUBLEVEL").filter(|s| !s.is_empty()).unwrap_or("0")];
        let [Ok(major), Ok(minor), Ok(patch)] = numbers.map(str::parse) else { return None };
        let candidate = value("EXTRAVERSION").and_then(|extra| extra.strip_prefix("-rc")?.parse().ok());
        Some(Self { numbers: [major, minor, patch], components: 3, candidate })
    }
}

impl FromStr for Version {
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || NotAVersion(text.to_owned());
        let (release, candidate) = match text.split_once("-rc") {
            Some((release, number)) => (release, Some(number.parse().map_err(|_| error())?)),
            None => (text, None),
        };
        let mut version = Self { numbers: [0; 3], components: 0, candidate };
        for part in release.split('.') {
            let digits = part.bytes().all(|byte| byte.is_ascii_digit());
            let slot = version.numbers.get_mut(version.components).filter(|_| digits).ok_or_else(error)?;
            *slot = part.parse().map_err(|_| error())?;
            version.components += 1;
        }
        Ok(version)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, number) in self.numbers[..self.components].iter().enumerate() {
            write!(f, "{}{number}", if index == 0 { "" } else { "." })?;
        }
        self.candidate.map_or(Ok(()), |number| write!(f, "-rc{number}"))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        // A release candidate precedes its release.
        let key = |version: &Self| (version.numbers, version.candidate.unwrap_or(u32::MAX));
        key(self).cmp(&key(other)).then(self.components.cmp(&other.components))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        text.parse().expect(text)
    }

    #[test]
    fn versions_are_ordered_as_released_not_as_text() {
        let ordered = ["6.9", "6.16-rc1", "6.16", "6.16.1", "7.3.4", "7.3.12", "7.10"].map(version);
        assert!(ordered.is_sorted());
        assert!(
            version("6.16-rc1") < MIN_VERSION && version("6.16") >= MIN_VERSION && version("6.15.9") < MIN_VERSION
        );
    }

    #[test]
    fn a_short_version_matches_its_point_releases() {
        assert!(version("7.3.4").is_within(&version("7.3")));
        assert!(version("7.3.4").is_within(&version("7")));
        assert!(!version("7.30.4").is_within(&version("7.3")));
        assert!(!version("7.3").is_within(&version("7.3.4")));
        assert!(!version("7.3.4").is_within(&version("7.3.5")));
    }

    #[test]
    fn invalid_versions_are_refused() {
        for text in ["", "7.", ".7", "v7.3", "7.3.4.5", "7.x", "99999999999", "7.3-rcx", "-1"] {
            assert!(text.parse::<Version>().is_err(), "{text}");
        }
        assert_eq!(version("6.17-rc2").to_string(), "6.17-rc2");
    }

    #[test]
    fn the_version_is_parsed_from_the_makefile() {
        let makefile = "# SPDX\nVERSION = 6\nPATCHLEVEL = 17\nSUBLEVEL = 0\nEXTRAVERSION = -rc3\nNAME = Baby\n";
        assert_eq!(Version::from_makefile(makefile).expect("a version").to_string(), "6.17.0-rc3");
        assert_eq!(Version::from_makefile("all:\n\techo VERSION = 3\n"), None);
    }
}
