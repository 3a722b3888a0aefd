//! Peers that send a byte now and then, to find protocol states without a timeout.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use landspeed_sys::clock;

/// Maximum delay of a timeout on a busy machine, seconds.
pub const SLACK_S: f64 = 8.0;

/// A state of a peer: its name, its documented time limit in seconds, and a function that drips in it. The
/// function gets the longest time to drip, seconds, and returns how long the state lasted, seconds.
pub type State = (&'static str, f64, Box<dyn FnOnce(f64) -> f64 + Send>);

/// Sends `first` and then blanks, one byte per `every`, until the peer closes the connection or `most_s` seconds
/// have passed. Returns the elapsed seconds.
///
/// # Panics
/// If the stream does not accept timeouts.
pub fn drip(stream: &mut TcpStream, first: &[u8], every: Duration, most_s: f64) -> f64 {
    let begun_ns = clock::monotonic_ns();
    stream.set_write_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    stream.set_read_timeout(Some(Duration::from_millis(1))).expect("a timeout");
    let mut bytes = first.iter().copied().chain(std::iter::repeat(b' '));
    let mut unread = [0; 4096];
    loop {
        let byte = [bytes.next().unwrap_or_default()];
        let closed = stream.write_all(&byte).is_err() || matches!(stream.read(&mut unread), Ok(0));
        let lasted_s = (clock::monotonic_ns() - begun_ns) as f64 / 1e9;
        if closed || lasted_s > most_s {
            return lasted_s;
        }
        clock::sleep_until(clock::monotonic_ns() + every.as_nanos() as u64);
    }
}

/// Drips in all states concurrently, and checks their time limits.
///
/// # Panics
/// If a state lasts longer than documented, or a connection panics.
pub fn assert_time_limits(states: Vec<State>) {
    let held: Vec<_> = std::thread::scope(|scope| {
        let drips: Vec<_> = states
            .into_iter()
            .map(|(name, limit_s, hold)| (name, limit_s, scope.spawn(move || hold(limit_s + SLACK_S))))
            .collect();
        drips.into_iter().map(|(name, limit_s, thread)| (name, limit_s, thread.join().expect("no panic"))).collect()
    });
    for (name, limit_s, held_s) in held {
        assert!(held_s < limit_s + SLACK_S, "{name}: held for {held_s:.1} s; documented: {limit_s} s");
    }
}
