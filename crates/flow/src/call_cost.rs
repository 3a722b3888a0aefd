//! CPU time of data calls, for a host whose CPU is a model: the lab's guest charges each call of a bulk stream.

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

/// A system call that moved data of a bulk stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataCall {
    /// Whether it sent; otherwise it read.
    pub sends: bool,
    /// Whether it copied its data between kernel and application.
    pub copies: bool,
    /// Payload that the call moved, bytes.
    pub bytes: u64,
    /// Datagrams; 0 for TCP.
    pub datagrams: u64,
    /// Largest payload of a segment, bytes; 0 if unknown.
    pub mss_bytes: u64,
}

/// CPU time that calls took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallTime {
    /// Time on the core, nanoseconds.
    pub cpu_ns: u64,
    /// Time in which the core had other work, nanoseconds.
    pub wait_ns: u64,
}

/// Charges a call; returns after the time that it takes.
pub type ChargeFn = Arc<dyn Fn(&DataCall) -> CallTime + Send + Sync>;

type LookupFn = Box<dyn Fn(IpAddr) -> Option<ChargeFn> + Send + Sync>;

static LOOKUP: OnceLock<LookupFn> = OnceLock::new();

/// Charges from now on the calls on sockets for whose local address `lookup` returns a function. Only the first call has
/// an effect.
pub fn set_lookup(lookup: impl Fn(IpAddr) -> Option<ChargeFn> + Send + Sync + 'static) {
    let _ = LOOKUP.set(Box::new(lookup));
}

/// The calls of one stream in one direction, and their time so far.
struct CallMeter {
    charge: ChargeFn,
    /// What all of its calls have in common.
    call: DataCall,
    time: CallTime,
}

thread_local! {
    static METER: RefCell<Option<CallMeter>> = const { RefCell::new(None) };
}

/// Begins to charge the calls of this thread on a socket with this local address; does nothing without a lookup. `call` has
/// what all of them have in common.
pub(crate) fn begin(local: Option<SocketAddr>, call: DataCall) {
    let charge = LOOKUP.get().and_then(|lookup| lookup(crate::address::unmap(local?).ip()));
    METER.set(charge.map(|charge| CallMeter { charge, call, time: CallTime::default() }));
}

/// Charges a call that moved `bytes` of payload in so many datagrams (TCP: 0).
#[inline]
pub(crate) fn charge(bytes: u64, datagrams: u64) {
    METER.with_borrow_mut(|meter| {
        if let Some(meter) = meter {
            let time = (meter.charge)(&DataCall { bytes, datagrams, ..meter.call });
            meter.time.cpu_ns += time.cpu_ns;
            meter.time.wait_ns += time.wait_ns;
        }
    });
}

/// Ends the charges of this thread; returns their time, `None` if there were none.
pub(crate) fn end() -> Option<CallTime> {
    METER.take().map(|meter| meter.time)
}
