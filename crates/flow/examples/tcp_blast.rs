//! scratch
use landspeed_flow::{shared::*, tcp::*};
use landspeed_sys::clock;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let w: usize = a[1].parse().unwrap();
    let r: usize = a[2].parse().unwrap();
    let mode = a.get(3).map(|s| s.as_str()).unwrap_or("copy");
    let disc = a.get(4).map(|s| s == "discard").unwrap_or(false);
    let buf: usize = a.get(5).map(|s| s.parse().unwrap()).unwrap_or(0);
    let pin = a.get(6).map(|s| s == "pin").unwrap_or(false);
    let l = TcpListener::bind("127.0.0.1:0").unwrap();
    if buf > 0 {
        socket2::SockRef::from(&l).set_recv_buffer_size(buf).unwrap();
    }
    let c = TcpStream::connect(l.local_addr().unwrap()).unwrap();
    let (s, _) = l.accept().unwrap();
    for x in [&c, &s] {
        x.set_write_timeout(Some(std::time::Duration::from_millis(20))).unwrap();
        x.set_read_timeout(Some(std::time::Duration::from_millis(20))).unwrap();
    }
    if buf > 0 {
        socket2::SockRef::from(&c).set_send_buffer_size(buf).unwrap();
    }
    let mode = match mode {
        "copy" => landspeed_model::SendMode::Copy,
        "sendfile" => landspeed_model::SendMode::Sendfile,
        "splice" => landspeed_model::SendMode::Splice,
        _ => landspeed_model::SendMode::Zerocopy,
    };
    let st = Arc::new(Stop::default());
    let st2 = st.clone();
    let rx = Arc::new(Counters::default());
    let rx2 = rx.clone();
    let t0 = clock::monotonic_ns();
    let h = std::thread::spawn(move || {
        if pin {
            landspeed_sys::thread::pin_to_core(1).unwrap();
        }
        receive_stream(
            s.as_fd(),
            &ReceivePlan {
                mode: if disc { landspeed_model::ReceiveMode::Discard } else { landspeed_model::ReceiveMode::Copy },
                read_bytes: r,
                rate_bytes_per_s: None,
                start_ns: t0,
            },
            &rx2,
            &st2,
        )
    });
    let st3 = st.clone();
    let h2 = std::thread::spawn(move || {
        if pin {
            landspeed_sys::thread::pin_to_core(0).unwrap();
        }
        let b = Budget::new(None);
        let k = Counters::default();
        let o = send_stream(
            c.as_fd(),
            &SendPlan { mode, write_bytes: w, start_ns: t0, rate_bytes_per_s: None },
            &k,
            &st3,
            &b,
        );
        c.shutdown(std::net::Shutdown::Write).unwrap();
        o
    });
    let secs = 2u64;
    clock::sleep_until(t0 + secs * 1_000_000_000);
    st.stop_sending();
    let b = rx.bytes();
    let dt = clock::monotonic_ns() - t0;
    let o = h2.join().unwrap();
    let q = h.join().unwrap();
    assert_eq!(o.bytes, q.bytes);
    println!(
        "w={w} r={r} {:?} disc={disc} buf={buf} pin={pin} {:.1} Gb/s rcalls={} scalls={} zc={:?}",
        mode,
        b as f64 * 8.0 / dt as f64,
        q.syscalls,
        o.syscalls,
        o.zerocopy
    );
}
