//! A loopback port that leads to a server over an impaired path: TCP is forwarded unchanged, UDP data from
//! clients is dropped, duplicated or reordered.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use landspeed_sys::udp::set_receive_buffer;

use crate::relay::{Impairments, Path, RelayCounts};

/// Minimum size of data datagrams, which are impaired; smaller ones are a test's handshake.
pub const DATA_BYTES: usize = 600;

/// Read timeout, and so the interval at which threads check for the stop request.
const TICK: Duration = Duration::from_millis(5);

/// A running detour. Clients connect to [`RunRelay::address`]; several streams and clients may share it.
pub struct RunRelay {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    datagrams: Option<JoinHandle<RelayCounts>>,
}

impl RunRelay {
    /// Starts a detour to `server`; each client socket's data is impaired by `impairments` with the same seed.
    pub fn to(server: SocketAddr, impairments: Impairments) -> io::Result<Self> {
        println!("detour seed {}", impairments.seed);
        let (listener, front) = bind_same_port(server)?;
        set_receive_buffer(front.as_fd(), 16 << 20)?;
        front.set_read_timeout(Some(TICK))?;
        listener.set_nonblocking(true)?;
        let address = front.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, accepting) = (Arc::clone(&stop), Arc::clone(&stop));
        std::thread::spawn(move || accept(&listener, server, &accepting));
        let datagrams = std::thread::spawn(move || forward_datagrams(&front, server, impairments, &stopped));
        Ok(Self { address, stop, datagrams: Some(datagrams) })
    }

    /// Returns the address for clients.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops the detour and returns the counts of all data.
    ///
    /// # Panics
    /// If its thread panicked.
    pub fn end(mut self) -> RelayCounts {
        self.stop.store(true, Ordering::Relaxed);
        self.datagrams.take().expect("ended once").join().expect("the detour does not panic")
    }
}

impl Drop for RunRelay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Binds the same port for TCP and UDP.
fn bind_same_port(server: SocketAddr) -> io::Result<(TcpListener, UdpSocket)> {
    for _ in 0..100 {
        let listener = TcpListener::bind((server.ip(), 0))?;
        if let Ok(front) = UdpSocket::bind(listener.local_addr()?) {
            return Ok((listener, front));
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
}

fn accept(listener: &TcpListener, server: SocketAddr, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let Ok((client, _)) = listener.accept() else {
            std::thread::park_timeout(TICK);
            continue;
        };
        let _ = client.set_nonblocking(false);
        let Ok(onward) = TcpStream::connect(server) else { continue };
        let pairs = [(client.try_clone(), onward.try_clone()), (Ok(onward), Ok(client))];
        for (from, to) in pairs {
            let (Ok(mut from), Ok(mut to)) = (from, to) else { continue };
            std::thread::spawn(move || {
                let _ = io::copy(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Write);
            });
        }
    }
}

fn forward_datagrams(
    front: &UdpSocket,
    server: SocketAddr,
    impairments: Impairments,
    stop: &AtomicBool,
) -> RelayCounts {
    let mut clients: HashMap<SocketAddr, (Path, RelayCounts)> = HashMap::new();
    let over = Arc::new(AtomicBool::new(false));
    let mut buffer = vec![0; 65_536];
    loop {
        let Ok((length, from)) = front.recv_from(&mut buffer) else {
            // Idle: no later packet will arrive to overtake the held ones.
            for (path, relay_counts) in clients.values_mut() {
                path.release(u64::MAX, relay_counts);
            }
            if stop.load(Ordering::Relaxed) {
                break;
            }
            continue;
        };
        let (path, relay_counts) = match clients.entry(from) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let Ok(back) = open_return_socket(front, from, server, &over) else { continue };
                new.insert((Path::new(back, impairments), RelayCounts::default()))
            }
        };
        if length < DATA_BYTES {
            path.pass(&buffer[..length]);
        } else {
            path.arrive(&buffer[..length], relay_counts);
        }
    }
    over.store(true, Ordering::Relaxed);
    clients.into_values().map(|(_, relay_counts)| relay_counts).fold(RelayCounts::default(), RelayCounts::plus)
}

/// Opens a socket to the server for one client, and starts a thread that forwards the replies.
fn open_return_socket(
    front: &UdpSocket,
    client: SocketAddr,
    server: SocketAddr,
    over: &Arc<AtomicBool>,
) -> io::Result<UdpSocket> {
    let back = UdpSocket::bind((server.ip(), 0))?;
    back.connect(server)?;
    back.set_read_timeout(Some(TICK))?;
    let (answers, front, over) = (back.try_clone()?, front.try_clone()?, Arc::clone(over));
    std::thread::spawn(move || {
        let mut buffer = vec![0; 65_536];
        while !over.load(Ordering::Relaxed) {
            if let Ok(length) = answers.recv(&mut buffer) {
                let _ = front.send_to(&buffer[..length], client);
            }
        }
    });
    Ok(back)
}
