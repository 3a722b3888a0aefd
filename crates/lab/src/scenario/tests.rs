//! Parsing: an accepted scenario becomes the intended cells, and a mistake is reported so that it can be fixed.

mod refused;
mod whole;

use super::*;

const BASE: &str = r#"name = "two hosts"
[host.a]
[host.b]
[switch.s]
queue = { kind = "bfifo", limit = "1MB" }
[[link]]
between = ["a", "s"]
rate = "10G"
delay = "25ms"
[[link]]
between = ["s", "b"]
rate = "10G"
[[flow]]
from = "a"
to = "b"
"#;

fn cells(extra: &str) -> Vec<Cell> {
    read(&format!("{extra}\n{BASE}")).unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn a_plain_scenario_is_one_cell() {
    let cells = cells("seed = 7");
    assert_eq!(cells.len(), 1);
    assert_eq!((cells[0].seed, cells[0].scenario.seed, cells[0].scenario.repeats), (7, 7, 1));
    assert!(cells[0].values.is_empty());
    assert_eq!(cells[0].hash.len(), 64);
}

#[test]
fn cells_cover_all_combinations_first_key_slowest() {
    let text = format!(
        "repeats = 2\nseed = 40\n{BASE}\n[[vary]]\nkey = \"switch.s.queue.limit\"\nlabel = \"buffer\"\nvalues = [\"1MB\", \"16MB\"]\n\
         [[vary]]\nkey = \"host.*.congestion\"\nvalues = [\"cubic\", \"bbr\", \"reno\"]\n"
    );
    let cells = read(&text).unwrap_or_else(|problems| panic!("{problems}"));
    let seen: Vec<_> =
        cells.iter().map(|c| (c.values["buffer"].clone(), c.values["host.*.congestion"].clone(), c.seed)).collect();
    let expected: Vec<_> = ["1MB", "16MB"]
        .iter()
        .flat_map(|b| {
            ["cubic", "bbr", "reno"].iter().flat_map(move |c| [40, 41].map(|s| ((*b).into(), (*c).into(), s)))
        })
        .collect();
    assert_eq!(seen, expected);
    let last = &cells[11].scenario;
    assert!(last.vary.is_empty());
    assert!(last.host.values().all(|h| h.congestion.as_deref() == Some("reno")));
    assert_eq!(cells[0].hash, cells[1].hash, "seeds are not part of the hash");
    assert_ne!(cells[0].hash, cells[2].hash);
    assert_ne!(cells[0].hash, cells[6].hash);
}

#[test]
fn absent_keys_are_created_in_their_table() {
    for (key, value) in [
        ("hosts.congestion", "\"bbr\""),
        ("hosts.qdisc.kind", "\"pfifo\""),
        ("hosts.sysctl.net.ipv4.tcp_sack", "0"),
        ("host.a.sysctl.\"net.ipv4.tcp_sack\"", "0"),
        ("kernel", "\"7.3\""),
        ("link.*.loss", "\"1/22000\""),
        ("link.0.loss.every", "22000"),
        ("link.1.reverse.rate", "\"1G\""),
        ("flow.0.streams", "4"),
        ("switch.s.port.b", "\"fq_codel\""),
        ("switch.s.queue", "{ kind = \"red\", limit = \"1MB\" }"),
        ("link.0.between", "[\"b\", \"s\"]"),
    ] {
        let text = format!("{BASE}\n[[vary]]\nkey = '{key}'\nvalues = [{value}]\n");
        let cells = read(&text).unwrap_or_else(|problems| panic!("{key}: {problems}"));
        assert_ne!(cells[0].hash, self::cells("")[0].hash, "{key}");
    }
}

#[test]
fn the_hash_covers_only_what_affects_the_run() {
    let same = |other: &str| assert_eq!(read(other).unwrap_or_else(|p| panic!("{p}"))[0].hash, cells("")[0].hash);
    same(&BASE.replace("name = \"two hosts\"", "# a comment\nname = \"other\"\ndescription = \"words\"\nseed = 9"));
    same(&BASE.replace("\"25ms\"", "\"25000us\"").replace("\"10G\"", "10_000_000_000"));
    same(&BASE.replace("kind = \"bfifo\", limit = \"1MB\"", "limit = 1_000_000, kind = \"bfifo\""));
    for (from, to) in
        [("25ms", "25.000001ms"), ("10G", "10.001G"), ("1MB", "1MiB"), ("to = \"b\"", "to = \"b\"\nstreams = 2")]
    {
        assert_ne!(
            read(&BASE.replace(from, to)).unwrap_or_else(|p| panic!("{p}"))[0].hash,
            cells("")[0].hash,
            "{to}"
        );
    }
}

#[test]
fn scenarios_round_trip() {
    let text = BASE
        .replace("\"10G\"", "\"9.412345678G\"")
        .replace("delay = \"25ms\"", "delay = \"25.3ms\"\nloss = \"1/22000\"");
    let scenario = &read(&text).unwrap_or_else(|p| panic!("{p}"))[0].scenario;
    let json = serde_json::to_string(scenario).expect("plain data");
    let back: Scenario = serde_json::from_str(&json).expect("what was written");
    assert_eq!(&back, scenario);
}
