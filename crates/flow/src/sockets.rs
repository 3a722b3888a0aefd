//! Creates and configures data sockets.

use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use landspeed_model::Parameters;
use landspeed_sys::{clock, socket as raw};
use socket2::{Domain, Protocol, Socket, Type};

use crate::address;
use crate::control::deadline::Deadline;
use crate::control::patient;
use crate::end::DataSocket;
use crate::error::FlowError;

/// Timeout for opening a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

fn setup_error(what: impl Into<String>) -> impl FnOnce(io::Error) -> FlowError {
    let what = what.into();
    move |source| FlowError::Setup { what, source }
}

/// Opens a TCP data connection of the client. Options that affect the handshake (buffers, MSS) are set before
/// it.
pub fn connect_tcp(
    server: SocketAddr,
    bind: Option<SocketAddr>,
    p: &Parameters,
    sends: bool,
    stop: &AtomicBool,
) -> Result<TcpStream, FlowError> {
    let protocol = if p.mptcp { Protocol::MPTCP } else { Protocol::TCP };
    let socket = Socket::new(Domain::for_address(server), Type::STREAM, Some(protocol))
        .map_err(setup_error(if p.mptcp { "open a multipath TCP socket" } else { "open a TCP socket" }))?;
    if let Some(mss) = p.mss_bytes {
        raw::set_mss(socket.as_fd(), mss).map_err(setup_error(format!("set the MSS to {mss}")))?;
    }
    if sends {
        apply_common(socket.as_fd(), &socket, p, server.is_ipv6())?;
    } else {
        apply_buffers(&socket, p)?;
        apply_dscp(socket.as_fd(), p, server.is_ipv6())?;
    }
    connect(&socket, server, bind, stop)?;
    Ok(socket.into())
}

/// Delay between the beginnings of connection attempts to the addresses of a server (RFC 8305, section 5).
const ATTEMPT_DELAY_NS: u64 = 250_000_000;
/// Interval between looks at the attempts, milliseconds.
const ATTEMPT_TICK_MS: u32 = 2;

/// Returns the addresses that have a local address to connect from, with it.
///
/// # Errors
/// That of the first address, if there is none.
pub fn bound(
    servers: &[SocketAddr],
    local: impl Fn(SocketAddr) -> Result<Option<SocketAddr>, FlowError>,
) -> Result<Vec<(SocketAddr, Option<SocketAddr>)>, FlowError> {
    let mut found = Vec::new();
    let mut error = None;
    for &server in servers {
        match local(server) {
            Ok(bind) => found.push((server, bind)),
            Err(why) => error = error.or(Some(why)),
        }
    }
    match error {
        Some(error) if found.is_empty() => Err(error),
        _ => Ok(found),
    }
}

/// Connects to the first of a server's addresses that answers, each from its local address if it has one. An attempt
/// begins 250 ms after the one before, or when that fails (RFC 8305). Gives up after ten seconds, or when `stop` is set.
///
/// # Errors
/// That of the first address, with what the others answered; that of this host, if it can use none of them.
pub fn connect_first(
    candidates: &[(SocketAddr, Option<SocketAddr>)],
    stop: &AtomicBool,
) -> Result<(TcpStream, SocketAddr), FlowError> {
    let deadline = Deadline::after(CONNECT_TIMEOUT).with_stop(stop);
    let mut waiting = candidates.iter();
    let mut begun: Vec<(Socket, SocketAddr)> = Vec::new();
    let mut failed: Vec<(SocketAddr, io::Error)> = Vec::new();
    let mut unusable = None;
    let mut next_ns = 0;
    loop {
        if begun.is_empty() || clock::monotonic_ns() >= next_ns {
            match waiting.next() {
                Some(&(server, bind)) => {
                    next_ns = clock::monotonic_ns() + ATTEMPT_DELAY_NS;
                    match begin_connect(server, bind) {
                        Ok(Ok(socket)) => begun.push((socket, server)),
                        Ok(Err(error)) => failed.push((server, error)),
                        // A host without IPv6 may have IPv4.
                        Err(error) => {
                            unusable.get_or_insert(error);
                            next_ns = 0;
                        }
                    }
                    continue;
                }
                None if begun.is_empty() => break,
                None => next_ns = u64::MAX,
            }
        }
        let Ok(slice) = deadline.slice() else {
            failed.extend(begun.drain(..).map(|(_, server)| (server, io::ErrorKind::TimedOut.into())));
            break;
        };
        // One attempt waits in the kernel; several are looked at in turn.
        let wait_ms =
            if begun.len() == 1 && next_ns == u64::MAX { slice.as_millis() as u32 } else { ATTEMPT_TICK_MS };
        let mut at = 0;
        // The first attempt was begun first and has waited longest.
        while at < begun.len() {
            let answer = poll_connect(&begun[at].0, if at == 0 { wait_ms } else { 0 });
            match answer {
                Ok(false) => at += 1,
                Ok(true) => {
                    let (socket, server) = begun.swap_remove(at);
                    socket.set_nonblocking(false).map_err(setup_error("open the control connection"))?;
                    return Ok((socket.into(), server));
                }
                Err(error) => {
                    failed.push((begun.remove(at).1, error));
                    next_ns = if next_ns == u64::MAX { next_ns } else { 0 };
                }
            }
        }
    }
    let error = match unusable {
        Some(error) if failed.is_empty() => error,
        _ => all_failed(candidates, failed),
    };
    Err(FlowError::or_interrupted(stop, error))
}

