//! Payload buffers, and calls that move more bytes than a buffer contains.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::socket::{check, recv, send};

/// Maximum number of vectors per message (`IOV_MAX`).
const MAX_VECTORS: usize = 1024;
/// Memory of a repeated block, bytes: fits into the L2 cache on both hosts, along with the kernel's own data.
const MEMORY_BYTES: usize = 32 << 10;

/// Payload memory: page-aligned, prefaulted, on huge pages if available.
#[derive(Debug)]
pub struct Buffer {
    pointer: std::ptr::NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is owned by the value and has no thread affinity.
unsafe impl Send for Buffer {}

impl Buffer {
    /// Maps and prefaults `len` bytes (rounded up to pages).
    pub fn new(len: usize) -> io::Result<Self> {
        const HUGE: usize = 2 << 20;
        let page = 4096;
        let len = if len >= HUGE { len.next_multiple_of(HUGE) } else { len.max(1).next_multiple_of(page) };
        // SAFETY: a fresh private anonymous mapping; no existing memory is affected.
        let pointer = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if pointer == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        if len >= HUGE {
            // SAFETY: the range is the mapping just made; the advice changes no content.
            unsafe { libc::madvise(pointer, len, libc::MADV_HUGEPAGE) };
        }
        let pointer = std::ptr::NonNull::new(pointer.cast::<u8>()).ok_or_else(io::Error::last_os_error)?;
        let mut buffer = Self { pointer, len };
        for chunk in buffer.as_mut_slice().chunks_mut(page) {
            chunk[0] = 0;
        }
        Ok(buffer)
    }

    /// Returns the bytes.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the mapping is `len` readable bytes, alive as long as `self`.
        unsafe { std::slice::from_raw_parts(self.pointer.as_ptr(), self.len) }
    }

    /// Returns the bytes for writing.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as above, and exclusively borrowed.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.as_ptr(), self.len) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the range is the mapping made in `new`, unmapped once.
        unsafe { libc::munmap(self.pointer.as_ptr().cast(), self.len) };
    }
}

/// A block of payload in less memory than its length: each call sends from, or receives into, the same bytes
/// repeatedly, so that the memory stays in the CPU's L2 cache however long the calls are.
pub struct RepeatedBuffer {
    buffer: Buffer,
    /// Enough vectors for a whole block, each covering the whole buffer.
    vectors: Vec<libc::iovec>,
}

impl RepeatedBuffer {
    /// Creates a block of `len` bytes.
    pub fn new(len: usize) -> io::Result<Self> {
        let mut buffer = Buffer::new(len.div_ceil(MAX_VECTORS).max(MEMORY_BYTES).min(len))?;
        let memory = buffer.as_mut_slice();
        let vector = libc::iovec { iov_base: memory.as_mut_ptr().cast(), iov_len: memory.len() };
        let vectors = vec![vector; len.div_ceil(memory.len()).max(1)];
        Ok(Self { buffer, vectors })
    }

    /// Returns the repeated bytes for writing.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        self.buffer.as_mut_slice()
    }

    /// Sends up to `want` bytes; returns the number of bytes sent.
    #[inline]
    pub fn send(&mut self, fd: BorrowedFd<'_>, want: usize) -> io::Result<usize> {
        if want <= self.buffer.len {
            return send(fd, &self.buffer.as_slice()[..want], 0);
        }
        self.with_message(want, |message| {
            // SAFETY: the message's vectors describe the buffer, which outlives the call.
            check(unsafe { libc::sendmsg(fd.as_raw_fd(), message, libc::MSG_NOSIGNAL) })
        })
    }

    /// Receives up to `want` bytes; returns the number of bytes received.
    #[inline]
    pub fn receive(&mut self, fd: BorrowedFd<'_>, want: usize) -> io::Result<usize> {
        if want <= self.buffer.len {
            return recv(fd, &mut self.buffer.as_mut_slice()[..want], 0);
        }
        self.with_message(want, |message| {
            // SAFETY: the message's vectors describe the buffer, which outlives the call and is borrowed exclusively. That
            // later bytes overwrite earlier ones is what the kernel may do with memory of plain bytes.
            check(unsafe { libc::recvmsg(fd.as_raw_fd(), message, 0) })
        })
    }

    fn with_message(
        &mut self,
        want: usize,
        call: impl FnOnce(*mut libc::msghdr) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let whole = self.buffer.len;
        let count = want.div_ceil(whole).min(self.vectors.len());
        self.vectors[count - 1].iov_len = (want - (count - 1) * whole).min(whole);
        // SAFETY: all zero is an empty message.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = self.vectors.as_mut_ptr();
        message.msg_iovlen = count as _;
        let moved = call(&raw mut message);
        self.vectors[count - 1].iov_len = whole;
        moved
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn repeated_buffer_sends_its_pattern_exactly() {
        let (near, mut far) = UnixStream::pair().expect("a pair");
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            far.read_to_end(&mut all).map(|_| all)
        });
        let mut block = RepeatedBuffer::new(100_000).expect("memory");
        for (i, byte) in block.as_mut_slice().iter_mut().enumerate() {
            *byte = (i % 251) as u8;
        }
        let pattern = block.as_mut_slice().to_vec();
        let sizes = [1, pattern.len(), pattern.len() + 1, 2 * pattern.len() + 5, 100_000, 7];
        for want in sizes {
            assert_eq!(block.send(near.as_fd(), want).expect("sent"), want);
        }
        drop(near);
        let expected: Vec<u8> = sizes.iter().flat_map(|want| pattern.iter().cycle().take(*want)).copied().collect();
        assert!(reader.join().expect("a reader").expect("read") == expected);
    }

    #[test]
    fn long_reads_receive_every_byte() {
        let (mut near, far) = UnixStream::pair().expect("a pair");
        let sender = std::thread::spawn(move || near.write_all(&vec![9; 300_001]).expect("written"));
        let mut block = RepeatedBuffer::new(1 << 20).expect("memory");
        let mut total = 0;
        loop {
            match block.receive(far.as_fd(), 1 << 20).expect("read") {
                0 => break,
                n => total += n,
            }
        }
        sender.join().expect("a sender");
        assert_eq!((total, block.as_mut_slice()[0]), (300_001, 9));
    }
}
