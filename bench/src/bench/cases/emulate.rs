//! Path emulators: `landspeed emulate`, rattan, mahimahi and netem, each on one core between two network
//! namespaces.
//!
//! The sender and the receiver share the other core. Rates count frames at the receiver's interface. Delay errors
//! are measured in the same way for all: each frame carries its send time, the kernel timestamps its arrival, and
//! both clocks are `CLOCK_REALTIME`.

use std::cell::RefCell;
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::bench::Bench;
use crate::bench::case::{Case, Measure, Role};
use crate::bench::child::run;
use crate::bench::emulate::{Emulator, Offered, Path, Rig, check_requirements, delays, offer, overload};
use crate::bench::row::{Better, Unit};
use crate::bench::tools::Found;
use crate::machine;

/// Link rate of the emulated path, above the capacity of any emulator here.
const RATE_BPS: u64 = 100_000_000_000;
const DELAY_MS: u64 = 10;
/// Maximum loss ratio of a rate that counts as loss-free.
const LOSS_FREE: f64 = 0.001;
/// Maximum steps of the search.
const STEPS: u32 = 7;
/// Relative precision at which the search stops.
const PRECISION: f64 = 0.03;
/// Loads of the delay cases, as shares of a maximum rate.
const LOADS: [f64; 3] = [0.01, 0.5, 0.8];
/// Frame size in the delay cases, bytes including the Ethernet header.
const FRAME_BYTES: usize = 1514;
/// Duration of each load, nanoseconds.
const LOAD_NS: u64 = 1_000_000_000;

