//! netperf's options and their translation to parameters of a run.

use clap::Parser as _;
use landspeed_flow::client::Target;
use landspeed_model::{Direction, Family, Parameters, Protocol, RrMode, RrParameters, RrSize, UdpParameters};
use landspeed_units::Bytes;

use super::keys;
use super::kind::Test;
use super::units::Unit;

/// Port of netserver, and default of `-p`.
pub const DEFAULT_PORT: u16 = 12865;

const EXAMPLES: &str = "\
Examples:
  landspeed netperf -H dtn.example -p 5210 -t TCP_STREAM -l 10   a transfer, with netperf's table
  landspeed netperf -H dtn.example -p 5210 -D 1 -t UDP_RR -- -k THROUGHPUT,P99_LATENCY
                                           round trips, with interim results each second
  ln -s landspeed ~/.local/bin/netperf     flent finds this one
  landspeed serve --listen 12865           the server, at the port that flent expects

Options of the test, after --:
  -H, -L  data address of the server and of this host     -4, -6  address family
  -k      print these keys (-k ? lists them)              -K      congestion control of the sender
  -m, -M  bytes of a write                                -r      bytes of request,response
  -s, -S  socket buffers                                  -G      maximum segment size
  -D      TCP_NODELAY                                     -e      no effect: every wait has a limit

The server is landspeed serve; netserver speaks another protocol. Rates are those of the receiver.
The output omits keys that are unknown. An option that is not here is refused.
Exit status: 0 the test ran, 1 it did not or the command line is wrong.";

/// Reasons why options of netperf are refused: option, reason.
const REFUSED: &[(char, &str)] = &[
    ('a', "buffers are aligned to pages"),
    ('A', "buffers are aligned to pages"),
    ('b', "bursts are an option of 'landspeed run -u --burst'"),
    ('B', "the output has no brand; name the test with 'landspeed run --title'"),
    ('c', "CPU use of both hosts is in the document of 'landspeed run --json'"),
    ('C', "CPU use of both hosts is in the document of 'landspeed run --json'"),
    ('d', "there is no debugging output"),
    ('i', "repeat a test with 'landspeed sweep', which has intervals"),
    ('I', "repeat a test with 'landspeed sweep', which has intervals"),
    ('j', "quantiles are always kept: -- -k P50_LATENCY,P99_LATENCY"),
    ('k', "as an option of the test it goes after --"),
    ('K', "as an option of the test it goes after --"),
    ('n', "the number of cores is known"),
    ('N', "a test has a control connection"),
    ('o', "buffers have no offset"),
    ('O', "buffers have no offset"),
    ('r', "repeat a test with 'landspeed sweep', which has intervals"),
    ('s', "a test starts at once"),
    ('S', "data connections have no SO_KEEPALIVE"),
    ('w', "pace with 'landspeed run --rate'"),
    ('W', "the number of buffers is fixed"),
    ('y', "SO_PRIORITY is not set"),
    ('Z', "use a key: 'landspeed serve --key-file' and 'landspeed run --key-file'"),
];

