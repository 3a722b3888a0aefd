use std::net::SocketAddr;

use landspeed_model::{HostSeries, HostSnapshot, WatchRole};
use landspeed_netlink::sock_diag::SocketMemory;

use super::*;
use crate::observe;

const S: u64 = 1_000_000_000;

/// A socket with adjustable `tcp_info`.
#[derive(Clone)]
struct FakeSocket {
    port: u16,
    cookie: u64,
    inode: u32,
    state: u8,
    send_queue: u32,
    info: Vec<u8>,
}

impl FakeSocket {
    fn new(port: u16, cookie: u64) -> Self {
        let mut info = vec![0; 248];
        info[0] = 1;
        Self { port, cookie, inode: cookie as u32 + 1000, state: 1, send_queue: 0, info }
    }

    fn counters(mut self, acked: u64, received: u64) -> Self {
        self.info[120..128].copy_from_slice(&acked.to_ne_bytes());
        self.info[128..136].copy_from_slice(&received.to_ne_bytes());
        self
    }

    fn field(mut self, at: usize, value: u32) -> Self {
        self.info[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        self
    }

    fn id(&self) -> SocketId {
        let address = |text: &str| text.parse::<SocketAddr>().expect("an address");
        SocketId::new(address(&format!("192.0.2.1:{}", self.port)), address("198.51.100.2:443"), self.cookie)
    }

    fn socket(&self) -> TcpSocket<'_> {
        TcpSocket {
            id: self.id(),
            state: self.state,
            receive_queue_bytes: 0,
            send_queue_bytes: self.send_queue,
            uid: 0,
            inode: self.inode,
            tcp_info: &self.info,
            memory: Some(SocketMemory {
                rmem_alloc: 0,
                rcvbuf: 1 << 20,
                sndbuf: 1 << 20,
                wmem_queued: 0,
                drops: None,
            }),
            congestion: "cubic",
            bbr_info: None,
        }
    }
}

fn dump(flows: &mut Flows, now_ns: u64, sockets: &[FakeSocket]) {
    flows.begin_dump(now_ns);
    for twin in sockets {
        flows.dumped(&twin.socket());
    }
    flows.end_dump();
}

fn wanted(flows: &Flows) -> Vec<u64> {
    let mut cookies: Vec<u64> = flows.wanted().iter().map(SocketId::cookie).collect();
    cookies.sort_unstable();
    cookies
}

fn top(top: usize) -> Flows {
    Flows::new(Limits { top, ..Limits::default() })
}

#[test]
fn only_the_busiest_flows_are_sampled() {
    let mut flows = top(2);
    let at = |bytes: [u64; 4]| -> Vec<FakeSocket> {
        bytes.iter().zip(1..).map(|(&bytes, n)| FakeSocket::new(n as u16, n).counters(bytes, 0)).collect()
    };
    dump(&mut flows, 0, &at([9_000_000, 0, 0, 0]));
    assert_eq!(wanted(&flows), [0; 0], "bytes from before the watch are not a rate");
    dump(&mut flows, S, &at([9_000_000, 500, 0, 40]));
    assert_eq!(wanted(&flows), [2, 4]);
    dump(&mut flows, 2 * S, &at([9_900_000, 501, 700, 40]));
    assert_eq!(wanted(&flows), [1, 3]);
    assert_eq!((flows.counts().now, flows.counts().seen, flows.counts().ended), (4, 4, 0));
    // A flow that pauses is sampled for some time longer.
    dump(&mut flows, 3 * S, &at([9_900_000, 501, 700, 40]));
    assert_eq!(wanted(&flows), [1, 3]);
    dump(&mut flows, 2 * S + KEEP_NS + 1, &at([9_900_000, 501, 700, 40]));
    assert_eq!(wanted(&flows), [0; 0]);
}

#[test]
fn flows_with_stalled_data_are_sampled() {
    let mut flows = top(2);
    let stuck = FakeSocket { send_queue: 9000, ..FakeSocket::new(1, 1) };
    dump(&mut flows, 0, std::slice::from_ref(&stuck));
    assert_eq!(wanted(&flows), [1]);
}

#[test]
fn totals_start_with_the_watch_and_may_be_unknown() {
    let mut flows = top(2);
    let old = |acked, received| FakeSocket::new(1, 1).counters(acked, received);
    let new = |acked, retransmits| FakeSocket::new(2, 2).counters(acked, 0).field(100, retransmits);
    dump(&mut flows, 0, &[old(1000, 500)]);
    assert_eq!(flows.totals(), Some(MovedTotals::default()), "bytes from before the watch");
    dump(&mut flows, S, &[old(3000, 700), new(40, 1)]);
    dump(&mut flows, 2 * S, &[new(50, 3)]);
    let expected = MovedTotals { acked_bytes: 2050, received_bytes: 200, retransmits: 3 };
    assert_eq!(flows.totals(), Some(expected));
    // A kernel before 4.1 does not report bytes: they are unknown, not 0.
    let mut short = new(60, 3);
    short.info.truncate(COUNTERS_END - 1);
    dump(&mut flows, 3 * S, &[short]);
    assert_eq!(flows.totals(), None);
}