/// Begins to connect. The outer error is one of this host, the inner one of the path.
fn begin_connect(server: SocketAddr, bind: Option<SocketAddr>) -> Result<io::Result<Socket>, FlowError> {
    const EINPROGRESS: i32 = 115;
    let socket = Socket::new(Domain::for_address(server), Type::STREAM, Some(Protocol::TCP))
        .map_err(setup_error("open the control connection"))?;
    bind_to(&socket, bind)?;
    socket.set_nonblocking(true).map_err(setup_error("open the control connection"))?;
    Ok(match socket.connect(&server.into()) {
        Err(error) if error.raw_os_error() != Some(EINPROGRESS) => Err(error),
        _ => Ok(socket),
    })
}

/// Waits up to `wait_ms` for the answer to a connect; false if there is none.
fn poll_connect(socket: &Socket, wait_ms: u32) -> io::Result<bool> {
    if !raw::wait(socket.as_fd(), raw::Readiness::Writable, wait_ms)? {
        return Ok(false);
    }
    socket.take_error()?.map_or(Ok(true), Err)
}

fn all_failed(
    candidates: &[(SocketAddr, Option<SocketAddr>)],
    mut failed: Vec<(SocketAddr, io::Error)>,
) -> FlowError {
    failed.sort_by_key(|(server, _)| candidates.iter().position(|(candidate, _)| candidate == server));
    let mut failed = failed.into_iter();
    let (addr, mut source) = failed.next().unwrap_or_else(|| (candidates[0].0, io::ErrorKind::TimedOut.into()));
    let others: Vec<String> = failed.map(|(server, error)| format!("; {server}: {error}")).collect();
    if !others.is_empty() {
        source = io::Error::new(source.kind(), format!("{source}{}", others.concat()));
    }
    FlowError::Connect { addr, source }
}

/// Returns the local address of the data socket with this index among those of a test.
pub fn data_address(
    bind: Option<SocketAddr>,
    server: SocketAddr,
    first_port: Option<u16>,
    index: usize,
) -> Option<SocketAddr> {
    let Some(first) = first_port else { return bind };
    let mut local = bind.unwrap_or(SocketAddr::new(address::any_like(server), 0));
    local.set_port(first.wrapping_add(index as u16));
    Some(local)
}

fn bind_to(socket: &Socket, local: Option<SocketAddr>) -> Result<(), FlowError> {
    let Some(local) = local else { return Ok(()) };
    if local.port() != 0 {
        // The port of an earlier test may be in TIME-WAIT.
        socket.set_reuse_address(true).map_err(setup_error("set SO_REUSEADDR"))?;
    }
    let what = if local.port() == 0 { local.ip().to_string() } else { local.to_string() };
    socket.bind(&local.into()).map_err(setup_error(format!("bind {what}")))
}

/// Binds and connects within ten seconds, unless interrupted.
pub fn connect(
    socket: &Socket,
    server: SocketAddr,
    bind: Option<SocketAddr>,
    stop: &AtomicBool,
) -> Result<(), FlowError> {
    bind_to(socket, bind)?;
    patient::connect(socket, server, &Deadline::after(CONNECT_TIMEOUT).with_stop(stop))
        .map_err(|source| FlowError::or_interrupted(stop, FlowError::Connect { addr: server, source }))
}

/// Opens a UDP socket of the client, connected to the server.
pub fn connect_udp(server: SocketAddr, bind: Option<SocketAddr>, p: &Parameters) -> Result<UdpSocket, FlowError> {
    let socket = Socket::new(Domain::for_address(server), Type::DGRAM, Some(Protocol::UDP))
        .map_err(setup_error("open a UDP socket"))?;
    apply_buffers(&socket, p)?;
    enlarge_datagram_buffers(&socket, p);
    apply_dscp(socket.as_fd(), p, server.is_ipv6())?;
    bind_to(&socket, bind)?;
    socket.connect(&server.into()).map_err(|source| FlowError::Connect { addr: server, source })?;
    Ok(socket.into())
}

