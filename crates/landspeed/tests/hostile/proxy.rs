//! A man in the middle on the control connection.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};

use landspeed_flow::control::preface::{ANSWER_LEN, PREFACE_LEN};

/// Manipulation of one sealed message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tampering {
    FlipBit,
    Drop,
    Repeat,
    SwapWithNext,
}

/// The message to manipulate.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    pub from_client: bool,
    /// Number of the message after the two of the key handshake.
    pub number: usize,
    pub tampering: Tampering,
}

/// Forwards everything to `server`; in the first connection, `target` is applied.
pub fn start(server: SocketAddr, target: Option<Target>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let addr = listener.local_addr().unwrap();
    // The thread ends with the test program.
    std::thread::spawn(move || {
        for (number, near) in listener.incoming().enumerate() {
            let (Ok(near), Ok(far)) = (near, TcpStream::connect(server)) else { return };
            let target = target.filter(|_| number == 0);
            let (near_twin, far_twin) = (near.try_clone().unwrap(), far.try_clone().unwrap());
            std::thread::spawn(move || forward(near, far, PREFACE_LEN, target.filter(|t| t.from_client)));
            std::thread::spawn(move || forward(far_twin, near_twin, ANSWER_LEN, target.filter(|t| !t.from_client)));
        }
    });
    addr
}

fn forward(mut from: TcpStream, mut to: TcpStream, preface: usize, target: Option<Target>) {
    let _ = match target {
        None => std::io::copy(&mut from, &mut to).map(drop),
        Some(target) => tamper(&mut from, &mut to, preface, target),
    };
    let _ = to.shutdown(Shutdown::Write);
    let _ = from.shutdown(Shutdown::Read);
}

fn tamper(from: &mut TcpStream, to: &mut TcpStream, preface: usize, target: Target) -> std::io::Result<()> {
    let mut shown = vec![0; preface];
    from.read_exact(&mut shown)?;
    to.write_all(&shown)?;
    // Each direction has one handshake message.
    let handshake = sealed(from)?;
    to.write_all(&handshake)?;
    let mut held = None;
    for number in 0.. {
        let mut message = sealed(from)?;
        if number == target.number {
            match target.tampering {
                Tampering::FlipBit => {
                    let middle = usize::midpoint(2, message.len());
                    message[middle] ^= 1;
                }
                Tampering::Drop => continue,
                Tampering::Repeat => to.write_all(&message)?,
                Tampering::SwapWithNext => {
                    held = Some(message);
                    continue;
                }
            }
        }
        to.write_all(&message)?;
        if let Some(earlier) = held.take() {
            to.write_all(&earlier)?;
        }
    }
    Ok(())
}

/// Reads a message with its length.
fn sealed(from: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut message = vec![0; 2];
    from.read_exact(&mut message)?;
    let len = usize::from(u16::from_be_bytes([message[0], message[1]]));
    message.resize(2 + len, 0);
    from.read_exact(&mut message[2..])?;
    Ok(message)
}
