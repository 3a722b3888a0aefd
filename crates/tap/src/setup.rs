//! Preparation of a tap: filters, ring sizes, warnings, and file headers.

use landspeed_model::Warning;
use landspeed_sys::filter::Instruction;
use landspeed_sys::ring::{RingOptions, enable_hardware_time};
use landspeed_wire::LinkType;
use landspeed_wire::capture::write;

use crate::TapError;
use crate::filter;
use crate::options::{Clock, Options, TapDirection};
use crate::subject::Subject;

/// Time after which the kernel passes on a block that is not full, ms.
pub const BLOCK_TIMEOUT_MS: u32 = 50;
/// Maximum size of a block in a ring, bytes.
const BLOCK_BYTES: u64 = 1 << 20;
/// Minimum number of blocks in a ring, unless the ring is very small.
const BLOCKS: u64 = 16;

/// Compiles the filter for an interface.
pub fn program(options: &Options, subject: &Subject) -> Result<Vec<Instruction>, TapError> {
    let asked = options.filter.as_deref().unwrap_or_default();
    let program = filter::compile(asked, subject.link, options.snap_bytes)?;
    Ok(if options.direction == TapDirection::Out { filter::outbound(&program) } else { program })
}

/// Size (bytes) and number of the blocks of one ring.
pub fn geometry(options: &Options) -> (u32, u32) {
    let bytes = options.ring_bytes / u64::from(options.rings.max(1));
    let fitting = (bytes / BLOCKS).max(1);
    // Round down to a power of two.
    let block = (1_u64 << fitting.ilog2()).clamp(64 << 10, BLOCK_BYTES);
    (block as u32, u32::try_from((bytes / block).max(2)).unwrap_or(u32::MAX))
}

pub fn ring_options<'a>(
    options: &Options,
    subject: &Subject,
    filter: &'a [Instruction],
    hardware_time: bool,
    number: u16,
) -> RingOptions<'a> {
    let (block_bytes, blocks) = geometry(options);
    RingOptions {
        ifindex: subject.index,
        block_bytes,
        blocks,
        retire_ms: BLOCK_TIMEOUT_MS,
        filter,
        // On loopback each packet is sent and received; capture it once.
        ignore_outgoing: options.direction == TapDirection::In
            || (subject.loopback && options.direction == TapDirection::Both),
        promiscuous: options.promiscuous,
        hardware_time,
        // Unique per interface and, as far as possible, per tap on this host.
        group: (options.rings > 1).then(|| (std::process::id() as u16).wrapping_mul(64).wrapping_add(number)),
    }
}

pub fn hardware_time(subject: &Subject, warnings: &mut Vec<Warning>) -> bool {
    let Err(why) = enable_hardware_time(&subject.name) else { return true };
    warn(
        warnings,
        "software-time",
        format!("{} stamps no packets itself ({why}): the times are the kernel's", subject.name),
    );
    false
}

pub fn warn_about(subject: &Subject, options: &Options, warnings: &mut Vec<Warning>) {
    if !subject.offloads.is_empty() {
        warn(
            warnings,
            "offloads",
            format!(
                "{} has {} on: captured packets may be larger than those on the wire",
                subject.name,
                subject.offloads.join(", ")
            ),
        );
    }
    if subject.loopback && options.direction == TapDirection::Both {
        let name = &subject.name;
        warn(warnings, "loopback", format!("{name}: every packet passes twice; only received packets are captured"));
    }
    if subject.link == LinkType::RAW {
        warn(warnings, "raw", format!("{} has no link layer: its packets begin with IP", subject.name));
    }
}

/// Adds a warning, unless there is one with the same text.
pub fn warn(warnings: &mut Vec<Warning>, code: &str, message: String) {
    if !warnings.iter().any(|warning| warning.message == message) {
        warnings.push(Warning { code: code.to_owned(), message });
    }
}

/// Encodes the blocks at the start of every file: section and interfaces.
pub fn header_blocks(options: &Options, subjects: &[Subject]) -> Vec<u8> {
    let system = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let system = format!("Linux {}", system.trim());
    let mut bytes = Vec::new();
    write::section(
        &mut bytes,
        &write::Section { system: Some(&system), application: Some(&options.application), ..Default::default() },
    );
    for subject in subjects {
        let clock = match options.clock {
            Clock::Software => "times are the kernel's (CLOCK_REALTIME)",
            Clock::Hardware => "times are the interface's clock's where it has one (often TAI)",
        };
        let offloads = match subject.offloads.as_slice() {
            [] => "no offload joins or cuts packets".to_owned(),
            offloads => format!("offloads that join or cut packets: {}", offloads.join(", ")),
        };
        write::interface(
            &mut bytes,
            &write::Interface {
                name: &subject.name,
                description: subject.description.as_deref(),
                link: subject.link,
                snap_bytes: options.snap_bytes,
                mac: subject.mac,
                speed_bps: subject.speed_bps,
                filter: options.filter.as_deref(),
                system: None,
                comments: &[clock.to_owned(), offloads],
            },
        );
    }
    bytes
}
