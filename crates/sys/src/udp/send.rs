//! Sending several datagrams with one system call.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::{MAX_BATCH_BYTES, MAX_SEGMENTS};

/// Datagrams of equal length in one buffer, with the structures for `sendmmsg`: sent as single messages, or as
/// GSO packets that the kernel or the NIC segments (`UDP_SEGMENT`).
pub struct SendBatch {
    buffer: Vec<u8>,
    datagram_bytes: usize,
    iovecs: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
    control: SegmentControl,
}

/// Reason why nothing was sent.
#[derive(Debug)]
pub enum SendFailure {
    /// The send buffer stayed full until the timeout (`EAGAIN`); try again.
    Full,
    /// Interrupted by a signal (`EINTR`); try again.
    Interrupted,
    /// The first message was dropped on this host: in the qdisc or the device (`ENOBUFS`), or by the firewall (`EPERM`).
    Dropped(io::Error),
    /// The peer's host refused an earlier datagram or is unreachable (ICMP: `ECONNREFUSED`, `EHOSTUNREACH`,
    /// `ENETUNREACH`); nothing of this call was sent.
    Refused(io::Error),
    /// A datagram is too long for the path or the protocol (`EMSGSIZE`).
    TooLong,
    /// Segmentation offload was requested but is not available on this route (`EINVAL`, `EIO`, `EOPNOTSUPP`).
    OffloadUnavailable(io::Error),
    /// Any other error.
    Other(io::Error),
}

/// A `UDP_SEGMENT` control message, shared by all messages of a batch.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct SegmentControl([u8; SEGMENT_CONTROL_BYTES]);

// SAFETY: CMSG_SPACE is arithmetic on its argument.
const SEGMENT_CONTROL_BYTES: usize = unsafe { libc::CMSG_SPACE(size_of::<u16>() as u32) } as usize;

impl SegmentControl {
    fn new(segment_bytes: usize) -> Self {
        let mut control = Self([0; SEGMENT_CONTROL_BYTES]);
        let segment = u16::try_from(segment_bytes).expect("a datagram fits 16 bits");
        let header = (&raw mut control).cast::<libc::cmsghdr>();
        // SAFETY: `control` is aligned for a cmsghdr and CMSG_SPACE(2) long, so header and payload fit.
        unsafe {
            (*header).cmsg_level = libc::SOL_UDP;
            (*header).cmsg_type = libc::UDP_SEGMENT;
            (*header).cmsg_len = libc::CMSG_LEN(size_of::<u16>() as u32) as usize;
            libc::CMSG_DATA(header).cast::<u16>().write_unaligned(segment);
        }
        control
    }
}

impl SendBatch {
    /// Creates a batch of up to `datagrams` datagrams of `datagram_bytes` each.
    ///
    /// # Panics
    /// If either is zero or a datagram is over 65,535 bytes.
    pub fn new(datagrams: usize, datagram_bytes: usize) -> Self {
        assert!(datagrams > 0 && datagram_bytes > 0, "an empty batch sends nothing");
        // SAFETY: iovec and mmsghdr are plain C structures for which all zeros is a valid value.
        let (iovec, message) = unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        Self {
            buffer: vec![0; datagrams * datagram_bytes],
            datagram_bytes,
            iovecs: vec![iovec; datagrams],
            messages: vec![message; datagrams],
            control: SegmentControl::new(datagram_bytes),
        }
    }

    /// Returns the number of datagrams in the batch.
    pub fn capacity(&self) -> usize {
        self.messages.len()
    }

    /// Returns the datagrams, for writing before [`SendBatch::send`].
    pub fn datagrams_mut(&mut self) -> std::slice::ChunksExactMut<'_, u8> {
        self.buffer.chunks_exact_mut(self.datagram_bytes)
    }

    /// Returns how many datagrams of this length fit into one GSO packet if the kernel allows `max_segments`.
    pub fn segments(&self, max_segments: usize) -> usize {
        (MAX_BATCH_BYTES / self.datagram_bytes).clamp(1, max_segments.clamp(1, MAX_SEGMENTS))
    }

    /// Sends datagrams `first..end`, `segments` per message (1: no offload), with one system call. Returns the
    /// number of datagrams the kernel accepted, at least one; fewer than requested means that the next message
    /// failed with an error that sendmmsg(2) does not report, or that the send buffer is full.
    ///
    /// # Panics
    /// If the range is empty or reaches past the batch.
    pub fn send(
        &mut self,
        fd: BorrowedFd<'_>,
        first: usize,
        end: usize,
        segments: usize,
    ) -> Result<usize, SendFailure> {
        assert!(first < end && end <= self.capacity() && segments > 0, "datagrams {first}..{end} of a batch");
        let count = self.prepare(first, end, segments);
        let sent = if count == 1 {
            let header = &raw const self.messages[0].msg_hdr;
            // SAFETY: `prepare` has pointed this header at an iovec, a buffer range and control data owned by self.
            let rc = unsafe { libc::sendmsg(fd.as_raw_fd(), header, 0) };
            if rc < 0 { -1 } else { 1 }
        } else {
            // SAFETY: `prepare` has pointed the first `count` headers at iovecs, buffer ranges and control data that
            // self owns; the kernel only reads what they point at, and writes their msg_len.
            unsafe { libc::sendmmsg(fd.as_raw_fd(), self.messages.as_mut_ptr(), count as u32, 0) }
        };
        if sent <= 0 {
            return Err(classify(io::Error::last_os_error(), segments > 1 && end - first > 1));
        }
        Ok((sent as usize * segments).min(end - first))
    }

    /// Fills in the message headers; returns the number of messages.
    fn prepare(&mut self, first: usize, end: usize, segments: usize) -> usize {
        let base = self.buffer.as_mut_ptr();
        let control = (&raw mut self.control).cast::<libc::c_void>();
        let mut messages = 0;
        let mut at = first;
        while at < end {
            let datagrams = segments.min(end - at);
            let iovec = &mut self.iovecs[messages];
            // SAFETY: `at < end <= capacity`, so the offset lies within the buffer of capacity × datagram_bytes.
            iovec.iov_base = unsafe { base.add(at * self.datagram_bytes) }.cast();
            iovec.iov_len = datagrams * self.datagram_bytes;
            let header = &mut self.messages[messages].msg_hdr;
            header.msg_iov = iovec;
            header.msg_iovlen = 1;
            let offload = datagrams > 1;
            header.msg_control = if offload { control } else { std::ptr::null_mut() };
            header.msg_controllen = if offload { SEGMENT_CONTROL_BYTES } else { 0 };
            messages += 1;
            at += datagrams;
        }
        messages
    }
}

