//! The table of settings: complete, consistent, and read correctly.

use std::collections::BTreeSet;
use std::path::Path;

use landspeed_model::{
    Direction, PaceScope, Parameters, Protocol, RrMode, RrParameters, RrSize, SendMode, UdpParameters,
};
use landspeed_settings::{Reason, SETTINGS, differences, options, page, problems, reset_inapplicable};
use serde_json::Value;

const PROTOCOLS: [Protocol; 4] = [Protocol::Tcp, Protocol::Udp, Protocol::TcpRr, Protocol::UdpRr];

fn udp() -> Parameters {
    Parameters { protocol: Protocol::Udp, udp: Some(UdpParameters::default()), ..Parameters::default() }
}

fn rr(protocol: Protocol) -> Parameters {
    let sizes = vec![RrSize { request_bytes: 64, response_bytes: 64 }];
    let rr = RrParameters { mode: RrMode::ClosedLoop, rate_per_s: None, sizes };
    Parameters { protocol, rr: Some(rr), ..Parameters::default() }
}

/// Names of the problems' settings.
fn names(parameters: &Parameters) -> Vec<&'static str> {
    problems(parameters).iter().map(|problem| problem.setting.name).collect()
}

/// Paths of all values in the JSON of parameters in which every group is present.
fn fields() -> BTreeSet<String> {
    let everything = Parameters {
        udp: Some(UdpParameters::default()),
        notsent_lowat_bytes: Some(1),
        client_cpus_auto: true,
        server_cpus_auto: true,
        distance_m: Some(1.0),
        stream_dscp: vec![46],
        probe_udp: true,
        ..rr(Protocol::Tcp)
    };
    let json = serde_json::to_value(everything).expect("plain data");
    let mut found = BTreeSet::new();
    for (name, value) in json.as_object().expect("an object") {
        match value {
            Value::Object(group) => found.extend(group.keys().map(|key| format!("{name}.{key}"))),
            _ => drop(found.insert(name.clone())),
        }
    }
    found
}

#[test]
fn every_parameter_is_declared() {
    let declared: BTreeSet<String> = SETTINGS.iter().map(|setting| setting.field.to_owned()).collect();
    assert_eq!(declared, fields());
}

#[test]
fn names_are_unique_for_each_protocol() {
    for protocol in PROTOCOLS {
        let mut seen = BTreeSet::new();
        for setting in SETTINGS.iter().filter(|setting| setting.applies_to(protocol)) {
            assert!(seen.insert((setting.name, format!("{:?}", setting.form))), "{} for {protocol:?}", setting.name);
        }
    }
}

#[test]
fn defaults_are_permitted_for_every_protocol() {
    for parameters in [Parameters::default(), udp(), rr(Protocol::TcpRr), rr(Protocol::UdpRr)] {
        assert_eq!(names(&parameters), [""; 0], "{:?}", parameters.protocol);
    }
}

#[test]
fn settings_of_another_protocol_are_refused_with_the_reason() {
    let paced = Parameters { pace_bps: Some(20_000_000), rate_bps: Some(200_000_000), ..udp() };
    let found = problems(&paced);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].reason, Reason::Protocol(Protocol::Udp));
    assert_eq!(found[0].to_string(), "--pace does not apply to UDP: use --rate");

    let paced = Parameters { pace_bps: Some(20_000_000), mss_bytes: Some(1000), ..rr(Protocol::UdpRr) };
    let said: Vec<String> = problems(&paced).iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "--mss does not apply to request/response over UDP: drop it",
            "--pace does not apply to request/response over UDP: drop it"
        ]
    );
    let burst = UdpParameters { burst_packets: 65, ..UdpParameters::default() };
    let request = Parameters { udp: Some(burst), ..rr(Protocol::TcpRr) };
    assert!(problems(&request)[0].to_string().ends_with(": drop it"), "{:?}", problems(&request));

    let burst = UdpParameters { burst_packets: 65, gro: false, ..UdpParameters::default() };
    assert_eq!(names(&Parameters { udp: Some(burst), ..Parameters::default() }), ["burst", "no-gro"]);
    let tcp_options = Parameters {
        mss_bytes: Some(1400),
        congestion: Some("bbr".to_owned()),
        nodelay: true,
        mptcp: true,
        send: SendMode::Splice,
        read_rate_bps: Some(1_000_000),
        ..udp()
    };
    assert_eq!(names(&tcp_options), ["mss", "congestion", "nodelay", "mptcp", "send", "read-rate"]);
    let bulk = Parameters {
        direction: Direction::Both,
        bytes: Some(1),
        rate_bps: Some(1_000_000),
        probe_rate_per_s: Some(10.0),
        ..rr(Protocol::TcpRr)
    };
    assert_eq!(names(&bulk), ["bidir", "bytes", "rate", "probe"]);
    let mut connect = rr(Protocol::UdpRr);
    connect.rr.as_mut().expect("present").mode = RrMode::Connect;
    assert_eq!(names(&connect), ["connect"]);
}

