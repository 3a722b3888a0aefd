//! Attack generators: threads that open, hold or repeat at a bounded rate until they are stopped.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use landspeed_stats::SplitMix64;
use serde::Serialize;

use super::connect::Action;
use super::hold::HeldTest;
use crate::machine::now;

/// Action, maximum rate and source addresses of an attack.
#[derive(Debug, Clone, Copy)]
pub enum Work {
    /// Holds connections open.
    Hold {
        /// Maximum concurrent connections.
        most: usize,
        /// Maximum connections opened per second.
        per_s: u32,
        /// Threads that open connections.
        openers: u32,
        /// Source addresses.
        source: Source,
        /// Behaviour when all are open.
        when_full: WhenFull,
        /// Opens one connection.
        open: fn(&Action) -> io::Result<HeldTest>,
    },
    /// Repeats an action.
    Repeat {
        /// Maximum actions per second.
        per_s: u32,
        /// Number of threads.
        workers: u32,
        /// Source addresses.
        source: Source,
        /// The action.
        act: fn(&Action) -> io::Result<()>,
    },
    /// Sends UDP datagrams.
    Datagrams {
        /// Datagrams per second.
        per_s: u32,
        /// Fills the next datagram.
        fill: fn(&mut SplitMix64, &mut Vec<u8>),
    },
}

/// Source addresses of an attack. The honest client uses 127.0.0.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// 127.0.0.66 only.
    One,
    /// A million addresses of 127.64.0.0/10 in turn.
    Many,
}

impl Source {
    fn address(self, number: u64) -> Ipv4Addr {
        match self {
            Self::One => Ipv4Addr::new(127, 0, 0, 66),
            Self::Many => {
                let host = number % (1 << 20);
                Ipv4Addr::from(0x7f40_0000 + host as u32 + 1)
            }
        }
    }
}

/// Behaviour of a holder that has all its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenFull {
    /// Opens a connection only to replace one that the server closed.
    Wait,
    /// Closes the oldest connection and opens a new one.
    Replace,
}

/// Counts of an attack so far.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Tally {
    /// Successful connections or actions, or datagrams sent.
    pub done: u64,
    /// Attempts that the server refused, closed or did not answer in time.
    pub failed: u64,
    /// Maximum connections held at once.
    pub held_max: usize,
    /// Active time without pauses, seconds.
    pub seconds: f64,
    /// Error of the last failed action.
    pub last_error: Option<String>,
}

/// State shared by the threads of an attack.
#[derive(Debug, Default)]
struct Control {
    stop: AtomicBool,
    paused: AtomicBool,
    number: AtomicU64,
    done: AtomicU64,
    failed: AtomicU64,
    last_error: Mutex<Option<String>>,
    /// Connections being opened or held.
    open_connections: AtomicUsize,
    held: AtomicUsize,
    held_max: AtomicUsize,
}

/// A running attack; stopped when dropped.
#[derive(Debug)]
pub struct RunningAttack {
    control: Arc<Control>,
    threads: Vec<JoinHandle<()>>,
    most: Option<usize>,
    /// Time of the last resume (`None` while paused); `before` is the active time until then.
    resumed: Option<Instant>,
    before: Duration,
}

