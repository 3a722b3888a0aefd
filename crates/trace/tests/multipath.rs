//! Subflows of multipath TCP connections (RFC 8684).

use etherparse::PacketBuilder;
use landspeed_model::TraceMultipath;
use landspeed_trace::{Analysis, Limits};
use landspeed_wire::LinkType;
use landspeed_wire::capture::Frame;

/// Key, token and initial data sequence number of each side, computed with Python's `hashlib`.
const CLIENT: (u64, u32, u64) = (0x1122_3344_5566_7788, 0x1dce_6604, 0x6281_5714_b76a_e9a5);
const SERVER: (u64, u32, u64) = (0x99aa_bbcc_ddee_ff00, 0x7b98_1f5b, 0xf9fb_2ac1_ea2c_e0d2);

/// Address of the server, and its port in every subflow.
const HOST: ([u8; 4], u16) = ([10, 0, 0, 9], 5001);

/// A connection's packets, 1 ms apart.
#[derive(Default)]
struct Wire {
    packets: Vec<Vec<u8>>,
}

/// A segment from the client's address to the server, or in reverse.
struct Segment<'a> {
    client: ([u8; 4], u16),
    from_client: bool,
    sequence: u32,
    acknowledgement: Option<u32>,
    syn: bool,
    option: &'a [u8],
    payload: usize,
}

impl Wire {
    fn send(&mut self, segment: &Segment<'_>) {
        let (from, to) = if segment.from_client { (segment.client, HOST) } else { (HOST, segment.client) };
        let mut options = vec![30, segment.option.len() as u8 + 2];
        options.extend_from_slice(segment.option);
        if segment.option.is_empty() {
            options.clear();
        }
        while !options.len().is_multiple_of(4) {
            options.push(1);
        }
        let mut builder = PacketBuilder::ipv4(from.0, to.0, 64).tcp(from.1, to.1, segment.sequence, 60_000);
        if let Some(acknowledgement) = segment.acknowledgement {
            builder = builder.ack(acknowledgement);
        }
        if segment.syn {
            builder = builder.syn();
        }
        let builder = builder.options_raw(&options).expect("at most 40 bytes");
        let mut packet = Vec::new();
        builder.write(&mut packet, &vec![0; segment.payload]).expect("a packet");
        self.packets.push(packet);
    }

    /// Sends the handshake of a subflow with these options.
    fn handshake(&mut self, client: ([u8; 4], u16), options: [&[u8]; 3]) {
        let [syn, syn_ack, ack] = options;
        let plain = Segment {
            client,
            from_client: true,
            sequence: 1_000,
            acknowledgement: None,
            syn: true,
            option: syn,
            payload: 0,
        };
        self.send(&plain);
        let from_client = false;
        self.send(&Segment { from_client, sequence: 7_000, acknowledgement: Some(1_001), option: syn_ack, ..plain });
        self.send(&Segment { sequence: 1_001, acknowledgement: Some(7_001), syn: false, option: ack, ..plain });
    }

    /// Sends data of the client, and the server's acknowledgement with `data_acknowledgement`.
    fn data(&mut self, client: ([u8; 4], u16), at: u32, payload: usize, options: [&[u8]; 2]) {
        let [mapping, signal] = options;
        let data = Segment {
            client,
            from_client: true,
            sequence: 1_001 + at,
            acknowledgement: Some(7_001),
            syn: false,
            option: mapping,
            payload,
        };
        self.send(&data);
        self.send(&Segment {
            from_client: false,
            sequence: 7_001,
            acknowledgement: Some(1_001 + at + payload as u32),
            option: signal,
            payload: 0,
            ..data
        });
    }

    fn connections(&self) -> Vec<TraceMultipath> {
        let mut analysis = Analysis::new(Limits::default());
        for (number, data) in self.packets.iter().enumerate() {
            let time_ns = 1_000_000_000 + number as u64 * 1_000_000;
            let original = data.len() as u32;
            analysis.frame(&Frame { interface: 0, link: LinkType::RAW, time_ns, original, data });
        }
        let build = landspeed_model::BuildInfo::default();
        analysis.finish(build, Vec::new(), String::new(), "", None, |_| None).multipath
    }
}

fn capable(keys: &[u64]) -> Vec<u8> {
    let mut option = vec![0x01, 0x81];
    keys.iter().for_each(|key| option.extend_from_slice(&key.to_be_bytes()));
    option
}

fn join(backup: bool, token: u32) -> Vec<u8> {
    let mut option = vec![0x10 | u8::from(backup), 2];
    option.extend_from_slice(&token.to_be_bytes());
    option.extend_from_slice(&[7; 4]);
    option
}

/// A mapping of `length` numbers from `from`, the last of which is the end of the data if `ends`.
fn mapping(from: u64, length: u16, ends: bool) -> Vec<u8> {
    let mut option = vec![0x20, 0x0c | if ends { 0x10 } else { 0 }];
    option.extend_from_slice(&from.to_be_bytes());
    option.extend_from_slice(&1_u32.to_be_bytes());
    option.extend_from_slice(&length.to_be_bytes());
    option
}

