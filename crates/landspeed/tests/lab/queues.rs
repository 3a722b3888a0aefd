//! Capacity and drops of buffers of known size.

use crate::common::count;
use crate::lab::scenario::{LabRun, assert_close, note, run};

/// Frame size of a 1472-byte datagram, and its size on the link with framing, bytes.
const FRAME_BYTES: u64 = 1514;
const WIRE_BYTES: u64 = FRAME_BYTES + 24;
/// Frames that fit into a buffer of 100 kB.
const BUFFER_FRAMES: u64 = 100_000 / FRAME_BYTES;

/// Serialization time of a frame, nanoseconds.
fn time_ns(rate_gbps: f64) -> f64 {
    WIRE_BYTES as f64 * 8.0 / rate_gbps
}

/// Number of frames that pass an idle port, of `count` that arrive every `apart_ns` and take `each_ns` each
/// to send: those sent when the last one arrives, plus those that fit into the buffer.
fn accepted_frames(count: u64, apart_ns: f64, each_ns: f64) -> u64 {
    let gone = 1 + ((count - 1) as f64 * apart_ns / each_ns) as u64;
    (gone + BUFFER_FRAMES).min(count)
}

fn sent(ran: &LabRun) -> u64 {
    count(&ran.flow(0)["udp"]["sent_packets"])
}

#[test]
fn burst_drops_equal_the_excess_over_the_buffer() {
    landspeed_testkit::needs_lab_kernel!();
    for burst in [50_u64, 80, 200] {
        let ran = run("burst", &["time=0.3s", "sample=1ms", &format!("flow.0.burst={burst}")]);
        let port = ran.named("queues", "middle->receiver");
        let bursts = sent(&ran) / burst;
        assert!(bursts > 10 && sent(&ran).is_multiple_of(burst), "{} in bursts of {burst}", sent(&ran));
        let expected = bursts * (burst - accepted_frames(burst, time_ns(10.0), time_ns(1.0)));
        let drops = count(&port["drops"]);
        note(
            &format!("drops of {bursts} bursts of {burst}"),
            "packets",
            expected as f64,
            drops as f64,
            "exact",
            &ran,
        );
        assert_eq!(drops, expected);
        assert_eq!(count(&ran.flow(0)["udp"]["lost_packets"]), expected, "the receiver misses as many");
        if burst == 200 {
            let peak = count(&port["peak_bytes"]);
            note(
                "highest backlog of the same",
                "bytes",
                (BUFFER_FRAMES * FRAME_BYTES) as f64,
                peak as f64,
                "exact",
                &ran,
            );
            assert_eq!(peak, BUFFER_FRAMES * FRAME_BYTES, "the buffer was full to the last frame it holds");
        }
    }
}

#[test]
fn an_overloaded_port_passes_its_rate_plus_its_buffer() {
    landspeed_testkit::needs_lab_kernel!();
    let ran = run("overload", &[]);
    let port = ran.named("queues", "middle->receiver");
    let offered = sent(&ran);
    let apart_ns = 1472.0 * 8.0 / 2.0;
    let passed = accepted_frames(offered, apart_ns, time_ns(1.0));
    let drops = count(&port["drops"]);
    assert_close("drops at twice a port's rate", "packets", (offered - passed) as f64, drops as f64, 2e-4, &ran);
    assert_eq!(drops + count(&port["packets"]), offered, "each was dropped there or passed");
    let peak = count(&port["peak_bytes"]);
    note("highest backlog of the same", "bytes", (BUFFER_FRAMES * FRAME_BYTES) as f64, peak as f64, "exact", &ran);
    assert_eq!(peak, BUFFER_FRAMES * FRAME_BYTES);
}

#[test]
fn every_qdisc_works_at_a_port() {
    landspeed_testkit::needs_lab_kernel!();
    let ran = run("qdiscs", &[]);
    let kinds = ["bfifo", "pfifo", "pfifo_fast", "red", "codel", "fq_codel", "cake", "pie", "fq", "sfq"];
    for (flow, kind) in kinds.into_iter().enumerate() {
        let name = kind.replace('_', "-");
        let port = ran.named("queues", &format!("{name}->b-{name}"));
        assert_eq!(port["kind"], kind);
        let sent = count(&ran.flow(flow)["udp"]["sent_packets"]);
        assert!(sent >= 400, "{kind}: {sent} in bursts of 200");
        assert_eq!(count(&port["packets"]) + count(&port["drops"]), sent, "{kind}");
    }
}
