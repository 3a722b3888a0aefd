//! A client's request (test parameters) in iperf3's JSON.

use landspeed_model::{Direction, PaceScope, Parameters, Protocol, ReceiveMode, SendMode, UdpParameters};
use landspeed_settings::{Acts, SETTINGS, Setting, by_name, reset_inapplicable};
use serde_json::{Map, Value, json};

use crate::Extras;
use crate::dialect::{BLOCK, block_bytes, dialect};
use crate::wire::Refusal;
use landspeed_flow::dialect::Dialect;

/// UDP payload if the client did not specify it, bytes.
const DATAGRAM: u64 = 1460;
/// Longest UDP payload of iperf3, bytes (`MAX_UDP_BLOCKSIZE`).
const MAX_DATAGRAM: u64 = 65_507;
const SECOND_NS: u64 = 1_000_000_000;

/// Checks that iperf3's protocol can express these parameters.
///
/// # Errors
/// A message that names the setting for which iperf3 has no field.
pub fn check(p: &Parameters) -> Result<(), String> {
    let needs = |what: &str| Err(format!("{what} needs a landspeed server: drop --iperf3"));
    if matches!(p.protocol, Protocol::TcpRr | Protocol::UdpRr) {
        return needs("--rr");
    }
    let parameters = json!(p);
    for setting in
        SETTINGS.iter().filter(|setting| setting.is_set(&parameters) && setting.acts_on_server(p.direction))
    {
        let option = setting.option();
        match setting.name {
            "peer-cpus" if p.server_cpus_auto => return needs("--peer-cpus auto"),
            "peer-cpus" if p.server_cpus.len() > 1 => return needs("--peer-cpus with several cores"),
            "send" if matches!(p.send, SendMode::Splice | SendMode::Zerocopy) => {
                return needs("--send splice or zerocopy of the server (iperf3 has sendfile)");
            }
            // iperf3 has other fields for the protocol, the rate is divided here, and each host samples at its own interval.
            "protocol" | "pace-total" | "interval" | "host-interval" => {}
            _ if setting.iperf3.is_some() => {}
            _ if matches!(setting.acts, Acts::Sender | Acts::Receiver) => {
                return needs(&format!("{option} of the server"));
            }
            _ => return needs(&option),
        }
    }
    Ok(())
}

/// Whether the server is asked to omit the start of the test: at UDP uploads, whose losses only the server counts, as iperf3
/// does in whole seconds.
pub fn server_omits(p: &Parameters) -> bool {
    p.protocol == Protocol::Udp
        && p.direction == Direction::Upload
        && p.omit_ns > 0
        && p.omit_ns.is_multiple_of(SECOND_NS)
}