type Contestant = (Role, &'static str, Found<Emulator>);

/// Returns the emulators to compare.
fn contestants(bench: &Bench) -> Vec<Contestant> {
    let program = |name: &str, rival: &str| {
        machine::find(name).ok_or_else(|| format!("{name} is not there: `cargo xtask bench rivals {rival}`"))
    };
    let ready = |emulator: Result<Emulator, String>| check_requirements().and(emulator).map(Rc::new);
    vec![
        (
            Role::Ours,
            "landspeed",
            ready(bench.tools.landspeed.clone().map(|tool| Emulator::Landspeed(tool.0.clone()))),
        ),
        (Role::Rival, "rattan", ready(program("rattan", "rattan").map(Emulator::Rattan))),
        (Role::Rival, "netem", ready(has_netem().map(|()| Emulator::Netem))),
        (Role::RivalVariant, "mahimahi", ready(program("mm-delay", "mahimahi").map(Emulator::Mahimahi))),
        (Role::RivalVariant, "no emulator", ready(Ok(Emulator::Wire))),
    ]
}

fn has_netem() -> Result<(), String> {
    check_requirements()?;
    let mut command = Command::new("unshare");
    command.args(["--net", "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"]);
    match run(&mut command, Duration::from_secs(5)) {
        Ok(finished) if finished.status.success() => Ok(()),
        _ => Err("this kernel has no netem; the lab's kernel has it, but its time is virtual, so neither its speed nor its delay \
                  error can be compared"
            .to_owned()),
    }
}

/// Returns a path for frames of this size, with a rate that no emulator reaches.
fn path(frame_bytes: usize) -> Path {
    Path { rate_bps: RATE_BPS, delay_ms: DELAY_MS, mtu: (frame_bytes as u32 - 14).max(1500) }
}

/// Throughput of a path with 10 ms delay: frames per second, or bits per second for jumbo frames.
pub fn rate(bench: &Bench, name: &str, frame_bytes: usize) -> Case {
    rates(bench, name, frame_bytes, path(frame_bytes), &["landspeed", "rattan", "netem", "mahimahi", "no emulator"])
}

/// Throughput of jumbo frames on a path with 1600 ms delay, bits per second: 2 GB in flight at 10 Gb/s.
pub fn long(bench: &Bench, name: &str) -> Case {
    let path = Path { rate_bps: 10_000_000_000, delay_ms: 1600, mtu: 9000 };
    rates(bench, name, 9014, path, &["landspeed", "rattan", "netem"]).rounds(3)
}

fn rates(bench: &Bench, name: &str, frame_bytes: usize, path: Path, who: &[&str]) -> Case {
    let (unit, scale) =
        if frame_bytes >= 9000 { (Unit::Bps, frame_bytes as f64 * 8.0) } else { (Unit::PacketsPerS, 1.0) };
    let mut case = Case::new(name)
        .metric("delivered, loss ≤ 0.1 %", unit, Better::Higher, Some(3.0))
        .metric("delivered under overload", unit, Better::Higher, None)
        .metric("offered under overload", unit, Better::Higher, None);
    for (role, name, emulator) in contestants(bench).into_iter().filter(|(_, name, _)| who.contains(name)) {
        if name == "mahimahi" && path.mtu > 1500 {
            case = case.without(name, "its interfaces have an MTU of 1500");
            continue;
        }
        case = case.with(role, name, &emulator, |emulator| {
            Ok(Box::new(move || {
                let mut rig = Rig::start(&emulator, path)?;
                rig.settle(frame_bytes)?;
                let warm_ns = path.delay_ms * 1_000_000 + 200_000_000;
                let [offered, over] = overload(&rig, frame_bytes, warm_ns, 500_000_000)?;
                // Drain the queue of the overloaded emulator.
                offer(&rig, frame_bytes, Some(100.0), 20_000_000)?;
                let most = search(1.3 * over, |rate| offer(&rig, frame_bytes, Some(rate), 300_000_000))?;
                rig.stop()?;
                Ok(vec![most * scale, over * scale, offered * scale])
            }) as Measure)
        });
    }
    case
}

/// Searches for the highest rate below `high` without loss, frames per second.
fn search(mut high: f64, mut attempt: impl FnMut(f64) -> Result<Offered>) -> Result<f64> {
    ensure!(high > 0.0, "nothing arrives under overload");
    let mut low = 0.0;
    for step in 0..STEPS {
        let rate = if step == 0 { 0.7 * high } else { f64::midpoint(low, high) };
        let outcome = attempt(rate)?;
        // Limited by the sender, not by the emulator.
        let reached = outcome.sent_per_s();
        if outcome.lost() <= LOSS_FREE {
            low = reached.max(low);
            if reached < 0.97 * rate {
                break;
            }
        } else {
            high = rate;
        }
        if high - low < PRECISION * high {
            break;
        }
    }
    Ok(low)
}

/// Measures the highest loss-free rate of the delay measurement, which sends timestamped frames one by one;
/// frames per second.
fn maximum(rig: &mut Rig) -> Result<f64> {
    rig.settle(FRAME_BYTES)?;
    let over = delays(rig, FRAME_BYTES, None, 300_000_000)?.offered;
    let high = over.delivered as f64 * 1e9 / over.length_ns as f64;
    offer(rig, FRAME_BYTES, Some(100.0), 20_000_000)?;
    search(1.3 * high, |rate| Ok(delays(rig, FRAME_BYTES, Some(rate), 200_000_000)?.offered))
}

/// Delay errors at shares of each emulator's own maximum rate.
pub fn delay_own(bench: &Bench, name: &str) -> Case {
    delay(bench, name, false)
}

/// Delay errors at equal loads: shares of the lowest maximum rate of landspeed and its rivals.
pub fn delay_equal(bench: &Bench, name: &str) -> Case {
    delay(bench, name, true)
}

fn delay(bench: &Bench, name: &str, is_equal: bool) -> Case {
    // Maximum rate of each contestant, measured once before the first round.
    let maxima: Rc<RefCell<Vec<(Role, f64)>>> = Rc::default();
    let mut case = Case::new(name);
    for load in LOADS {
        let percent = load * 100.0;
        case = case.metric(&format!("load {percent} %, delay error p50"), Unit::Ns, Better::Lower, None).metric(
            &format!("load {percent} %, delay error p99"),
            Unit::Ns,
            Better::Lower,
            is_equal.then_some(0.2),
        );
    }
    case = case.metric("load 80 %", Unit::PacketsPerS, Better::Higher, None);
    for (role, name, emulator) in contestants(bench) {
        let maxima = Rc::clone(&maxima);
        case = case.with(role, name, &emulator, |emulator| {
            let mut rig = Rig::start(&emulator, path(FRAME_BYTES))?;
            let own = maximum(&mut rig)?;
            rig.stop()?;
            println!("  {name}: at most {}", Unit::PacketsPerS.show(own));
            maxima.borrow_mut().push((role, own));
            Ok(Box::new(move || {
                let judged = maxima.borrow();
                let judged = judged.iter().filter(|(role, _)| matches!(role, Role::Ours | Role::Rival));
                let slowest = judged.map(|(_, most)| *most).fold(f64::INFINITY, f64::min);
                let most = if is_equal { slowest } else { own };
                let mut rig = Rig::start(&emulator, path(FRAME_BYTES))?;
                rig.settle(FRAME_BYTES)?;
                let mut values = Vec::new();
                for load in LOADS {
                    let found = delays(&rig, FRAME_BYTES, Some(most * load), LOAD_NS)?;
                    ensure!(found.offered.lost() < 0.05, "{:.0} % lost", found.offered.lost() * 100.0);
                    let of = |p| found.errors.quantile(p).unwrap_or(0) as f64;
                    // Without an emulator the path has no delay; the error is that of the method.
                    values.extend([of(0.5), of(0.99)]);
                }
                rig.stop()?;
                values.push(most * LOADS[2]);
                Ok(values)
            }) as Measure)
        });
    }
    case
}