/// Options of `netperf`: names and meaning are netperf's.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES, disable_version_flag = true, args_override_self = true)]
pub struct Args {
    /// Server, and address family: 4 or 6 [default: localhost]
    #[arg(short = 'H', value_name = "HOST[,FAMILY]")]
    host: Option<String>,
    /// Port of the server
    #[arg(short = 'p', value_name = "PORT", default_value_t = DEFAULT_PORT)]
    pub port: u16,
    /// Test: TCP_STREAM (to the server), TCP_MAERTS (from the server), UDP_STREAM, TCP_RR, UDP_RR, TCP_CRR
    #[arg(short = 't', value_name = "TEST", default_value = "TCP_STREAM", value_parser = Test::of_option)]
    pub test: Test,
    /// Seconds to test; -N for N bytes
    #[arg(short = 'l', value_name = "SECONDS", default_value_t = 10, allow_hyphen_values = true)]
    length: i64,
    /// Print interim results at this interval: at least 0.2 s for what the server receives. Negative means the same
    #[arg(short = 'D', value_name = "SECONDS", value_parser = demo, allow_hyphen_values = true)]
    pub demo: Option<u64>,
    /// Unit of rates: k, m, g for 10^3, 10^6, 10^9 bits, K, M, G for KBytes, MBytes, GBytes
    #[arg(short = 'f', value_name = "UNIT", value_parser = Unit::of_option)]
    unit: Option<Unit>,
    /// Print headings (1) or not (0)
    #[arg(short = 'P', value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=1))]
    pub headings: u8,
    /// Print the figure alone (0) or a table (1)
    #[arg(short = 'v', value_name = "LEVEL", default_value_t = 1)]
    pub verbosity: u8,
    /// IPv4 only
    #[arg(short = '4', overrides_with = "version6")]
    version4: bool,
    /// IPv6 only
    #[arg(short = '6', overrides_with = "version4")]
    version6: bool,
    /// Type of service of both hosts: 0 to 255, 0x…, or ef, cs1, af41; the ECN bits are the kernel's
    #[arg(short = 'Y', value_name = "TOS[,TOS]", value_parser = marks)]
    marks: Option<u8>,
    /// Local address, and address family
    #[arg(short = 'L', value_name = "ADDRESS[,FAMILY]")]
    local: Option<String>,
    /// No effect: the payload is random bytes
    #[arg(short = 'F', value_name = "FILE")]
    fill: Option<String>,
    /// Core of the streams here, and of those at the server
    #[arg(short = 'T', value_name = "N[,M]", value_parser = cores)]
    cores: Option<(Option<u32>, Option<u32>)>,
    /// Print the version
    #[arg(short = 'V', exclusive = true)]
    pub version: bool,
    /// Options of the test
    #[arg(last = true, value_name = "OPTION", allow_hyphen_values = true)]
    options: Vec<String>,
}

/// Options of a test, after `--`.
#[derive(Debug, Clone, Default, clap::Parser)]
#[command(name = "netperf --", no_binary_name = true, disable_help_flag = true, args_override_self = true)]
pub struct TestOptions {
    #[arg(short = 'H', value_name = "HOST[,FAMILY]")]
    host: Option<String>,
    #[arg(short = 'L', value_name = "ADDRESS[,FAMILY]")]
    local: Option<String>,
    #[arg(short = '4', overrides_with = "version6")]
    version4: bool,
    #[arg(short = '6', overrides_with = "version4")]
    version6: bool,
    /// Keys to print; all without a value.
    #[arg(short = 'k', value_name = "KEY", num_args = 0..=1, default_missing_value = "")]
    pub keys: Option<String>,
    #[arg(short = 'K', value_name = "NAME")]
    congestion: Option<String>,
    #[arg(short = 'm', value_name = "SIZE")]
    send: Option<String>,
    #[arg(short = 'M', value_name = "SIZE")]
    receive: Option<String>,
    #[arg(short = 'r', value_name = "SIZE")]
    transaction: Option<String>,
    #[arg(short = 's', value_name = "SIZE")]
    near_buffers: Option<String>,
    #[arg(short = 'S', value_name = "SIZE")]
    far_buffers: Option<String>,
    #[arg(short = 'G', value_name = "BYTES")]
    mss: Option<u32>,
    #[arg(short = 'D')]
    nodelay: bool,
    #[arg(short = 'e', value_name = "SECONDS")]
    timeout: Option<u32>,
}

/// A test as netperf's options describe it.
#[derive(Debug)]
pub struct Plan {
    /// Server of the control connection.
    pub server: Target,
    /// Server of the data connections, if it is another address.
    pub data: Option<Target>,
    /// Parameters of the run.
    pub parameters: Parameters,
    /// Unit in which rates are printed (`-f`).
    pub unit: Unit,
    /// Keys to print; `None` prints a table.
    pub keys: Option<Vec<&'static keys::Key>>,
    /// Whether `-k ?` asks for the list of keys.
    pub lists_keys: bool,
}

