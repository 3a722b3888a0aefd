//! Tests that the server rolls back a client's changes to its host, however the session ends. The host exists
//! only in memory.
#![forbid(unsafe_code)]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use landspeed_flow::client::{RemoteChanges, Target};
use landspeed_flow::control::changes::{AppliedChange, ChangeRequest, MAX_CHANGES, PlannedChange};
use landspeed_flow::control::channel::{self, Key, Role};
use landspeed_flow::control::message::{MAX_MESSAGE, ToClient, ToServer};
use landspeed_flow::control::preface::{self, PREFACE_LEN, Purpose, Status};
use landspeed_flow::error::FlowError;
use landspeed_flow::server::{ChangeHook, HeldChanges, HostChanger, Limits, Server, ServerConfig, ServerEvent};
use landspeed_model::{Change, ErrorEntry, Family};
use landspeed_testkit::process::until;

static NEVER_STOP: AtomicBool = AtomicBool::new(false);
const LIMIT: Duration = Duration::from_mins(1);
const TIMEOUT: Duration = Duration::from_secs(20);

/// Changes applied to the host.
#[derive(Debug, Clone, Default)]
struct Host(Arc<Mutex<Vec<Change>>>);

impl Host {
    fn held(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

impl HostChanger for Host {
    fn begin(&self, limit: Duration) -> Result<Box<dyn HeldChanges>, ErrorEntry> {
        assert_eq!(limit, LIMIT);
        Ok(Box::new(self.clone()))
    }
}

/// The same host with a heartbeat timeout of one second.
#[derive(Debug, Clone, Default)]
struct ShortTimeoutHost(Host);

impl HostChanger for ShortTimeoutHost {
    fn begin(&self, limit: Duration) -> Result<Box<dyn HeldChanges>, ErrorEntry> {
        self.0.begin(limit)
    }

    fn silence_timeout(&self) -> Duration {
        Duration::from_secs(1)
    }
}

fn refused(message: &str) -> ErrorEntry {
    ErrorEntry { code: "refused".into(), message: message.into(), advice: None }
}

impl HeldChanges for Host {
    fn place(&self) -> String {
        "in memory\u{1b}[2J".into()
    }

    fn plan(&mut self, changes: &[Change]) -> Result<Vec<PlannedChange>, ErrorEntry> {
        let plan = |change: &Change| PlannedChange {
            change: change.clone(),
            before: Some("old".into()),
            refused: None,
            no_op: false,
            notes: Vec::new(),
        };
        Ok(changes.iter().map(plan).collect())
    }

    fn apply(&mut self, changes: &[Change]) -> Result<Vec<AppliedChange>, ErrorEntry> {
        if let Some(bad) = changes.iter().find(|change| change.desired == "junk") {
            return Err(refused(&format!("{} is refused", bad.target)));
        }
        if changes.iter().any(|change| change.desired == "slow") {
            std::thread::park_timeout(Duration::from_secs(1));
        }
        *self.0.lock().unwrap() = changes.to_vec();
        let apply = |change: &Change| AppliedChange {
            change: change.clone(),
            before: "old".into(),
            after: change.desired.clone(),
            rounded: false,
        };
        Ok(changes.iter().map(apply).collect())
    }

    fn roll_back(&mut self) -> Result<bool, ErrorEntry> {
        Ok(!std::mem::take(&mut *self.0.lock().unwrap()).is_empty())
    }
}

/// A server and its log; stopped when dropped.
struct TestServer {
    host: Host,
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    log: Arc<Mutex<Vec<String>>>,
    /// All other events.
    others: Arc<Mutex<Vec<ServerEvent>>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl TestServer {
    fn start(permitted: bool, key: Option<Key>) -> Self {
        let host = Host::default();
        let hook = permitted.then(|| ChangeHook(Arc::new(host.clone())));
        Self::serving(host, hook, key)
    }

    fn serving(host: Host, changes: Option<ChangeHook>, key: Option<Key>) -> Self {
        let config = ServerConfig {
            listen: vec!["127.0.0.1:0".parse().expect("an address")],
            limits: Limits::default(),
            allow: Vec::new(),
            key,
            data_from_anywhere: false,
            describe: false,
            tap: None,
            changes,
            third_party: None,
        };
        let log = Arc::<Mutex<Vec<String>>>::default();
        let others = Arc::<Mutex<Vec<ServerEvent>>>::default();
        let (lines, rest) = (Arc::clone(&log), Arc::clone(&others));
        let server = Server::bind(config, &[], move |event| match event {
            ServerEvent::HostChanged { what, .. } => lines.lock().unwrap().push(what),
            other => rest.lock().unwrap().push(other),
        });
        let server = server.expect("loopback");
        let (address, stop) = (server.addresses()[0], server.stop_flag());
        let thread = Some(std::thread::spawn(move || server.run().expect("it serves")));
        Self { host, address, stop, log, others, thread }
    }

    fn target(&self) -> Target {
        self.address.to_string().parse().expect("a target")
    }

    fn begin(&self) -> Result<RemoteChanges, FlowError> {
        RemoteChanges::begin(&self.target(), Family::Any, None, LIMIT, &NEVER_STOP)
    }

    /// Waits until all changes are rolled back, and returns the last line of the log.
    fn rolled_back(&self) -> String {
        until(30, "it is rolled back", || self.host.held() == 0 && self.last().starts_with("rolled back"));
        self.last()
    }

    fn last(&self) -> String {
        self.log.lock().unwrap().last().cloned().unwrap_or_default()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn change(value: &str) -> [Change; 1] {
    [Change::sysctl("net.ipv4.tcp_rmem", value)]
}

#[test]
fn a_session_plans_applies_and_rolls_back() {
    let server = TestServer::start(true, None);
    let mut session = server.begin().expect("it begins");
    assert_eq!(session.place(), "in memory\\u{1b}[2J", "a server's words are shown as text");
    let planned = session.plan(&change("1 2 3")).expect("a plan");
    assert_eq!((planned[0].before.as_deref(), server.host.held()), (Some("old"), 0));
    let applied = session.apply(&change("1 2 3")).expect("it applies");
    assert_eq!((applied[0].after.as_str(), server.host.held()), ("1 2 3", 1));
    assert_eq!(server.last(), "net.ipv4.tcp_rmem: old -> 1 2 3");
    let error = session.apply(&change("junk")).expect_err("refused");
    assert!(matches!(&error, FlowError::Refused { message, .. } if message.contains("net.ipv4.tcp_rmem")), "{error}");
    assert!(!session.is_lost(), "others may follow");
    assert_eq!(server.host.held(), 0, "after an error nothing is applied");
    session.apply(&change("4 5 6")).expect("it applies");
    session.roll_back().expect("it rolls back");
    assert_eq!(server.host.held(), 0);
    assert_eq!(server.last(), "rolled back: the client asked for it");
}

#[test]
fn each_rollback_is_logged() {
    let server = TestServer::start(true, None);
    let mut session = server.begin().expect("it begins");
    for value in ["1 2 3", "1 2 3", "4 5 6", "junk"] {
        let _ = session.apply(&change(value));
    }
    session.roll_back().expect("nothing to roll back");
    let replaced = "rolled back: the client asked for other changes";
    let log = server.log.lock().unwrap().clone();
    assert_eq!(log.iter().filter(|line| *line == replaced).count(), 2, "{log:?}");
    assert_eq!(log.last().map(String::as_str), Some("not changed: net.ipv4.tcp_rmem is refused"));
}

#[test]
fn a_flood_of_requests_is_refused_and_hardly_logged() {
    let server = TestServer::start(true, None);
    let mut session = server.begin().expect("it begins");
    let mut busy = 0;
    for _ in 0..2000 {
        let error = session.apply(&change("junk")).expect_err("refused");
        busy += u32::from(error.code() == "server-busy");
    }
    let lines = server.log.lock().unwrap().len();
    assert!((60..1000).contains(&lines) && busy > 1000, "{lines} lines, {busy} refused as too many");
    session.roll_back().expect("a rollback is never refused");
}

#[test]
fn a_flood_of_refused_connections_is_hardly_logged() {
    let server = TestServer::start(false, None);
    for _ in 0..2000 {
        let mut stream = TcpStream::connect(server.address).expect("it accepts");
        stream.write_all(&preface::encode(Purpose::Control { keyed: true })).expect("it reads");
        stream.read_exact(&mut [0; preface::ANSWER_LEN]).expect("an answer");
    }
    let others = Arc::clone(&server.others);
    drop(server);
    let others = others.lock().unwrap();
    let refused = others.iter().filter(|event| matches!(event, ServerEvent::Refused { .. })).count() as u64;
    let left_out = others.iter().filter_map(|event| match event {
        ServerEvent::LeftOut { events, host_changes: false, .. } => Some(*events),
        _ => None,
    });
    assert!((300..1000).contains(&refused), "{refused} lines");
    assert_eq!(refused + left_out.sum::<u64>(), 2000);
}

#[test]
fn changes_are_rolled_back_when_the_client_leaves() {
    let server = TestServer::start(true, None);
    let mut session = server.begin().expect("it begins");
    session.apply(&change("1 2 3")).expect("it applies");
    drop(session);
    assert_eq!(server.rolled_back(), "rolled back: the client ended its session");
}

#[test]
fn a_second_client_is_refused_until_the_first_leaves() {
    let server = TestServer::start(true, None);
    let mut first = server.begin().expect("it begins");
    first.apply(&change("1 2 3")).expect("it applies");
    let error = server.begin().map(|_| ()).expect_err("taken");
    assert_eq!(error.code(), "server-busy", "{error}");
    assert_eq!(server.host.held(), 1, "the first is not disturbed");
    drop(first);
    server.rolled_back();
    until(10, "the turn is free", || server.begin().is_ok());
}

#[test]
fn a_server_without_permission_refuses_with_advice() {
    let server = TestServer::start(false, None);
    let error = server.begin().map(|_| ()).expect_err("not permitted");
    assert_eq!(error.code(), "not-permitted");
    assert!(error.advice().is_some_and(|advice| advice.contains("--allow-host-changes")), "{error}");
}

#[test]
fn only_holders_of_the_key_change_the_host() {
    let key = Key::generate().expect("random bytes");
    let server = TestServer::start(true, Some(key.clone()));
    assert!(matches!(server.begin().map(|_| ()), Err(FlowError::KeyRequired)));
    let other = Key::generate().expect("random bytes");
    let begin = |key: &Key| RemoteChanges::begin(&server.target(), Family::Any, Some(key), LIMIT, &NEVER_STOP);
    assert!(matches!(begin(&other).map(|_| ()), Err(FlowError::WrongKey)));
    begin(&key).expect("it begins").apply(&change("1 2 3")).expect("it applies");
    server.rolled_back();
}

#[test]
fn a_stopping_server_rolls_back_and_logs_it() {
    let server = TestServer::start(true, None);
    let mut session = server.begin().expect("it begins");
    session.apply(&change("1 2 3")).expect("it applies");
    server.stop.store(true, Ordering::Relaxed);
    assert!(server.rolled_back().contains("the server stops"));
    let error = session.apply(&change("4 5 6")).expect_err("it has stopped");
    assert!(session.is_lost(), "{error}");
    assert!(session.roll_back().is_err());
}

#[test]
fn an_interrupted_request_does_not_affect_the_next() {
    static STOP: AtomicBool = AtomicBool::new(false);
    let server = TestServer::start(true, None);
    let mut session = RemoteChanges::begin(&server.target(), Family::Any, None, LIMIT, &STOP).expect("it begins");
    let soon = std::thread::spawn(|| {
        std::thread::park_timeout(Duration::from_millis(200));
        STOP.store(true, Ordering::Relaxed);
    });
    assert!(matches!(session.apply(&change("slow")), Err(FlowError::Interrupted)));
    soon.join().expect("it ends");
    session.roll_back().expect("an interrupt does not end it");
    assert_eq!(server.host.held(), 0);
}

/// Opens a control connection for arbitrary messages.
fn raw(server: SocketAddr) -> (channel::Sender, channel::Receiver) {
    let mut stream = TcpStream::connect(server).expect("it accepts");
    stream.write_all(&preface::encode(Purpose::Control { keyed: false })).expect("it reads");
    stream.read_exact(&mut [0; preface::ANSWER_LEN]).expect("an answer");
    channel::open(stream, Role::Client, None, MAX_MESSAGE, TIMEOUT, &NEVER_STOP).expect("without a key")
}

/// Begins a session as soon as the server is free: it may not have noticed yet that the one before has ended.
fn begin_raw(server: SocketAddr) -> (channel::Sender, channel::Receiver) {
    let mut session = None;
    until(10, "the server is free", || {
        let (mut tx, mut rx) = raw(server);
        let request = ChangeRequest::Begin { version: "0".into(), limit_s: LIMIT.as_secs() };
        tx.queue(&ToServer::Changes { n: 1, request }).expect("it sends");
        match rx.wait::<ToClient>("the answer", TIMEOUT, &NEVER_STOP) {
            Ok(ToClient::Changes { n: 1, .. }) => session = Some((tx, rx)),
            Ok(ToClient::Refused(entry)) if entry.code == "server-busy" => {}
            other => panic!("{other:?}"),
        }
        session.is_some()
    });
    let (mut tx, mut rx) = session.expect("a session");
    let request = ChangeRequest::Apply { changes: change("1 2 3").to_vec() };
    tx.queue(&ToServer::Changes { n: 2, request }).expect("it sends");
    let applied = rx.wait::<ToClient>("the answer", TIMEOUT, &NEVER_STOP).expect("it answers");
    assert!(matches!(applied, ToClient::Changes { n: 2, .. }), "{applied:?}");
    (tx, rx)
}

#[test]
fn changes_are_rolled_back_without_heartbeats() {
    let host = ShortTimeoutHost::default();
    assert_eq!(host.0.silence_timeout(), Duration::from_secs(15), "seven heartbeats");
    let server = TestServer::serving(host.0.clone(), Some(ChangeHook(Arc::new(host))), None);
    let (_tx, mut rx) = begin_raw(server.address);
    let word = rx.wait::<ToClient>("the last word", TIMEOUT, &NEVER_STOP).expect("it says why");
    assert!(matches!(&word, ToClient::Error(entry) if entry.code == "timeout"), "{word:?}");
    assert!(server.rolled_back().contains("heartbeat"));
}

#[test]
fn unexpected_messages_end_the_session() {
    let server = TestServer::start(true, None);
    for junk in [
        serde_json::json!({"type": "changes", "n": 3, "request": {"do": "apply", "changes": [{"target": {"reboot": {}}, "desired": "1"}]}}),
        serde_json::json!({"type": "changes", "n": 3, "request": {"do": "reboot"}}),
        serde_json::json!({"type": "stop"}),
    ] {
        let (mut tx, _rx) = begin_raw(server.address);
        tx.queue(&junk).expect("it sends");
        assert!(server.rolled_back().contains("message"), "{junk}");
        server.log.lock().unwrap().clear();
    }
    // Clients of earlier versions could ask that changes stay.
    let (mut tx, mut rx) = begin_raw(server.address);
    let keep = serde_json::json!({"type": "changes", "n": 3, "request": {"do": "keep"}});
    tx.queue(&keep).expect("it sends");
    let answer = rx.wait::<ToClient>("the answer", TIMEOUT, &NEVER_STOP).expect("it says why");
    assert!(matches!(&answer, ToClient::Error(entry) if entry.message.contains("`keep`")), "{answer:?}");
    server.rolled_back();
    // A rollback request without a session is an error.
    let (mut tx, mut rx) = raw(server.address);
    tx.queue(&ToServer::Changes { n: 1, request: ChangeRequest::RollBack }).expect("it sends");
    assert!(rx.wait::<ToClient>("nothing", TIMEOUT, &NEVER_STOP).is_err());
}

#[test]
fn too_many_changes_are_refused() {
    let server = TestServer::start(true, None);
    let mut session = server.begin().expect("it begins");
    let many = vec![change("1").to_vec(); MAX_CHANGES + 1].concat();
    let error = session.apply(&many).expect_err("too many").to_string();
    assert!(error.contains(&(MAX_CHANGES + 1).to_string()), "{error}");
    assert_eq!(server.host.held(), 0);
}

#[test]
fn an_older_server_is_reported_as_older() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let address = listener.local_addr().expect("bound");
    let (served, done) = mpsc::channel();
    std::thread::spawn(move || {
        // Like a server that does not know the first message: welcome, read, close.
        let (mut stream, _) = listener.accept().expect("a client");
        stream.read_exact(&mut [0; PREFACE_LEN]).expect("a preface");
        stream.write_all(&preface::encode_answer(Status::Welcome)).expect("it reads");
        let mut first = [0; 4];
        stream.read_exact(&mut first).expect("a message");
        stream.read_exact(&mut vec![0; u32::from_be_bytes(first) as usize]).expect("all of it");
        let _ = served.send(());
    });
    let target: Target = address.to_string().parse().expect("a target");
    let begun = RemoteChanges::begin(&target, Family::Any, None, LIMIT, &NEVER_STOP);
    done.recv_timeout(TIMEOUT).expect("it was asked");
    let error = begun.map(|_| ()).expect_err("it does not know the request");
    assert_eq!(error.code(), "unsupported");
    assert!(error.to_string().contains("older") && error.advice().is_some_and(|advice| advice.contains("update")));
}