fn classify(error: io::Error, offload: bool) -> SendFailure {
    match error.raw_os_error().unwrap_or(0) {
        libc::EAGAIN => SendFailure::Full,
        libc::EINTR => SendFailure::Interrupted,
        libc::ENOBUFS | libc::ENOMEM | libc::EPERM => SendFailure::Dropped(error),
        libc::ECONNREFUSED | libc::EHOSTUNREACH | libc::ENETUNREACH => SendFailure::Refused(error),
        // If a segment exceeds the path MTU, the error is EINVAL before Linux 6.13 and EMSGSIZE since.
        libc::EINVAL | libc::EIO | libc::EOPNOTSUPP | libc::EMSGSIZE if offload => {
            SendFailure::OffloadUnavailable(error)
        }
        libc::EMSGSIZE => SendFailure::TooLong,
        _ => SendFailure::Other(error),
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;
    use std::time::Duration;

    use super::*;

    fn pair() -> (UdpSocket, UdpSocket) {
        let receiver = UdpSocket::bind("127.0.0.1:0").expect("loopback exists");
        receiver.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        (sender, receiver)
    }

    fn numbered_batch(datagrams: usize, bytes: usize) -> SendBatch {
        let mut batch = SendBatch::new(datagrams, bytes);
        for (i, datagram) in batch.datagrams_mut().enumerate() {
            datagram.fill(i as u8);
        }
        batch
    }

    fn assert_received(receiver: &UdpSocket, expected: impl IntoIterator<Item = usize>, bytes: usize) {
        let mut buffer = [0; 2048];
        for i in expected {
            let length = receiver.recv(&mut buffer).unwrap();
            assert_eq!((length, buffer[0], buffer[length - 1]), (bytes, i as u8, i as u8));
        }
    }

    #[test]
    fn batch_without_offload_arrives_as_single_datagrams() {
        let (sender, receiver) = pair();
        assert_eq!(numbered_batch(8, 100).send(sender.as_fd(), 2, 8, 1).unwrap(), 6);
        assert_received(&receiver, 2..8, 100);
    }

    #[test]
    fn gso_packets_are_split_into_datagrams() {
        let (sender, receiver) = pair();
        if !crate::udp::gso_supported(sender.as_fd()) {
            landspeed_testkit::skip!("no UDP_SEGMENT here");
        }
        // Two full GSO packets of four segments, and one plain message.
        assert_eq!(numbered_batch(9, 100).send(sender.as_fd(), 0, 9, 4).unwrap(), 9);
        assert_received(&receiver, 0..9, 100);
    }

    #[test]
    fn too_many_segments_are_reported_as_no_offload() {
        let (sender, _receiver) = pair();
        let mut batch = SendBatch::new(200, 10);
        let failure = batch.send(sender.as_fd(), 0, 200, 200).unwrap_err();
        assert!(matches!(failure, SendFailure::OffloadUnavailable(_)), "{failure:?}");
    }

    #[test]
    fn a_datagram_over_the_protocol_limit_is_too_long() {
        let (sender, _receiver) = pair();
        let mut batch = SendBatch::new(1, 65_535);
        assert!(matches!(batch.send(sender.as_fd(), 0, 1, 1), Err(SendFailure::TooLong)));
    }

    #[test]
    fn closed_port_is_reported_as_refused() {
        let (sender, receiver) = pair();
        drop(receiver);
        let mut batch = SendBatch::new(1, 10);
        let _ = batch.send(sender.as_fd(), 0, 1, 1);
        assert!(matches!(batch.send(sender.as_fd(), 0, 1, 1), Err(SendFailure::Refused(_))));
    }

    #[test]
    fn segments_respect_size_and_count_limits() {
        assert_eq!(SendBatch::new(1, 8948).segments(MAX_SEGMENTS), 7);
        assert_eq!(SendBatch::new(1, 1448).segments(64), 45);
        assert_eq!(SendBatch::new(1, 64).segments(MAX_SEGMENTS), 128);
        assert_eq!(SendBatch::new(1, 65_500).segments(MAX_SEGMENTS), 1);
    }
}
