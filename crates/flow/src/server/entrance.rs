//! landspeed's own protocol: connections open with a preface, UDP flows with a hello.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::hellos::{self, Cookies};
use super::proving::ProofParser;
use super::service::{Datagram, OpeningParser, PendingConnection, Service};
use super::{Refusal, Shared, session};
use crate::control::credentials::TestName;
use crate::control::preface::{self, PREFACE_LEN, PrefaceError, Purpose, Status};
use crate::error::FlowError;

/// Name of the protocol in events.
pub(super) const NAME: &str = "landspeed";

/// Service of landspeed's own protocol.
pub(super) struct LandspeedService {
    cookies: Cookies,
}

impl LandspeedService {
    pub fn new() -> Result<Self, FlowError> {
        let cookies = Cookies::new();
        Ok(Self { cookies: cookies.map_err(|source| FlowError::Setup { what: "read random bytes".into(), source })? })
    }
}

impl Service for LandspeedService {
    fn name(&self) -> &'static str {
        NAME
    }

    fn opening(&self) -> Box<dyn OpeningParser> {
        Box::new(Preface { bytes: [0; PREFACE_LEN], have: 0 })
    }

    fn busy(&self) -> Vec<u8> {
        preface::encode_answer(Status::Busy).to_vec()
    }

    fn not_allowed(&self) -> Option<Vec<u8>> {
        Some(preface::encode_answer(Status::NotAllowed).to_vec())
    }

    fn answer(&self, datagram: &Datagram<'_>, shared: &Shared) {
        hellos::answer(&self.cookies, datagram, shared);
    }
}

/// Preface as far as it is received.
struct Preface {
    bytes: [u8; PREFACE_LEN],
    have: usize,
}

impl OpeningParser for Preface {
    fn read(&mut self, stream: &mut TcpStream) -> io::Result<bool> {
        match stream.read(&mut self.bytes[self.have..]) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                self.have += n;
                // Detect other protocols by their first bytes, without waiting for all 48.
                let magic = self.have.min(8);
                if self.bytes[..magic] != preface::encode(Purpose::Control { keyed: false })[..magic] {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                Ok(self.have == PREFACE_LEN)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn admit(
        self: Box<Self>,
        pending: PendingConnection,
        shared: &Arc<Shared>,
    ) -> Option<(PendingConnection, Box<dyn OpeningParser>)> {
        let PendingConnection { mut stream, peer, order } = pending;
        match preface::decode(&self.bytes) {
            Ok(Purpose::Data { stream: number, token }) => match shared.registry.find(TestName::Token(token)) {
                None => refuse(stream, Status::UnknownTest, shared),
                Some(slot) if !shared.takes_data_from(peer, &slot) => {
                    refuse(stream, Status::WrongAddress, shared);
                    let why = "data from another address than its control connection's".to_owned();
                    shared.report_refused(peer, Refusal::Address, why);
                }
                Some(slot) => {
                    let _ = stream.set_nodelay(true);
                    if stream.write_all(&preface::encode_answer(Status::Welcome)).is_ok() {
                        // An unexpected stream is closed: its client sees end of file.
                        drop(slot.deliver_tcp(number, stream));
                    }
                }
            },
            Ok(Purpose::KeyedData { stream: number, test, nonce }) => {
                match shared.registry.find(TestName::Id(test)) {
                    None => refuse(stream, Status::UnknownTest, shared),
                    Some(slot) => {
                        let proving = ProofParser::begin(&mut stream, slot, number, nonce).ok()?;
                        return Some((PendingConnection { stream, peer, order }, Box::new(proving)));
                    }
                }
            }
            Ok(Purpose::Control { keyed }) => {
                let status = match (keyed, shared.config.key.is_some()) {
                    (false, true) => Status::KeyRequired,
                    (true, false) => Status::KeyUnexpected,
                    _ => Status::Welcome,
                };
                if status != Status::Welcome {
                    refuse(stream, status, shared);
                    shared.report_refused(peer, Refusal::Key, format!("{status:?}"));
                } else if stream.set_nonblocking(false).is_ok()
                    && let Err(stream) = session::spawn(stream, peer, shared)
                {
                    refuse(stream, Status::Busy, shared);
                    let why = "no descriptor or thread is free".to_owned();
                    shared.report_refused(peer, Refusal::Busy, why);
                }
            }
            Err(PrefaceError::Version(theirs)) => {
                refuse(stream, Status::Version, shared);
                shared.report_refused(peer, Refusal::Version, format!("it speaks protocol {theirs}"));
            }
            Err(PrefaceError::NotLandspeed | PrefaceError::Kind(_)) => {
                shared.counts.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
        None
    }
}

fn refuse(stream: TcpStream, status: Status, shared: &Shared) {
    shared.admission.refusals.send(stream, &preface::encode_answer(status));
}
