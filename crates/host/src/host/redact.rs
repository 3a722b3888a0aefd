//! Removes identifying data from a recorded host: addresses, its name, serial numbers, machine ids, secrets on
//! the kernel's command line. A value has the same placeholder everywhere, and addresses of one network stay in
//! one network, so that the checks have the same results.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde_json::Value;

use super::RecordError;
use super::record::HostAnswers;

mod network;
mod scan;

use network::Networks;
use scan::{IdentifyingData, find};

/// A name shorter than this may be a word in a kernel file (`vm`), and is only replaced where names are
/// expected.
const MIN_NAME_LEN: usize = 4;
const HOSTNAME: &str = "/proc/sys/kernel/hostname";
const COMMAND_LINE: &str = "/proc/cmdline";
const CPUINFO: &str = "/proc/cpuinfo";

/// Returns the recording with placeholders.
pub(super) fn redacted(seen: &HostAnswers) -> Result<HostAnswers, RecordError> {
    let name = seen.files.get(HOSTNAME).map(|name| name.trim().to_owned()).unwrap_or_default();
    let mut redactor = Redactor::new(&name);
    redactor.add_networks(seen);

    let mut out = HostAnswers::default();
    for (path, text) in &seen.files {
        let text = match path.as_str() {
            HOSTNAME if name.is_empty() => text.clone(),
            HOSTNAME => "host\n".into(),
            COMMAND_LINE => redactor.command_line(text),
            CPUINFO => redactor.text(&without_serial(text), Numbers::AreVersions),
            path if path.contains("sysctl") && is_configuration(path) => {
                redactor.text(&without_comments(text), Numbers::MayBeAddresses)
            }
            path if contains_versions(path) => redactor.text(text, Numbers::AreVersions),
            _ => redactor.text(text, Numbers::MayBeAddresses),
        };
        out.files.insert(redactor.path(path), text);
    }
    for (directory, names) in &seen.directories {
        let names = names.iter().map(|name| redactor.path(name)).collect();
        out.directories.insert(redactor.path(directory), names);
    }
    let mut answers = serde_json::to_value(&seen.answers).unwrap_or_default();
    redactor.json(&mut answers, "");
    out.answers = serde_json::from_value(answers).map_err(|_| RecordError::Redaction {
        what: "a value without a placeholder of the same shape",
        place: super::recorded::KERNEL_FILE.into(),
    })?;
    redactor.verify(&out)?;
    Ok(out)
}

/// Whether four numbers with dots may be an address, or are a version: `20.5.13.0` is one of a firmware.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbers {
    MayBeAddresses,
    AreVersions,
}

/// Replaced values and their placeholders.
struct Redactor {
    /// The host's name, in full, without its domain, and the domain alone, each with its placeholder.
    names: Vec<(String, String)>,
    networks: Networks,
    macs: BTreeMap<String, u16>,
    ids: BTreeMap<String, u32>,
    secrets: BTreeMap<String, u32>,
}

impl Redactor {
    fn new(name: &str) -> Self {
        let mut names = Vec::new();
        if !matches!(name, "" | "localhost" | "(none)") {
            if let Some((short, domain)) = name.split_once('.') {
                names.push((name.to_owned(), "host.example".to_owned()));
                names.push((short.to_owned(), "host".to_owned()));
                names.push((domain.to_owned(), "example".to_owned()));
            } else {
                names.push((name.to_owned(), "host".to_owned()));
            }
        }
        names.retain(|(name, _)| !name.is_empty());
        Self {
            names,
            networks: Networks::default(),
            macs: BTreeMap::new(),
            ids: BTreeMap::new(),
            secrets: BTreeMap::new(),
        }
    }

    /// Learns the networks of the interfaces before any other address, so that addresses in them are
    /// recognised.
    fn add_networks(&mut self, seen: &HostAnswers) {
        for link in seen.answers.kernel.links.known().into_iter().flatten() {
            for address in &link.addresses {
                if let Some((ip, bits)) = parsed(address) {
                    self.networks.add_network(ip, bits);
                }
            }
        }
    }

    /// Replaces the host's name and everything that is recognised by its shape.
    fn text(&mut self, text: &str, numbers: Numbers) -> String {
        self.replaced(text, numbers, MIN_NAME_LEN)
    }

