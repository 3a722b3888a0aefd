//! The attacks, against landspeed's protocol and against iperf3's.

use super::work::{Source, WhenFull, Work};
use super::{iperf3, landspeed};

/// An attack on each protocol, with the server's configuration.
#[derive(Debug, Clone, Copy)]
pub struct Attack {
    /// Name of the benchmark case.
    pub name: &'static str,
    /// Description of the attacker's actions, with the highest rate.
    pub what: &'static str,
    /// Server configuration.
    pub server: ServerConfig,
    /// Generator against landspeed's protocol.
    pub landspeed: Work,
    /// Generator against iperf3's protocol; `None` if there is no counterpart.
    pub iperf3: Option<Work>,
}

/// Server configuration under an attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerConfig {
    /// Default.
    Plain,
    /// `ulimit -n` of the server.
    Descriptors(u32),
    /// `--describe`: the server describes its host to any client.
    Describe,
    /// `--allow-host-changes`: the server changes its host for any client. Needs root.
    HostChanges,
}

const fn hold(most: usize, per_s: u32, openers: u32, open: Open) -> Work {
    Work::Hold { most, per_s, openers, source: Source::One, when_full: WhenFull::Wait, open }
}

const fn repeat(per_s: u32, workers: u32, source: Source, act: Act) -> Work {
    Work::Repeat { per_s, workers, source, act }
}

type Open = fn(&super::connect::Action) -> std::io::Result<super::hold::HeldTest>;
type Act = fn(&super::connect::Action) -> std::io::Result<()>;

/// Opens a connection and sends nothing.
const SILENT: Open = |action| action.connect().map(super::hold::HeldTest::silent);
/// Opens a connection and closes it at once.
const CONNECT_AND_CLOSE: Act = |action| action.connect().map(drop);
/// Opens silent connections from changing addresses; the oldest is closed for a new one.
const HOLD_WITH_TURNOVER: Work = Work::Hold {
    most: 2000,
    per_s: 200,
    openers: 2,
    source: Source::Many,
    when_full: WhenFull::Replace,
    open: SILENT,
};

/// All attacks, in the order in which they run.
pub const ALL: &[Attack] = &[
    Attack {
        name: "hostile-idle",
        what: "2,000 connections that send nothing, reopened at ≤ 400/s",
        server: ServerConfig::Plain,
        landspeed: hold(2000, 400, 2, SILENT),
        iperf3: Some(hold(2000, 400, 2, SILENT)),
    },
    Attack {
        name: "hostile-greeting",
        what: "300 connections silent after preface or cookie, reopened at ≤ 100/s",
        server: ServerConfig::Plain,
        landspeed: hold(300, 100, 4, landspeed::silent_in_greeting),
        iperf3: Some(hold(300, 100, 4, iperf3::silent_in_greeting)),
    },
    Attack {
        name: "hostile-drip-preface",
        what: "300 connections, preface or cookie dripped at 2 B/s each",
        server: ServerConfig::Plain,
        landspeed: hold(300, 300, 4, landspeed::drip_preface),
        iperf3: Some(hold(300, 300, 4, iperf3::drip_cookie)),
    },
    Attack {
        name: "hostile-drip-greeting",
        what: "150 connections, hello dripped at 20 B/s each (iperf3: length of the parameters, 2 B/s)",
        server: ServerConfig::Plain,
        landspeed: hold(150, 100, 4, landspeed::drip_greeting),
        iperf3: Some(hold(150, 100, 4, iperf3::drip_length)),
    },
    Attack {
        name: "hostile-drip-setup",
        what: "150 accepted tests, next message dripped at 20 B/s each (iperf3: parameters)",
        server: ServerConfig::Plain,
        landspeed: hold(150, 100, 8, landspeed::drip_setup),
        iperf3: Some(hold(150, 100, 8, iperf3::drip_parameters)),
    },
    Attack {
        name: "hostile-drip-farewell",
        what: "150 finished tests, last message dripped at 20 B/s each (iperf3: results)",
        server: ServerConfig::Plain,
        landspeed: hold(150, 50, 16, landspeed::drip_last_message),
        iperf3: Some(hold(150, 50, 16, iperf3::drip_results)),
    },
    Attack {
        name: "hostile-turnover-closed",
        what: "200 connections/s, each from another address, closed at once",
        server: ServerConfig::Plain,
        landspeed: repeat(200, 2, Source::Many, CONNECT_AND_CLOSE),
        iperf3: Some(repeat(200, 2, Source::Many, CONNECT_AND_CLOSE)),
    },
    Attack {
        name: "hostile-turnover-held",
        what: "200 connections/s, each from another address, 2,000 held silently",
        server: ServerConfig::Plain,
        landspeed: HOLD_WITH_TURNOVER,
        iperf3: Some(HOLD_WITH_TURNOVER),
    },
    Attack {
        name: "hostile-slots",
        what: "150 tests of 8 bit/s for 1 h from one address, reopened at ≤ 50/s (iperf3: as many as it takes)",
        server: ServerConfig::Plain,
        landspeed: hold(150, 50, 8, landspeed::slow_test),
        iperf3: Some(hold(150, 50, 8, iperf3::slow_test)),
    },
    Attack {
        name: "hostile-junk",
        what: "100 connections/s: random bytes, HTTP, length of 4 GiB (iperf3: 2 GiB), broken JSON",
        server: ServerConfig::Plain,
        landspeed: repeat(100, 8, Source::One, landspeed::junk),
        iperf3: Some(repeat(100, 8, Source::One, iperf3::junk)),
    },
    Attack {
        name: "hostile-udp",
        what: "20,000 datagrams/s: random bytes, hellos with invalid tokens (iperf3: with its word)",
        server: ServerConfig::Plain,
        landspeed: Work::Datagrams { per_s: 20_000, fill: landspeed::datagram },
        iperf3: Some(Work::Datagrams { per_s: 20_000, fill: iperf3::datagram }),
    },
    Attack {
        name: "hostile-descriptors",
        what: "server with `ulimit -n 256`; 600 connections silent after preface or cookie, reopened at ≤ 100/s",
        server: ServerConfig::Descriptors(256),
        landspeed: hold(600, 100, 8, landspeed::silent_in_greeting),
        iperf3: Some(hold(600, 100, 8, iperf3::silent_in_greeting)),
    },
    Attack {
        name: "hostile-vanish",
        what: "20 tests/s, begun and reset after acceptance, after the start or amid the data",
        server: ServerConfig::Plain,
        landspeed: repeat(20, 8, Source::One, landspeed::vanish),
        iperf3: Some(repeat(20, 8, Source::One, iperf3::vanish)),
    },
    Attack {
        name: "hostile-describe",
        what: "server with `--describe`; 50 requests/s for its description from one address",
        server: ServerConfig::Describe,
        landspeed: repeat(50, 8, Source::One, landspeed::describe),
        iperf3: None,
    },
    Attack {
        name: "hostile-host-changes",
        what: "server with `--allow-host-changes`; 1,000 requests/s for changes that no client may make",
        server: ServerConfig::HostChanges,
        landspeed: repeat(10, 1, Source::One, landspeed::forbidden_changes),
        iperf3: None,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_attack_has_a_unique_name_and_states_its_rate() {
        let names: std::collections::HashSet<_> = ALL.iter().map(|attack| attack.name).collect();
        assert_eq!(names.len(), ALL.len());
        for attack in ALL {
            assert!(attack.name.starts_with("hostile-"), "{}", attack.name);
            assert!(attack.what.contains(char::is_numeric), "{}", attack.what);
        }
    }
}
