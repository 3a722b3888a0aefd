//! Flows that the watch did not start and was told nothing of: the injected fault is named.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use landspeed_diagnose::diagnose_watched;
use landspeed_model::{Cause, Confidence, EpochState, WatchFlow, WatchRole};
use landspeed_netlink::sock_diag::SocketFilter;
use landspeed_sys::clock;
use landspeed_testkit::netns::{Namespace, veth};
use landspeed_testkit::or_skip;
use landspeed_testkit::wire::{LEFT, Leg, RIGHT, Wire};
use landspeed_watch::{Limits, Options, Scope, Watch};

const PORT: u16 = 5999;

/// What an application does with its socket: so many bytes, then a pause.
#[derive(Clone, Copy)]
struct Habit {
    bytes: usize,
    pause: Duration,
}

impl Habit {
    const GREEDY: Self = Self { bytes: 1 << 20, pause: Duration::ZERO };

    const fn slow(bytes: usize) -> Self {
        Self { bytes, pause: Duration::from_millis(50) }
    }
}

/// A path of 10 ms and 200 Mb/s between two namespaces (for a slow reader a virtual Ethernet), and one transfer from left to right until it is dropped.
struct Transfer {
    left: Namespace,
    right: Namespace,
    streams: Vec<TcpStream>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    _wire: Option<Wire>,
}

impl Transfer {
    /// `rcvbuf` bounds the receive buffer of the right end, bytes.
    fn start(writes: Habit, reads: Habit, rcvbuf: Option<u32>) -> Result<Self, String> {
        let (left, right) = (Namespace::new("left")?, Namespace::new("right")?);
        // A TUN interface does not aggregate: its packets fill a receive buffer with little payload.
        let wire = if reads.pause.is_zero() {
            let leg = Leg { delay_ns: 5_000_000, rate_bps: Some(200e6), queue_bytes: 1 << 20, ..Leg::default() };
            Some(Wire::between(&left, &right, [leg, leg], 7)?)
        } else {
            veth(&left, &right, &format!("{LEFT}/24"), &format!("{RIGHT}/24"));
            None
        };
        if let Some(bytes) = rcvbuf {
            right.sysctl("net.ipv4.tcp_rmem", &format!("4096 {bytes} {bytes}"));
        }
        let listener = right.run(|| TcpListener::bind((RIGHT, PORT))).map_err(|why| why.to_string())?;
        let near = left.run(|| TcpStream::connect((RIGHT, PORT))).map_err(|why| why.to_string())?;
        let (far, _) = listener.accept().map_err(|why| why.to_string())?;
        let streams = vec![near.try_clone().expect("a copy"), far.try_clone().expect("a copy")];
        let stop = Arc::new(AtomicBool::new(false));
        let threads = vec![apply(near, writes, &stop, true), apply(far, reads, &stop, false)];
        Ok(Self { left, right, streams, stop, threads, _wire: wire })
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for stream in &self.streams {
            let _ = stream.shutdown(Shutdown::Both);
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Writes or reads by habit until the connection ends.
fn apply(mut stream: TcpStream, habit: Habit, stop: &Arc<AtomicBool>, writes: bool) -> JoinHandle<()> {
    let stop = Arc::clone(stop);
    let work = move || {
        let mut buffer = vec![7; habit.bytes];
        while !stop.load(Ordering::Relaxed) {
            let moved = if writes { stream.write_all(&buffer).map(|()| 1) } else { stream.read(&mut buffer) };
            match moved {
                Ok(0) => break,
                Err(why) if why.kind() != ErrorKind::Interrupted => break,
                _ => clock::sleep_until(clock::monotonic_ns() + habit.pause.as_nanos() as u64),
            }
        }
    };
    std::thread::Builder::new().name("application".into()).spawn(work).expect("a thread")
}

fn options(filter: SocketFilter) -> Options {
    Options {
        limits: Limits::default(),
        filter,
        pid: None,
        cgroup: None,
        interval_ns: 1_000_000_000,
        duration_ns: Some(5_000_000_000),
    }
}

/// Watches from a namespace for five seconds and returns the one flow that moved data, with what every flow must hold checked.
fn the_flow(namespace: &Namespace) -> WatchFlow {
    let document = namespace.run(|| {
        let mut watch = Watch::open(options(SocketFilter::default())).expect("sock_diag");
        let mut intervals = 0;
        watch.run(&AtomicBool::new(false), &mut |_| intervals += 1).expect("sock_diag");
        assert!(intervals >= 2, "{intervals}");
        watch.document(&diagnose_watched, Scope::All)
    });
    assert_eq!(document.flows.len(), 1, "{document:#?}");
    let share = document.overhead.cpu_share;
    assert!(share > 0.0 && share < 0.5 && document.overhead.readings > 20, "{:?}", document.overhead);
    let flow = document.flows.into_iter().next().expect("one flow");
    println!("{}\n{:?}\n{}", flow.summary, flow.shares, flow.next_step);
    assert_eq!(flow.shares.iter().map(|epoch| epoch.share_permille).sum::<u32>(), 1000);
    assert_eq!(flow.pid, Some(std::process::id()), "{:?}", flow.process_unknown);
    assert!(flow.confidence < Confidence::High, "one end is never sure");
    assert!(flow.evidence.iter().all(|reading| reading.met));
    flow
}

#[test]
fn an_application_that_writes_slowly_is_named_at_the_sender() {
    let transfer = or_skip!(Transfer::start(Habit::slow(20_000), Habit::GREEDY, None));
    let flow = the_flow(&transfer.left);
    assert_eq!((flow.cause, flow.role), (Cause::Application, WatchRole::Sender), "{flow:#?}");
    assert_eq!(flow.remote, format!("{RIGHT}:{PORT}"));
    assert!(flow.goodput_bps < 4e6, "20 kB every 50 ms are 3.2 Mb/s at most: {}", flow.goodput_bps);
    // The receiver cannot know: its application reads all there is.
    let flow = the_flow(&transfer.right);
    assert_eq!((flow.cause, flow.role), (Cause::Undetermined, WatchRole::Receiver), "{flow:#?}");
    assert!(flow.next_step.contains("reads as fast as data arrives"), "{}", flow.next_step);
}

#[test]
fn an_application_that_reads_slowly_is_named_at_the_receiver() {
    let transfer = or_skip!(Transfer::start(Habit::GREEDY, Habit::slow(50_000), None));
    let flow = the_flow(&transfer.right);
    assert_eq!((flow.cause, flow.confidence), (Cause::SlowReader, Confidence::Medium), "{flow:#?}");
    // The sender sees the window only, and says so.
    let flow = the_flow(&transfer.left);
    assert!(matches!(flow.cause, Cause::ReceiverWindow | Cause::SlowReader), "{flow:#?}");
    assert_eq!(flow.confidence, Confidence::Low, "{flow:#?}");
    assert!(flow.missing.iter().any(|what| what.contains("receive queue")), "{:?}", flow.missing);
}

#[test]
fn a_small_receive_buffer_is_named_at_the_sender() {
    let transfer = or_skip!(Transfer::start(Habit::GREEDY, Habit::GREEDY, Some(32_768)));
    let flow = the_flow(&transfer.left);
    assert_eq!(flow.cause, Cause::ReceiverWindow, "{flow:#?}");
    assert_eq!(flow.shares[0].state, EpochState::ReceiveWindowLimited, "{flow:#?}");
}
