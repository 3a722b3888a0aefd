//! Recomputes the verdict of stored documents: `cargo run -p landspeed-diagnose --example judge --
//! [--brief] [--hosts|--sender] run.json lab.json …`.
//!
//! `--hosts` drops everything that only a lab records; `--sender` drops the receiver's report too.

use landspeed_diagnose::{diagnose, diagnose_lab};
use landspeed_model::{LabDocument, RunDocument, Verdict};

fn main() {
    let (options, paths): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|word| word.starts_with("--"));
    let has = |option: &str| options.iter().any(|given| given == option);
    for path in paths {
        match judge(&path, has("--hosts") || has("--sender"), has("--sender")) {
            Err(why) => println!("{path}: {why}"),
            Ok(verdicts) => verdicts.iter().for_each(|verdict| print(&path, verdict, has("--brief"))),
        }
    }
}

fn judge(path: &str, hosts: bool, sender: bool) -> Result<Vec<Verdict>, String> {
    let text = std::fs::read_to_string(path).map_err(|why| why.to_string())?;
    let run = |mut run: RunDocument| {
        // Both lab hosts report the same host name; two real hosts differ.
        if let Some(server) = &mut run.hosts.server {
            server.hostname.push_str("-server");
        }
        if sender {
            run.streams.iter_mut().for_each(|stream| stream.receiver = None);
            run.host_series.server = None;
            run.hosts.server = None;
        }
        run.requested.direction.parts().iter().map(|&direction| diagnose(&run, direction)).collect::<Vec<_>>()
    };
    if let Ok(document) = serde_json::from_str::<RunDocument>(&text) {
        return Ok(run(document));
    }
    let lab: LabDocument = serde_json::from_str(&text).map_err(|why| why.to_string())?;
    let of_flow = |flow: &landspeed_model::LabFlow| {
        let document = flow.run.as_ref()?;
        if hosts {
            return Some(run(document.clone()));
        }
        document.requested.direction.parts().iter().map(|&direction| diagnose_lab(&lab, flow, direction)).collect()
    };
    Ok(lab.flows.iter().filter_map(of_flow).flatten().collect())
}

fn print(path: &str, verdict: &Verdict, brief: bool) {
    let place = verdict.place.as_deref().unwrap_or("-");
    let cause = serde_json::to_value(verdict.cause).map_or_else(|why| why.to_string(), |name| name.to_string());
    println!("{path}: {cause} {:?} [{place}]", verdict.confidence);
    if brief {
        return;
    }
    println!("    {}\n    {}", verdict.summary, verdict.next_step);
    for reading in &verdict.evidence {
        println!("      {} {:.4} {} ({})", reading.metric, reading.value, reading.unit, reading.threshold);
    }
    let epochs: Vec<String> =
        verdict.epochs.iter().map(|epoch| format!("{:?} {}", epoch.state, epoch.share_permille)).collect();
    println!("      {}", epochs.join(", "));
}
