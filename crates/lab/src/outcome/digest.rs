//! Hash over all measured results.

use std::fmt::Write as _;

use landspeed_model::{LabDocument, LabProgram};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Returns the SHA-256 of the measured results, in hex. Date, host, speed and user of the run are not included: a
/// document made on another machine has the same digest.
pub fn of(document: &LabDocument) -> String {
    let flows: Vec<Value> = document
        .flows
        .iter()
        .map(|flow| {
            let run = flow.run.as_ref();
            if let Some(section) = &flow.qualify {
                return json!({
                    "name": flow.name,
                    "status": section.status,
                    "verdict": section.verdict,
                    "tests": section.tests,
                    "buffer": section.bottleneck_buffer_interval_bytes,
                    "token_bucket": section.token_bucket,
                    "sent_packets": section.sent_packets,
                });
            }
            json!({
                "name": flow.name,
                "goodput_bps": flow.goodput_bps,
                "retransmits": flow.retransmits,
                "status": run.map(|run| run.status),
                "phases": run.map(|run| &run.phases),
                "streams": run.map(|run| &run.streams),
                "totals": run.map(|run| &run.totals),
                "udp": run.map(|run| &run.udp),
                "latency": run.map(|run| &run.latency),
                "latency_under_load": run.map(|run| &run.latency_under_load),
                "conservation": run.map(|run| &run.conservation),
            })
        })
        .collect();
    let mut measured = json!({
        "scenario": document.scenario.hash,
        "seed": document.seed,
        "kernel": document.kernel.release,
        "flows": flows,
        "queues": document.queues,
        "links": document.links,
        "checks": document.checks,
    });
    if !document.programs.is_empty() {
        let of = |program: &LabProgram| {
            json!([program.name, program.end, program.end_ns, program.exit_status, program.signal])
        };
        measured["programs"] = document.programs.iter().map(of).collect();
    }
    if !document.cpus.is_empty() {
        measured["cpus"] = json!(document.cpus);
    }
    if !document.events.is_empty() {
        measured["events"] = json!(document.events);
    }
    // Keys are sorted (serde_json's map is a BTreeMap); numbers have the shortest form that is parsed to the same
    // value.
    let text = measured.to_string();
    Sha256::digest(text.as_bytes()).iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
