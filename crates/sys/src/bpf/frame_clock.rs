//! An eBPF program that lets packets depart only at the ticks of a clock: it sets each packet's departure time,
//! and `fq` holds it until then. Same requirements as [`super::egress`].

use std::io;
use std::os::fd::OwnedFd;

use super::egress::{BPF_FUNC_KTIME_GET_NS, CALL, SKB_TIME};
use super::{
    ADD_CONSTANT, EXIT, FILTER, Instruction, MOVE, MOVE_CONSTANT, STORE_64, TC_ACT_UNSPEC, instruction, load,
};

const DIVIDE_CONSTANT: u8 = 0x37;
const MULTIPLY_CONSTANT: u8 = 0x27;

/// Loads the program for a clock with this period, nanoseconds, up to 2.1 s. It ticks at multiples of the period
/// on the monotonic clock. Attach it with `Netlink::filter_egress` of `landspeed-netlink`, in front of an `fq`
/// without pacing.
pub fn frame_clock(period_ns: u64) -> io::Result<OwnedFd> {
    let period = i32::try_from(period_ns).ok().filter(|&period| period > 0);
    let period = period.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "a period is 1 ns to 2.1 s"))?;
    load(FILTER, &instructions(period))
}

/// Registers: r6: the packet; r3: the next tick.
fn instructions(period: i32) -> Vec<Instruction> {
    let constant = |code, register, value| instruction(code, register, 0, 0, value);
    vec![
        instruction(MOVE, 6, 1, 0, 0),
        constant(CALL, 0, BPF_FUNC_KTIME_GET_NS),
        instruction(MOVE, 3, 0, 0, 0),
        constant(DIVIDE_CONSTANT, 3, period),
        constant(ADD_CONSTANT, 3, 1),
        constant(MULTIPLY_CONSTANT, 3, period),
        instruction(STORE_64, 6, 3, SKB_TIME, 0),
        constant(MOVE_CONSTANT, 0, TC_ACT_UNSPEC),
        constant(EXIT, 0, 0),
    ]
}
