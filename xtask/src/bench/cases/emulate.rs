//! Emulated paths: `landspeed emulate` beside rattan, mahimahi and netem, each on one core between two network namespaces.

use std::rc::Rc;

use anyhow::{Result, ensure};

use crate::bench::Bench;
use crate::bench::case::{Case, Measure, Role};
use crate::bench::emulate::{Emulator, Path, Rig, offer, overload};
use crate::bench::row::{Better, Unit};
use crate::bench::tools::Found;
use crate::machine;

/// More than any emulator carries here.
const RATE_BPS: u64 = 100_000_000_000;
const DELAY_MS: u64 = 10;
/// Largest share of frames that a rate without loss may lose.
const LOSS_FREE: f64 = 0.001;
/// Steps of the search.
const STEPS: u32 = 6;

/// Who takes part.
fn contestants(bench: &Bench) -> Vec<(Role, &'static str, Found<Emulator>)> {
    let program = |name: &str| machine::find(name).ok_or_else(|| format!("{name} is not there: `cargo xtask bench rivals {name}`"));
    let ready = |emulator: Result<Emulator, String>| {
        crate::bench::emulate::needed().and(emulator).map(Rc::new)
    };
    vec![
        (Role::Ours, "landspeed", ready(bench.tools.landspeed.clone().map(|tool| Emulator::Landspeed(tool.0.clone())))),
        (Role::Rival, "rattan", ready(program("rattan").map(Emulator::Rattan))),
        (Role::RivalToo, "no emulator", ready(Ok(Emulator::Wire))),
    ]
}

/// Frames per second, or bits per second of frames of 9000 bytes and more.
pub fn rate(bench: &Bench, name: &str, frame_bytes: usize) -> Case {
    let (unit, scale) =
        if frame_bytes >= 9000 { (Unit::Bps, frame_bytes as f64 * 8.0) } else { (Unit::PacketsPerS, 1.0) };
    let mut case = Case::new(name)
        .metric("delivered, loss ≤ 0.1 %", unit, Better::Higher, Some(3.0))
        .metric("delivered under overload", unit, Better::Higher, None)
        .metric("offered under overload", unit, Better::Higher, None);
    let path = Path { rate_bps: RATE_BPS, delay_ms: DELAY_MS, mtu: (frame_bytes as u32 - 14).max(1500) };
    for (role, name, emulator) in contestants(bench) {
        case = case.with(role, name, &emulator, |emulator| {
            Ok(Box::new(move || {
                let mut rig = Rig::start(&emulator, path)?;
                rig.settle(frame_bytes)?;
                let [most, offered, over] = search(&rig, frame_bytes)?;
                rig.stop()?;
                Ok(vec![most * scale, over * scale, offered * scale])
            }) as Measure)
        });
    }
    case
}

/// The largest rate without loss, and the rates offered and delivered under overload, frames per second.
fn search(rig: &Rig, frame_bytes: usize) -> Result<[f64; 3]> {
    let [offered, over] = overload(rig, frame_bytes, 300_000_000, 500_000_000)?;
    ensure!(over > 0.0, "nothing arrives under overload");
    // What an overloaded emulator has queued leaves first.
    offer(rig, frame_bytes, Some(100.0), 20_000_000)?;
    let (mut low, mut high) = (0.0, 1.3 * over);
    for _ in 0..STEPS {
        let rate = if low == 0.0 { high * 0.6 } else { f64::midpoint(low, high) };
        let outcome = offer(rig, frame_bytes, Some(rate), 300_000_000)?;
        if outcome.lost() <= LOSS_FREE {
            low = outcome.sent_per_s().max(low);
        } else {
            high = rate;
        }
        if high - low < 0.02 * high {
            break;
        }
    }
    Ok([low, offered, over])
}