impl Args {
    /// Translates the options.
    ///
    /// # Errors
    /// An option, and why it is refused.
    pub fn plan(&self) -> Result<Plan, String> {
        let options = TestOptions::try_parse_from(&self.options).map_err(|error| test_option_error(&error))?;
        let server = host(self.host.as_deref().unwrap_or(if self.version6 { "::1" } else { "localhost" }));
        let family = family((self.version4, self.version6), &[&self.host, &self.local])?;
        let data_family = family_of(&options);
        let family = match (data_family?, family) {
            (Family::Any, family) => family,
            (data, Family::Any) => data,
            (data, control) if data == control => data,
            _ => return Err("-- -4, -6: the control connection has the same address family".to_owned()),
        };
        let server = Target { host: server, port: Some(self.port) };
        let data = options.host.as_deref().map(host).filter(|data| !data.is_empty() && *data != server.host);
        let unit = match (self.unit, self.test.is_rr()) {
            (None, true) => Unit::Transactions,
            (Some(Unit::Transactions), false) => {
                return Err("-f x: a rate in bits or bytes: k, m, g, K, M, G".to_owned());
            }
            (Some(unit), true) if unit != Unit::Transactions => {
                return Err("-f: request/response is in transactions per second".to_owned());
            }
            (unit, _) => unit.unwrap_or(Unit::Bits(2)),
        };
        let names = options.keys.as_deref();
        let keys = names.map(keys::select).transpose().map_err(|name| {
            format!("-- -k: there is no figure for the key {name}; `netperf -- -k ?` lists those that there are")
        })?;
        let parameters = Parameters { family, ..self.parameters(&options)? };
        let data = data.map(|host| Target { host, port: server.port });
        Ok(Plan { server, data, parameters, unit, keys, lists_keys: names == Some("?") })
    }

    fn parameters(&self, options: &TestOptions) -> Result<Parameters, String> {
        let (near, far) = self.cores.unwrap_or_default();
        let bytes = (self.length < 0).then(|| self.length.unsigned_abs());
        if self.test.is_rr() && bytes.is_some() {
            return Err("-l: request/response is bounded by time: use -l SECONDS".to_owned());
        }
        let sizes = [("-m", &options.send), ("-M", &options.receive)];
        let size = one_size(&sizes, "writes and reads have one size")?;
        let buffers = [("-s", &options.near_buffers), ("-S", &options.far_buffers)];
        let window = one_size(&buffers, "both hosts have the same socket buffers")?;
        let local = address(options.local.as_ref()).or_else(|| address(self.local.as_ref()));
        // Half the interval of the interim results: readings are on that grid.
        let interval_ns = self.demo.map_or(100_000_000, |every_ns| (every_ns / 2).clamp(10_000_000, 100_000_000));
        let (near_control, far_control) = pair(options.congestion.as_deref().unwrap_or_default());
        let base = Parameters {
            time_ns: bytes.is_none().then(|| self.length.unsigned_abs().saturating_mul(1_000_000_000)),
            bytes,
            interval_ns,
            window_bytes: window,
            mss_bytes: options.mss,
            congestion: if self.test == Test::TcpMaerts { far_control } else { near_control }.map(str::to_owned),
            nodelay: options.nodelay,
            dscp: self.marks.map(|tos| tos >> 2),
            client_cpus: near.into_iter().collect(),
            server_cpus: far.into_iter().collect(),
            bind: local,
            ..Parameters::default()
        };
        let transactions = |mode| -> Result<Option<RrParameters>, String> {
            let (request, response) = pair(options.transaction.as_deref().unwrap_or("1"));
            let bytes = |text: Option<&str>| {
                let size = text.map_or(Ok(1), |text| size_of("-r", text))?;
                u32::try_from(size).map_err(|_| format!("-r: `{size}` is too large"))
            };
            let size = RrSize { request_bytes: bytes(request)?, response_bytes: bytes(response)? };
            Ok(Some(RrParameters { mode, rate_per_s: None, sizes: vec![size] }))
        };
        Ok(match self.test {
            Test::TcpStream => Parameters { write_bytes: size.unwrap_or(128 * 1024), ..base },
            Test::TcpMaerts => {
                Parameters { direction: Direction::Download, write_bytes: size.unwrap_or(128 * 1024), ..base }
            }
            Test::UdpStream => {
                let default = UdpParameters::default();
                let payload = size.map_or(Ok(default.payload_bytes), u32::try_from);
                let payload_bytes = payload.map_err(|_| "-m: no datagram is that long".to_owned())?;
                Parameters {
                    protocol: Protocol::Udp,
                    write_bytes: u64::from(payload_bytes),
                    udp: Some(UdpParameters { payload_bytes, ..default }),
                    ..base
                }
            }
            Test::TcpRr => Parameters { protocol: Protocol::TcpRr, rr: transactions(RrMode::ClosedLoop)?, ..base },
            Test::UdpRr => Parameters { protocol: Protocol::UdpRr, rr: transactions(RrMode::ClosedLoop)?, ..base },
            Test::TcpCrr => Parameters { protocol: Protocol::TcpRr, rr: transactions(RrMode::Connect)?, ..base },
        })
    }
}