impl RunningAttack {
    /// Starts an attack on a server.
    pub fn start(work: Work, server: SocketAddr) -> io::Result<Self> {
        let control = Arc::new(Control::default());
        let mut running_attack = Self {
            control: Arc::clone(&control),
            threads: Vec::new(),
            most: None,
            resumed: Some(now()),
            before: Duration::ZERO,
        };
        match work {
            Work::Hold { most, per_s, openers, source, when_full, open } => {
                running_attack.most = Some(most);
                let (deliver, arrivals) = mpsc::channel();
                running_attack.spawn(move |control| keep(&control, &arrivals, most))?;
                for _ in 0..openers {
                    let deliver = deliver.clone();
                    running_attack.spawn(move |control| {
                        control.repeat(server, per_s, openers, source, |action| {
                            let is_room = control
                                .open_connections
                                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| (n < most).then_some(n + 1))
                                .is_ok();
                            if !is_room && when_full == WhenFull::Wait {
                                return None;
                            }
                            if !is_room {
                                control.open_connections.fetch_add(1, Ordering::Relaxed);
                            }
                            let opened = open(action).and_then(HeldTest::into_nonblocking);
                            if opened.is_err() {
                                control.open_connections.fetch_sub(1, Ordering::Relaxed);
                            }
                            // The keeper thread outlives the openers, so this cannot fail.
                            Some(opened.map(|held| drop(deliver.send(held))))
                        });
                    })?;
                }
            }
            Work::Repeat { per_s, workers, source, act } => {
                for _ in 0..workers {
                    running_attack.spawn(move |control| {
                        control.repeat(server, per_s, workers, source, |action| Some(act(action)));
                    })?;
                }
            }
            Work::Datagrams { per_s, fill } => {
                // Eight flows: a single one would be easy to identify.
                let sockets = (0..8)
                    .map(|flow| UdpSocket::bind((Ipv4Addr::new(127, 0, 0, 66 + flow), 0)))
                    .collect::<io::Result<Vec<_>>>()?;
                running_attack.spawn(move |control| send_datagrams(&control, &sockets, server, per_s, fill))?;
            }
        }
        Ok(running_attack)
    }

    fn spawn(&mut self, work: impl FnOnce(Arc<Control>) + Send + 'static) -> io::Result<()> {
        let control = Arc::clone(&self.control);
        self.threads.push(std::thread::Builder::new().name("attacker".to_owned()).spawn(move || work(control))?);
        Ok(())
    }

    /// Waits, at most `limit`, until a holder has all its connections, or has gained none for 2 s.
    pub fn warm_up(&self, limit: Duration) {
        const STALLED: Duration = Duration::from_secs(2);
        let Some(most) = self.most else { return };
        let deadline = now() + limit;
        let (mut best, mut grew) = (0, now());
        while best < most && now() < deadline.min(grew + STALLED) {
            let held = self.control.held.load(Ordering::Relaxed);
            if held > best {
                (best, grew) = (held, now());
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    /// Stops opening and sending until [`RunningAttack::resume`]; held connections stay open and keep dripping.
    pub fn pause(&mut self) {
        self.control.paused.store(true, Ordering::Relaxed);
        if let Some(resumed) = self.resumed.take() {
            self.before += now() - resumed;
        }
    }

    /// Continues after [`RunningAttack::pause`].
    pub fn resume(&mut self) {
        self.control.paused.store(false, Ordering::Relaxed);
        self.resumed.get_or_insert_with(now);
    }

    /// Returns the counts so far.
    pub fn tally(&self) -> Tally {
        let Control { done, failed, held_max, last_error, .. } = &*self.control;
        Tally {
            done: done.load(Ordering::Relaxed),
            failed: failed.load(Ordering::Relaxed),
            held_max: held_max.load(Ordering::Relaxed),
            seconds: (self.before + self.resumed.map_or(Duration::ZERO, |resumed| now() - resumed)).as_secs_f64(),
            last_error: last_error.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

impl Drop for RunningAttack {
    fn drop(&mut self) {
        self.control.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            // A generator that panicked has already printed its message.
            let _ = thread.join();
        }
    }
}

impl Control {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn fail(&self, error: &io::Error) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
    }

    fn paused(&self) -> bool {
        self.paused.load(Ordering::Relaxed)
    }

    /// Acts `per_s / workers` times per second until stopped. `None` from `act` means there was nothing to do.
    fn repeat(
        &self,
        server: SocketAddr,
        per_s: u32,
        workers: u32,
        source: Source,
        mut act: impl FnMut(&Action) -> Option<io::Result<()>>,
    ) {
        let interval = Duration::from_secs(1) * workers / per_s;
        let mut due = now();
        while !self.stopped() {
            let before = now();
            if self.paused() || before < due {
                let wait = due.saturating_duration_since(before).max(Duration::from_millis(1));
                std::thread::park_timeout(wait.min(Duration::from_millis(20)));
                continue;
            }
            let number = self.number.fetch_add(1, Ordering::Relaxed);
            match act(&Action { server, source: source.address(number), number }) {
                None => {}
                Some(Ok(())) => drop(self.done.fetch_add(1, Ordering::Relaxed)),
                Some(Err(error)) => self.fail(&error),
            }
            // Do not catch up in a burst on actions missed while the server delayed one.
            due = (due + interval).max(now().checked_sub(interval).unwrap_or(due));
        }
    }
}

/// Holds the opened connections until stopped: sends on them, and drops those that the server closed and the
/// oldest beyond `most`.
fn keep(control: &Control, arrivals: &mpsc::Receiver<HeldTest>, most: usize) {
    const POLL_INTERVAL: Duration = Duration::from_millis(250);
    let mut held: VecDeque<HeldTest> = VecDeque::new();
    let mut next_poll = now();
    while !control.stopped() {
        held.extend(arrivals.try_iter());
        control.held_max.fetch_max(held.len(), Ordering::Relaxed);
        let now = now();
        let before = held.len();
        let surplus = before.saturating_sub(most);
        held.drain(..surplus);
        held.retain_mut(|held| held.send_if_due(now));
        if now >= next_poll {
            next_poll = now + POLL_INTERVAL;
            held.retain_mut(HeldTest::is_open);
        }
        control.open_connections.fetch_sub(before - held.len(), Ordering::Relaxed);
        control.held.store(held.len(), Ordering::Relaxed);
        let tick = if held.iter().any(HeldTest::has_script) { 10 } else { 50 };
        std::thread::park_timeout(Duration::from_millis(tick));
    }
}

fn send_datagrams(
    control: &Control,
    sockets: &[UdpSocket],
    server: SocketAddr,
    per_s: u32,
    fill: fn(&mut SplitMix64, &mut Vec<u8>),
) {
    const TICK: Duration = Duration::from_millis(2);
    let batch = (per_s / 500).max(1);
    let (mut random, mut bytes) = (SplitMix64::new(5), Vec::new());
    let mut due = now();
    while !control.stopped() {
        let before = now();
        if control.paused() || before < due {
            std::thread::park_timeout(due.saturating_duration_since(before).max(Duration::from_millis(1)));
            continue;
        }
        let first = control.number.fetch_add(u64::from(batch), Ordering::Relaxed);
        for number in first..first + u64::from(batch) {
            fill(&mut random, &mut bytes);
            // An earlier datagram may have been answered with ICMP port unreachable.
            let sent = sockets[number as usize % sockets.len()].send_to(&bytes, server);
            match sent {
                Ok(_) => drop(control.done.fetch_add(1, Ordering::Relaxed)),
                Err(error) => control.fail(&error),
            }
        }
        due = (due + TICK).max(now().checked_sub(10 * TICK).unwrap_or(due));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    fn until(what: &str, mut reached: impl FnMut() -> bool) {
        let deadline = now() + LIMIT;
        while !reached() {
            assert!(now() < deadline, "{what} not within {LIMIT:?}");
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    fn listener() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    fn holding(most: usize, when_full: WhenFull, source: Source) -> Work {
        let open = |action: &Action| action.connect().map(HeldTest::silent);
        Work::Hold { most, per_s: 500, openers: 2, source, when_full, open }
    }

    #[test]
    fn a_holder_reopens_closed_connections() {
        let (listener, server) = listener();
        let attack = RunningAttack::start(holding(5, WhenFull::Wait, Source::One), server).unwrap();
        attack.warm_up(LIMIT);
        assert_eq!(attack.tally().held_max, 5);
        // Closes the first connection.
        let (first, peer) = listener.accept().unwrap();
        assert_eq!(peer.ip(), Ipv4Addr::new(127, 0, 0, 66));
        drop(first);
        until("a sixth connection", || attack.tally().done == 6);
        assert_eq!(attack.tally().held_max, 5);
    }

    #[test]
    fn turnover_uses_many_addresses_and_continues_when_full() {
        let (listener, server) = listener();
        let attack = RunningAttack::start(holding(3, WhenFull::Replace, Source::Many), server).unwrap();
        let peers: std::collections::HashSet<_> = (0..20).map(|_| listener.accept().unwrap().1.ip()).collect();
        assert_eq!(peers.len(), 20);
        drop(attack);
    }

    #[test]
    fn a_paused_attack_is_idle() {
        let (_listener, server) = listener();
        let act = |action: &Action| action.connect().map(drop);
        let work = Work::Repeat { per_s: 50, workers: 2, source: Source::Many, act };
        let mut attack = RunningAttack::start(work, server).unwrap();
        until("an act", || attack.tally().done > 0);
        attack.pause();
        // Actions in progress at the pause finish within one action each.
        let mut last = attack.tally();
        until("a standstill", || {
            std::thread::park_timeout(Duration::from_millis(100));
            let before = std::mem::replace(&mut last, attack.tally());
            before.done == last.done
        });
        assert!((attack.tally().seconds - last.seconds).abs() < 1e-9);
        attack.resume();
        until("another act", || attack.tally().done > last.done);
    }

    #[test]
    fn an_attack_keeps_below_its_rate() {
        let (_listener, server) = listener();
        let act = |action: &Action| action.connect().map(drop);
        let work = Work::Repeat { per_s: 40, workers: 4, source: Source::One, act };
        let attack = RunningAttack::start(work, server).unwrap();
        until("twenty acts", || attack.tally().done >= 20);
        let Tally { done, seconds, .. } = attack.tally();
        // Each worker starts with one action, and may be one behind.
        assert!(done as f64 <= 40.0 * seconds + 9.0, "{done} in {seconds} s");
    }

    #[test]
    fn a_dripping_connection_sends_its_script() {
        use super::super::hold::SendScript;
        let (listener, server) = listener();
        let open = |action: &Action| {
            let send_script = SendScript::drip(Duration::from_millis(1), b"LNDSPEED".to_vec());
            Ok(HeldTest::with_script(vec![action.connect()?], send_script))
        };
        let work =
            Work::Hold { most: 1, per_s: 10, openers: 1, source: Source::One, when_full: WhenFull::Wait, open };
        let attack = RunningAttack::start(work, server).unwrap();
        let mut heard = [0; 10];
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"LNDSPEED  ");
        drop(attack);
    }

    #[test]
    fn datagrams_reach_the_port_and_stop_with_the_attack() {
        let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        server.set_read_timeout(Some(LIMIT)).unwrap();
        let fill = |_: &mut SplitMix64, bytes: &mut Vec<u8>| *bytes = b"junk".to_vec();
        let attack =
            RunningAttack::start(Work::Datagrams { per_s: 1000, fill }, server.local_addr().unwrap()).unwrap();
        let mut buffer = [0; 16];
        for _ in 0..50 {
            assert_eq!(server.recv(&mut buffer).unwrap(), 4);
        }
        drop(attack);
        server.set_nonblocking(true).unwrap();
        until("an empty socket", || server.recv(&mut buffer).is_err());
    }
}
