//! UDP streams over loopback, through a relay that drops, duplicates and reorders: the accounting is exact to
//! the packet.

use std::net::UdpSocket;
use std::num::{NonZeroU32, NonZeroU64};
use std::os::fd::AsFd;

use landspeed_flow::shared::{Budget, Counters, Stop};
use landspeed_flow::udp::header::Format;
use landspeed_flow::udp::{
    Finish, Pacing, Payload, ReceiveOutcome, ReceivePlan, SendOutcome, SendPlan, receive_stream, send_stream,
};
use landspeed_sys::clock::{monotonic_ns, sleep_until};
use landspeed_sys::udp::set_receive_buffer;
use landspeed_testkit::relay::{Impairments, UdpRelay};

const TAG: u32 = 0x7e57_ab1e;
const MS: u64 = 1_000_000;

fn pair(host: &str) -> Option<(UdpSocket, UdpSocket)> {
    let (sender, receiver) = (UdpSocket::bind((host, 0)).ok()?, UdpSocket::bind((host, 0)).ok()?);
    set_receive_buffer(receiver.as_fd(), 4 << 20).unwrap();
    Some((sender, receiver))
}

fn connect(sender: &UdpSocket, receiver: &UdpSocket) {
    sender.connect(receiver.local_addr().unwrap()).unwrap();
    receiver.connect(sender.local_addr().unwrap()).unwrap();
}

fn paced(payload: u64, packets_per_s: u64, burst: u32, grain_ns: u64) -> SendPlan {
    let pacing = Pacing {
        rate_bps: NonZeroU64::new(packets_per_s * payload * 8).unwrap(),
        burst_packets: NonZeroU32::new(burst).unwrap(),
        grain_ns,
    };
    let payload = Payload::new(payload, Format::Landspeed { tag: TAG }).unwrap();
    SendPlan {
        start_ns: 0,
        end_ns: u64::MAX,
        format: Format::Landspeed { tag: TAG },
        payload,
        pacing: Some(pacing),
        gso: true,
    }
}

/// Runs a stream of `packets` datagrams, or of the plan's duration if that is shorter.
fn run(sender: &UdpSocket, receiver: &UdpSocket, plan: &SendPlan, packets: u64) -> (SendOutcome, ReceiveOutcome) {
    let span_ns = plan.end_ns.saturating_sub(plan.start_ns);
    // Far enough ahead for both threads to start in time on a busy host.
    let start_ns = monotonic_ns() + 100 * MS;
    let plan = SendPlan { start_ns, end_ns: start_ns.saturating_add(span_ns), ..plan.clone() };
    let expected = ReceivePlan {
        format: plan.format,
        payload: plan.payload,
        rate_bps: plan.pacing.map(|pacing| pacing.rate_bps.get()),
        gro: true,
        quiet_ns: 100 * MS,
        drops_before: None,
    };
    let budget = Budget::new(Some(packets.saturating_mul(u64::from(plan.payload.bytes()))));
    let (stop, finish) = (Stop::default(), Finish::new());
    let (sent, received) = (Counters::default(), Counters::default());
    let (sending, receiving) = std::thread::scope(|scope| {
        let receiving = scope.spawn(|| receive_stream(receiver.as_fd(), &expected, &received, &stop, &finish));
        let sending = send_stream(sender.as_fd(), &plan, &sent, &stop, &budget);
        finish.sender_stopped(sending.udp.sent_packets, sending.last_ns.unwrap_or(0));
        (sending, receiving.join().expect("the receiver does not panic"))
    });
    assert!(sending.error.is_none() && receiving.error.is_none(), "{sending:?} {receiving:?}");
    assert_eq!((sent.packets(), sent.bytes()), (sending.udp.sent_packets, sending.bytes));
    assert_eq!((received.packets(), received.bytes()), (receiving.udp.delivered_packets, receiving.bytes));
    (sending, receiving)
}

fn accounting_balances_under(impairments: Impairments, plan: &SendPlan) {
    let (sender, receiver) = pair("127.0.0.1").expect("loopback exists");
    let relay = UdpRelay::start(receiver.local_addr().unwrap(), impairments).unwrap();
    sender.connect(relay.front()).unwrap();
    receiver.connect(relay.back()).unwrap();
    let payload = u64::from(plan.payload.bytes());
    let (sending, receiving) = run(&sender, &receiver, plan, 10_000);
    let relay_counts = relay.stop();
    let (sent, udp) = (sending.udp.sent_packets, &receiving.udp);
    assert_eq!((sent, sending.udp.send_errors), (10_000, Some(0)));
    assert_eq!((udp.beyond_window_packets, udp.foreign_packets), (Some(0), Some(0)));
    let (drops, duplicates) = (udp.socket_drops.expect("visible"), udp.duplicate_packets.expect("counted"));
    assert_eq!(receiving.bytes, udp.delivered_packets * payload);
    assert_eq!(udp.delivered_packets.cast_signed() + receiving.missing_packets.unwrap(), sent.cast_signed());
    assert_eq!(udp.delivered_packets + duplicates + drops, relay_counts.forwarded);
    // If this host stalls, datagrams dropped by the socket may be originals or duplicates.
    let lost = (sent - relay_counts.received) + relay_counts.dropped;
    let missing = receiving.missing_packets.expect("the sender's count is known").cast_unsigned();
    assert!((lost..=lost + drops).contains(&missing), "{relay_counts:?} {receiving:?}");
    assert!(relay_counts.duplicated.abs_diff(duplicates) <= drops, "{relay_counts:?} {receiving:?}");
    if drops == 0 {
        assert_eq!(udp.reordered_packets, Some(relay_counts.reordered));
    }
    assert_eq!(udp.timestamps.as_deref(), Some("kernel"));
}

