//! A client and a server for tests, which may violate the protocol.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use landspeed_flow::control::channel::{self, Key, Receiver, Role, Sender};
use landspeed_flow::control::message::{Accepted, MAX_MESSAGE, ToClient, ToServer};
use landspeed_flow::control::preface::{self, ANSWER_LEN, PREFACE_LEN, Purpose, Status, Token};
use landspeed_model::Parameters;
use socket2::{Domain, Socket, Type};

pub const IO_TIMEOUT: Duration = Duration::from_secs(20);
pub static NOT_INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Connects with timeouts of [`IO_TIMEOUT`].
pub fn connect(server: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&server, IO_TIMEOUT).expect("the server accepts");
    stream.set_read_timeout(Some(IO_TIMEOUT)).unwrap();
    stream.set_write_timeout(Some(IO_TIMEOUT)).unwrap();
    stream
}

/// Connects from another loopback address.
pub fn connect_from(from: IpAddr, server: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::for_address(server), Type::STREAM, None).expect("a socket");
    socket.bind(&SocketAddr::new(from, 0).into()).expect("loopback has it");
    socket.connect_timeout(&server.into(), IO_TIMEOUT).expect("the server accepts");
    let stream: TcpStream = socket.into();
    stream.set_read_timeout(Some(IO_TIMEOUT)).unwrap();
    stream.set_write_timeout(Some(IO_TIMEOUT)).unwrap();
    stream
}

/// Connects, sends a preface and returns the answer.
pub fn run_handshake(server: SocketAddr, purpose: Purpose) -> (TcpStream, Option<Status>) {
    introduce_on(connect(server), purpose)
}

/// As [`run_handshake`], on an existing connection.
pub fn introduce_on(mut stream: TcpStream, purpose: Purpose) -> (TcpStream, Option<Status>) {
    stream.write_all(&preface::encode(purpose)).unwrap();
    let mut answer = [0; ANSWER_LEN];
    let status = stream.read_exact(&mut answer).ok().and_then(|()| preface::decode_answer(&answer)).map(|(_, s)| s);
    (stream, status)
}

/// Opens a control connection and completes its preface.
pub fn control(server: SocketAddr) -> TcpStream {
    let (stream, status) = run_handshake(server, Purpose::Control { keyed: false });
    assert_eq!(status, Some(Status::Welcome));
    stream
}

/// Prepends the length of a message.
pub fn frame(text: &[u8]) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes(), text].concat()
}

/// Whether the server closes the connection, possibly after sending data.
pub fn is_closed(mut stream: TcpStream) -> bool {
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

/// A client whose test was accepted.
pub struct Client {
    pub tx: Sender,
    pub rx: Receiver,
    pub accepted: Accepted,
    pub token: Token,
    pub server: SocketAddr,
}

/// A client's first message.
pub fn hello(parameters: Parameters) -> ToServer {
    ToServer::Hello { version: "0".into(), parameters: Box::new(parameters), queue: false, deflate: false }
}

/// Requests a test; the error is the server's refusal.
pub fn ask(server: SocketAddr, parameters: Parameters) -> Result<Client, String> {
    ask_with(server, parameters, None)
}

/// As [`ask`], for a server with a key.
pub fn ask_with(server: SocketAddr, parameters: Parameters, key: Option<&Key>) -> Result<Client, String> {
    let (stream, status) = run_handshake(server, Purpose::Control { keyed: key.is_some() });
    assert_eq!(status, Some(Status::Welcome));
    let (mut tx, mut rx) =
        channel::open(stream, Role::Client, key, MAX_MESSAGE, IO_TIMEOUT, &NOT_INTERRUPTED).unwrap();
    tx.queue(&hello(parameters)).unwrap();
    match receive_message(&mut rx)? {
        ToClient::Accepted(accepted) => {
            let token = Token::from_hex(&accepted.token).expect("a token");
            Ok(Client { tx, rx, accepted: *accepted, token, server })
        }
        ToClient::Refused(entry) | ToClient::Error(entry) => Err(format!("{}: {}", entry.code, entry.message)),
        other => panic!("{other:?}"),
    }
}

/// Receives the next message.
pub fn receive_message(rx: &mut Receiver) -> Result<ToClient, String> {
    rx.wait("a message", IO_TIMEOUT, &NOT_INTERRUPTED).map_err(|error| error.to_string())
}

impl Client {
    /// Opens a data connection.
    pub fn data(&self, stream: u32) -> (TcpStream, Option<Status>) {
        run_handshake(self.server, Purpose::Data { stream, token: self.token })
    }

    /// Reports all streams as open and waits for the server's confirmation.
    pub fn ready(&mut self) {
        self.tx.queue(&ToServer::Opened).unwrap();
        assert!(matches!(receive_message(&mut self.rx), Ok(ToClient::Ready)));
    }

    /// Reads the server's clock, nanoseconds.
    pub fn server_clock(&mut self) -> u64 {
        self.tx.queue(&ToServer::Ping { n: 1 }).unwrap();
        match receive_message(&mut self.rx) {
            Ok(ToClient::Pong { now_ns, .. }) => now_ns,
            other => panic!("{other:?}"),
        }
    }
}

/// A listener on loopback.
pub fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let addr = listener.local_addr().unwrap();
    (listener, addr)
}

/// Accepts a control connection and answers the preface with `answer`.
pub fn welcome(listener: &TcpListener, answer: [u8; ANSWER_LEN]) -> TcpStream {
    let (mut stream, _) = listener.accept().expect("the client comes");
    stream.set_read_timeout(Some(IO_TIMEOUT)).unwrap();
    let mut shown = [0; PREFACE_LEN];
    stream.read_exact(&mut shown).unwrap();
    stream.write_all(&answer).unwrap();
    stream
}

/// Accepts a client and reads its greeting, as a server does.
pub fn accept_client(listener: &TcpListener, key: Option<&Key>) -> (Sender, Receiver, Parameters) {
    let stream = welcome(listener, preface::encode_answer(Status::Welcome));
    let (tx, mut rx) = channel::open(stream, Role::Server, key, MAX_MESSAGE, IO_TIMEOUT, &NOT_INTERRUPTED).unwrap();
    match rx.wait::<ToServer>("the greeting", IO_TIMEOUT, &NOT_INTERRUPTED).unwrap() {
        ToServer::Hello { parameters, .. } => (tx, rx, *parameters),
        other => panic!("{other:?}"),
    }
}
