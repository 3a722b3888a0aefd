use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use proptest::prelude::*;

use super::*;

/// A TCP connection over loopback, and the listener's port.
fn pair(address: &str) -> (TcpStream, TcpStream, u16) {
    let listener = TcpListener::bind(address).expect("a listener");
    let port = listener.local_addr().expect("an address").port();
    let client = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
    let (server, _) = listener.accept().expect("a connection");
    (client, server, port)
}

fn found(filter: SocketFilter) -> Vec<(SocketAddr, SocketAddr)> {
    let mut sockets = Vec::new();
    let mut diag = SockDiag::open().expect("a socket needs no privilege");
    diag.dump(&filter, Detail::Full, |socket| sockets.push((socket.id.local(), socket.id.remote()))).expect("a dump");
    sockets
}

#[test]
fn dump_reports_both_sockets_of_a_connection_with_queues() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let (mut client, mut server, port) = pair(address);
        client.write_all(b"hello").expect("room");
        let mut byte = [0];
        server.read_exact(&mut byte).expect("a byte");
        let mut diag = SockDiag::open().expect("a socket");
        let mut seen = Vec::new();
        let filter = SocketFilter { port: Some(port), ..SocketFilter::default() };
        diag.dump(&filter, Detail::Full, |socket| {
            assert!(socket.tcp_info.len() >= 192 && socket.memory.is_some() && !socket.congestion.is_empty());
            assert!(socket.id.cookie() != 0 && socket.inode != 0 && socket.state == 1);
            seen.push((socket.id.local(), socket.receive_queue_bytes, socket.id));
        })
        .expect("a dump");
        assert_eq!(seen.len(), 2, "{address}: {seen:?}");
        let of = |stream: &TcpStream| {
            let local = stream.local_addr().expect("an address");
            *seen.iter().find(|(address, ..)| *address == local).expect("dumped")
        };
        assert_eq!((of(&client).1, of(&server).1), (0, 4), "four bytes are unread");

        let id = of(&server).2;
        let again = diag.single(&id, |socket| (socket.id, socket.receive_queue_bytes)).expect("an answer");
        assert_eq!(again, Some((id, 4)));
        drop((client, server));
        assert_eq!(diag.single(&id, |_| ()).expect("an answer"), None, "a closed connection is gone");
    }
}

#[test]
fn the_kernel_applies_the_filter() {
    let (client, _server, port) = pair("127.0.0.1:0");
    let (_other, _another, _) = pair("127.0.0.1:0");
    let local = client.local_addr().expect("an address");
    let only = |filter| {
        let sockets = found(filter);
        (sockets.len(), sockets.iter().any(|&(own, _)| own == local))
    };
    let port = Some(port);
    let peer = |text: &str, bits| Some((text.parse::<IpAddr>().expect("an address"), bits));
    assert_eq!(only(SocketFilter { port, peer: None }), (2, true));
    assert_eq!(only(SocketFilter { port, peer: peer("127.0.0.0", 8) }), (2, true));
    assert_eq!(only(SocketFilter { port, peer: peer("128.0.0.0", 1) }), (0, false));
    assert_eq!(only(SocketFilter { port, peer: peer("10.0.0.0", 8) }), (0, false));
    assert_eq!(only(SocketFilter { port, peer: peer("fd00::", 8) }), (0, false));
    assert!(only(SocketFilter { port: None, peer: peer("127.0.0.1", 32) }).0 >= 4);
    assert_eq!(only(SocketFilter { port: Some(1), peer: None }), (0, false));
}

#[test]
fn ipv4_in_an_ipv6_socket_is_shown_as_ipv4() {
    let Ok(listener) = TcpListener::bind("[::]:0") else { landspeed_testkit::skip!("no IPv6 here") };
    let port = listener.local_addr().expect("an address").port();
    let client = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    let (_server, _) = listener.accept().expect("a connection");
    let filter = SocketFilter { port: Some(port), peer: Some(("127.0.0.0".parse().expect("an address"), 8)) };
    let sockets = found(filter);
    assert_eq!(sockets.len(), 2, "{sockets:?}");
    assert!(sockets.iter().all(|(local, _)| local.is_ipv4()) && client.local_addr().is_ok());
}

/// A response with these attributes.
fn answer(attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let mut request = Request::new(0, 0);
    let header = request.bytes.len();
    let mut message = [0; MESSAGE_BYTES];
    message[0] = libc::AF_INET as u8;
    message[1] = 1;
    message[68..72].copy_from_slice(&77_u32.to_ne_bytes());
    request.bytes(&message);
    for (kind, value) in attributes {
        request.attribute(*kind, value);
    }
    request.bytes.split_off(header)
}

#[test]
fn fields_missing_on_older_kernels_are_empty() {
    let bytes = answer(&[(INET_DIAG_INFO, &[1; 104]), (INET_DIAG_SKMEMINFO, &[0; 32]), (INET_DIAG_CONG, b"reno\0")]);
    let socket = TcpSocket::parse(&bytes).expect("an answer");
    assert_eq!((socket.tcp_info.len(), socket.congestion, socket.inode), (104, "reno", 77));
    assert_eq!(socket.memory.and_then(|memory| memory.drops), None);
    let bare = answer(&[(INET_DIAG_SKMEMINFO, &[0; 8]), (INET_DIAG_CONG, &[0xff, 0xfe])]);
    let socket = TcpSocket::parse(&bare).expect("an answer");
    assert_eq!((socket.tcp_info.len(), socket.memory, socket.congestion), (0, None, ""));
    assert!(TcpSocket::parse(&bare[..MESSAGE_BYTES - 1]).is_err());
}

#[test]
fn a_fin_is_not_a_queued_byte() {
    let (client, server, port) = pair("127.0.0.1:0");
    client.shutdown(std::net::Shutdown::Write).expect("connected");
    let mut diag = SockDiag::open().expect("a socket");
    let mut seen = Vec::new();
    let filter = SocketFilter { port: Some(port), ..SocketFilter::default() };
    diag.dump(&filter, Detail::Counters, |socket| {
        seen.push((socket.state, socket.receive_queue_bytes, socket.send_queue_bytes));
    })
    .expect("a dump");
    seen.sort_unstable();
    // Until the FIN is acknowledged the client is in FIN-WAIT-1.
    assert!(matches!(seen[..], [(4 | 5, 0, 0), (8, 0, 0)]), "FIN-WAIT and CLOSE-WAIT: {seen:?}");
    drop((client, server));
}

proptest! {
    #[test]
    fn socket_parser_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        if let Ok(socket) = TcpSocket::parse(&bytes) {
            let _ = (socket.id.local(), socket.id.remote(), socket.id.cookie());
            prop_assert!(socket.tcp_info.len() <= bytes.len());
        }
    }

    #[test]
    fn truncated_responses_keep_their_complete_attributes(cut in 0_usize..200) {
        let whole = answer(&[(INET_DIAG_INFO, &[7; 40]), (INET_DIAG_SKMEMINFO, &[1; 36]), (INET_DIAG_CONG, b"cubic\0")]);
        let cut = &whole[..whole.len().saturating_sub(cut)];
        match TcpSocket::parse(cut) {
            Ok(socket) => prop_assert!(socket.tcp_info.is_empty() || socket.tcp_info == [7; 40]),
            Err(_) => prop_assert!(cut.len() < MESSAGE_BYTES),
        }
    }
}