/// Encodes a request. Unless [`server_omits`], the client handles the omitted part itself: the server is asked for the total
/// time and counts all bytes, so that the totals of both sides are comparable.
pub fn encode(p: &Parameters, extras: &Extras, authtoken: Option<&str>) -> Value {
    let udp = p.protocol == Protocol::Udp;
    let mut request = Map::new();
    request.insert(if udp { "udp" } else { "tcp" }.to_owned(), json!(true));
    let parameters = json!(p);
    for setting in SETTINGS.iter().filter(|setting| setting.applies_to(p.protocol)) {
        if let Some(key) = setting.iperf3
            && let Some(value) = value(setting, p, extras, &setting.value(&parameters))
        {
            request.insert(key.key.to_owned(), value);
        }
    }
    let offloads = udp && extras.offloads;
    let datagram = p.udp.as_ref().map_or(DATAGRAM, |udp| u64::from(udp.payload_bytes)).clamp(1, MAX_DATAGRAM);
    let others = [
        ("blockcount", Some(json!(0))),
        ("pacing_timer", Some(json!(1000))),
        ("client_version", Some(json!(concat!("landspeed ", env!("CARGO_PKG_VERSION"))))),
        ("udp_counters_64bit", (udp && !extras.narrow_counters).then_some(json!(1))),
        ("gso", offloads.then_some(json!(1))),
        ("gso_dg_size", offloads.then(|| json!(datagram))),
        ("gso_bf_size", offloads.then(|| json!(MAX_DATAGRAM / datagram * datagram))),
        ("gro", offloads.then_some(json!(1))),
        ("gro_bf_size", offloads.then_some(json!(MAX_DATAGRAM))),
        ("get_server_output", extras.server_output.then_some(json!(1))),
        ("authtoken", authtoken.map(Value::from)),
    ];
    request.extend(others.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    Value::Object(request)
}

/// A setting in iperf3's JSON; `None` if the request does not contain its key. `value` is that of landspeed's parameters.
fn value(setting: &Setting, p: &Parameters, extras: &Extras, value: &Value) -> Option<Value> {
    match setting.name {
        "reverse" => (p.direction == Direction::Download).then_some(json!(true)),
        "bidir" => (p.direction == Direction::Both).then_some(json!(true)),
        "omit" => Some(json!(if server_omits(p) { p.omit_ns / SECOND_NS } else { 0 })),
        "time" => {
            let time_ns = p.time_ns.filter(|_| !extras.unlimited_time);
            let omit_ns = if server_omits(p) { 0 } else { p.omit_ns };
            Some(json!(time_ns.map_or(0, |t| (t + omit_ns).div_ceil(SECOND_NS))))
        }
        "bytes" => Some(json!(p.bytes.unwrap_or(0))),
        "len" if p.protocol == Protocol::Tcp => Some(json!(block_bytes(p))),
        "pace" => p.pace_bps.map(|rate| match p.pace_scope {
            PaceScope::Stream => json!(rate),
            PaceScope::Total => json!(rate / u64::from(p.streams.max(1))),
        }),
        "send" => (p.send == SendMode::Sendfile && p.direction != Direction::Upload).then_some(json!(1)),
        "receive" => (p.receive == ReceiveMode::Discard).then_some(json!(1)),
        "burst" => value.as_u64().filter(|&burst| burst > 1).map(|burst| json!(burst.min(1000))),
        "peer-cpus" => p.server_cpus.first().map(|core| json!(core)),
        "dscp" => p.dscp.map(|dscp| json!(u64::from(dscp) << 2)),
        _ => (!value.is_null() && *value != Value::Bool(false)).then(|| value.clone()),
    }
}

/// A decoded request of a client.
#[derive(Debug, Clone, PartialEq)]
pub struct TestRequest {
    /// The parameters of the test; `omit_ns` is the omitted time of the client.
    pub parameters: Parameters,
    /// Whether datagrams have 64-bit numbers.
    pub wide_counters: bool,
    /// Whether the client requests the server's output.
    pub server_output: bool,
    /// Token for authorization, if the client sent one.
    pub authtoken: Option<String>,
}

impl TestRequest {
    /// Framing of the data for this client and these parameters.
    pub fn dialect(&self, parameters: &Parameters) -> Dialect {
        dialect(parameters, self.wide_counters)
    }
}

/// Decodes a request. Unknown keys are ignored, as in iperf3.
///
/// # Errors
/// iperf3's error number, and a message for the log.
pub fn decode(text: &Value) -> Result<TestRequest, (Refusal, String)> {
    let fields = text.as_object().ok_or_else(|| (Refusal::Parameters, "the request is not an object".to_owned()))?;
    let flag = |key: &str| fields.get(key) == Some(&Value::Bool(true));
    // A non-negative integer, 0 if absent.
    let count = |key: &str, most: u64, why: Refusal| match fields.get(key) {
        None | Some(Value::Null) => Ok(0),
        Some(value) => match whole(value) {
            Some(n) if n <= most => Ok(n),
            _ => Err((why, format!("`{key}` is out of range"))),
        },
    };
    // The same for the key of a setting.
    let setting = |name: &str, why: Refusal| {
        let protocol = if flag("udp") { Protocol::Udp } else { Protocol::Tcp };
        let key = by_name(name).filter(|setting| setting.applies_to(protocol)).find_map(|setting| setting.iperf3);
        key.map_or(Ok(0), |key| count(key.key, key.max, why))
    };
    let word = |key: &str| fields.get(key).and_then(Value::as_str).map(str::to_owned);
    let set = |n: u64| (n > 0).then_some(n);
    let udp = flag("udp");
    if flag("sctp") || !(udp || flag("tcp")) {
        return Err((Refusal::Protocol, "the protocol is neither TCP nor UDP".to_owned()));
    }
    let time_s = setting("time", Refusal::Duration)?;
    let omit_s = setting("omit", Refusal::Omit)?;
    let streams = setting("parallel", Refusal::Streams)?.max(1);
    let block = setting("len", if udp { Refusal::Datagram } else { Refusal::BlockSize })?;
    let block = set(block).unwrap_or(if udp { DATAGRAM } else { BLOCK });
    let bytes = set(setting("bytes", Refusal::Parameters)?);
    let blocks = count("blockcount", 1 << 40, Refusal::Parameters)?;
    let bytes = bytes.or_else(|| set(blocks.saturating_mul(block)));
    let rate = setting("rate", Refusal::Parameters)?;
    let pace = setting("pace", Refusal::Parameters)?;
    let tos = setting("dscp", Refusal::Parameters)?;
    let core = match fields.get("server_affinity").map(whole) {
        None => Vec::new(),
        Some(Some(core)) if core <= 1024 => vec![core as u32],
        Some(_) => return Err((Refusal::Affinity, "`server_affinity` is not a core".to_owned())),
    };
    let parameters = Parameters {
        protocol: if udp { Protocol::Udp } else { Protocol::Tcp },
        direction: match (flag("bidirectional"), flag("reverse")) {
            (true, _) => Direction::Both,
            (_, true) => Direction::Download,
            _ => Direction::Upload,
        },
        streams: streams as u32,
        time_ns: set(time_s).map(|s| s * SECOND_NS),
        bytes,
        omit_ns: omit_s * SECOND_NS,
        write_bytes: block,
        window_bytes: set(setting("window", Refusal::Window)?),
        mss_bytes: set(setting("mss", Refusal::Mss)?).map(|n| n as u32),
        congestion: word("congestion"),
        nodelay: flag("nodelay"),
        dscp: set(tos).map(|tos| (tos >> 2) as u8),
        mptcp: flag("mptcp"),
        pace_bps: set(pace),
        rate_bps: set(rate),
        send: if setting("send", Refusal::Parameters)? > 0 { SendMode::Sendfile } else { SendMode::Copy },
        receive: if setting("receive", Refusal::Parameters)? > 0 { ReceiveMode::Discard } else { ReceiveMode::Copy },
        server_cpus: core,
        title: word("title").map(|title| landspeed_flow::control::printable(&title, 200)),
        udp: udp.then_some(UdpParameters {
            payload_bytes: block as u32,
            burst_packets: 1,
            exact_departures: false,
            gso: true,
            gro: true,
        }),
        ..Parameters::default()
    };
    let mut wanted = TestRequest {
        parameters,
        wide_counters: count("udp_counters_64bit", u64::MAX, Refusal::Parameters)? > 0,
        server_output: count("get_server_output", u64::MAX, Refusal::Parameters)? > 0,
        authtoken: word("authtoken"),
    };
    let burst = setting("burst", Refusal::Parameters)?;
    if let Some(udp) = &mut wanted.parameters.udp {
        udp.burst_packets = burst.max(1) as u32;
    }
    // iperf3 clients send TCP's options with UDP, too; iperf3 ignores them.
    reset_inapplicable(&mut wanted.parameters);
    Ok(wanted)
}

/// A non-negative integer, whether written as an integer or as a float.
pub fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        ((0.0..1.8e19).contains(&number) && number.fract() == 0.0).then_some(number as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_an_iperf3_server_cannot_apply_are_refused() {
        let upload = Parameters {
            pace_bps: Some(1000),
            pace_scope: PaceScope::Total,
            interval_ns: 1_000_000,
            ..Parameters::default()
        };
        assert_eq!(check(&upload), Ok(()));
        let udp =
            Parameters { protocol: Protocol::Udp, udp: Some(UdpParameters::default()), ..Parameters::default() };
        assert_eq!(check(&udp), Ok(()));
        let download = Parameters { direction: Direction::Download, ..upload.clone() };
        assert_eq!(check(&download), Ok(()));
        let lowat = |base: &Parameters| Parameters { notsent_lowat_bytes: Some(131_072), ..base.clone() };
        assert_eq!(check(&lowat(&upload)), Ok(()));
        let why = check(&lowat(&download)).expect_err("the server sends");
        assert_eq!(why, "--notsent-lowat of the server needs a landspeed server: drop --iperf3");
        let reads = Parameters { read_rate_bps: Some(1000), ..upload.clone() };
        assert!(check(&reads).is_err() && check(&Parameters { direction: Direction::Download, ..reads }).is_ok());
        for refused in [
            Parameters { probe_mtu: true, ..upload.clone() },
            Parameters { server_cpus: vec![0, 1], ..upload.clone() },
            Parameters { server_cpus_auto: true, ..upload.clone() },
            Parameters { send: SendMode::Splice, ..download },
        ] {
            assert!(check(&refused).is_err(), "{refused:?}");
        }
    }

    #[test]
    fn a_request_round_trips() {
        let asked = Parameters {
            direction: Direction::Both,
            streams: 3,
            time_ns: Some(4_500_000_000),
            omit_ns: 1_000_000_000,
            mss_bytes: Some(1400),
            window_bytes: Some(1 << 20),
            congestion: Some("cubic".to_owned()),
            nodelay: true,
            dscp: Some(46),
            rate_bps: Some(10_000_000),
            pace_bps: Some(20_000_000),
            receive: ReceiveMode::Discard,
            send: SendMode::Sendfile,
            server_cpus: vec![1],
            ..Parameters::default()
        };
        let heard = decode(&encode(&asked, &Extras::default(), Some("token"))).unwrap();
        let expected = Parameters { time_ns: Some(6_000_000_000), omit_ns: 0, ..asked };
        assert_eq!(heard.parameters, Parameters { interval_ns: expected.interval_ns, ..expected });
        assert_eq!(heard.authtoken.as_deref(), Some("token"));
    }

    #[test]
    fn the_server_omits_the_start_of_udp_uploads() {
        let heard = |direction, omit_ns| {
            let udp = Some(UdpParameters::default());
            let time_ns = Some(2 * SECOND_NS);
            let asked =
                Parameters { protocol: Protocol::Udp, direction, time_ns, omit_ns, udp, ..Parameters::default() };
            let heard = decode(&encode(&asked, &Extras::default(), None)).unwrap().parameters;
            (heard.omit_ns, heard.time_ns.unwrap())
        };
        assert_eq!(heard(Direction::Upload, SECOND_NS), (SECOND_NS, 2 * SECOND_NS));
        assert_eq!(heard(Direction::Upload, SECOND_NS / 2), (0, 3 * SECOND_NS));
        assert_eq!(heard(Direction::Download, SECOND_NS), (0, 3 * SECOND_NS));
    }

    #[test]
    fn udp_requests_keep_length_burst_and_counter_width() {
        let udp = UdpParameters { payload_bytes: 200, burst_packets: 5, ..UdpParameters::default() };
        let asked = Parameters { protocol: Protocol::Udp, udp: Some(udp), ..Parameters::default() };
        let heard = decode(&encode(&asked, &Extras::default(), None)).unwrap();
        let udp = heard.parameters.udp.unwrap();
        assert_eq!((udp.payload_bytes, udp.burst_packets, heard.wide_counters), (200, 5, true));
        let offloads = |offloads| encode(&asked, &Extras { offloads, ..Extras::default() }, None)["gso"].clone();
        assert_eq!((offloads(true), offloads(false)), (json!(1), Value::Null));
        let narrow = Extras { narrow_counters: true, ..Extras::default() };
        assert!(!decode(&encode(&asked, &narrow, None)).unwrap().wide_counters);
    }

    #[test]
    fn invalid_requests_are_refused_with_iperf3_error_numbers() {
        let refused = |extra: Value| {
            let mut text = json!({"tcp": true});
            text.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            decode(&text).expect_err("it cannot be").0
        };
        assert_eq!(refused(json!({"parallel": 129})), Refusal::Streams);
        assert_eq!(refused(json!({"len": -1})), Refusal::BlockSize);
        assert_eq!(refused(json!({"time": 1e12})), Refusal::Duration);
        assert_eq!(refused(json!({"num": "many"})), Refusal::Parameters);
        assert_eq!(refused(json!({"tcp": 1})), Refusal::Protocol);
        assert_eq!(refused(json!({"sctp": true})), Refusal::Protocol);
        assert_eq!(decode(&json!([1])).expect_err("no object").0, Refusal::Parameters);
    }

    #[test]
    fn block_count_is_converted_to_bytes() {
        let heard = decode(&json!({"tcp": true, "blockcount": 10, "len": 1000, "time": 0})).unwrap();
        assert_eq!((heard.parameters.bytes, heard.parameters.time_ns), (Some(10_000), None));
    }
}
