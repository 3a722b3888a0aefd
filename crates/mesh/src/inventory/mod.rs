//! The inventory of a mesh: hosts, links, tests, budgets and maintenance windows.

mod read;
mod template;
mod window;
mod windows;

use std::ops::Range;

use landspeed_problems::{Problem, Problems};

use crate::budget::Budget;

pub use read::{MAX_TEXT, read};
pub use template::TEMPLATE;
pub use window::{MaintenanceWindow, WindowTime, rfc3339};

/// What is tested, from where, how often, and within which limits.
#[derive(Debug, Clone, PartialEq)]
pub struct Inventory {
    /// Name of the mesh in documents.
    pub name: String,
    /// Seed of jitter and phases.
    pub seed: u64,
    /// Maximum number of tests at the same time.
    pub max_tests: usize,
    /// Hosts, in the order of the text.
    pub hosts: Vec<Host>,
    /// Shared links, in the order of the text.
    pub links: Vec<Link>,
    /// Tests, in the order of the text.
    pub tests: Vec<MeshTest>,
    /// Maintenance windows, in the order of the text.
    pub maintenance: Vec<MaintenanceWindow>,
    /// Text of the inventory.
    pub text: String,
    /// File name in messages.
    pub file: String,
}

/// A host with `landspeed serve`, or the host that runs the mesh.
#[derive(Debug, Clone, PartialEq)]
pub struct Host {
    /// Name in documents and in the inventory.
    pub name: String,
    /// `HOST` or `HOST:PORT`; `None` for the local host, if it has none.
    pub address: Option<String>,
    /// Byte range of the host's name in the text.
    pub span: Range<usize>,
    /// Whether the mesh runs on this host: its tests start here, without another server.
    pub local: bool,
    /// File with the pre-shared key of its server.
    pub key_file: Option<String>,
    /// Indices of the links that all of its tests use.
    pub links: Vec<usize>,
    /// Highest rate of the host in one direction, bits/s; the worst case of a test without a rate.
    pub capacity_bps: Option<u64>,
    /// Payload and time that its tests may use in any 24 hours.
    pub budget: Budget,
}

/// A link that hosts share.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// Name in documents and in the inventory.
    pub name: String,
    /// Highest rate of the link in one direction, bits/s.
    pub capacity_bps: Option<u64>,
    /// Payload and time that its tests may use in any 24 hours.
    pub budget: Budget,
}

/// A test that is repeated for each of its pairs.
#[derive(Debug, Clone, PartialEq)]
pub struct MeshTest {
    /// Name in documents.
    pub name: String,
    /// Byte range of the name in the text.
    pub span: Range<usize>,
    /// Ordered pairs of hosts.
    pub pairs: Vec<Pair>,
    /// Time between two tests of a pair, nanoseconds.
    pub interval_ns: u64,
    /// Width of the random part of the interval, nanoseconds: an interval is within half of it around `interval_ns`.
    pub jitter_ns: u64,
    /// Time after which a test is stopped, nanoseconds; `None` for the default.
    pub limit_ns: Option<u64>,
    /// Options of `run`, in the order of the text.
    pub options: Vec<RunOption>,
}

/// A pair of hosts; the first one is the client, which sends unless the options say otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pair {
    /// Index of the client.
    pub from: usize,
    /// Index of the server.
    pub to: usize,
}

/// An option of `run` in the inventory.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOption {
    /// Long name of the option.
    pub name: String,
    /// Byte range of the name in the text.
    pub name_span: Range<usize>,
    /// Value of the option.
    pub value: toml::Value,
    /// Byte range of the value in the text.
    pub span: Range<usize>,
}

impl Inventory {
    /// Returns the indices of all links that a pair uses, each once.
    pub fn links_of(&self, pair: Pair) -> Vec<usize> {
        let mut links: Vec<usize> =
            [pair.from, pair.to].into_iter().flat_map(|host| self.hosts[host].links.iter().copied()).collect();
        links.sort_unstable();
        links.dedup();
        links
    }

    /// Returns the lowest known capacity of the hosts and links of a pair, bits/s.
    pub fn capacity_of(&self, pair: Pair) -> Option<u64> {
        let hosts = [pair.from, pair.to].into_iter().filter_map(|host| self.hosts[host].capacity_bps);
        hosts.chain(self.links_of(pair).into_iter().filter_map(|link| self.links[link].capacity_bps)).min()
    }

    /// Returns a problem at a position of the text.
    pub fn problem(&self, span: &Range<usize>, key: &str, message: impl Into<String>) -> Problem {
        Problem::new(key, message).at(&self.text, span.clone())
    }

    /// Collects problems of this inventory.
    pub fn problems(&self, list: Vec<Problem>) -> Problems {
        Problems::new(self.file.clone(), list)
    }
}

#[cfg(test)]
mod tests;
