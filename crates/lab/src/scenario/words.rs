//! Keywords of the format, for hints in errors.

use landspeed_problems::FormatTerms;

/// Keywords of scenarios.
pub(super) const KEYWORDS: FormatTerms = FormatTerms {
    arrays: &["link", "flow", "event", "program", "vary"],
    named: &["host", "switch"],
    example: key_example,
};

fn key_example(key: &str) -> Option<&'static str> {
    Some(match key {
        "name" => "add a name: name = \"a 10G path\"",
        "between" => "name the two nodes of the link: between = [\"a\", \"b\"]",
        "rate" => "add the link's rate: rate = \"10G\"",
        "from" => "name the client, which sends: from = \"a\"",
        "host" => "name the host it runs on: host = \"a\"",
        "at" => "say when: at = \"5s\"",
        "for" => "say how long: for = \"2s\"",
        "burst" => "add the burst that passes at once: burst = \"100KB\"",
        "run" => "name program and arguments: run = [\"iperf3\", \"-s\"]",
        "to" => "name the server: to = \"b\"",
        "kind" => "name the queueing discipline: kind = \"bfifo\"",
        "spread" => "add the width: spread = \"1ms\"",
        "key" => "name the key to vary: key = \"switch.west.queue.limit\"",
        "values" => "list its values: values = [\"1MB\", \"16MB\"]",
        "p" | "r" => "set p (good to bad) and r (bad to good), probabilities per frame",
        _ => return None,
    })
}
