//! Requesters and responders over loopback.

mod tcp;
mod udp;

use std::net::{TcpListener, TcpStream, UdpSocket};
use std::thread::{self, JoinHandle};

use landspeed_model::RrSize;
use landspeed_sys::clock::{monotonic_ns, sleep_until};

use super::{Load, ResponderOutcome, RrOutcome, RrPlan, respond_tcp, respond_udp};
use crate::shared::{Counters, Stop};

const MS: u64 = 1_000_000;

/// Returns a plan that starts now and lasts `ms` milliseconds.
fn plan(request_bytes: u32, response_bytes: u32, load: Load, ms: u64) -> RrPlan {
    let now_ns = monotonic_ns();
    RrPlan {
        grace_ns: 1000 * MS,
        ..RrPlan::new(RrSize { request_bytes, response_bytes }, load, now_ns, now_ns + ms * MS)
    }
}

fn open(rate_per_s: f64) -> Load {
    Load::OpenLoop { rate_per_s }
}

/// Blocks the calling thread, like a stalled peer.
fn pause(ms: u64) {
    sleep_until(monotonic_ns() + ms * MS);
}

fn tcp_pair(host: &str) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((host, 0)).unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (near, listener.accept().unwrap().0)
}

fn udp_pair(host: &str) -> (UdpSocket, UdpSocket) {
    let (a, b) = (UdpSocket::bind((host, 0)).unwrap(), UdpSocket::bind((host, 0)).unwrap());
    a.connect(b.local_addr().unwrap()).unwrap();
    b.connect(a.local_addr().unwrap()).unwrap();
    (a, b)
}

fn tcp_responder(stream: TcpStream, plan: &RrPlan) -> JoinHandle<ResponderOutcome> {
    let plan = plan.clone();
    thread::spawn(move || respond_tcp(stream, &plan, &Counters::default(), &Stop::default()))
}

/// Runs `request` against a UDP responder that is stopped afterwards.
fn with_udp_responder(
    socket: UdpSocket,
    plan: &RrPlan,
    request: impl FnOnce() -> RrOutcome,
) -> (RrOutcome, ResponderOutcome) {
    let stop = Stop::default();
    thread::scope(|scope| {
        let responder = scope.spawn(|| respond_udp(socket, plan, &Counters::default(), &stop));
        let outcome = request();
        stop.stop_receiving();
        (outcome, responder.join().unwrap())
    })
}

/// Asserts that the counts balance, in each phase and with the histogram.
fn assert_conserved(outcome: &RrOutcome) {
    let total = outcome.total();
    assert!(total.is_balanced(), "{total:?}");
    assert!(outcome.measured.tally.is_balanced() && outcome.omitted.is_balanced(), "{outcome:?}");
    assert_eq!(outcome.measured.histogram.count(), outcome.measured.tally.completed);
}

fn slower_than_100ms(outcome: &RrOutcome) -> u64 {
    outcome.measured.histogram.buckets().filter(|b| b.low_ns > 100 * MS).map(|b| b.count).sum()
}