fn acknowledges(number: u64, whole: bool) -> Vec<u8> {
    let mut option = vec![0x20, if whole { 0x03 } else { 0x01 }];
    let bytes = number.to_be_bytes();
    option.extend_from_slice(if whole { &bytes } else { &bytes[4..] });
    option
}

const FIRST: ([u8; 4], u16) = ([10, 0, 0, 1], 40_000);
const SECOND: ([u8; 4], u16) = ([10, 0, 1, 1], 41_000);

/// A connection of two subflows: 3,000 bytes of the client, 1,000 of which both carry, then the ends of both sides.
fn two_subflows(whole: bool, with_initial: bool) -> Wire {
    let mut wire = Wire::default();
    if with_initial {
        let keys = [capable(&[]), capable(&[SERVER.0]), capable(&[CLIENT.0, SERVER.0])];
        wire.handshake(FIRST, keys.each_ref().map(Vec::as_slice));
    }
    wire.handshake(SECOND, [&join(true, SERVER.1), &[0x10; 14], &[0x10; 22]]);
    let next = |bytes: u64| CLIENT.2.wrapping_add(1 + bytes);
    if with_initial {
        wire.data(FIRST, 0, 2_000, [&mapping(next(0), 2_000, false), &acknowledges(next(2_000), whole)]);
    }
    wire.data(SECOND, 0, 2_000, [&mapping(next(1_000), 2_000, false), &acknowledges(next(3_000), whole)]);
    wire.data(SECOND, 2_000, 0, [&mapping(next(3_000), 1, true), &acknowledges(next(3_001), whole)]);
    let end = SERVER.2.wrapping_add(1);
    let segment = Segment {
        client: SECOND,
        from_client: false,
        sequence: 7_001,
        acknowledgement: Some(3_001),
        syn: false,
        option: &mapping(end, 1, true),
        payload: 0,
    };
    wire.send(&segment);
    let option = acknowledges(end.wrapping_add(1), whole);
    wire.send(&Segment {
        from_client: true,
        sequence: 3_001,
        acknowledgement: Some(7_001),
        option: &option,
        ..segment
    });
    wire
}

#[test]
fn subflows_are_joined_by_token_and_count_data_once() {
    for whole in [true, false] {
        let connections = two_subflows(whole, true).connections();
        let [connection] = &connections[..] else { panic!("{connections:?}") };
        assert_eq!(connection.version, Some(1));
        assert_eq!((connection.client_bytes, connection.server_bytes), (Some(3_000), Some(0)));
        assert_eq!(connection.reinjected_bytes, Some(1_000));
        let [first, second] = &connection.subflows[..] else { panic!("{connection:?}") };
        assert!(first.initial && first.established && !first.backup, "{first:?}");
        assert!(!second.initial && second.established && second.backup, "{second:?}");
        assert_eq!((first.client_payload_bytes, second.client_payload_bytes), (2_000, 2_000));
        assert_eq!((second.client.address.as_str(), second.server.port), ("10.0.1.1", HOST.1));
    }
}

#[test]
fn without_the_first_handshake_the_data_is_unknown() {
    let connections = two_subflows(true, false).connections();
    let [connection] = &connections[..] else { panic!("{connections:?}") };
    assert_eq!(connection.version, None);
    assert_eq!([connection.client_bytes, connection.server_bytes, connection.reinjected_bytes], [None; 3]);
    assert_eq!(connection.goodput_bps, None);
    assert_eq!(connection.subflows.len(), 1);
}

#[test]
fn a_server_without_multipath_is_plain_tcp() {
    let mut wire = Wire::default();
    wire.handshake(FIRST, [&capable(&[]), &[], &[]]);
    wire.data(FIRST, 0, 500, [&[], &[]]);
    assert!(wire.connections().is_empty());
}

#[test]
fn tokens_of_the_client_join_subflows_of_the_server() {
    let mut wire = Wire::default();
    let keys = [capable(&[]), capable(&[SERVER.0]), capable(&[CLIENT.0, SERVER.0])];
    wire.handshake(FIRST, keys.each_ref().map(Vec::as_slice));
    // The server opens the subflow: its address sends the SYN.
    wire.handshake(SECOND, [&join(false, CLIENT.1), &[0x10; 14], &[0x10; 22]]);
    let connections = wire.connections();
    let [connection] = &connections[..] else { panic!("{connections:?}") };
    assert_eq!(connection.subflows[1].server.address, "10.0.1.1", "it is an address of the server");
    // Half a handshake.
    let mut wire = Wire::default();
    wire.handshake(SECOND, [&join(false, CLIENT.1), &[], &[]]);
    assert!(!wire.connections()[0].subflows[0].established);
}