#[test]
fn reused_ports_are_different_flows() {
    let mut flows = top(4);
    dump(&mut flows, 0, &[FakeSocket::new(5000, 1)]);
    dump(&mut flows, S, &[FakeSocket::new(5000, 1).counters(7000, 0)]);
    let new = FakeSocket::new(5000, 2).counters(300, 0);
    dump(&mut flows, 2 * S, std::slice::from_ref(&new));
    assert_eq!(wanted(&flows), [2]);
    let moved = |cookie| flows.sampled().find(|flow| flow.id.cookie() == cookie).map(|f| (f.ended, f.moved()));
    assert_eq!((moved(1), moved(2)), (Some((true, 7000)), Some((false, 300))));
    assert_eq!((flows.counts().seen, flows.counts().ended), (2, 1));
    // A late sample of the old socket is ignored.
    flows.read(3 * S, &FakeSocket::new(5000, 1).counters(9999, 0).socket(), None);
    assert_eq!(recent_bytes_of(&flows, 1), 7000);
}

#[test]
fn sockets_admitted_later_count_from_then_on() {
    let mut flows = top(4);
    let old = |acked| FakeSocket::new(1, 1).counters(acked, 0);
    flows.restrict_to(HashSet::new());
    dump(&mut flows, 0, &[old(5_000_000)]);
    dump(&mut flows, S, &[old(6_000_000)]);
    assert_eq!((flows.counts(), flows.totals()), (WatchSockets::default(), Some(MovedTotals::default())));
    // Its process moves into the control group.
    flows.restrict_to(HashSet::from([1001]));
    dump(&mut flows, 2 * S, &[old(6_000_300)]);
    assert_eq!(flows.totals(), Some(MovedTotals { acked_bytes: 300, ..MovedTotals::default() }));
    assert_eq!((recent_bytes_of(&flows, 1), flows.counts().seen, flows.counts().now), (300, 1, 1));
    assert_eq!(flows.flow(1).map(|flow| flow.seen_ns.0), Some(2 * S));
    // And leaves it again.
    flows.restrict_to(HashSet::new());
    dump(&mut flows, 3 * S, &[old(9_000_000)]);
    assert_eq!((recent_bytes_of(&flows, 1), flows.counts().ended, flows.counts().now), (300, 1, 0));
}

#[test]
fn a_socket_that_one_dump_lacks_keeps_its_counters() {
    let mut flows = top(4);
    let old = |acked| FakeSocket::new(1, 1).counters(acked, 0);
    dump(&mut flows, 0, &[old(5_000_000)]);
    dump(&mut flows, S, &[old(5_000_100)]);
    dump(&mut flows, 2 * S, &[]);
    assert_eq!(flows.flow(1).map(|flow| (flow.ended, flows.counts().ended)), Some((true, 1)));
    dump(&mut flows, 3 * S, &[old(5_000_300)]);
    assert_eq!(flows.flow(1).map(|flow| (flow.ended, flows.counts().ended)), Some((false, 1)));
    assert_eq!((flows.totals().map(|totals| totals.acked_bytes), flows.counts().seen), (Some(300), 1));
    // After two dumps without it, it is forgotten.
    (4..6).for_each(|second| dump(&mut flows, second * S, &[]));
    assert_eq!((flows.known.len(), flows.counts().ended), (0, 1));
}

fn recent_bytes_of(flows: &Flows, cookie: u64) -> u64 {
    flows.sampled().find(|flow| flow.id.cookie() == cookie).map_or(0, SampledFlow::moved)
}

#[test]
fn flows_that_end_between_dumps_keep_their_bytes() {
    let mut flows = top(4);
    dump(&mut flows, 0, &[]);
    let twin = FakeSocket::new(1, 1).counters(100, 0);
    dump(&mut flows, S, std::slice::from_ref(&twin));
    flows.read(S + 1, &twin.clone().counters(5100, 0).socket(), None);
    flows.gone(&twin.id());
    assert_eq!(wanted(&flows), [0; 0]);
    dump(&mut flows, 2 * S, &[]);
    assert_eq!(recent_bytes_of(&flows, 1), 5100);
    assert_eq!(flows.counts().ended, 1);
}

