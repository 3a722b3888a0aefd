//! Creates and configures data sockets.

use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use landspeed_model::Parameters;
use landspeed_sys::socket as raw;
use socket2::{Domain, Protocol, Socket, Type};

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

/// Binds and connects within ten seconds, unless interrupted.
pub fn connect(
    socket: &Socket,
    server: SocketAddr,
    bind: Option<SocketAddr>,
    stop: &AtomicBool,
) -> Result<(), FlowError> {
    if let Some(local) = bind {
        socket.bind(&local.into()).map_err(setup_error(format!("bind {}", local.ip())))?;
    }
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
    if let Some(local) = bind {
        socket.bind(&local.into()).map_err(setup_error(format!("bind {}", local.ip())))?;
    }
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
