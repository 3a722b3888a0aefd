//! Finds identifying data by its shape.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Identifying data at the beginning of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum IdentifyingData {
    V4(Ipv4Addr),
    V6(Ipv6Addr),
    /// A hardware address: its digits in lower case, the number of pairs, and their separator.
    Mac {
        digits: String,
        groups: usize,
        separator: char,
    },
    /// An interface named after its hardware address (`enx001122334455`; systemd.net-naming-scheme(7)).
    NamedAfterMac {
        prefix: &'static str,
        digits: String,
    },
    /// A UUID, a machine id (32 digits), a container's (64).
    Id(String),
    /// The host's name, by its index.
    Name(usize),
}

/// Finds identifying data at the beginning of `text`, and its length in bytes. `before` is the preceding
/// character.
pub(super) fn find(
    text: &str,
    before: Option<char>,
    names: &[(String, String)],
    shortest_name: usize,
) -> Option<(IdentifyingData, usize)> {
    if before.is_some_and(is_word) {
        return None;
    }
    name(text, names, shortest_name)
        .or_else(|| id(text))
        .or_else(|| mac(text))
        .or_else(|| named_after_mac(text))
        .or_else(|| v6(text))
        .or_else(|| v4(text, before))
}

/// Splits a command line into words; a quoted space does not end a word.
pub(super) fn words(text: &str) -> Vec<&str> {
    let mut quoted = false;
    let split = text.split(move |c: char| {
        quoted ^= c == '"';
        c.is_whitespace() && !quoted
    });
    split.filter(|word| !word.is_empty()).collect()
}

/// Returns whether the value of a key is secret.
pub(super) fn is_secret(key: &str) -> bool {
    const SECRETS: [&str; 12] = [
        "pass", "secret", "token", "key", "cred", "auth", "psk", "private", "iscsi", "netroot", "hostname", "serial",
    ];
    const NOT_SECRET: [&str; 4] = ["keymap", "keytable", "keyboard", "keep"];
    let key = key.to_ascii_lowercase();
    SECRETS.iter().any(|secret| key.contains(secret)) && !NOT_SECRET.iter().any(|word| key.contains(word))
}

/// Returns whether a value names another host, or a disk by its serial number or label.
pub(super) fn identifies_host_or_disk(value: &str) -> bool {
    ["://", "by-id/", "UUID=", "PARTUUID=", "@", "nfs:", ":/"].iter().any(|mark| value.contains(mark))
}

/// Returns whether a text contains a whole word.
pub(super) fn contains_word(text: &str, word: &str) -> bool {
    !word.is_empty()
        && text.match_indices(word).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let after = text[at + word.len()..].chars().next();
            !before.is_some_and(is_word) && !after.is_some_and(is_word)
        })
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric()
}

/// Returns whether the word ends here.
fn ends(rest: &str) -> bool {
    !rest.chars().next().is_some_and(is_word)
}

fn name(text: &str, names: &[(String, String)], shortest: usize) -> Option<(IdentifyingData, usize)> {
    let is_here = |name: &str| {
        let head = text.as_bytes().get(..name.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(name.as_bytes())) && ends(&text[name.len()..])
    };
    let number = names.iter().position(|(name, _)| name.len() >= shortest && is_here(name))?;
    Some((IdentifyingData::Name(number), names[number].0.len()))
}

fn id(text: &str) -> Option<(IdentifyingData, usize)> {
    const UUID: [usize; 5] = [8, 4, 4, 4, 12];
    let length = text.bytes().take_while(|byte| byte.is_ascii_hexdigit() || *byte == b'-').take(65).count();
    let run = &text[..length];
    let uuid = run.len() == 36 && run.split('-').map(str::len).eq(UUID);
    let plain = [32, 64].contains(&run.len()) && !run.contains('-');
    ((uuid || plain) && ends(&text[length..])).then(|| (IdentifyingData::Id(run.to_owned()), length))
}

/// Parses six pairs of digits or more (InfiniBand has 20).
fn mac(text: &str) -> Option<(IdentifyingData, usize)> {
    let bytes = text.as_bytes();
    let separator = *bytes.get(2).filter(|byte| b":-".contains(byte))?;
    let mut digits = String::new();
    let mut at = 0;
    loop {
        let pair = bytes.get(at..at + 2).filter(|pair| pair.iter().all(u8::is_ascii_hexdigit))?;
        digits.extend(pair.iter().map(|byte| byte.to_ascii_lowercase() as char));
        at += 2;
        if bytes.get(at) != Some(&separator) || !bytes.get(at + 1).is_some_and(u8::is_ascii_hexdigit) {
            break;
        }
        at += 1;
    }
    let groups = digits.len() / 2;
    (groups >= 6 && ends(&text[at..]))
        .then_some((IdentifyingData::Mac { digits, groups, separator: separator as char }, at))
}

fn named_after_mac(text: &str) -> Option<(IdentifyingData, usize)> {
    let prefix = ["enx", "wlx", "ibx", "wwx"].into_iter().find(|prefix| text.starts_with(prefix))?;
    let digits = text.get(3..15).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    ends(&text[15..]).then(|| (IdentifyingData::NamedAfterMac { prefix, digits: digits.to_ascii_lowercase() }, 15))
}

/// Parses the longest IPv6 address; a port or a full stop may follow it.
fn v6(text: &str) -> Option<(IdentifyingData, usize)> {
    let is_part = |byte: &u8| byte.is_ascii_hexdigit() || b":.".contains(byte);
    let length = text.bytes().take(46).take_while(is_part).count();
    if text[..length].matches(':').count() < 2 {
        return None;
    }
    (2..=length).rev().find_map(|length| {
        let ip = text[..length].parse::<Ipv6Addr>().ok()?;
        ends(&text[length..]).then_some((IdentifyingData::V6(ip), length))
    })
}

fn v4(text: &str, before: Option<char>) -> Option<(IdentifyingData, usize)> {
    let length = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let run = text[..length].trim_end_matches('.');
    let ip = run.parse::<Ipv4Addr>().ok()?;
    let rest = &text[run.len()..];
    // A release continues with letters (`553.8.1.2.el8`), or began earlier.
    let goes_on = rest.strip_prefix('.').is_some_and(|rest| !ends(rest));
    (before != Some('.') && ends(rest) && !goes_on).then_some((IdentifyingData::V4(ip), run.len()))
}