#[test]
fn memory_is_bounded_with_many_connections() {
    let mut flows = top(3);
    for second in 0..200 {
        let sockets: Vec<FakeSocket> = (0..50)
            .map(|n| {
                let cookie = second * 50 + n;
                FakeSocket::new(n as u16, cookie).counters(1000 + cookie, 0)
            })
            .collect();
        dump(&mut flows, second * S, &sockets);
        for twin in &sockets {
            flows.read(second * S + 1, &twin.socket(), None);
        }
    }
    assert!(flows.sampled().count() <= STORED_FLOWS_FACTOR * 3 && flows.known.len() == 100);
    let counts = flows.counts();
    assert_eq!((counts.seen, counts.ended, counts.most), (10_000, 9950, 50));
    assert!(counts.ended_unlisted > 0);
    let mut long = top(1);
    let twin = |n: u64| FakeSocket::new(1, 1).counters(n * 1000, 0);
    for tenth in 0..2000 {
        dump(&mut long, tenth * S / 10, &[twin(tenth)]);
        long.read(tenth * S / 10 + 1, &twin(tenth).socket(), None);
    }
    let kept = long.sampled().next().expect("a flow").samples.len();
    assert!((290..=302).contains(&kept), "{kept} readings of 30 s");
}

#[test]
fn memory_is_bounded_over_a_day_of_short_connections() {
    const SOCKETS_PER_DUMP: u64 = 300;
    const DUMPS: u64 = 86_400 / 30;
    let mut flows = top(100);
    let mut twin = FakeSocket::new(1, 0).counters(5000, 0);
    for second in (0..DUMPS).map(|dump| 30 * dump) {
        flows.begin_dump(second * S);
        for n in 0..SOCKETS_PER_DUMP {
            twin.cookie = second * SOCKETS_PER_DUMP + n + 1;
            flows.dumped(&twin.socket());
        }
        flows.end_dump();
        for cookie in wanted(&flows).into_iter().take(3) {
            twin.cookie = cookie;
            flows.read(second * S + 1, &twin.socket(), None);
        }
        assert!(
            flows.known.len() <= 2 * SOCKETS_PER_DUMP as usize && flows.sampled.len() <= STORED_FLOWS_FACTOR * 100,
            "{second} s"
        );
    }
    assert_eq!(flows.counts().seen, DUMPS * SOCKETS_PER_DUMP);
    assert!(
        flows.known.capacity() < 16 * SOCKETS_PER_DUMP as usize
            && flows.candidates.capacity() < 4 * SOCKETS_PER_DUMP as usize
    );
    let readings: usize = flows.sampled().map(|flow| flow.samples.len()).sum();
    assert!(readings <= flows.sampled.len() * 302, "{readings}");
}

#[test]
fn samples_before_a_gap_are_kept() {
    let mut flows = top(1);
    let twin = |n: u64| FakeSocket::new(1, 1).counters(n, 0);
    dump(&mut flows, 0, &[twin(0)]);
    dump(&mut flows, S, &[twin(1000)]);
    flows.read(S + 1, &twin(1000).socket(), None);
    // The watch itself was held up for eight seconds.
    flows.read(9 * S, &twin(2000).socket(), None);
    let flow = flows.sampled().next().expect("a flow");
    assert_eq!((flow.samples.len(), flow.span_ns(), flow.recent_bytes()), (2, (S + 1, 9 * S), 1000));
}

#[test]
fn a_closed_connection_keeps_its_figures() {
    let open = FakeSocket::new(1, 1).counters(5000, 0).field(100, 3);
    // What remains in FIN-WAIT-2 and TIME-WAIT has the cookie, and no `tcp_info`.
    let minisocket = FakeSocket { inode: 0, info: Vec::new(), state: 5, ..open.clone() };
    let watched = || {
        let mut flows = top(4);
        dump(&mut flows, 0, &[FakeSocket::new(1, 1)]);
        dump(&mut flows, S, std::slice::from_ref(&open));
        flows.read(S + 1, &open.socket(), None);
        flows
    };
    let mut read = watched();
    read.read(2 * S, &minisocket.socket(), None);
    let mut dumped = watched();
    dump(&mut dumped, 2 * S, std::slice::from_ref(&minisocket));
    for flows in [read, dumped] {
        let flow = flows.sampled().next().expect("a flow");
        assert_eq!((flow.last.acked, flow.last.retransmits, flow.inode), (5000, 3, 1001));
        assert!(flow.ended && wanted(&flows).is_empty());
        assert!(flow.samples.iter().all(|sample| sample.tcp.is_some()));
    }
    let mut alone = top(4);
    dump(&mut alone, 0, std::slice::from_ref(&minisocket));
    assert_eq!((alone.counts().now, alone.counts().seen), (0, 0), "it is no connection any more");
}