/// Returns why netperf's option is refused; `None` for one that is not netperf's, or after `--`.
pub fn why_refused(words: &[String]) -> Option<String> {
    let before = words.iter().take_while(|word| *word != "--");
    let letters = before.filter_map(|word| word.strip_prefix('-')?.chars().next());
    let refused = |letter| REFUSED.iter().find(|(refused, _)| *refused == letter);
    letters.filter_map(refused).map(|(letter, why)| format!("netperf's -{letter}: {why}.")).next()
}

/// Formats an error of the options after `--` in one line.
fn test_option_error(error: &clap::Error) -> String {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    format!("{} after --", first.trim_start_matches("error: "))
}

/// Splits `A,B`: a single value is both, as for most options of netperf.
fn pair(text: &str) -> (Option<&str>, Option<&str>) {
    let some = |text| Some(text).filter(|text: &&str| !text.is_empty());
    match text.split_once(',') {
        Some((near, far)) => (some(near), some(far)),
        None => (some(text), some(text)),
    }
}

/// Returns the host of `HOST[,FAMILY]`.
fn host(text: &str) -> String {
    text.split(',').next().unwrap_or(text).to_owned()
}

fn address(text: Option<&String>) -> Option<String> {
    text.map(|text| host(text)).filter(|address| !address.is_empty())
}

/// Returns the address family of `-4`, `-6` and of `HOST,FAMILY`.
fn family((v4, v6): (bool, bool), hosts: &[&Option<String>]) -> Result<Family, String> {
    let named = hosts.iter().filter_map(|host| host.as_deref()?.split_once(',')).map(|(_, family)| family);
    let mut found = match (v4, v6) {
        (true, _) => Family::V4,
        (_, true) => Family::V6,
        _ => Family::Any,
    };
    for name in named {
        found = match name.to_ascii_lowercase().as_str() {
            "4" | "inet" | "ipv4" => Family::V4,
            "6" | "inet6" | "ipv6" => Family::V6,
            "" | "0" | "unspec" => found,
            _ => return Err(format!("`{name}` is not an address family; write 4 or 6")),
        };
    }
    Ok(found)
}

fn family_of(options: &TestOptions) -> Result<Family, String> {
    family((options.version4, options.version6), &[&options.host, &options.local])
}

/// Returns the size that all of these options give; each may be `NEAR,FAR`.
fn one_size(options: &[(&str, &Option<String>)], rule: &str) -> Result<Option<u64>, String> {
    let mut found = None;
    for (name, text) in options {
        let Some(text) = text else { continue };
        let (near, far) = pair(text);
        for size in [near, far].into_iter().flatten() {
            let size = size_of(name, size)?;
            if found.is_some_and(|other| other != size) {
                return Err(format!("{name}: {rule}"));
            }
            found = Some(size);
        }
    }
    Ok(found)
}

fn size_of(name: &str, text: &str) -> Result<u64, String> {
    text.parse::<Bytes>().map(Bytes::get).map_err(|error| format!("{name}: {error}"))
}

/// Parses the interval of interim results, `SECONDS[,UNITS]`, into nanoseconds. netperf's first guess of units per
/// interval is not needed.
fn demo(text: &str) -> Result<u64, String> {
    let seconds = text.split(',').next().unwrap_or(text);
    let seconds: f64 = seconds.parse().map_err(|_| format!("`{text}` is not a number of seconds"))?;
    // netperf takes a negative interval as a request for exact timestamps, which these always are.
    let seconds = seconds.abs();
    if (0.01..=3600.0).contains(&seconds) {
        Ok((seconds * 1e9).round() as u64)
    } else {
        Err("0.01 to 3600 seconds".to_owned())
    }
}

/// Parses the marks of both hosts, which must be the same.
fn marks(text: &str) -> Result<u8, String> {
    let (near, far) = pair(text);
    let (near, far) = (near.map(mark).transpose()?, far.map(mark).transpose()?);
    match (near, far) {
        (Some(near), Some(far)) if near == far => Ok(near),
        _ => Err("both hosts mark with the same type of service: write one value".to_owned()),
    }
}

fn mark(text: &str) -> Result<u8, String> {
    let digits = text.to_ascii_lowercase();
    let number = match digits.strip_prefix("0x") {
        Some(hex) => u8::from_str_radix(hex, 16).ok(),
        None => digits.parse().ok(),
    };
    let tos = match number {
        Some(tos) => tos,
        None => crate::options::dscp(text)? << 2,
    };
    if tos.trailing_zeros() >= 2 {
        Ok(tos)
    } else {
        Err(format!("`{text}` sets ECN bits, which are the kernel's; {:#x} has none", tos & !3))
    }
}