#[test]
fn values_outside_their_range_are_refused() {
    let defaults = Parameters::default;
    let cases = [
        (Parameters { streams: 1025, ..defaults() }, "--parallel: 1 to 1024 streams"),
        (Parameters { time_ns: Some(1), ..defaults() }, "--time: 1ms to 30 days"),
        (Parameters { window_bytes: Some(1 << 30), ..defaults() }, "--window: 1KiB to 1GiB"),
        (Parameters { dscp: Some(64), ..defaults() }, "--dscp: 0 to 63 (the TOS byte divided by four)"),
        (Parameters { probe_rate_per_s: Some(f64::NAN), ..defaults() }, "--probe: 0.1 to 10000 per second"),
        (Parameters { distance_m: Some(f64::INFINITY), ..defaults() }, "--distance: above 0"),
        (Parameters { title: Some("x".repeat(1025)), ..defaults() }, "--title: at most 1024 bytes"),
        (
            Parameters { congestion: Some("a b".to_owned()), ..defaults() },
            "--congestion: a name of at most 15 letters, such as cubic or bbr",
        ),
    ];
    for (parameters, message) in cases {
        let found: Vec<String> = problems(&parameters).iter().map(ToString::to_string).collect();
        assert_eq!(found, [message]);
    }
}

#[test]
fn a_scope_without_a_pace_has_no_effect() {
    let total = Parameters { pace_scope: PaceScope::Total, ..Parameters::default() };
    assert_eq!(problems(&total)[0].to_string(), "--pace-total has no effect without --pace");
    assert_eq!(names(&Parameters { pace_bps: Some(1000), ..total }), [""; 0]);
}

#[test]
fn inapplicable_settings_are_reset_to_their_defaults() {
    let mut parameters = Parameters { pace_bps: Some(1000), mss_bytes: Some(1400), dscp: Some(46), ..udp() };
    let reset: Vec<&str> = reset_inapplicable(&mut parameters).iter().map(|setting| setting.name).collect();
    assert_eq!(reset, ["mss", "pace"]);
    assert_eq!(parameters, Parameters { dscp: Some(46), ..udp() });
    assert!(reset_inapplicable(&mut parameters).is_empty());
}

#[test]
fn a_server_may_lower_rates_and_lengths_only() {
    let asked = Parameters { pace_bps: Some(1000), ..Parameters::default() };
    let changed = |granted: Parameters| -> Vec<&'static str> {
        differences(&asked, &granted).iter().map(|setting| setting.name).collect()
    };
    assert_eq!(changed(asked.clone()), [""; 0]);
    let less = Parameters {
        pace_bps: Some(999),
        rate_bps: Some(1000),
        time_ns: Some(1_000_000_000),
        interval_ns: 1_000_000_000,
        ..asked.clone()
    };
    assert_eq!(changed(less), [""; 0]);
    let more = Parameters { pace_bps: None, time_ns: None, interval_ns: 1_000_000, streams: 2, ..asked.clone() };
    assert_eq!(changed(more), ["parallel", "time", "pace", "interval"]);
}

#[test]
fn defaults_need_no_options() {
    let all = |parameters: &Parameters| options(parameters, |_| true).join(" ");
    assert_eq!(all(&Parameters::default()), "");
    assert_eq!(all(&udp()), "-u -b unlimited");
    assert_eq!(all(&rr(Protocol::UdpRr)), "-u --rr --sizes 64/64");
    let sizes =
        [65536, 1 << 20, 1500, 3 << 19].map(|write_bytes| Parameters { write_bytes, ..Parameters::default() });
    assert_eq!(sizes.each_ref().map(all), ["-l 64K", "", "-l 1500", "-l 1536K"]);
}

#[test]
fn the_reference_page_is_current() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/settings.md");
    landspeed_testkit::golden::same_as_file(&file, &page(), &[]);
}
