//! Inputs and results of a stream's thread.

use std::os::fd::BorrowedFd;
use std::sync::mpsc;

use landspeed_model::{Parameters, StreamEnd, TcpInfo};
use landspeed_sys::socket;

use super::plan::{Side, StreamPlan};
use super::watch::Watch;
use crate::dialect::Dialect;
use crate::progress::SenderDone;
use crate::rr::RrOutcome;
use crate::shared::Budget;

/// Inputs of a stream's thread.
#[derive(Clone)]
pub(super) struct Task<'a> {
    pub stream: &'a StreamPlan,
    pub parameters: &'a Parameters,
    pub side: Side,
    pub dialect: Dialect,
    pub t0_ns: u64,
    /// Limit of the drain phase, nanoseconds.
    pub drain_ns: u64,
    pub watch: &'a Watch,
    pub budget: &'a Budget,
    pub done: mpsc::Sender<SenderDone>,
    pub receive_cap_bps: Option<u64>,
}

/// Results of a stream's thread.
#[derive(Debug, Default)]
pub(super) struct Finished {
    pub end: StreamEnd,
    pub rr: Option<RrOutcome>,
    /// When a sender's last byte was acknowledged (UDP: sent), nanoseconds after the start.
    pub acked_ns: Option<u64>,
    pub notes: Vec<String>,
}

impl Finished {
    pub fn failed(message: &str) -> Self {
        let end = StreamEnd { error: Some(message.to_owned()), ..StreamEnd::default() };
        Self { end, ..Self::default() }
    }
}

/// Reads and decodes a connection's `tcp_info`.
pub(super) fn read_info(fd: BorrowedFd<'_>) -> Option<TcpInfo> {
    socket::tcp_info(fd).ok().map(|raw| TcpInfo::decode(raw.as_bytes()))
}

/// Records the kernel's data on a connection at its end, or before its first byte.
pub(super) fn describe_tcp(stream: &StreamPlan, fd: BorrowedFd<'_>, end: &mut StreamEnd) {
    end.send_queue_bytes = socket::send_queue(fd).ok().map(u64::from);
    end.receive_queue_bytes = socket::receive_queue(fd).ok().map(u64::from);
    end.congestion = socket::congestion(fd).ok();
    end.incoming_cpu = socket::incoming_cpu(fd);
    end.napi_id = socket::incoming_napi_id(fd);
    if let Ok(memory) = socket::mem_info(fd) {
        end.sndbuf_bytes = Some(u64::from(memory.sndbuf));
        end.rcvbuf_bytes = Some(u64::from(memory.rcvbuf));
    }
    if let Some(info) = read_info(fd) {
        end.mss_bytes = Some(info.snd_mss_bytes);
        if stream.job.sends() {
            end.bytes_acked = info.bytes_acked.map(|n| n.saturating_sub(stream.acked_before));
            end.retransmits = Some(u64::from(info.total_retrans));
            end.bytes_retrans = info.bytes_retrans;
        }
    }
}
