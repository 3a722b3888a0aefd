//! Tests that the data loops do not allocate while running.
//!
//! A single test in its own process, because the allocator counts the whole process.

use std::alloc::System;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use landspeed_flow::shared::{Budget, Counters, Stop};
use landspeed_flow::tcp::{ReceivePlan, SendPlan, receive_stream, send_stream};
use landspeed_model::{ReceiveMode, SendMode};
use landspeed_sys::clock;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback listener");
    let near = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
    let (far, _) = listener.accept().expect("its other end");
    for end in [&near, &far] {
        end.set_read_timeout(Some(Duration::from_millis(20))).expect("a timeout");
        end.set_write_timeout(Some(Duration::from_millis(20))).expect("a timeout");
    }
    (near, far)
}

#[test]
fn running_tcp_loops_do_not_allocate() {
    let modes = [SendMode::Copy, SendMode::Sendfile, SendMode::Splice, SendMode::Zerocopy];
    for (mode, receive) in modes.into_iter().flat_map(|m| [(m, ReceiveMode::Copy), (m, ReceiveMode::Discard)]) {
        let (near, far) = pair();
        let (stop, budget) = (Stop::default(), Budget::new(None));
        let (sent, received) = (Counters::default(), Counters::default());
        let start_ns = clock::monotonic_ns();
        let send = SendPlan { mode, write_bytes: 64 * 1024, start_ns, rate_bytes_per_s: None, block_bytes: None };
        let take = ReceivePlan {
            mode: receive,
            read_bytes: 64 * 1024,
            rate_bytes_per_s: None,
            start_ns,
            stamps_reads: false,
        };
        std::thread::scope(|scope| {
            let sender = scope.spawn(|| {
                let outcome = send_stream(near.as_fd(), &send, &sent, &stop, &budget);
                near.shutdown(std::net::Shutdown::Write).expect("an open socket");
                outcome
            });
            let receiver = scope.spawn(|| receive_stream(far.as_fd(), &take, &received, &stop));
            wait_for(&received, 4 << 20);
            let region = Region::new(ALLOCATOR);
            wait_for(&received, received.bytes() + (32 << 20));
            let change = region.change();
            stop.stop_sending();
            let (sender, receiver) = (sender.join().expect("the sender"), receiver.join().expect("the receiver"));
            assert_eq!(sender.bytes, receiver.bytes, "{mode:?} {receive:?}");
            assert_eq!(change.allocations, 0, "{mode:?} {receive:?}: {change:?}");
        });
    }
}

fn wait_for(counters: &Counters, bytes: u64) {
    let deadline = clock::monotonic_ns() + 20_000_000_000;
    while counters.bytes() < bytes {
        assert!(clock::monotonic_ns() < deadline, "no progress");
        clock::sleep_until(clock::monotonic_ns() + 1_000_000);
    }
}
