//! Captures: of the lab, as `landspeed trace --series --json` wrote them.

use landspeed_model::{
    BuildInfo, TRACE_COMPARISON_SCHEMA, TraceComparison, TraceDifference, TraceDocument, TraceFigure, Warning,
};

const HOSTILE: &str = "</script><script>document.title='owned'</script><!--<img src=x onerror=alert(1)>";

/// Two taps of a path that loses, with every packet.
pub fn whole() -> TraceDocument {
    serde_json::from_str(include_str!("../../../../../fixtures/traces/whole.json"))
        .expect("a document of this version")
}

/// One of the taps, with few single packets.
pub fn thinned() -> TraceDocument {
    serde_json::from_str(include_str!("../../../../../fixtures/traces/thinned.json"))
        .expect("a document of this version")
}

/// Without series, and with strings that try to be markup.
pub fn hostile() -> TraceDocument {
    let mut document = thinned();
    document.graphs = None;
    HOSTILE.clone_into(&mut document.capture.file);
    document.command.push(HOSTILE.to_owned());
    HOSTILE.clone_into(&mut document.flows[0].source.address);
    document.stations[0].mac = Some(HOSTILE.to_owned());
    document.warnings.push(Warning { code: "hostile".to_owned(), message: HOSTILE.to_owned() });
    document
}

/// Both, as if they were two runs.
pub fn comparison() -> TraceComparison {
    let figure = |name: &str, unit: &str, a, b| TraceFigure {
        name: name.to_owned(),
        unit: unit.to_owned(),
        a,
        b,
        difference: None,
    };
    let sure = |(low, high)| TraceDifference {
        low,
        high,
        level: 0.95,
        changed: low > 0.0 || high < 0.0,
        blocks: [24, 20],
        block_ns: [160_000_000; 2],
    };
    TraceComparison {
        schema: TRACE_COMPARISON_SCHEMA.to_owned(),
        landspeed: BuildInfo { version: "0.1.0".to_owned(), server_version: None },
        command: ["landspeed", "trace", "a.pcap", "--against", "b.pcap"].map(str::to_owned).to_vec(),
        a: whole(),
        b: thinned(),
        figures: vec![
            figure("goodput", "bps", Some(2.5e8), Some(2.4e8)),
            TraceFigure {
                difference: Some(sure((-3.1e6, 1.4e6))),
                ..figure("goodput without the first and last 1 % of bytes", "bps", Some(2.51e8), Some(2.5e8))
            },
            TraceFigure {
                difference: Some(sure((2.2e-4, 4.9e-4))),
                ..figure("retransmits per packet", "ratio", Some(0.0), Some(3.5e-4))
            },
            figure("RTT, median", "ns", Some(2e7), None),
            figure("retransmissions", "count", Some(0.0), Some(13.0)),
        ],
    }
}
