//! Receiving several datagrams with one system call.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Buffers for `recvmmsg`, with space for the control messages of UDP streams.
pub struct ReceiveBatch {
    buffer: Vec<u8>,
    message_bytes: usize,
    iovecs: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
    controls: Vec<Control>,
    received: usize,
}

/// A received message: one datagram, or several coalesced ones (`UDP_GRO`).
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    /// Payload of the message.
    pub data: &'a [u8],
    /// Length of each datagram in `data`, bytes; the last one may be shorter. Never zero.
    pub segment_bytes: usize,
    /// Kernel receive time, `CLOCK_REALTIME` nanoseconds; for a coalesced message, that of the first datagram.
    pub timestamp_ns: Option<u64>,
    /// Whether the message was longer than the buffer and was truncated.
    pub truncated: bool,
}

/// Space for a timestamp, a segment size, and other control messages enabled on the socket.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; 128]);

impl ReceiveBatch {
    /// Allocates buffers for `messages` messages of up to `message_bytes` each. Coalesced messages need 65,535.
    ///
    /// # Panics
    /// If either is zero.
    pub fn new(messages: usize, message_bytes: usize) -> Self {
        assert!(messages > 0 && message_bytes > 0, "an empty batch receives nothing");
        // SAFETY: iovec and mmsghdr are plain C structures for which all zeros is a valid value.
        let (iovec, message) = unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        Self {
            buffer: vec![0; messages * message_bytes],
            message_bytes,
            iovecs: vec![iovec; messages],
            messages: vec![message; messages],
            controls: vec![Control([0; 128]); messages],
            received: 0,
        }
    }

    /// Returns the maximum number of messages per call.
    pub fn capacity(&self) -> usize {
        self.messages.len()
    }

    /// Waits for a message (as long as the socket allows), then receives further available ones, up to `limit`
    /// messages. Returns their number; [`ReceiveBatch::message`] reads them.
    pub fn receive(&mut self, fd: BorrowedFd<'_>, limit: usize) -> io::Result<usize> {
        self.receive_with(fd, limit, libc::MSG_WAITFORONE)
    }

    /// Like [`ReceiveBatch::receive`], but never blocks.
    pub fn receive_now(&mut self, fd: BorrowedFd<'_>, limit: usize) -> io::Result<usize> {
        self.receive_with(fd, limit, libc::MSG_DONTWAIT)
    }

    fn receive_with(&mut self, fd: BorrowedFd<'_>, limit: usize, flags: i32) -> io::Result<usize> {
        self.received = 0;
        let count = limit.clamp(1, self.capacity());
        self.prepare(count);
        // SAFETY: `prepare` has pointed the first `count` headers at iovecs, buffer ranges and control space that self
        // owns and that do not overlap; the kernel writes within the lengths given there.
        let received = unsafe {
            libc::recvmmsg(
                fd.as_raw_fd(),
                self.messages.as_mut_ptr(),
                count as u32,
                // The type of this argument differs between C libraries.
                flags as _,
                std::ptr::null_mut(),
            )
        };
        if received < 0 {
            return Err(io::Error::last_os_error());
        }
        self.received = received as usize;
        Ok(self.received)
    }

    fn prepare(&mut self, count: usize) {
        for (i, chunk) in self.buffer.chunks_exact_mut(self.message_bytes).take(count).enumerate() {
            let iovec = &mut self.iovecs[i];
            iovec.iov_base = chunk.as_mut_ptr().cast();
            iovec.iov_len = chunk.len();
            let header = &mut self.messages[i].msg_hdr;
            header.msg_iov = iovec;
            header.msg_iovlen = 1;
            header.msg_control = self.controls[i].0.as_mut_ptr().cast();
            header.msg_controllen = size_of::<Control>();
            header.msg_flags = 0;
        }
    }

    /// Returns message number `index` of the last call.
    ///
    /// # Panics
    /// If fewer were received.
    pub fn message(&self, index: usize) -> Message<'_> {
        assert!(index < self.received, "message {index} of {}", self.received);
        let header = &self.messages[index];
        let length = (header.msg_len as usize).min(self.message_bytes);
        let start = index * self.message_bytes;
        let mut message = Message {
            data: &self.buffer[start..start + length],
            segment_bytes: length.max(1),
            timestamp_ns: None,
            truncated: header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
        };
        read_control(&header.msg_hdr, &mut message);
        message
    }
}

