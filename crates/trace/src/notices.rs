//! ICMP errors about packets of a flow.

use landspeed_model::{PacketDirection, TraceIcmp};

use crate::intake::{IcmpNotice, ParsedFrame};
use crate::key::{Endpoint, document_endpoint};

/// Maximum number of kinds and senders listed per flow.
const MAX_KINDS: usize = 16;

/// The errors about a flow, by kind and sender.
#[derive(Debug, Clone, Default)]
pub struct Notices(Vec<Counted>);

#[derive(Debug, Clone, Copy)]
struct Counted {
    notice: IcmpNotice,
    /// Whether they are about packets from the lower endpoint to the higher.
    upward: bool,
    count: u64,
    since_ns: u64,
    frame: u64,
}

impl Notices {
    /// Adds the error of a frame.
    pub fn add(&mut self, seen: &ParsedFrame) {
        let ParsedFrame { icmp: notice, upward, since_ns, number: frame, .. } = *seen;
        let known = self.0.iter_mut().find(|known| known.notice == notice && known.upward == upward);
        if let Some(known) = known {
            known.count += 1;
        } else if self.0.len() < MAX_KINDS {
            self.0.push(Counted { notice, upward, count: 1, since_ns, frame });
        }
    }

    /// Returns the errors for the document; `upward` is the flow's forward direction.
    pub fn document(&self, upward: bool) -> Vec<TraceIcmp> {
        let document = |counted: &Counted| TraceIcmp {
            what: name(counted.notice.name),
            from: document_endpoint(Endpoint { address: counted.notice.from, port: 0 }).address,
            mtu_bytes: (counted.notice.mtu > 0).then_some(counted.notice.mtu),
            about: if counted.upward == upward { PacketDirection::Forward } else { PacketDirection::Reverse },
            count: counted.count,
            time_ns: counted.since_ns,
            frame: counted.frame,
        };
        self.0.iter().map(document).collect()
    }
}

/// Returns the name of an IP version, type and code (RFC 792, RFC 1812, RFC 4443).
fn name(message: (u8, u8, u8)) -> String {
    let known = match message {
        (4, 3, 0) => "network unreachable",
        (4, 3, 1) | (6, 1, 3) => "host unreachable",
        (4, 3, 2) => "protocol unreachable",
        (4, 3, 3) | (6, 1, 4) => "port unreachable",
        (4, 3, 4) => "fragmentation needed",
        (4, 3, 9 | 10 | 13) | (6, 1, 1) => "administratively prohibited",
        (4, 4, _) => "source quench",
        (4, 11, 0) | (6, 3, 0) => "hop limit exceeded",
        (4, 11, 1) | (6, 3, 1) => "reassembly time exceeded",
        (6, 1, 0) => "no route",
        (6, 1, 5) => "source address failed policy",
        (6, 1, 6) => "route rejected",
        (6, 2, _) => "packet too big",
        (4, 12, _) | (6, 4, _) => "parameter problem",
        (_, kind, code) => return format!("type {kind} code {code}"),
    };
    known.to_owned()
}
