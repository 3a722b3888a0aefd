//! Joins the subflows of multipath TCP connections by keys and tokens (RFC 8684).

use std::cmp::Reverse;
use std::collections::HashMap;

use landspeed_model::{TraceMultipath, TraceSubflow};
use landspeed_wire::DataNumber;
use sha2::{Digest as _, Sha256};

use crate::direction::FlowDirection;
use crate::key::document_endpoint;
use crate::multipath::Subflow;
use crate::table::{Flow, State};

/// The version whose tokens are SHA-256. Subflows of version 0 (RFC 6824, SHA-1) are not joined.
const VERSION: u8 = 1;

/// Token and initial data sequence number that follow from a key (RFC 8684, section 3.2).
fn derived(key: u64) -> (u32, u64) {
    let digest: [u8; 32] = Sha256::digest(key.to_be_bytes()).into();
    let [t0, t1, t2, t3, .., i0, i1, i2, i3, i4, i5, i6, i7] = digest;
    (u32::from_be_bytes([t0, t1, t2, t3]), u64::from_be_bytes([i0, i1, i2, i3, i4, i5, i6, i7]))
}

/// A subflow of a connection, by the connection's sides: 0 is the client, 1 the server.
struct Member<'a> {
    flow: &'a Flow,
    options: &'a Subflow,
    directions: [&'a FlowDirection; 2],
    client_is_low: bool,
}

impl<'a> Member<'a> {
    fn new(flow: &'a Flow, options: &'a Subflow, client_is_low: bool) -> Option<Self> {
        let State::Tcp(connection) = &flow.state else { return None };
        let [low, high] = connection.directions();
        let directions = if client_is_low { [low, high] } else { [high, low] };
        Some(Self { flow, options, directions, client_is_low })
    }

    /// Returns the index in an array of the options for a side of the connection.
    fn index(&self, side: usize) -> usize {
        if self.client_is_low { side } else { 1 - side }
    }
}

/// Returns the multipath connections of a capture that starts at `start_ns`, most data first.
pub fn connections(flows: &[Flow], start_ns: u64) -> Vec<TraceMultipath> {
    let mut in_order: Vec<(&Flow, &Subflow)> = flows
        .iter()
        .filter_map(|flow| match &flow.state {
            State::Tcp(connection) => Some((flow, connection.multipath()?)),
            State::Udp(_) => None,
        })
        .collect();
    in_order.sort_by_key(|(flow, _)| (flow.first_ns, flow.number));
    let mut groups: Vec<Vec<Member<'_>>> = Vec::new();
    // The group and the side that a token names.
    let mut tokens: HashMap<u32, (usize, usize)> = HashMap::new();
    for &(flow, options) in in_order.iter().filter(|(_, options)| options.version.is_some()) {
        let client_is_low = options.client_is_low.unwrap_or(true);
        // The server does not speak the protocol: a plain connection.
        if options.took_part != [true; 2] {
            continue;
        }
        let Some(member) = Member::new(flow, options, client_is_low) else { continue };
        for side in [0, 1] {
            if let Some(key) = options.keys[member.index(side)].filter(|_| options.version == Some(VERSION)) {
                tokens.insert(derived(key).0, (groups.len(), side));
            }
        }
        groups.push(vec![member]);
    }
    for &(flow, options) in in_order.iter().filter(|(_, options)| options.joined) {
        let (Some(token), Some(low_sent_syn)) = (options.token, options.client_is_low) else { continue };
        // Without the initial subflow, the receiver of the first SYN with a token counts as the server.
        let (group, receiver) = *tokens.entry(token).or_insert_with(|| {
            groups.push(Vec::new());
            (groups.len() - 1, 1)
        });
        groups[group].extend(Member::new(flow, options, low_sent_syn == (receiver == 1)));
    }
    let mut all: Vec<TraceMultipath> = groups.iter().map(|members| document(members, start_ns)).collect();
    all.sort_by_key(|one| {
        Reverse(one.subflows.iter().map(|flow| flow.client_payload_bytes + flow.server_payload_bytes).sum::<u64>())
    });
    all
}

fn document(members: &[Member<'_>], start_ns: u64) -> TraceMultipath {
    let version = members.iter().find_map(|member| member.options.version);
    let sides = [0, 1].map(|side| acknowledged(members, side));
    let [client_bytes, server_bytes] = sides.map(|side| side.map(|(bytes, _)| bytes));
    let carried: u64 = members.iter().flat_map(|member| member.directions).map(FlowDirection::unique_bytes).sum();
    let reinjected_bytes = match sides {
        [Some((client, true)), Some((server, true))] => carried.checked_sub(client + server),
        _ => None,
    };
    let first_ns = members.iter().map(|member| member.flow.first_ns).min().unwrap_or(0);
    let last_ns = members.iter().map(|member| member.flow.last_ns).max().unwrap_or(0);
    let span_ns = last_ns.saturating_sub(first_ns);
    let most = client_bytes.zip(server_bytes).map(|(client, server)| client.max(server));
    TraceMultipath {
        version,
        client_bytes,
        server_bytes,
        reinjected_bytes,
        goodput_bps: most.filter(|_| span_ns > 0).map(|bytes| bytes as f64 * 8e9 / span_ns as f64),
        subflows: members.iter().map(|member| subflow(member, start_ns)).collect(),
    }
}

fn subflow(member: &Member<'_>, start_ns: u64) -> TraceSubflow {
    let Member { flow, options, directions, client_is_low } = member;
    let (low, high) = (document_endpoint(flow.key.low()), document_endpoint(flow.key.high()));
    let (client, server) = if *client_is_low { (low, high) } else { (high, low) };
    let [client_payload_bytes, server_payload_bytes] = directions.map(FlowDirection::unique_bytes);
    TraceSubflow {
        client,
        server,
        initial: options.version.is_some(),
        backup: options.backup,
        established: options.took_part == [true; 2],
        client_payload_bytes,
        server_payload_bytes,
        start_ns: flow.first_ns.saturating_sub(start_ns),
        duration_ns: flow.last_ns.saturating_sub(flow.first_ns),
    }
}

/// Returns the data of a side that the other one acknowledged, bytes, and whether that is all of its data.
fn acknowledged(members: &[Member<'_>], side: usize) -> Option<(u64, bool)> {
    let key = members.iter().find_map(|member| member.options.keys[member.index(side)])?;
    let (_, initial) = derived(key);
    let carried: u64 = members.iter().map(|member| member.directions[side].unique_bytes()).sum();
    let since_initial = |number: DataNumber| match number {
        DataNumber::Whole(number) => Some(number.wrapping_sub(initial).wrapping_sub(1)),
        // Unique below 4 GiB.
        DataNumber::Low(low) if carried < u64::from(u32::MAX) => {
            Some(u64::from(low.wrapping_sub(initial as u32).wrapping_sub(1)))
        }
        DataNumber::Low(_) => None,
    };
    let numbers = |of: fn(&Subflow) -> &[Option<DataNumber>; 2], side: usize| {
        members.iter().filter_map(move |member| of(member.options)[member.index(side)])
    };
    let highest = numbers(|options| &options.acknowledged, 1 - side).filter_map(since_initial).max()?;
    // The end of the data takes a number.
    let end = numbers(|options| &options.end, side).filter_map(since_initial).max();
    let is_all = end.is_some_and(|end| highest >= end);
    let bytes = if is_all { highest.checked_sub(1)? } else { highest };
    // Numbers of another key: the handshake is that of an earlier connection.
    (bytes <= carried).then_some((bytes, is_all))
}
