//! A client's request (test parameters) in iperf3's JSON.

use landspeed_flow::validate::MAX_STREAMS;
use landspeed_model::{Direction, PaceScope, Parameters, Protocol, ReceiveMode, SendMode, UdpParameters};
use serde_json::{Map, Value, json};

use crate::Extras;
use crate::dialect::{BLOCK, MAX_BLOCK, block_bytes, dialect};
use crate::wire::Refusal;
use landspeed_flow::dialect::Dialect;

/// UDP payload if the client did not specify it, bytes.
const DATAGRAM: u64 = 1460;
const SECOND_NS: u64 = 1_000_000_000;

/// Checks that iperf3's protocol can express these parameters.
///
/// # Errors
/// A message that names the parameter for which iperf3 has no field.
pub fn check(p: &Parameters) -> Result<(), String> {
    let needs = |what: &str| Err(format!("{what} needs a landspeed server: drop --iperf3"));
    match p {
        Parameters { protocol: Protocol::TcpRr | Protocol::UdpRr, .. } => needs("--rr"),
        Parameters { probe_rate_per_s: Some(_), .. } => needs("--probe"),
        Parameters { probe_mtu: true, .. } => needs("--probe-mtu"),
        Parameters { server_numa: Some(_), .. } => needs("--peer-numa"),
        Parameters { server_cpus_auto: true, .. } => needs("--peer-cpus auto"),
        Parameters { server_cpus, .. } if server_cpus.len() > 1 => needs("--peer-cpus with several cores"),
        Parameters { read_rate_bps: Some(_), direction: Direction::Upload | Direction::Both, .. } => {
            needs("--read-rate of the server")
        }
        Parameters { send: SendMode::Splice | SendMode::Zerocopy, direction, .. }
            if *direction != Direction::Upload =>
        {
            needs("--send splice or zerocopy of the server (iperf3 has sendfile)")
        }
        _ => Ok(()),
    }
}

