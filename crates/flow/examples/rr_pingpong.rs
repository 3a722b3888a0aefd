//! Request/response between two processes, for comparison with `sockperf server` and `sockperf ping-pong`.
//!
//! `rr_pingpong serve tcp|udp ADDR:PORT BYTES` serves one client after another.
//! `rr_pingpong tcp|udp ADDR:PORT BYTES SECONDS [RATE]` prints transactions per second and round-trip times in
//! nanoseconds: rate, mean, p50, p99, max. With RATE (open loop) it also prints how late requests were sent
//! (p50, p99).

use std::env;
use std::net::{TcpListener, TcpStream, UdpSocket};

use landspeed_flow::rr::{Load, RrOutcome, RrPlan, merge, request_tcp, request_udp, respond_tcp, respond_udp};
use landspeed_flow::shared::{Counters, Stop};
use landspeed_model::RrSize;
use landspeed_sys::clock::monotonic_ns;

const SECOND_NS: u64 = 1_000_000_000;

fn main() -> std::io::Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["serve", transport, address, bytes] => serve(transport, address, bytes),
        [transport, address, bytes, seconds] => request(transport, address, bytes, seconds, None),
        [transport, address, bytes, seconds, rate] => request(transport, address, bytes, seconds, Some(rate)),
        _ => panic!("usage: rr_pingpong [serve] tcp|udp ADDR:PORT BYTES [SECONDS [RATE]]"),
    }
}

fn size(bytes: &str) -> RrSize {
    let bytes = bytes.parse().expect("a number of bytes");
    RrSize { request_bytes: bytes, response_bytes: bytes }
}

fn serve(transport: &str, address: &str, bytes: &str) -> std::io::Result<()> {
    let (counters, stop) = (Counters::default(), Stop::default());
    let plan =
        |seconds| RrPlan::new(size(bytes), Load::ClosedLoop, 0, monotonic_ns().saturating_add(seconds * SECOND_NS));
    if transport == "tcp" {
        let listener = TcpListener::bind(address)?;
        loop {
            respond_tcp(listener.accept()?.0, &plan(3600), &counters, &stop);
        }
    }
    let socket = UdpSocket::bind(address)?;
    let (_, peer) = socket.peek_from(&mut [0; 1])?;
    socket.connect(peer)?;
    respond_udp(socket, &plan(3600), &counters, &stop);
    Ok(())
}

fn request(transport: &str, address: &str, bytes: &str, seconds: &str, rate: Option<&str>) -> std::io::Result<()> {
    let load = match rate {
        None => Load::ClosedLoop,
        Some(rate) => Load::OpenLoop { rate_per_s: rate.parse().expect("requests per second") },
    };
    let seconds: u64 = seconds.parse().expect("whole seconds");
    let now_ns = monotonic_ns();
    let mut plan = RrPlan::new(size(bytes), load, now_ns, now_ns + (seconds * SECOND_NS + SECOND_NS / 2));
    // sockperf has a warm-up of 400 ms.
    plan.measure_from_ns += SECOND_NS / 2;
    let (counters, stop) = (Counters::default(), Stop::default());
    let outcome = if transport == "tcp" {
        request_tcp(TcpStream::connect(address)?, &plan, &counters, &stop)
    } else {
        let socket = UdpSocket::bind(if address.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" })?;
        socket.connect(address)?;
        request_udp(socket, &plan, &counters, &stop)
    };
    print(&outcome, &plan);
    Ok(())
}

fn print(outcome: &RrOutcome, plan: &RrPlan) {
    let result = merge([outcome], plan);
    print!(
        "{:.0} {:.0} {} {} {}",
        result.achieved_per_s,
        result.mean_ns.unwrap_or(f64::NAN),
        result.p50_ns.unwrap_or(0),
        result.p99_ns.unwrap_or(0),
        result.max_ns.unwrap_or(0)
    );
    if let (Some(p50), Some(p99)) = (outcome.send_late.p50(), outcome.send_late.p99()) {
        print!(" {p50} {p99}");
    }
    println!();
    if let Some(error) = &outcome.error {
        eprintln!("{error}");
    }
    if outcome.total().unanswered > 0 {
        eprintln!("{:?}", outcome.total());
    }
}