/// Configures a socket that the server accepted in the same way.
pub fn configure_accepted(socket: &DataSocket, p: &Parameters, sends: bool) -> Result<(), FlowError> {
    match socket {
        DataSocket::Tcp(tcp) => {
            let v6 = tcp.peer_addr().is_ok_and(|a| a.is_ipv6());
            let twin = socket2::SockRef::from(tcp);
            if sends {
                apply_common(tcp.as_fd(), &twin, p, v6)
            } else {
                apply_buffers(&twin, p)?;
                apply_dscp(tcp.as_fd(), p, v6)
            }
        }
        DataSocket::Udp(udp) => {
            let v6 = udp.peer_addr().is_ok_and(|a| a.is_ipv6());
            let twin = socket2::SockRef::from(udp);
            apply_buffers(&twin, p)?;
            enlarge_datagram_buffers(&twin, p);
            apply_dscp(udp.as_fd(), p, v6)
        }
        DataSocket::Connector(_) | DataSocket::Acceptor(_) => Ok(()),
    }
}

fn apply_common(fd: BorrowedFd<'_>, socket: &Socket, p: &Parameters, v6: bool) -> Result<(), FlowError> {
    apply_buffers(socket, p)?;
    apply_dscp(fd, p, v6)?;
    if let Some(name) = &p.congestion {
        raw::set_congestion(fd, name).map_err(|source| FlowError::Congestion { name: name.clone(), source })?;
    }
    if let Some(bytes) = p.notsent_lowat_bytes {
        socket.set_tcp_notsent_lowat(bytes).map_err(setup_error(format!("set TCP_NOTSENT_LOWAT to {bytes}")))?;
    }
    socket.set_tcp_nodelay(p.nodelay).map_err(setup_error("set TCP_NODELAY"))
}

fn apply_buffers(socket: &Socket, p: &Parameters) -> Result<(), FlowError> {
    if let Some(window) = p.window_bytes {
        // The kernel caps these at net.core.{w,r}mem_max without an error; the report has the effective sizes.
        socket.set_send_buffer_size(window as usize).map_err(setup_error("set the send buffer"))?;
        socket.set_recv_buffer_size(window as usize).map_err(setup_error("set the receive buffer"))?;
    }
    Ok(())
}

/// UDP has no buffer autotuning: without `--window` request as much as the system allows
/// (`net.core.{r,w}mem_max`), because the default of 208 KiB overflows whenever the reader pauses, which would
/// distort the measurement.
fn enlarge_datagram_buffers(socket: &Socket, p: &Parameters) {
    const WANTED_BYTES: usize = 64 << 20;
    if p.window_bytes.is_none() {
        let _ = socket.set_recv_buffer_size(WANTED_BYTES);
        let _ = socket.set_send_buffer_size(WANTED_BYTES);
    }
}

fn apply_dscp(fd: BorrowedFd<'_>, p: &Parameters, v6: bool) -> Result<(), FlowError> {
    match p.dscp {
        Some(dscp) => raw::set_dscp(fd, dscp, v6).map_err(setup_error(format!("set DSCP {dscp}"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn first(servers: &[SocketAddr]) -> Result<SocketAddr, FlowError> {
        let candidates: Vec<_> = servers.iter().map(|&server| (server, None)).collect();
        connect_first(&candidates, &AtomicBool::new(false)).map(|(_, server)| server)
    }

    /// Returns an address of loopback at which nothing listens.
    fn refusing() -> SocketAddr {
        TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
    }

    #[test]
    fn an_address_that_refuses_is_followed_by_the_next() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        assert_eq!(first(&[refusing(), server]).unwrap(), server);
    }

    #[test]
    fn an_address_that_is_silent_does_not_delay_the_next() {
        // A listener whose queue is full ignores further connections.
        let full = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        full.bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
        full.listen(0).unwrap();
        let silent = full.local_addr().unwrap().as_socket().unwrap();
        let occupant = TcpStream::connect(silent).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        assert_eq!(first(&[silent, server]).unwrap(), server);
        drop(occupant);
    }

    #[test]
    fn an_address_this_host_cannot_use_is_followed_by_the_next() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        // No host has an address of TEST-NET-1, so that it cannot be bound.
        let foreign: SocketAddr = "192.0.2.1:0".parse().unwrap();
        let stop = AtomicBool::new(false);
        let (_, found) = connect_first(&[(server, Some(foreign)), (server, None)], &stop).unwrap();
        assert_eq!(found, server);
        let error = connect_first(&[(server, Some(foreign))], &stop).unwrap_err();
        assert!(error.to_string().contains("192.0.2.1"), "{error}");
        let both = [(server, Some(foreign)), (refusing(), None)];
        assert_eq!(connect_first(&both, &stop).unwrap_err().code(), "connection-refused");
    }

    #[test]
    fn every_address_that_failed_is_named() {
        let servers = [refusing(), refusing()];
        let error = first(&servers).unwrap_err();
        assert_eq!(error.code(), "connection-refused");
        assert!(servers.iter().all(|server| error.to_string().contains(&server.to_string())), "{error}");
    }
}