    /// Replaces identifying parts of a path: interfaces may be named after their hardware address.
    fn path(&mut self, path: &str) -> String {
        let numbers = if contains_versions(path) { Numbers::AreVersions } else { Numbers::MayBeAddresses };
        self.replaced(path, numbers, MIN_NAME_LEN)
    }

    /// Returns an address's placeholder; shared addresses (loopback, multicast) are kept.
    fn ip(&mut self, ip: IpAddr, written: &str) -> String {
        let placeholder = self.networks.placeholder(ip);
        if placeholder == ip { written.to_owned() } else { placeholder.to_string() }
    }

    fn replaced(&mut self, text: &str, numbers: Numbers, shortest_name: usize) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        let mut before = None;
        while let Some(first) = rest.chars().next() {
            let found = find(rest, before, &self.names, shortest_name);
            let length = match found {
                Some((IdentifyingData::V4(ip), length)) if numbers == Numbers::MayBeAddresses => {
                    out.push_str(&self.ip(IpAddr::V4(ip), &rest[..length]));
                    length
                }
                Some((IdentifyingData::V6(ip), length)) => {
                    out.push_str(&self.ip(IpAddr::V6(ip), &rest[..length]));
                    length
                }
                Some((IdentifyingData::Mac { digits, groups, separator }, length)) => {
                    out.push_str(&self.mac(&digits, groups, separator));
                    length
                }
                Some((IdentifyingData::NamedAfterMac { prefix, digits }, length)) => {
                    let placeholder: String = self.mac(&digits, 6, ':').split(':').collect();
                    out.push_str(prefix);
                    out.push_str(&placeholder);
                    length
                }
                Some((IdentifyingData::Id(id), length)) => {
                    out.push_str(&self.id(&id));
                    length
                }
                Some((IdentifyingData::Name(number), length)) => {
                    out.push_str(&self.names[number].1);
                    length
                }
                Some((IdentifyingData::V4(_), length)) => {
                    out.push_str(&rest[..length]);
                    length
                }
                None => {
                    out.push(first);
                    first.len_utf8()
                }
            };
            before = rest[..length].chars().next_back();
            rest = &rest[length..];
        }
        out
    }

    /// Returns a locally administered address with a unique number.
    fn mac(&mut self, digits: &str, groups: usize, separator: char) -> String {
        if digits.bytes().all(|digit| digit == b'0') || digits.bytes().all(|digit| digit == b'f') {
            return separated(digits, separator);
        }
        let next = self.macs.len() as u16 + 1;
        let number = *self.macs.entry(digits.to_owned()).or_insert(next);
        let zeros = "0".repeat(2 * groups.saturating_sub(3));
        separated(&format!("02{zeros}{number:04x}"), separator)
    }

    /// Returns an id of the same shape, with digits and dashes in the same places.
    fn id(&mut self, id: &str) -> String {
        let next = self.ids.len() as u32 + 1;
        let number = *self.ids.entry(id.to_ascii_lowercase()).or_insert(next);
        let digits = id.bytes().filter(|&byte| byte != b'-').count();
        let mut text = format!("{number:0digits$x}").into_bytes().into_iter();
        id.bytes().filter_map(|byte| if byte == b'-' { Some('-') } else { text.next().map(char::from) }).collect()
    }

    fn secret(&mut self, value: &str) -> String {
        let next = self.secrets.len() as u32 + 1;
        let number = *self.secrets.entry(value.to_owned()).or_insert(next);
        format!("redacted-{number}")
    }

    /// Redacts the kernel's command line word by word: it may contain secrets and names of other hosts.
    fn command_line(&mut self, text: &str) -> String {
        let mut words = Vec::new();
        let mut secret_follows = false;
        for word in scan::words(text) {
            let follows = std::mem::take(&mut secret_follows);
            let (key, value) = word.split_once('=').map_or((word, None), |(key, value)| (key, Some(value)));
            words.push(match value {
                _ if follows && !word.starts_with('-') => self.secret(word),
                Some(value) if scan::is_secret(key) => format!("{key}={}", self.secret(value)),
                Some(value) if scan::identifies_host_or_disk(value) => format!("{key}={}", self.secret(value)),
                Some(value) => format!("{key}={}", self.replaced(value, Numbers::MayBeAddresses, 1)),
                None => {
                    secret_follows = word.starts_with("--") && scan::is_secret(word);
                    self.replaced(word, Numbers::MayBeAddresses, 1)
                }
            });
        }
        words.join(" ") + "\n"
    }

    /// Redacts every string of a document, keys included.
    fn json(&mut self, value: &mut Value, key: &str) {
        match value {
            Value::String(text) if key == "addresses" => *text = self.address(text),
            Value::String(text) => {
                let versions = ["version", "firmware", "pci_config"].contains(&key);
                let numbers = if versions { Numbers::AreVersions } else { Numbers::MayBeAddresses };
                *text = self.replaced(text, numbers, MIN_NAME_LEN);
            }
            Value::Array(values) => values.iter_mut().for_each(|value| self.json(value, key)),
            Value::Object(members) => {
                for (name, mut value) in std::mem::take(members) {
                    // `known` is a wrapper: the enclosing key describes its value.
                    let inside = if name == "known" { key } else { &name };
                    self.json(&mut value, inside);
                    let name = self.path(&name);
                    members.insert(name, value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Returns the placeholder of an interface's address, with its prefix length.
    fn address(&mut self, text: &str) -> String {
        match parsed(text) {
            Some((ip, bits)) => format!("{}/{}", self.networks.placeholder(ip), Networks::prefix(ip, bits)),
            None => self.text(text, Numbers::MayBeAddresses),
        }
    }

    /// Searches the redacted recording for every original value.
    fn verify(&self, seen: &HostAnswers) -> Result<(), RecordError> {
        let answers = serde_json::to_string(&seen.answers).unwrap_or_default();
        let texts = seen.files.iter().map(|(path, text)| (path.as_str(), text.as_str()));
        for (place, text) in texts.chain([(super::recorded::KERNEL_FILE, answers.as_str())]) {
            let lower = text.to_ascii_lowercase();
            let remains = |what: &str| scan::contains_word(&lower, &what.to_ascii_lowercase());
            let fail = |what| Err(RecordError::Redaction { what, place: place.into() });
            // Versions that look like addresses are kept.
            if !contains_versions(place) && place != CPUINFO && self.networks.originals().any(|ip| remains(&ip)) {
                return fail("an address");
            }
            if self.macs.keys().any(|mac| remains(&separated(mac, ':')) || remains(&separated(mac, '-'))) {
                return fail("a hardware address");
            }
            if self.secrets.keys().any(|secret| place == COMMAND_LINE && remains(secret)) {
                return fail("a secret");
            }
            let long = self.names.iter().filter(|(name, _)| name.len() >= MIN_NAME_LEN);
            if long.clone().any(|(name, new)| name != new && remains(name)) {
                return fail("the host's name");
            }
        }
        Ok(())
    }
}

/// Parses `address/bits`.
fn parsed(text: &str) -> Option<(IpAddr, u8)> {
    let (ip, bits) = text.split_once('/')?;
    Some((ip.parse().ok()?, bits.parse().ok()?))
}

/// Groups digits in pairs.
fn separated(digits: &str, separator: char) -> String {
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && at % 2 == 0 {
            text.push(separator);
        }
        text.push(digit);
    }
    text
}

/// Returns whether a file is written by people: its comments may contain anything.
fn is_configuration(path: &str) -> bool {
    ["/etc/", "/run/", "/usr/", "/lib/"].iter().any(|directory| path.starts_with(directory))
}

/// Returns whether a file contains versions and no addresses.
fn contains_versions(path: &str) -> bool {
    path.ends_with("/version")
        || path.ends_with("/osrelease")
        || path.ends_with("os-release")
        || path.starts_with("/boot/")
}

/// Replaces comments, and keeps the line numbers.
fn without_comments(text: &str) -> String {
    let bare = |line: &str| if line.trim_start().starts_with(['#', ';']) { "#".to_owned() } else { line.to_owned() };
    text.lines().map(bare).collect::<Vec<_>>().join("\n") + "\n"
}

/// Removes the serial number that some Arm boards have in `/proc/cpuinfo`.
fn without_serial(text: &str) -> String {
    let bare = |line: &str| match line.split_once(':') {
        Some((key, _)) if key.trim_end() == "Serial" => format!("{key}: 0"),
        _ => line.to_owned(),
    };
    text.lines().map(bare).collect::<Vec<_>>().join("\n") + "\n"
}

#[cfg(test)]
mod tests;
