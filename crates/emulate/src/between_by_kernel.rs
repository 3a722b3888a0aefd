//! An emulated path between two interfaces in the kernel datapath. As for a path on one interface, BPF programs
//! at the TCX hooks redirect arriving frames into veth links to an unnamed network namespace, and frames that
//! come back to the other interface; the queueing disciplines of both interfaces stay unchanged.

use std::io;
use std::os::fd::OwnedFd;

use landspeed_netlink::configure::LinkSettings;
use landspeed_netlink::{LinkId, Netlink};
use landspeed_sys::bpf::steer::{Attachment, Hook, Mark, drop_unmarked, forward};
use landspeed_sys::clock::{monotonic_ns, sleep_until};
use landspeed_sys::frames::{FrameRing, Promiscuous};
use landspeed_sys::netns;
use landspeed_sys::process::{Capability, has_capability};

use crate::between::Between;
use crate::carry::{Ends, is_probe, probe, send_probe};
use crate::error::EmulateError;
use crate::namespaces::on_new_thread;
use crate::on::{enter_path_namespace, is_up, make_links, new_mark, refused};

/// Duration of the loop probe, nanoseconds.
const PROBE_NS: u64 = 100_000_000;
/// Size of each receive ring for the loop probe, bytes.
const PROBE_RING_BYTES: usize = 1 << 20;
/// Maximum frame size in these rings, bytes.
const PROBE_FRAME_BYTES: usize = 128;

const EPERM: i32 = 1;
/// Advice for when the kernel refuses to attach programs.
const ADVICE: &str = "Leave out --datapath kernel: the userspace datapath needs no program at the interfaces.";

/// A path between two interfaces; removed when dropped or when the process ends.
#[derive(Debug)]
pub struct BetweenByKernel {
    interfaces: [u32; 2],
    middle: OwnedFd,
    /// The veth interfaces outside of the path's namespace.
    outside: [u32; 2],
    mark: Mark,
    _returns: Vec<Attachment>,
    _promiscuous: [Promiscuous; 2],
}

/// Arriving frames take the path until this is dropped.
#[derive(Debug)]
pub struct BetweenDiversion {
    _taken: [Attachment; 2],
}

impl BetweenByKernel {
    /// Prepares the path between two interfaces that passed the checks; no traffic takes it yet.
    pub fn open(between: &Between, mtu_bytes: u32) -> Result<Self, EmulateError> {
        let names = between.names();
        if ![Capability::SysAdmin, Capability::NetAdmin].into_iter().all(has_capability) {
            return Err(refused(&names[0], io::Error::from_raw_os_error(EPERM), ADVICE));
        }
        let mut netlink = Netlink::open()?;
        let links = [netlink.link(LinkId::Name(&names[0]))?, netlink.link(LinkId::Name(&names[1]))?];
        let interfaces = [links[0].index, links[1].index];
        refuse_loop(names, interfaces)?;
        let middle = on_new_thread(|| netns::unshare().and_then(|()| netns::current()))
            .map_err(EmulateError::system("make a network namespace"))?;
        let outside = make_links(&links[0], &middle, mtu_bytes)?;
        let mark = new_mark();
        let attach = |side: usize| -> io::Result<[Attachment; 2]> {
            Ok([drop_unmarked(outside[side], mark)?, forward(outside[side], interfaces[side], Hook::Egress, mark)?])
        };
        let mut returns = Vec::new();
        let mut promiscuous = Vec::new();
        for side in [0, 1] {
            returns.extend(attach(side).map_err(|cause| refused(&names[side], cause, ADVICE))?);
            let taken = Promiscuous::make(interfaces[side]);
            promiscuous.push(taken.map_err(|cause| EmulateError::Ring { interface: names[side].clone(), cause })?);
            let up = LinkSettings { up: Some(true), ..LinkSettings::default() };
            netlink.set_link(LinkId::Index(outside[side]), &up)?;
        }
        let promiscuous = promiscuous.try_into().unwrap_or_else(|_| unreachable!("one for each side"));
        Ok(Self { interfaces, middle, outside, mark, _returns: returns, _promiscuous: promiscuous })
    }

    /// Moves the calling thread into the path's namespace; returns the path's interfaces.
    pub fn enter_path(&self) -> Result<Ends, EmulateError> {
        enter_path_namespace(&self.middle, self.outside)
    }

    /// Starts to redirect arriving frames into the path.
    pub fn divert(&self) -> Result<BetweenDiversion, EmulateError> {
        let take = |side: usize| forward(self.interfaces[side], self.outside[side], Hook::Egress, self.mark);
        let taken = take(0).and_then(|first| Ok([first, take(1)?]));
        Ok(BetweenDiversion { _taken: taken.map_err(|cause| refused("an interface", cause, ADVICE))? })
    }

    /// Whether both interfaces exist and are up. Call it in their network namespace.
    pub fn is_up(&self) -> bool {
        self.interfaces.into_iter().all(is_up)
    }
}

/// Refuses interfaces that are connected to each other, which would cause a forwarding loop.
fn refuse_loop(names: &[String; 2], interfaces: [u32; 2]) -> Result<(), EmulateError> {
    let open = |side: usize| {
        let ring = FrameRing::open(interfaces[side], PROBE_FRAME_BYTES, PROBE_RING_BYTES);
        ring.and_then(|ring| ring.start().map(|()| ring))
            .map_err(|cause| EmulateError::Ring { interface: names[side].clone(), cause })
    };
    let mut rings = [open(0)?, open(1)?];
    let probe = probe();
    send_probe(&rings, &probe);
    let until_ns = monotonic_ns() + PROBE_NS;
    while monotonic_ns() < until_ns {
        for ring in &mut rings {
            while let Some(frame) = ring.peek() {
                if is_probe(frame.data, &probe) {
                    return Err(EmulateError::interface(
                        &names[0],
                        format!(
                            "what leaves by it or {} arrives at the other: frames would go round for ever",
                            names[1]
                        ),
                        "Use interfaces that lead to different networks.",
                    ));
                }
                ring.release();
            }
        }
        sleep_until(monotonic_ns() + 1_000_000);
    }
    Ok(())
}
