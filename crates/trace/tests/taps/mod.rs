//! Analysis and matching of the captures of two taps.

use landspeed_model::{BuildInfo, TraceDocument};
use landspeed_trace::{Analysis, Limits, Pairing};
use landspeed_wire::LinkType;
use landspeed_wire::capture::Frame;

/// Returns the document of two taps' packets. `packet` returns a packet's time, captured bytes and original
/// length.
pub fn document<T>(
    taps: &[Vec<T>; 2],
    translated: bool,
    packet: impl Fn(&T) -> (u64, Vec<u8>, u32),
) -> TraceDocument {
    let mut analyses = [(); 2].map(|()| Analysis::new(Limits::default()));
    let mut pairing = Pairing::new(translated);
    let mut next = [0; 2];
    while let Some(tap) = pairing.next_tap() {
        let Some(at) = taps[tap as usize].get(next[tap as usize]) else {
            pairing.end(tap);
            continue;
        };
        next[tap as usize] += 1;
        let (time_ns, data, original) = packet(at);
        let frame = Frame { interface: 0, link: LinkType::RAW, time_ns, original, data: &data };
        analyses[tap as usize].frame(&frame);
        pairing.frame(tap, &frame);
    }
    let [mut document, second] =
        analyses.map(|a| a.finish(BuildInfo::default(), Vec::new(), String::new(), "", None, |_| None));
    pairing.finish("near".into(), "far".into()).add_to(&mut document, &second);
    document
}
