use serde_json::json;

use super::*;

fn records(bytes: &[u8]) -> Vec<Record> {
    let read = super::super::read(bytes).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(read.kind, "iperf3");
    read.records
}

fn of(document: &Value) -> Record {
    records(document.to_string().as_bytes()).remove(0)
}

fn bytes_of(name: &str) -> Vec<u8> {
    let path = format!("{}/../../fixtures/iperf3/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|why| panic!("{path}: {why}"))
}

fn fixture(name: &str) -> Record {
    records(&bytes_of(name)).remove(0)
}

/// A document of a client or server, with the sums of its end.
#[expect(clippy::needless_pass_by_value, reason = "the cases are written as values")]
fn document(client: bool, protocol: &str, reverse: u8, end: Value) -> Value {
    let peer = if client { "connecting_to" } else { "accepted_connection" };
    json!({
        "start": {
            "version": "iperf 3.7", "system_info": "Linux host 5.4.0 #1", peer: {"host": "192.0.2.1", "port": 5201},
            "test_start": {"protocol": protocol, "num_streams": 1, "duration": 10, "reverse": reverse},
        },
        "intervals": [], "end": end,
    })
}

fn sum(bytes: u64) -> Value {
    json!({"start": 0, "end": 10.0, "seconds": 10.0, "bytes": bytes, "bits_per_second": bytes as f64 * 0.8})
}

fn udp_sum(bytes: u64, packets: u64, lost: u64) -> Value {
    let mut sum = sum(bytes);
    sum["packets"] = packets.into();
    sum["lost_packets"] = lost.into();
    sum["lost_percent"] = (lost as f64 * 100.0 / packets as f64).into();
    sum["jitter_ms"] = 0.5.into();
    sum
}

#[test]
fn goodput_is_taken_from_the_iperf3_receiver() {
    let tcp = fixture("3.12/tcp.json");
    assert_eq!(tcp.tool, "iperf3 3.12");
    assert_eq!(tcp.started, "2026-11-22T06:13:24Z");
    assert_eq!(tcp.figures.get(Metric::Goodput), Some(16_979_323_814.506_048));
    let retransmits = tcp.figures.get(Metric::Retransmits).expect("counted");
    assert!((retransmits - 15.0 * 1e9 / 4_255_907_840.0).abs() < 1e-9, "{retransmits}");
    assert_eq!(tcp.figures.get(Metric::RttP50), Some(270_500.0));
    assert_eq!(tcp.settings["protocol"], "tcp");
    assert_eq!(tcp.kernel.as_deref(), Some("6.12.0"));
    let udp = fixture("3.22/udp.json");
    assert_eq!(udp.figures.get(Metric::Loss), Some(0.0));
    assert_eq!(udp.settings["protocol"], "udp");
    let both = fixture("3.22/tcp-bidir.json");
    assert_eq!(both.streams_bps.len(), 1);
    assert!(both.figures.get(Metric::ReverseGoodput).is_some_and(|bps| bps > 1e10));
    assert_eq!(both.settings["direction"], "both");
    assert_eq!(fixture("3.12/tcp-parallel.json").figures.get(Metric::StreamBalance).map(|b| b > 0.5), Some(true));
    // The kernel of a record is the sender's.
    assert_eq!(fixture("3.12/tcp-reverse.json").kernel, None);
}

#[test]
fn refused_iperf3_test_has_status_failed() {
    assert_eq!(fixture("3.12/refused.json").status, RecordStatus::Failed);
    assert_eq!(fixture("3.22/refused.json").status, RecordStatus::Failed);
}

#[test]
fn json_stream_gives_the_same_result() {
    let whole: Value = serde_json::from_slice(&bytes_of("3.22/tcp.json")).expect("JSON");
    let mut lines = format!("iperf3: warning\n{}\n", json!({"event": "start", "data": whole["start"]}));
    for interval in whole["intervals"].as_array().expect("intervals") {
        lines += &format!("{}\n", json!({"event": "interval", "data": interval}));
    }
    lines += &format!("{}\n", json!({"event": "end", "data": whole["end"]}));
    let expected = read(&whole).records;
    assert_eq!(records(lines.as_bytes()), expected);
    assert_eq!(records(format!("{lines}{lines}").as_bytes()), [expected.clone(), expected].concat());
}

#[test]
fn goodput_of_udp_before_3_11_is_what_arrived() {
    // `sum` has the sender's 125 MB; 80 % were lost. The receiver's rate in 3.11 and later is `sum_received`.
    let streams = json!([{"udp": udp_sum(125_000_000, 100_000, 80_000)}]);
    let old =
        of(&document(true, "UDP", 0, json!({"streams": streams, "sum": udp_sum(125_000_000, 100_000, 80_000)})));
    let new = of(&document(
        true,
        "UDP",
        0,
        json!({
            "streams": streams, "sum": udp_sum(125_000_000, 100_000, 80_000),
            "sum_sent": udp_sum(125_000_000, 100_000, 0), "sum_received": udp_sum(25_000_000, 100_000, 80_000),
        }),
    ));
    for record in [old, new] {
        assert_eq!(record.figures.get(Metric::Goodput), Some(20e6), "{record:?}");
        assert_eq!(record.figures.get(Metric::Loss), Some(0.8));
        assert_eq!(record.figures.get(Metric::Jitter), Some(0.5e6));
        assert!((record.streams_bps[0] - 20e6).abs() < 1.0, "{record:?}");
        assert_eq!(record.status, RecordStatus::Complete);
    }
}

#[test]
fn udp_receiver_before_3_11_uses_its_own_intervals() {
    // A server that receives has 0 sent bytes in `sum`.
    for (client, reverse) in [(false, 0), (true, 1)] {
        let mut text = document(client, "UDP", reverse, json!({"streams": [], "sum": udp_sum(0, 100, 20)}));
        let interval = |bytes: u64, omitted: bool| {
            let mut sum = sum(bytes);
            sum["omitted"] = omitted.into();
            json!({"streams": [], "sum": sum})
        };
        text["intervals"] =
            json!([interval(9_000_000, true), interval(1_000_000, false), interval(3_000_000, false)]);
        let record = of(&text);
        assert_eq!(record.figures.get(Metric::Goodput), Some(1.6e6), "{record:?}");
        assert_eq!(record.figures.get(Metric::Loss), Some(0.2));
    }
}

#[test]
fn a_server_that_sent_does_not_know_the_goodput() {
    for (protocol, end) in [
        ("TCP", json!({"streams": [], "sum_sent": sum(5_000_000), "sum_received": sum(0)})),
        ("UDP", json!({"streams": [], "sum": udp_sum(5_000_000, 100, 0)})),
        ("UDP", json!({"streams": [], "sum": udp_sum(5_000_000, 100, 0), "sum_received": udp_sum(0, 100, 0)})),
    ] {
        let record = of(&document(false, protocol, 1, end));
        for metric in [Metric::Goodput, Metric::Loss, Metric::Jitter, Metric::Retransmits] {
            assert_eq!(record.figures.get(metric), None, "{record:?}");
        }
        assert_eq!(record.status, RecordStatus::Partial);
        assert!(record.notes[0].contains("goodput unknown: this is the document of the server"), "{record:?}");
        assert_eq!(
            (record.hosts.get("server.hostname").map(String::as_str), record.hosts.get("client.hostname")),
            (Some("host"), None)
        );
        assert!(record.streams_bps.is_empty());
    }
}

#[test]
fn a_server_that_received_knows_the_goodput_but_not_the_retransmits() {
    let mut sent = sum(0);
    sent["retransmits"] = 0.into();
    let record =
        of(&document(false, "TCP", 0, json!({"streams": [], "sum_sent": sent, "sum_received": sum(5_000_000)})));
    assert_eq!(record.figures.get(Metric::Goodput), Some(4e6));
    assert_eq!(record.figures.get(Metric::Retransmits), None);
    assert_eq!((record.status, record.kernel), (RecordStatus::Complete, None));
}

#[test]
fn results_that_did_not_arrive_are_unknown() {
    for (protocol, end) in [
        ("TCP", json!({"streams": [], "sum_sent": sum(5_000_000), "sum_received": sum(0)})),
        ("UDP", json!({"streams": [], "sum": udp_sum(5_000_000, 100, 0)})),
    ] {
        let mut text = document(true, protocol, 0, end);
        text["error"] = "interrupt - the client has terminated".into();
        let record = of(&text);
        assert_eq!((record.status, record.figures.get(Metric::Goodput)), (RecordStatus::Partial, None), "{record:?}");
        assert_eq!(record.figures.get(Metric::Loss), None);
        assert!(record.notes[0].contains("interrupted"), "{record:?}");
    }
    // A client that receives has its own count.
    let mut text =
        document(true, "TCP", 1, json!({"streams": [], "sum_sent": sum(0), "sum_received": sum(5_000_000)}));
    text["error"] = "interrupt".into();
    let record = of(&text);
    assert_eq!((record.status, record.figures.get(Metric::Goodput)), (RecordStatus::Partial, Some(4e6)));
}

/// `--bidir` of any release: names of 3.11 and later, or repeated keys.
fn bidir(names: [&str; 6], protocol: &str) -> String {
    let (up, down) = if protocol == "UDP" {
        (udp_sum(1_000_000, 100, 50), udp_sum(4_000_000, 100, 25))
    } else {
        (sum(1_000_000), sum(4_000_000))
    };
    let with = |mut sum: Value, sender: bool| {
        sum["sender"] = sender.into();
        sum["omitted"] = false.into();
        sum.to_string()
    };
    let interval = format!(
        "{{\"streams\": [], \"{}\": {}, \"{}\": {}}}",
        names[0],
        with(up.clone(), true),
        names[1],
        with(down.clone(), false)
    );
    let streams = if protocol == "UDP" {
        json!([{"udp": serde_json::from_str::<Value>(&with(up.clone(), true)).expect("JSON")}])
    } else {
        let end = |sum: &Value, sender| serde_json::from_str::<Value>(&with(sum.clone(), sender)).expect("JSON");
        json!([{"receiver": end(&up, true)}, {"receiver": end(&down, false)}])
    };
    let sums = format!(
        "\"{}\": {}, \"{}\": {}, \"{}\": {}, \"{}\": {}",
        names[2],
        with(up.clone(), true),
        names[3],
        with(up, true),
        names[4],
        with(down.clone(), false),
        names[5],
        with(down, false)
    );
    let start = document(true, protocol, 0, json!({}))["start"].to_string();
    format!("{{\"start\": {start}, \"intervals\": [{interval}], \"end\": {{\"streams\": {streams}, {sums}}}}}")
}

#[test]
fn bidir_of_every_release_is_read_as_both_directions() {
    let repeated = ["sum", "sum", "sum_sent", "sum_received", "sum_sent", "sum_received"];
    let named = [
        "sum",
        "sum_bidir_reverse",
        "sum_sent",
        "sum_received",
        "sum_sent_bidir_reverse",
        "sum_received_bidir_reverse",
    ];
    for names in [repeated, named] {
        let record = records(bidir(names, "TCP").as_bytes()).remove(0);
        assert_eq!(record.settings["direction"], "both");
        assert_eq!(record.figures.get(Metric::Goodput), Some(0.8e6), "{record:?}");
        assert_eq!(record.figures.get(Metric::ReverseGoodput), Some(3.2e6), "{record:?}");
        assert_eq!(record.streams_bps, [0.8e6]);
    }
    // UDP before 3.11 has `sum` twice.
    let record = records(bidir(["sum", "sum", "sum", "x", "sum", "y"], "UDP").as_bytes()).remove(0);
    assert_eq!(record.figures.get(Metric::Goodput), Some(0.4e6), "{record:?}");
    assert_eq!(record.figures.get(Metric::ReverseGoodput), Some(3.2e6), "{record:?}");
}

#[test]
fn short_last_interval_does_not_count_in_the_spread() {
    let intervals = |last: &[(f64, f64)]| -> Value {
        let full = [(1.0, 50e6), (1.0, 52e6), (1.0, 48e6), (1.0, 50e6)];
        full.iter()
            .chain(last)
            .map(|(seconds, bps)| json!({"streams": [], "sum": {"seconds": seconds, "bits_per_second": bps, "omitted": false}}))
            .collect()
    };
    let cv = |last: &[(f64, f64)]| {
        let mut text = document(true, "TCP", 0, json!({"streams": [], "sum_received": sum(5_000_000)}));
        text["intervals"] = intervals(last);
        of(&text).figures.get(Metric::GoodputCv).expect("a spread")
    };
    assert!((cv(&[(0.177, 5e6)]) - cv(&[])).abs() < 1e-12);
    assert!(cv(&[(1.0, 5e6)]) > 10.0 * cv(&[]));
}

#[test]
fn numbers_that_are_not_finite_are_unknown() {
    let text = document(true, "UDP", 0, json!({"streams": [], "sum": udp_sum(5_000_000, 100, 50)})).to_string();
    for nan in ["-nan", "nan", "inf", "-inf"] {
        let text = text.replace("\"jitter_ms\":0.5", &format!("\"jitter_ms\":{nan}"));
        assert!(text.contains(nan));
        let record = records(text.as_bytes()).remove(0);
        assert_eq!((record.figures.get(Metric::Jitter), record.figures.get(Metric::Loss)), (None, Some(0.5)));
    }
}

#[test]
fn appended_log_files_and_surrounding_text_are_read() {
    let (one, two) = (bytes_of("3.12/tcp.json"), bytes_of("3.12/refused.json"));
    let log = [b"Warning: --bidir is experimental\n".as_slice(), &one, &two, &one, b"iperf3: error - broken pipe\n"]
        .concat();
    let statuses: Vec<RecordStatus> = records(&log).iter().map(|record| record.status).collect();
    assert_eq!(statuses, [RecordStatus::Complete, RecordStatus::Failed, RecordStatus::Complete]);
    let mixed =
        [one.as_slice(), b"{\"results\": {\"Ping (ms) ICMP\": [1.0]}, \"x_values\": [0], \"metadata\": {}}"].concat();
    let error = super::super::read(&mixed).expect_err("two programs");
    assert_eq!(error.to_string(), "results of iperf3 and flent in one file");
    let error = super::super::read(&one[..one.len() / 2]).expect_err("half a document");
    assert!(error.to_string().starts_with(&format!("damaged at byte {}", one.len() / 2)), "{error}");
}

#[test]
fn a_starved_udp_stream_counts_in_the_balance() {
    let streams = |second: Value| json!([{"udp": udp_sum(1_000_000, 100, 0)}, {"udp": second}]);
    let of_streams = |second: Value| {
        let received = udp_sum(1_000_000, 200, 100);
        let end = json!({"streams": streams(second), "sum": udp_sum(2_000_000, 200, 100), "sum_received": received});
        of(&document(true, "UDP", 0, end))
    };
    let starved = of_streams(udp_sum(1_000_000, 100, 100));
    assert_eq!(
        (starved.streams_bps.as_slice(), starved.figures.get(Metric::StreamBalance)),
        ([0.8e6, 0.0].as_slice(), Some(0.5))
    );
    let mut unknown = udp_sum(1_000_000, 100, 0);
    unknown["lost_packets"] = Value::Null;
    let unknown = of_streams(unknown);
    assert_eq!((unknown.streams_bps.len(), unknown.figures.get(Metric::StreamBalance)), (0, None));
    assert_eq!(unknown.figures.get(Metric::Goodput), Some(0.8e6));
}

#[test]
fn impossible_losses_are_not_figures() {
    let mut received = udp_sum(1_000_000, 100, 0);
    received["lost_percent"] = json!(-0.52);
    let end = json!({"streams": [], "sum": udp_sum(1_000_000, 100, 0), "sum_received": received});
    let record = of(&document(true, "UDP", 0, end));
    assert_eq!((record.figures.get(Metric::Loss), record.figures.get(Metric::Goodput)), (None, Some(0.8e6)));
    assert_eq!(record.notes, ["loss unknown: the document says -0.52 %"]);
}
