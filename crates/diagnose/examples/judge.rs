//! Judges run documents again: `cargo run -p landspeed-diagnose --example judge -- run.json …`.

use landspeed_diagnose::diagnose;
use landspeed_model::RunDocument;

fn main() {
    for path in std::env::args().skip(1) {
        let document = std::fs::read_to_string(&path).map_err(|why| why.to_string());
        let document =
            document.and_then(|text| serde_json::from_str::<RunDocument>(&text).map_err(|why| why.to_string()));
        match document {
            Err(why) => println!("{path}: {why}"),
            Ok(document) => {
                for &direction in document.requested.direction.parts() {
                    let verdict = diagnose(&document, direction);
                    let place = verdict.place.as_deref().unwrap_or("-");
                    println!("{path}: {:?} {:?} [{place}]", verdict.cause, verdict.confidence);
                    println!("    {}\n    {}", verdict.summary, verdict.next_step);
                }
            }
        }
    }
}
