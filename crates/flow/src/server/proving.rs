//! A data connection of a test with a key, between its preface and its proof.
//!
//! It waits in the list of its listening address: it never blocks and holds no resources of the test. The
//! stream is claimed only when the proof has arrived, so a replayed preface cannot lock out a client.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use super::Shared;
use super::registry::Slot;
use super::service::{OpeningParser, PendingConnection};
use crate::control::credentials::{PROOF_LEN, Proof, Step, StreamSecret, encode_challenge};
use crate::control::preface::{self, Nonce, Status};

/// Challenge sent to the client, and its answer as far as received.
pub struct ProofParser {
    slot: Arc<Slot>,
    stream: u32,
    secret: StreamSecret,
    client_nonce: Nonce,
    server_nonce: Nonce,
    proof: Proof,
    have: usize,
}

impl ProofParser {
    /// Answers a preface and sends the server's nonce and proof.
    ///
    /// # Errors
    /// When they do not fit into the new connection's empty send buffer.
    pub fn begin(tcp: &mut TcpStream, slot: Arc<Slot>, stream: u32, client_nonce: Nonce) -> io::Result<Self> {
        let server_nonce = landspeed_sys::random::bytes()?;
        let secret = slot.credentials.stream(stream);
        let proof = secret.prove(Step::TcpServer, &client_nonce, &server_nonce);
        let answer = preface::encode_answer(Status::Welcome);
        tcp.set_nodelay(true)?;
        tcp.write_all(&[answer.as_slice(), &encode_challenge(&server_nonce, &proof)].concat())?;
        Ok(Self { slot, stream, secret, client_nonce, server_nonce, proof: [0; PROOF_LEN], have: 0 })
    }
}

impl OpeningParser for ProofParser {
    /// Reads the proof and no bytes after it; [`io::ErrorKind::PermissionDenied`] if it is wrong.
    fn read(&mut self, tcp: &mut TcpStream) -> io::Result<bool> {
        match tcp.read(&mut self.proof[self.have..]) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                self.have += n;
                if self.have < PROOF_LEN {
                    return Ok(false);
                }
                let holds =
                    self.secret.verifies(Step::TcpClient, &self.client_nonce, &self.server_nonce, &self.proof);
                if holds { Ok(true) } else { Err(io::ErrorKind::PermissionDenied.into()) }
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn admit(
        self: Box<Self>,
        pending: PendingConnection,
        _: &Arc<Shared>,
    ) -> Option<(PendingConnection, Box<dyn OpeningParser>)> {
        // A stream that is already connected is closed: the client sees end of file.
        drop(self.slot.deliver_tcp(self.stream, pending.stream));
        None
    }
}