#[test]
fn every_packet_is_accounted_for_under_loss() {
    accounting_balances_under(
        Impairments { seed: 1, drop: 0.1, ..Impairments::default() },
        &paced(200, 50_000, 1, 0),
    );
}

#[test]
fn duplicates_do_not_erase_loss() {
    let impairments = Impairments { seed: 2, drop: 0.1, duplicate: 0.1, ..Impairments::default() };
    accounting_balances_under(impairments, &paced(24, 50_000, 10, 0));
}

#[test]
fn every_packet_is_accounted_for_under_loss_duplication_and_reordering() {
    let impairments = Impairments { seed: 3, drop: 0.05, duplicate: 0.05, reorder: 0.1, drop_after: None };
    accounting_balances_under(impairments, &paced(1448, 50_000, 1, Pacing::ECONOMICAL_GRAIN_NS));
}

#[test]
fn tail_loss_is_counted() {
    let impairments = Impairments { seed: 4, drop_after: Some(6_000), ..Impairments::default() };
    accounting_balances_under(impairments, &paced(100, 50_000, 1, Pacing::ECONOMICAL_GRAIN_NS));
}

#[test]
fn unpaced_streams_balance_with_and_without_gso() {
    for host in ["127.0.0.1", "::1"] {
        let Some((sender, receiver)) = pair(host) else {
            landspeed_testkit::skip::record(&format!("no {host} here"));
            continue;
        };
        connect(&sender, &receiver);
        for (payload, gso) in [(64, true), (1448, true), (8948, true), (65_487, true), (1448, false)] {
            let payload = Payload::new(payload, Format::Landspeed { tag: TAG }).unwrap();
            let plan = SendPlan {
                start_ns: 0,
                end_ns: u64::MAX,
                format: Format::Landspeed { tag: TAG },
                payload,
                pacing: None,
                gso,
            };
            let (sending, receiving) = run(&sender, &receiver, &plan, 3_000);
            let (sent, udp) = (sending.udp.sent_packets, &receiving.udp);
            assert_eq!(sending.udp.send_errors, Some(3_000 - sent));
            assert_eq!(receiving.missing_packets, Some((sent - udp.delivered_packets).cast_signed()));
            assert!(udp.socket_drops > Some(0) || udp.delivered_packets == sent, "loss has a place: {udp:?}");
            assert_eq!(
                (udp.duplicate_packets, udp.reordered_packets, udp.foreign_packets),
                (Some(0), Some(0), Some(0))
            );
            assert!(gso || !sending.udp.gso_used);
        }
    }
}

#[test]
fn a_delayed_receiver_still_reads_its_socket_buffer() {
    let (sender, receiver) = pair("127.0.0.1").expect("loopback exists");
    connect(&sender, &receiver);
    let plan = SendPlan { pacing: None, gso: false, ..paced(100, 1, 1, 0) };
    let (stop, finish) = (Stop::default(), Finish::new());
    let (sent, received) = (Counters::default(), Counters::default());
    let sending = send_stream(sender.as_fd(), &plan, &sent, &stop, &Budget::new(Some(2_000 * 100)));
    finish.sender_stopped(sending.udp.sent_packets, sending.last_ns.unwrap_or(0));
    // The receiver starts only now, after more than its quiet time without arrivals.
    let expected = ReceivePlan {
        format: plan.format,
        payload: plan.payload,
        rate_bps: None,
        gro: false,
        quiet_ns: 0,
        drops_before: None,
    };
    let receiving = receive_stream(receiver.as_fd(), &expected, &received, &stop, &finish);
    assert_eq!(sending.udp.sent_packets, 2_000);
    assert_eq!(receiving.udp.socket_drops, Some(2_000 - receiving.udp.delivered_packets), "{receiving:?}");
}

