//! Counters of nftables rules that drop packets (nfnetlink; linux/netfilter/nf_tables.h), including rules of
//! `iptables-nft`.

use crate::connection::{Cause, Connection, NetlinkError, Request};
use crate::parse::{each_attribute, u32_at};

/// `NFNL_SUBSYS_NFTABLES`, the subsystem of rule messages.
const SUBSYSTEM: u16 = 10 << 8;
const NEW_RULE: u16 = SUBSYSTEM | 6;
const GET_RULE: u16 = SUBSYSTEM | 7;
const NFTA_RULE_EXPRESSIONS: u16 = 4;
const NFTA_EXPR_NAME: u16 = 1;
const NFTA_EXPR_DATA: u16 = 2;
const NFTA_COUNTER_PACKETS: u16 = 2;
const NFTA_IMMEDIATE_DATA: u16 = 2;
const NFTA_DATA_VERDICT: u16 = 2;
const NFTA_VERDICT_CODE: u16 = 1;
/// `NF_DROP` (linux/netfilter.h).
const NF_DROP: u32 = 0;

/// A netlink socket for nftables in the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct NfTables {
    connection: Connection,
}

impl NfTables {
    /// Opens a socket in the calling thread's network namespace.
    pub fn open() -> Result<Self, NetlinkError> {
        Ok(Self { connection: Connection::open(libc::NETLINK_NETFILTER, "the netfilter family")? })
    }

    /// Returns the packets counted by rules that drop or reject them. Rules without `counter` and the policy of a
    /// chain have no count.
    ///
    /// # Errors
    /// `EPERM` without `CAP_NET_ADMIN`; `EINVAL` on kernels without nftables.
    pub fn dropped(&mut self) -> Result<u64, NetlinkError> {
        let mut request = Request::dump(GET_RULE);
        // struct nfgenmsg: family (0: all), version, resource.
        request.bytes(&[0; 4]);
        let mut counts: Vec<u64> = Vec::new();
        let parse = |payload: &[u8]| Ok(dropped_by(payload.get(4..).ok_or(Cause::Malformed("netfilter header"))?));
        let answer = self.connection.dump(request, NEW_RULE, &mut counts, parse);
        answer.map_err(|cause| NetlinkError { operation: "rule dump", object: "nftables".into(), cause })?;
        Ok(counts.into_iter().fold(0, u64::saturating_add))
    }
}

/// Packets dropped by a rule, if it drops and has a counter.
fn dropped_by(attributes: &[u8]) -> Option<u64> {
    let (_, expressions) = each_attribute(attributes).find(|&(kind, _)| kind == NFTA_RULE_EXPRESSIONS)?;
    let (mut packets, mut drops) = (None, false);
    for (_, expression) in each_attribute(expressions) {
        let part = |wanted: u16| each_attribute(expression).find(|&(kind, _)| kind == wanted).map(|(_, value)| value);
        let (Some(name), Some(data)) = (part(NFTA_EXPR_NAME), part(NFTA_EXPR_DATA)) else { continue };
        match name.split(|&byte| byte == 0).next() {
            Some(b"counter") => packets = nested(data, &[NFTA_COUNTER_PACKETS]).and_then(parse_be_u64),
            Some(b"reject") => drops = true,
            Some(b"immediate") => {
                let code = nested(data, &[NFTA_IMMEDIATE_DATA, NFTA_DATA_VERDICT, NFTA_VERDICT_CODE]);
                drops |= code.and_then(|code| u32_at(code, 0)).map(u32::from_be) == Some(NF_DROP);
            }
            _ => {}
        }
    }
    packets.filter(|_| drops)
}

/// Returns the attribute at a path of nested attribute types.
fn nested<'a>(attributes: &'a [u8], path: &[u16]) -> Option<&'a [u8]> {
    path.iter().try_fold(attributes, |inside, &wanted| {
        each_attribute(inside).find(|&(kind, _)| kind == wanted).map(|(_, value)| value)
    })
}

fn parse_be_u64(value: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(value.get(..8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = (value.len() as u16 + 4).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn rule(verdict: u32, packets: u64) -> Vec<u8> {
        let expression = |name: &[u8], data: Vec<u8>| {
            attribute(1, &[attribute(NFTA_EXPR_NAME, name), attribute(NFTA_EXPR_DATA | 0x8000, &data)].concat())
        };
        let counter = expression(b"counter\0", attribute(NFTA_COUNTER_PACKETS, &packets.to_be_bytes()));
        let code = attribute(NFTA_VERDICT_CODE, &verdict.to_be_bytes());
        let verdict = attribute(NFTA_DATA_VERDICT | 0x8000, &code);
        let data = [attribute(1, &[0; 4]), attribute(NFTA_IMMEDIATE_DATA | 0x8000, &verdict)].concat();
        attribute(NFTA_RULE_EXPRESSIONS | 0x8000, &[counter, expression(b"immediate\0", data)].concat())
    }

    #[test]
    fn only_drop_rules_are_counted() {
        assert_eq!(dropped_by(&rule(NF_DROP, 77)), Some(77));
        assert_eq!(dropped_by(&rule(1, 77)), None, "accepted");
        for length in 0..rule(NF_DROP, 77).len() {
            dropped_by(&rule(NF_DROP, 77)[..length]);
        }
    }
}