fn cores(text: &str) -> Result<(Option<u32>, Option<u32>), String> {
    let core = |text: &str| text.parse::<u32>().map_err(|_| format!("`{text}` is not a CPU number"));
    let (near, far) = pair(text);
    Ok((near.map(core).transpose()?, far.map(core).transpose()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn plan(line: &str) -> Result<Plan, String> {
        let words = std::iter::once("netperf").chain(line.split_whitespace());
        Line::try_parse_from(words).map_err(|error| error.to_string())?.args.plan()
    }

    #[test]
    fn the_command_lines_of_flent_are_accepted() {
        let keys = "THROUGHPUT,LOCAL_CONG_CONTROL,REMOTE_CONG_CONTROL,TRANSPORT_MSS,LOCAL_TRANSPORT_RETRANS,\
                    REMOTE_TRANSPORT_RETRANS,LOCAL_SOCKET_TOS,REMOTE_SOCKET_TOS,DIRECTION,ELAPSED_TIME,PROTOCOL,\
                    LOCAL_SEND_SIZE,LOCAL_RECV_SIZE,REMOTE_SEND_SIZE,REMOTE_RECV_SIZE,LOCAL_BYTES_SENT,\
                    LOCAL_BYTES_RECVD,REMOTE_BYTES_SENT,REMOTE_BYTES_RECVD";
        let line = format!(
            "-P 0 -v 0 -D -0.20 -4 -Y 0xb8,0xb8 -H dtn -p 12865 -t TCP_MAERTS -l 60 -F /dev/urandom -f m \
             -L 192.0.2.1,4 -- -m 16384 -M 16384 -L 192.0.2.1,4 -H dtn -k {keys} -K cubic"
        );
        let up = plan(&line).expect("a plan");
        let p = &up.parameters;
        assert_eq!((p.direction, p.time_ns, p.dscp), (Direction::Download, Some(60_000_000_000), Some(46)));
        assert_eq!((p.write_bytes, p.congestion.as_deref(), p.family), (16384, Some("cubic"), Family::V4));
        assert_eq!((p.bind.as_deref(), p.interval_ns, up.unit), (Some("192.0.2.1"), 100_000_000, Unit::Bits(2)));
        assert_eq!((up.keys.expect("keys").len(), up.data, up.server.port), (19, None, Some(12865)));

        let line = format!("-P 0 -v 0 -D -0.20 -6 -H ::1 -p 5210 -t UDP_RR -l 70 -F /dev/urandom -- -e 2 -k {keys}");
        let rr = plan(&line).expect("a plan");
        assert_eq!((rr.parameters.protocol, rr.unit), (Protocol::UdpRr, Unit::Transactions));
        assert_eq!(rr.parameters.rr.expect("sizes").sizes, [RrSize { request_bytes: 1, response_bytes: 1 }]);
        let other = plan("-H control -p 5210 -t UDP_RR -- -H data").expect("a plan");
        assert_eq!(other.data.expect("another host").host, "data");
        assert_eq!(plan("-H dtn -l -1048576").expect("a plan").parameters.bytes, Some(1 << 20));
    }

    #[test]
    fn what_the_ends_cannot_have_differently_is_refused() {
        for line in
            ["-Y 0x20,0x40", "-Y ,0x20", "-Y 0x01", "-t OMNI", "-D 0", "-t UDP_RR -l -5", "-f x", "-t TCP_RR -f m"]
        {
            assert!(plan(line).is_err(), "{line}");
        }
        for line in ["-- -m 1K,2K", "-- -s 64K -S 32K", "-- -k NO_SUCH_KEY", "-- -T tcp", "-4 -- -6"] {
            assert!(plan(line).is_err(), "{line}");
        }
        assert!(plan("-- -k NO_SUCH_KEY").unwrap_err().contains("NO_SUCH_KEY"));
        assert!(plan("-- -T tcp").unwrap_err().contains("-T"));
    }

    #[test]
    fn a_refused_option_has_its_reason() {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert!(why_refused(&words("netperf -H dtn -c")).expect("a reason").contains("CPU"));
        assert_eq!(why_refused(&words("netperf -H dtn -- -K cubic")), None);
    }
}