#[test]
fn a_paced_stream_sends_exactly_rate_times_duration() {
    let (sender, receiver) = pair("127.0.0.1").expect("loopback exists");
    connect(&sender, &receiver);
    // 20,000 packets per second in bursts of 8 for 100 ms: 250 bursts.
    let plan = SendPlan { end_ns: 100 * MS, ..paced(500, 20_000, 8, 0) };
    let (sending, receiving) = run(&sender, &receiver, &plan, u64::MAX / 500);
    // Slip rounded up to whole bursts; zero unless this host stalled for long.
    let slipped = sending.slipped_ns.div_ceil(400_000) * 8;
    let sent = sending.udp.sent_packets;
    assert!((2_000 - slipped.min(2_000)..=2_000).contains(&sent), "{sent} sent, {slipped} slipped");
    assert_eq!(sending.udp.departure_error.map(|error| error.count), Some(sent));
    assert_eq!(receiving.udp.socket_drops, Some(sent - receiving.udp.delivered_packets));
    assert!(!receiving.udp.gro_used, "20 kpps needs no coalescing");
}

#[test]
fn foreign_datagrams_are_not_counted() {
    let (sender, receiver) = pair("127.0.0.1").expect("loopback exists");
    connect(&sender, &receiver);
    // Datagrams of another test and random bytes, from the receiver's peer address.
    let other =
        SendPlan { format: Format::Landspeed { tag: TAG + 1 }, pacing: None, gso: false, ..paced(100, 1, 1, 0) };
    let budget = Budget::new(Some(300));
    let earlier = send_stream(sender.as_fd(), &other, &Counters::default(), &Stop::default(), &budget);
    assert_eq!(earlier.udp.sent_packets, 3);
    sender.send(b"junk").unwrap();
    sender.send(&[]).unwrap();
    let (sending, receiving) = run(&sender, &receiver, &paced(100, 50_000, 1, 0), 500);
    assert_eq!((sending.udp.sent_packets, receiving.udp.delivered_packets), (500, 500));
    assert_eq!(receiving.udp.foreign_packets, Some(5));
    assert_eq!(receiving.missing_packets, Some(0));
}

#[test]
fn a_stop_ends_a_sender_and_an_idle_receiver() {
    let (sender, receiver) = pair("127.0.0.1").expect("loopback exists");
    connect(&sender, &receiver);
    let stop = Stop::default();
    let slow = SendPlan { start_ns: monotonic_ns(), ..paced(1000, 1, 1, 0) }; // one packet, then a second's wait
    let fast = SendPlan { pacing: None, ..slow.clone() };
    let silent = ReceivePlan {
        format: Format::Landspeed { tag: TAG + 1 },
        payload: slow.payload,
        rate_bps: None,
        gro: true,
        quiet_ns: MS,
        drops_before: None,
    };
    let begin_ns = monotonic_ns();
    let (slow, fast, silent) = std::thread::scope(|scope| {
        let (sender, stop) = (&sender, &stop);
        let slow =
            scope.spawn(move || send_stream(sender.as_fd(), &slow, &Counters::default(), stop, &Budget::new(None)));
        let fast =
            scope.spawn(move || send_stream(sender.as_fd(), &fast, &Counters::default(), stop, &Budget::new(None)));
        let silent =
            scope.spawn(|| receive_stream(receiver.as_fd(), &silent, &Counters::default(), stop, &Finish::new()));
        sleep_until(begin_ns + 50 * MS);
        stop.stop_sending();
        let senders = (slow.join().unwrap(), fast.join().unwrap());
        stop.stop_receiving();
        (senders.0, senders.1, silent.join().unwrap())
    });
    assert!(monotonic_ns() - begin_ns < 900 * MS, "the stop ended both before the second");
    assert_eq!(slow.udp.sent_packets, 1);
    assert!(fast.udp.sent_packets > 0 && fast.error.is_none());
    assert!(silent.missing_packets.is_none() && silent.udp.foreign_packets > Some(0) && silent.error.is_none());
}

#[test]
fn icmp_refusals_do_not_end_a_short_stream() {
    let (sender, receiver) = pair("127.0.0.1").expect("loopback exists");
    connect(&sender, &receiver);
    drop(receiver);
    let budget = Budget::new(Some(100_000));
    let outcome =
        send_stream(sender.as_fd(), &paced(1000, 20_000, 1, 0), &Counters::default(), &Stop::default(), &budget);
    assert_eq!(outcome.udp.sent_packets, 100, "{outcome:?}");
    assert!(outcome.refusals > 0 && outcome.error.is_none(), "{outcome:?}");
}

#[test]
fn an_unfragmentable_oversized_payload_ends_with_advice() {
    let (sender, receiver) = pair("127.0.0.1").expect("loopback exists");
    connect(&sender, &receiver);
    landspeed_sys::udp::set_mtu_discovery(sender.as_fd(), landspeed_sys::udp::MtuDiscovery::DontFragment).unwrap();
    // 65,507 bytes make a 65,535-byte packet, and loopback's MTU is 65,536 unless it was lowered.
    let plan = SendPlan { pacing: None, gso: false, ..paced(65_507, 1, 1, 0) };
    let budget = Budget::new(Some(65_507));
    let outcome = send_stream(sender.as_fd(), &plan, &Counters::default(), &Stop::default(), &budget);
    match outcome.error {
        None => assert_eq!(outcome.udp.sent_packets, 1),
        Some(error) => assert!(error.to_string().contains("do not fit the path MTU"), "{error}"),
    }
}
