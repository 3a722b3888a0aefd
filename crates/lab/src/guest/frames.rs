//! Frames between two interfaces while a model holds them.

use landspeed_emulation::frame;
use landspeed_sys::filter::Instruction;
use landspeed_sys::frames::{FrameRing, ReceivedFrame, SEND_BATCH};

use crate::scenario::ETHERNET_HEADER;

/// Maximum wait for frames, virtual nanoseconds: then the end of the run is noticed.
pub const MAX_WAIT_NS: u64 = 100_000_000;
/// Size of each receive ring, bytes: a host's burst of small frames at one time.
const RING_BYTES: usize = 8 << 20;
/// Capacity of a slot for a VLAN tag and alignment, bytes.
const SLOT_MARGIN: usize = 8;

/// Opens a ring of an interface's frames, in the network namespace of the calling thread.
pub fn open(interface: u32, mtu: u32) -> Result<FrameRing, String> {
    let frame_bytes = (mtu + ETHERNET_HEADER) as usize + SLOT_MARGIN;
    let ring = FrameRing::open(interface, frame_bytes, RING_BYTES);
    started(ring.map_err(|e| format!("cannot receive frames: {e}"))?)
}

/// Opens a ring that only sends, in the network namespace of the calling thread.
pub fn open_to_send(interface: u32) -> Result<FrameRing, String> {
    let ring = FrameRing::filtered(interface, 64, 4096, &[Instruction::pass(0)]);
    started(ring.map_err(|e| format!("cannot send frames: {e}"))?)
}

fn started(ring: FrameRing) -> Result<FrameRing, String> {
    ring.start().map_err(|e| format!("cannot receive frames: {e}"))?;
    Ok(ring)
}

/// Stored frames, by the handle that a model has.
#[derive(Default)]
pub struct FrameStore {
    frames: Vec<StoredFrame>,
    free: Vec<usize>,
}

#[derive(Default)]
struct StoredFrame {
    bytes: Vec<u8>,
    uses: u32,
}

impl FrameStore {
    /// Stores a frame with its VLAN tag and checksum; `None` if the ring truncated it.
    pub fn store(&mut self, received: &ReceivedFrame<'_>) -> Option<usize> {
        if received.data.len() < received.original_bytes as usize {
            return None;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.frames.push(StoredFrame::default());
            self.frames.len() - 1
        });
        let stored = &mut self.frames[slot];
        stored.uses = 1;
        stored.bytes.clear();
        match (&received.vlan, received.data.split_at_checked(12)) {
            (Some(tag), Some((addresses, rest))) => {
                stored.bytes.extend_from_slice(addresses);
                stored.bytes.extend_from_slice(tag);
                stored.bytes.extend_from_slice(rest);
            }
            _ => stored.bytes.extend_from_slice(received.data),
        }
        if received.checksum_missing {
            frame::complete_checksum(&mut stored.bytes);
        }
        Some(slot)
    }

    /// Returns the bytes of a frame.
    pub fn bytes(&self, item: usize) -> &[u8] {
        &self.frames[item].bytes
    }

    /// Returns the bytes of a frame, to change them.
    pub fn bytes_mut(&mut self, item: usize) -> &mut [u8] {
        &mut self.frames[item].bytes
    }

    /// Counts another use of a frame.
    pub fn copy(&mut self, item: usize) {
        self.frames[item].uses += 1;
    }

    /// Ends a use of a frame.
    pub fn release(&mut self, item: usize) {
        let stored = &mut self.frames[item];
        stored.uses = stored.uses.saturating_sub(1);
        if stored.uses == 0 {
            self.free.push(item);
        }
    }

    /// Sends frames and ends their use. Returns how many could not be sent and are lost.
    pub fn send(&mut self, ring: &FrameRing, items: impl Iterator<Item = usize>) -> u64 {
        let items: Vec<usize> = items.collect();
        let (mut sent, mut failed) = (0, 0);
        while sent < items.len() {
            let batch = &items[sent..items.len().min(sent + SEND_BATCH)];
            let mut frames: [&[u8]; SEND_BATCH] = [&[]; SEND_BATCH];
            for (bytes, item) in frames.iter_mut().zip(batch) {
                *bytes = &self.frames[*item].bytes;
            }
            let count = ring.send(&frames[..batch.len()]).unwrap_or(0);
            // If none was sent, the first one cannot be.
            failed += u64::from(count == 0);
            let done = count.max(1);
            for item in &items[sent..sent + done] {
                self.release(*item);
            }
            sent += done;
        }
        failed
    }
}