#[test]
fn fins_are_not_data() {
    let mut flows = top(4);
    let idle = FakeSocket::new(1, 1).counters(5000, 70);
    dump(&mut flows, 0, std::slice::from_ref(&idle));
    dump(&mut flows, S, &[FakeSocket { state: 9, ..idle.counters(5001, 71) }]);
    assert_eq!(wanted(&flows), [0; 0]);
}

#[test]
fn only_sockets_of_selected_processes_are_counted() {
    let mut flows = top(4);
    flows.restrict_to(HashSet::from([1001]));
    let busy = |n: u64| [FakeSocket::new(1, 1).counters(n, 0), FakeSocket::new(2, 2).counters(n, 0)];
    dump(&mut flows, 0, &busy(0));
    dump(&mut flows, S, &busy(1000));
    assert_eq!((wanted(&flows), flows.counts().now), (vec![1], 1));
}

#[test]
fn wrapped_counters_continue_in_the_observation() {
    let mut flows = top(1);
    // total_retrans (100) and data_segs_out (156) are 32-bit counters about to wrap; reord_seen (220) was counted
    // before the watch.
    let twin = |retransmits: u32, segments: u32, bytes: u64| {
        FakeSocket::new(1, 1).counters(bytes, 10).field(100, retransmits).field(156, segments).field(220, 77)
    };
    dump(&mut flows, 0, &[twin(u32::MAX, u32::MAX - 9, 4_000_000)]);
    dump(&mut flows, S, &[twin(u32::MAX, u32::MAX - 9, 5_000_000)]);
    flows.read(S, &twin(u32::MAX, u32::MAX - 9, 5_000_000).socket(), None);
    flows.read(2 * S, &twin(4, 90, 6_250_000).socket(), None);
    let flow = flows.sampled().next().expect("a flow");
    let seen = observe(flow, &HostSnapshot::default(), HostSeries::default()).expect("two readings");
    assert_eq!((seen.role, seen.span_ns, seen.bytes), (WatchRole::Sender, (S, 2 * S), 1_250_000));
    let stream = &seen.document.streams[0];
    assert!(stream.receiver.is_none());
    let last = stream.sender.as_ref().and_then(|end| end.samples.last()).and_then(|s| s.tcp.as_deref());
    let last = last.expect("a reading");
    assert_eq!((last.total_retrans, last.data_segs_out, last.reord_seen), (5, Some(100), Some(0)));
}

#[test]
fn flow_direction_is_that_of_most_bytes() {
    let mut flows = top(1);
    let twin = |n: u64| FakeSocket::new(1, 1).counters(n, 50 * n);
    dump(&mut flows, 0, &[twin(0)]);
    dump(&mut flows, S, &[twin(1000)]);
    flows.read(S, &twin(1000).socket(), None);
    flows.read(2 * S, &twin(2000).socket(), Some(ThreadTimes { pid: 9, cpu_ns: 5, wait_ns: 6 }));
    let flow = flows.sampled().next().expect("a flow");
    let seen = observe(flow, &HostSnapshot::default(), HostSeries::default()).expect("two readings");
    assert_eq!((seen.role, seen.bytes), (WatchRole::Receiver, 50_000));
    let end = seen.document.streams[0].receiver.as_ref().expect("this end");
    assert_eq!(end.samples[1].thread_cpu_ns, Some(5));
    // Another process took over the socket, with another CPU clock.
    flows.read(3 * S, &twin(3000).socket(), Some(ThreadTimes { pid: 10, cpu_ns: 5000, wait_ns: 6 }));
    let times: Vec<_> = flows.sampled().next().expect("a flow").samples.iter().map(|s| s.thread_cpu_ns).collect();
    assert_eq!(times, [None, None, Some(5000)]);
}

#[test]
fn kernels_without_byte_counters_have_no_rates() {
    let mut flows = top(1);
    let old = FakeSocket { info: vec![1; 104], send_queue: 5, ..FakeSocket::new(1, 1) };
    dump(&mut flows, 0, std::slice::from_ref(&old));
    dump(&mut flows, S, std::slice::from_ref(&old));
    flows.read(S, &old.socket(), None);
    flows.read(2 * S, &old.socket(), None);
    let seen = observe(flows.sampled().next().expect("a flow"), &HostSnapshot::default(), HostSeries::default())
        .expect("two readings");
    assert_eq!(seen.bytes, 0);
    let bare = FakeSocket { info: Vec::new(), ..old };
    flows.read(2 * S + 1, &bare.socket(), None);
    assert!(
        observe(flows.sampled().next().expect("a flow"), &HostSnapshot::default(), HostSeries::default()).is_some()
    );
}
