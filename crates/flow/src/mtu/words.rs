//! Converts the result of a search into the document's fields and a note.

use std::io;

use landspeed_model::{Direction, MtuProbe};

use super::search::Search;

/// Outcome of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchEnd {
    /// Exact to the byte.
    Exact,
    /// The deadline passed.
    DeadlinePassed,
    /// Answers stopped arriving.
    NoAnswers,
    /// The server's port was closed (ICMP).
    PortUnreachable,
    /// The user interrupted it.
    Interrupted,
}

/// Returns the result of a direction that was not measured.
pub fn unknown(direction: Direction, note: &str) -> MtuProbe {
    MtuProbe {
        direction,
        path_mtu_bytes: None,
        smallest_failed_bytes: None,
        interface_mtu_bytes: None,
        probes: 0,
        silent: 0,
        note: Some(note.to_owned()),
    }
}

/// Returns the result of a search. `interface` is the MTU of the sender's interface, as its kernel reports it.
pub fn result(
    direction: Direction,
    search: &Search,
    interface: Option<u32>,
    probes: u32,
    ending: SearchEnd,
) -> MtuProbe {
    let interface_mtu_bytes = search.explanations().interface_mtu.or(interface);
    let proved = ending == SearchEnd::Exact || search.has_passed_any();
    MtuProbe {
        direction,
        path_mtu_bytes: proved.then_some(search.passed()),
        smallest_failed_bytes: search.smallest_failed(),
        interface_mtu_bytes,
        probes,
        silent: search.silent(),
        note: Some(note(search, interface_mtu_bytes, probes, ending)),
    }
}

fn note(search: &Search, interface: Option<u32>, probes: u32, ending: SearchEnd) -> String {
    let mut parts = vec![match ending {
        SearchEnd::Exact => limit(search, interface),
        SearchEnd::DeadlinePassed => describe_inexact(search, "time ran out"),
        SearchEnd::NoAnswers => describe_inexact(search, "answers stopped coming"),
        SearchEnd::PortUnreachable => describe_inexact(search, "the server left"),
        SearchEnd::Interrupted => describe_inexact(search, "interrupted"),
    }];
    let unrelated_losses = search.unrelated_losses();
    if unrelated_losses > 0 {
        parts.push(format!(
            "{unrelated_losses} of {probes} probes were lost at sizes that pass: random loss, identified by repetition"
        ));
    }
    parts.join("; ")
}

/// Describes the reason why larger packets do not pass, when the result is exact.
fn limit(search: &Search, interface: Option<u32>) -> String {
    let (passed, explanations) = (search.passed(), search.explanations());
    if search.smallest_failed().is_none() {
        "no larger packet exists".to_owned()
    } else if search.is_fragmented() {
        format!(
            "larger packets arrive in fragments of at most {} bytes although they must not be fragmented: a device on \
             the path clears the don't-fragment bit",
            explanations.fragment.unwrap_or(passed)
        )
    } else if search.is_black_hole() {
        format!(
            "black hole: packets over {passed} bytes vanish without an ICMP message, so connections that rely on path \
             MTU discovery hang; let ICMP through, lower the MTU, or set net.ipv4.tcp_mtu_probing=1"
        )
    } else if interface == Some(passed) {
        "the sender's interface is the limit".to_owned()
    } else if explanations.router_mtu == Some(passed) {
        format!("a router reports a link of {passed} bytes")
    } else if let Some(errno) = explanations.blocked {
        let why = io::Error::from_raw_os_error(errno);
        format!("the sending host refuses larger packets, as a local firewall does: {why}")
    } else {
        format!("a router refuses packets over {passed} bytes by ICMP")
    }
}

fn describe_inexact(search: &Search, why: &str) -> String {
    match search.smallest_failed() {
        Some(failed) => format!("not exact: {why} between {} and {failed} bytes", search.passed()),
        None => format!("not exact: {why} at {} bytes", search.passed()),
    }
}