/// Parses the control messages of `header`, filled in by `recvmmsg`.
fn read_control(header: &libc::msghdr, message: &mut Message<'_>) {
    // SAFETY: `header` is as the kernel left it: its control pointer and length describe well-formed control messages
    // in a `Control` that outlives this call, which is all that the CMSG macros ask for. Payloads are read unaligned
    // and only where the message is long enough for them.
    unsafe {
        let mut control = libc::CMSG_FIRSTHDR(header);
        while !control.is_null() {
            let payload = libc::CMSG_DATA(control);
            let length = (*control).cmsg_len.saturating_sub(libc::CMSG_LEN(0) as usize);
            match ((*control).cmsg_level, (*control).cmsg_type) {
                (libc::SOL_UDP, libc::UDP_GRO) if length >= size_of::<i32>() => {
                    let segment = payload.cast::<i32>().read_unaligned();
                    message.segment_bytes = usize::try_from(segment).unwrap_or(0).max(1);
                }
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) if length >= size_of::<libc::timespec>() => {
                    let time = payload.cast::<libc::timespec>().read_unaligned();
                    message.timestamp_ns = Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64);
                }
                _ => {}
            }
            control = libc::CMSG_NXTHDR(header, control);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;
    use std::time::Duration;

    use super::*;
    use crate::udp::{SendBatch, enable_gro, enable_timestamps, gso_supported, set_io_timeout};

    fn pair() -> (UdpSocket, UdpSocket) {
        let receiver = UdpSocket::bind("127.0.0.1:0").expect("loopback exists");
        set_io_timeout(receiver.as_fd(), Duration::from_millis(20)).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        (sender, receiver)
    }

    #[test]
    fn one_call_receives_all_queued_datagrams() {
        let (sender, receiver) = pair();
        for i in 0..5u8 {
            sender.send(&vec![i; 10 + usize::from(i)]).unwrap();
        }
        let mut batch = ReceiveBatch::new(16, 2048);
        assert_eq!(batch.receive(receiver.as_fd(), 16).unwrap(), 5);
        for i in 0..5 {
            let message = batch.message(i);
            assert_eq!((message.data.len(), message.segment_bytes), (10 + i, 10 + i));
            assert!(message.data.iter().all(|&b| usize::from(b) == i) && !message.truncated);
        }
        assert_eq!(batch.receive(receiver.as_fd(), 16).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn empty_datagram_has_no_data_and_nonzero_segment_size() {
        let (sender, receiver) = pair();
        sender.send(&[]).unwrap();
        let mut batch = ReceiveBatch::new(4, 2048);
        assert_eq!(batch.receive(receiver.as_fd(), 4).unwrap(), 1);
        assert_eq!((batch.message(0).data.len(), batch.message(0).segment_bytes), (0, 1));
    }

    #[test]
    fn oversized_datagram_is_marked_truncated() {
        let (sender, receiver) = pair();
        sender.send(&[7; 100]).unwrap();
        let mut batch = ReceiveBatch::new(1, 64);
        assert_eq!(batch.receive(receiver.as_fd(), 1).unwrap(), 1);
        assert!(batch.message(0).truncated);
        assert_eq!(batch.message(0).data.len(), 64);
    }

    #[test]
    fn messages_have_kernel_timestamps() {
        let (sender, receiver) = pair();
        enable_timestamps(receiver.as_fd()).unwrap();
        let before_ns = crate::clock::realtime_ns();
        sender.send(&[0; 10]).unwrap();
        let mut batch = ReceiveBatch::new(1, 64);
        batch.receive(receiver.as_fd(), 1).unwrap();
        let stamp_ns = batch.message(0).timestamp_ns.expect("a timestamp was asked for");
        assert!((before_ns..=crate::clock::realtime_ns()).contains(&stamp_ns));
    }

    #[test]
    fn coalesced_messages_report_their_segment_size() {
        let (sender, receiver) = pair();
        if !gso_supported(sender.as_fd()) || enable_gro(receiver.as_fd(), true).is_err() {
            landspeed_testkit::skip!("no UDP_SEGMENT or UDP_GRO here");
        }
        let mut out = SendBatch::new(5, 100);
        out.send(sender.as_fd(), 0, 5, 5).unwrap();
        let mut batch = ReceiveBatch::new(8, 65_535);
        let mut bytes = 0;
        while bytes < 500 {
            let count = batch.receive(receiver.as_fd(), 8).expect("loopback delivers");
            for i in 0..count {
                assert_eq!(batch.message(i).segment_bytes, 100);
                bytes += batch.message(i).data.len();
            }
        }
        assert_eq!(bytes, 500);
    }
}
