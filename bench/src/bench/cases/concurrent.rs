//! Many concurrent clients on one server. No rival can do this: iperf3 serves one client at a time, nuttcp one
//! after another.

use anyhow::Result;
use serde_json::Value;

use crate::bench::Bench;
use crate::bench::case::{Case, Measure, Role};
use crate::bench::net::free_port;
use crate::bench::row::{Better, Unit};

const CLIENTS: usize = 64;

/// Duration of each of the 64 tests, seconds.
const RUN_S: u32 = 3;

/// Counts how many of 64 tests on one server complete with data received and balanced accounting.
pub fn case(bench: &Bench, name: &str) -> Case {
    Case::new(name).rounds(1).metric("of 64 tests, complete and balanced", Unit::Count, Better::Higher, None).with(
        Role::Ours,
        "landspeed",
        &bench.tools.landspeed,
        |tool| {
            let port = free_port()?;
            let server = tool.serve_on(port, None, &["--max-tests", &(2 * CLIENTS).to_string()])?;
            Ok(Box::new(move || {
                let _alive = &server;
                let clients: Vec<_> =
                    (0..CLIENTS).map(|_| tool.start(port, RUN_S, None, &[])).collect::<Result<_>>()?;
                let mut balanced = 0;
                for client in clients {
                    match client.finish() {
                        Ok(document) if is_balanced(&document) => balanced += 1,
                        Ok(_) => println!("     a test moved nothing or its accounting does not balance"),
                        Err(error) => println!("     {error:#}"),
                    }
                }
                Ok(vec![f64::from(balanced)])
            }) as Measure)
        },
    )
}

fn is_balanced(document: &Value) -> bool {
    let holds = document.pointer("/conservation/holds").and_then(Value::as_bool);
    let bytes = document.pointer("/summary/bytes_delivered").and_then(Value::as_u64);
    holds == Some(true) && bytes.is_some_and(|bytes| bytes > 0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_balanced_tests_with_data_count() {
        let document = |holds: bool, bytes: u64| json!({ "conservation": { "holds": holds }, "summary": { "bytes_delivered": bytes } });
        assert!(is_balanced(&document(true, 1)));
        assert!(!is_balanced(&document(true, 0)));
        assert!(!is_balanced(&document(false, 1)));
        assert!(!is_balanced(&json!({})));
    }
}