/// Encodes a request. The client handles the omitted part itself: the server is asked for the total time and
/// counts all bytes, so that the totals of both sides are comparable.
pub fn encode(p: &Parameters, extras: &Extras, authtoken: Option<&str>) -> Value {
    let mut wanted = Map::new();
    let mut say = |key: &str, value: Value| {
        wanted.insert(key.to_owned(), value);
    };
    let udp = p.protocol == Protocol::Udp;
    say(if udp { "udp" } else { "tcp" }, json!(true));
    say("omit", json!(0));
    let time_ns = p.time_ns.filter(|_| !extras.unlimited_time);
    say("time", json!(time_ns.map_or(0, |t| (t + p.omit_ns).div_ceil(SECOND_NS))));
    say("num", json!(p.bytes.unwrap_or(0)));
    say("blockcount", json!(0));
    say("parallel", json!(p.streams));
    say("pacing_timer", json!(1000));
    say("client_version", json!(concat!("landspeed ", env!("CARGO_PKG_VERSION"))));
    match p.direction {
        Direction::Upload => {}
        Direction::Download => say("reverse", json!(true)),
        Direction::Both => say("bidirectional", json!(true)),
    }
    if udp {
        let payload = p.udp.as_ref().map_or(0, |u| u.payload_bytes);
        say("len", json!(payload));
        if !extras.narrow_counters {
            say("udp_counters_64bit", json!(1));
        }
        let burst = p.udp.as_ref().map_or(1, |u| u.burst_packets);
        if burst > 1 {
            say("burst", json!(burst.min(1000)));
        }
    } else {
        say("len", json!(block_bytes(p)));
        if p.nodelay {
            say("nodelay", json!(true));
        }
        if p.mptcp {
            say("mptcp", json!(true));
        }
        if p.send == SendMode::Sendfile && p.direction != Direction::Upload {
            say("zerocopy", json!(1));
        }
        if p.receive == ReceiveMode::Discard {
            say("skip_rx_copy", json!(1));
        }
    }
    let pace_bps = p.pace_bps.map(|rate| match p.pace_scope {
        PaceScope::Stream => rate,
        PaceScope::Total => rate / u64::from(p.streams.max(1)),
    });
    let numbers = [
        ("MSS", p.mss_bytes.map(u64::from)),
        ("window", p.window_bytes),
        ("bandwidth", p.rate_bps),
        ("fqrate", pace_bps),
        ("TOS", p.dscp.map(|dscp| u64::from(dscp) << 2)),
        ("server_affinity", p.server_cpus.first().copied().map(u64::from)),
        ("get_server_output", extras.server_output.then_some(1)),
    ];
    for (key, number) in numbers {
        if let Some(number) = number {
            say(key, json!(number));
        }
    }
    for (key, text) in
        [("congestion", p.congestion.as_deref()), ("title", p.title.as_deref()), ("authtoken", authtoken)]
    {
        if let Some(text) = text {
            say(key, json!(text));
        }
    }
    Value::Object(wanted)
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
    let word = |key: &str| fields.get(key).and_then(Value::as_str).map(str::to_owned);
    let set = |n: u64| (n > 0).then_some(n);
    let udp = flag("udp");
    if flag("sctp") || !(udp || flag("tcp")) {
        return Err((Refusal::Protocol, "the protocol is neither TCP nor UDP".to_owned()));
    }
    let time_s = count("time", 86_400, Refusal::Duration)?;
    let omit_s = count("omit", 600, Refusal::Omit)?;
    let streams = count("parallel", u64::from(MAX_STREAMS), Refusal::Streams)?.max(1);
    let block =
        count("len", if udp { 65_507 } else { MAX_BLOCK }, if udp { Refusal::Datagram } else { Refusal::BlockSize })?;
    let block = set(block).unwrap_or(if udp { DATAGRAM } else { BLOCK });
    let bytes = set(count("num", 1 << 60, Refusal::Parameters)?);
    let blocks = count("blockcount", 1 << 40, Refusal::Parameters)?;
    let bytes = bytes.or_else(|| set(blocks.saturating_mul(block)));
    let rate = count("bandwidth", 1 << 52, Refusal::Parameters)?;
    let pace = count("fqrate", 1 << 52, Refusal::Parameters)?;
    let tos = count("TOS", 255, Refusal::Parameters)?;
    let on = |key: &str| Ok::<_, (Refusal, String)>(count(key, 1, Refusal::Parameters)? > 0);
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
        window_bytes: set(count("window", 512 << 20, Refusal::Window)?),
        mss_bytes: set(count("MSS", 9 * 1024, Refusal::Mss)?).map(|n| n as u32),
        congestion: word("congestion"),
        nodelay: flag("nodelay"),
        dscp: set(tos).map(|tos| (tos >> 2) as u8),
        mptcp: flag("mptcp"),
        pace_bps: set(pace).filter(|_| !udp),
        rate_bps: set(rate),
        send: if on("zerocopy")? && !udp { SendMode::Sendfile } else { SendMode::Copy },
        receive: if on("skip_rx_copy")? && !udp { ReceiveMode::Discard } else { ReceiveMode::Copy },
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
    let burst = count("burst", 1000, Refusal::Parameters)?;
    if let Some(udp) = &mut wanted.parameters.udp {
        udp.burst_packets = burst.max(1) as u32;
    }
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
    fn udp_requests_keep_length_burst_and_counter_width() {
        let udp = UdpParameters { payload_bytes: 200, burst_packets: 5, ..UdpParameters::default() };
        let asked = Parameters { protocol: Protocol::Udp, udp: Some(udp), ..Parameters::default() };
        let heard = decode(&encode(&asked, &Extras::default(), None)).unwrap();
        let udp = heard.parameters.udp.unwrap();
        assert_eq!((udp.payload_bytes, udp.burst_packets, heard.wide_counters), (200, 5, true));
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
