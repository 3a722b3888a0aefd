//! iperf3's options and their translation to parameters of a run.

use std::path::PathBuf;

use landspeed_flow::client::Target;
use landspeed_iperf3::KeepAlive;
use landspeed_iperf3::quantity::Format;
use landspeed_iperf3::report::ReportFormat;
use landspeed_iperf3::text::Style;
use landspeed_model::{Direction, Family, Parameters, Protocol, ReceiveMode, SendMode, UdpParameters};
use landspeed_units::{BitRate, Bytes};

const EXAMPLES: &str = "\
Examples:
  landspeed iperf3 -c dtn.example -P 4 -t 30      as iperf3 -c, with its lines
  landspeed iperf3 -c dtn.example -u -b 1G -J     as iperf3 -J
  landspeed iperf3 -s -1                          a server for one test
  ln -s landspeed ~/.local/bin/iperf3             scripts that call iperf3 find this one

Both ends speak iperf3's protocol. A flag that is not here is refused; none is accepted and ignored
unless its help says so.
`landspeed run --iperf3` and `landspeed serve` report more about the same test.
Exit status: 0 the test ran, 1 it did not or the command line is wrong.";

/// Duration for `-t 0`, which runs until interrupted, nanoseconds: a finite limit bounds the memory for samples.
const ENDLESS_NS: u64 = 86_400_000_000_000;

/// Options of `iperf3`: names and meaning are iperf3's.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES, disable_version_flag = true, args_override_self = true)]
#[command(group(clap::ArgGroup::new("role").required(true).args(["client", "server", "version"])))]
pub struct Args {
    /// Run as a client of this server
    #[arg(short, long, value_name = "HOST")]
    pub client: Option<String>,
    /// Run as a server
    #[arg(short, long)]
    pub server: bool,
    /// Print the version
    #[arg(short, long, exclusive = true)]
    pub version: bool,

    /// Server's port
    #[arg(short, long, default_value_t = landspeed_iperf3::DEFAULT_PORT, help_heading = "Client or server")]
    pub port: u16,
    /// Unit of rates: k, m, g, t for bits, K, M, G, T for bytes [default: the one that fits]
    #[arg(short, long, value_name = "UNIT", help_heading = "Client or server")]
    pub format: Option<Format>,
    /// Seconds between reports; 0 for none
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = interval, help_heading = "Client or server")]
    pub interval: u64,
    /// Write the process ID to this file
    #[arg(short = 'I', long, value_name = "FILE", help_heading = "Client or server")]
    pub pidfile: Option<PathBuf>,
    /// Core of the streams here, and of those at the server
    #[arg(short = 'A', long, value_name = "N[,M]", value_parser = affinity, help_heading = "Client or server")]
    pub affinity: Option<Affinity>,
    /// Local address
    #[arg(short = 'B', long, value_name = "ADDRESS", help_heading = "Client or server")]
    pub bind: Option<String>,
    /// Print more
    #[arg(short = 'V', long, help_heading = "Client or server")]
    pub verbose: bool,
    /// The same as -V: there is no other debugging output
    #[arg(short, long, value_name = "LEVEL", num_args = 0..=1, require_equals = true, default_missing_value = "4",
          help_heading = "Client or server")]
    debug: Option<u32>,
    /// Print JSON
    #[arg(short = 'J', long, help_heading = "Client or server")]
    pub json: bool,
    /// Print one JSON object a line: start, each interval as it passes, end
    #[arg(long, help_heading = "Client or server")]
    pub json_stream: bool,
    /// With --json-stream: print what -J prints after the end
    #[arg(long, help_heading = "Client or server")]
    json_stream_full_output: bool,
    /// Print to this file
    #[arg(long, value_name = "FILE", help_heading = "Client or server")]
    pub logfile: Option<PathBuf>,
    /// No effect: output is written at once
    #[arg(long, help_heading = "Client or server")]
    forceflush: bool,
    /// No effect: every wait has a limit
    #[arg(long, value_name = "MS", help_heading = "Client or server")]
    rcv_timeout: Option<u32>,
    /// No effect: every wait has a limit
    #[arg(long, value_name = "MS", help_heading = "Client or server")]
    snd_timeout: Option<u32>,
    /// TCP keepalive of the control connection: seconds idle, seconds between probes, probes [default: the kernel's; of a
    /// server 5/5/2]
    #[arg(long, value_name = "IDLE/INTERVAL/COUNT", num_args = 0..=1, require_equals = true, default_missing_value = "",
          value_parser = keep_alive, help_heading = "Client or server")]
    pub cntl_ka: Option<KeepAlive>,
    /// IPv4 only
    #[arg(short = '4', long, overrides_with = "version6", help_heading = "Client or server")]
    pub version4: bool,
    /// IPv6 only
    #[arg(short = '6', long, overrides_with = "version4", help_heading = "Client or server")]
    pub version6: bool,
    /// Credentials are padded as before 3.17
    #[arg(long, help_heading = "Client or server")]
    pub use_pkcs1_padding: bool,

    /// Serve in the background
    #[arg(short = 'D', long, conflicts_with = "client", help_heading = "Server")]
    pub daemon: bool,
    /// Serve one test, then stop
    #[arg(short = '1', long, conflicts_with = "client", help_heading = "Server")]
    pub one_off: bool,
    /// With -1: stop after this many seconds without a test. Otherwise no effect: no test can keep a server here busy
    /// forever
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400), conflicts_with = "client",
          help_heading = "Server")]
    pub idle_timeout: Option<u64>,
    /// Highest rate of one test in one direction
    #[arg(long, value_name = "RATE", value_parser = bitrate, conflicts_with = "client", help_heading = "Server")]
    pub server_bitrate_limit: Option<u64>,
    /// Longest test, seconds
    #[arg(long, value_name = "SECONDS", conflicts_with = "client", help_heading = "Server")]
    pub server_max_duration: Option<u64>,
    /// Private key (PEM) that credentials are encrypted for
    #[arg(
        long,
        value_name = "FILE",
        requires = "authorized_users_path",
        conflicts_with = "client",
        help_heading = "Server"
    )]
    pub rsa_private_key_path: Option<PathBuf>,
    /// Users that may test: lines of USER,SHA256("{USER}PASSWORD")
    #[arg(
        long,
        value_name = "FILE",
        requires = "rsa_private_key_path",
        conflicts_with = "client",
        help_heading = "Server"
    )]
    pub authorized_users_path: Option<PathBuf>,
    #[command(flatten)]
    pub trust: crate::trust::TrustArgs,
    /// Largest clock difference to a client, seconds
    #[arg(long, value_name = "SECONDS", requires = "authorized_users_path", help_heading = "Server")]
    pub time_skew_threshold: Option<u64>,

    /// UDP
    #[arg(short, long, conflicts_with = "server", help_heading = "Client")]
    udp: bool,
    /// No effect: connecting has a limit
    #[arg(long, value_name = "MS", conflicts_with = "server", help_heading = "Client")]
    connect_timeout: Option<u32>,
    /// Rate of each stream, and packets in a burst; 0 means unlimited [default: UDP 1M, TCP 0]
    #[arg(short, long, alias = "bandwidth", value_name = "RATE[/N]", value_parser = pace, conflicts_with = "server",
          help_heading = "Client")]
    bitrate: Option<Pace>,
    /// No effect: pacing is exact
    #[arg(long, value_name = "US", conflicts_with = "server", help_heading = "Client")]
    pacing_timer: Option<String>,
    /// Pacing in the kernel, each stream
    #[arg(long, value_name = "RATE", value_parser = bitrate, conflicts_with = "server", help_heading = "Client",
          overrides_with = "no_fq_socket_pacing")]
    fq_rate: Option<u64>,
    /// The same as --fq-rate 0
    #[arg(long, conflicts_with = "server", help_heading = "Client", overrides_with = "fq_rate")]
    no_fq_socket_pacing: bool,
    /// Seconds to test; 0 until it is interrupted, a day at most [default: 10]
    #[arg(short, long, value_name = "SECONDS", conflicts_with_all = ["server", "bytes", "blockcount"],
          help_heading = "Client")]
    time: Option<u64>,
    /// Bytes to send in each direction instead of a time
    #[arg(short = 'n', long, value_name = "SIZE", value_parser = size, conflicts_with_all = ["server", "blockcount"], help_heading = "Client")]
    bytes: Option<u64>,
    /// Writes or datagrams to send in each direction instead of a time
    #[arg(short = 'k', long, value_name = "N", value_parser = size, conflicts_with = "server", help_heading = "Client")]
    pub blockcount: Option<u64>,
    /// Bytes of a write or a datagram [default: TCP 128K, UDP 1448]
    #[arg(short, long, value_name = "SIZE", value_parser = size, conflicts_with = "server", help_heading = "Client")]
    length: Option<u64>,
    /// Local port of the first stream
    #[arg(long, value_name = "PORT", conflicts_with = "server", help_heading = "Client")]
    pub cport: Option<u16>,
    /// Streams in each direction
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1, conflicts_with = "server", help_heading = "Client",
          value_parser = clap::value_parser!(u32).range(1..=128))]
    parallel: u32,
    /// The server sends
    #[arg(short = 'R', long, conflicts_with_all = ["server", "bidir"], help_heading = "Client")]
    reverse: bool,
    /// Both ends send
    #[arg(long, conflicts_with = "server", help_heading = "Client")]
    bidir: bool,
    /// Socket buffers
    #[arg(short, long, value_name = "SIZE", value_parser = size, conflicts_with = "server", help_heading = "Client")]
    window: Option<u64>,
    /// Maximum segment size
    #[arg(short = 'M', long, value_name = "BYTES", conflicts_with = "server", help_heading = "Client")]
    set_mss: Option<u32>,
    /// TCP_NODELAY
    #[arg(short = 'N', long, conflicts_with = "server", help_heading = "Client")]
    no_delay: bool,
    /// Multipath TCP
    #[arg(short, long, conflicts_with = "server", help_heading = "Client")]
    mptcp: bool,
    /// Type of service: 0 to 255, 0x…, 0…; the ECN bits are the kernel's
    #[arg(short = 'S', long, value_name = "TOS", value_parser = tos, conflicts_with = "server", overrides_with = "dscp",
          help_heading = "Client")]
    tos: Option<u8>,
    /// DSCP: 0 to 63, 0x…, 0…, or ef, cs1, af41
    #[arg(long, value_parser = dscp, conflicts_with = "server", overrides_with = "tos", help_heading = "Client")]
    dscp: Option<u8>,
    /// sendfile(2)
    #[arg(short = 'Z', long, conflicts_with = "server", help_heading = "Client")]
    zerocopy: bool,
    /// The local receiver drops the data in the kernel (MSG_TRUNC)
    #[arg(long, conflicts_with = "server", help_heading = "Client")]
    skip_rx_copy: bool,
    /// Seconds at the beginning that do not count; they are added to the time
    #[arg(short = 'O', long, value_name = "SECONDS", conflicts_with = "server", help_heading = "Client")]
    omit: Option<u64>,
    /// Text before every line
    #[arg(short = 'T', long, conflicts_with = "server", help_heading = "Client")]
    title: Option<String>,
    /// Text to carry in the JSON
    #[arg(long, value_name = "TEXT", conflicts_with = "server", help_heading = "Client")]
    pub extra_data: Option<String>,
    /// Congestion control of the senders
    #[arg(
        short = 'C',
        long,
        alias = "linux-congestion",
        value_name = "NAME",
        conflicts_with = "server",
        help_heading = "Client"
    )]
    congestion: Option<String>,
    /// Get the server's output
    #[arg(long, conflicts_with = "server", help_heading = "Client")]
    pub get_server_output: bool,
    /// No effect: sequence numbers have 64 bits
    #[arg(long, conflicts_with = "server", help_heading = "Client")]
    udp_counters_64bit: bool,
    /// UDP: ask the server for GSO and GRO (iperf3 3.20 and later). The local end has them anyway
    #[arg(long, conflicts_with = "server", help_heading = "Client")]
    pub gsro: bool,
    /// No effect: the payload always repeats
    #[arg(long, conflicts_with = "server", help_heading = "Client")]
    repeating_payload: bool,
    /// User; the password is in IPERF3_PASSWORD or asked for
    #[arg(
        long,
        value_name = "NAME",
        requires = "rsa_public_key_path",
        conflicts_with = "server",
        help_heading = "Client"
    )]
    pub username: Option<String>,
    /// The server's public key (PEM)
    #[arg(long, value_name = "FILE", requires = "username", conflicts_with = "server", help_heading = "Client")]
    pub rsa_public_key_path: Option<PathBuf>,
}

/// Cores of `-A N[,M]`: client, server.
pub type Affinity = (Option<u32>, Option<u32>);

/// Rate and burst of `-b RATE[/N]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Bits/s; `None` is unlimited.
    pub rate: Option<u64>,
    /// Packets per burst.
    pub burst: u32,
}

impl Args {
    /// Returns host and port of the server. The port is always a separate option: a colon belongs to an IPv6 address.
    pub fn target(&self) -> Target {
        Target { host: self.client.clone().unwrap_or_default(), port: Some(self.port) }
    }

    /// Returns the format of the report.
    pub fn report_format(&self) -> ReportFormat {
        match (self.json_stream, self.json) {
            (true, _) => ReportFormat::Events { full_output: self.json_stream_full_output },
            (_, true) => ReportFormat::Json,
            _ => ReportFormat::Text(Style {
                format: self.format.unwrap_or_default(),
                verbose: self.verbose || self.debug.is_some(),
            }),
        }
    }

    /// Whether the test runs until interrupted (`-t 0`).
    pub fn is_endless(&self) -> bool {
        self.time == Some(0)
    }

    /// Returns the parameters for `landspeed run --iperf3`.
    pub fn parameters(&self) -> Result<Parameters, String> {
        let bounded = self.bytes.is_some() || self.blockcount.is_some();
        let second = 1_000_000_000;
        let (write_bytes, udp) = self.sizes()?;
        let bitrate = self.bitrate.unwrap_or(Pace { rate: self.udp.then_some(1_000_000), burst: 1 });
        let (near, far) = self.affinity.unwrap_or_default();
        Ok(Parameters {
            protocol: if self.udp { Protocol::Udp } else { Protocol::Tcp },
            direction: match (self.reverse, self.bidir) {
                (true, _) => Direction::Download,
                (_, true) => Direction::Both,
                _ => Direction::Upload,
            },
            streams: self.parallel,
            time_ns: (!bounded).then(|| match self.time {
                Some(0) => ENDLESS_NS,
                time => time.unwrap_or(10).saturating_mul(second),
            }),
            bytes: self.bytes.or(self.blockcount.map(|blocks| blocks.saturating_mul(write_bytes))),
            omit_ns: self.omit.unwrap_or(0).saturating_mul(second),
            // Ten samples per report interval, within limits.
            interval_ns: (self.interval_ns() / 10).clamp(10_000_000, 100_000_000),
            write_bytes,
            window_bytes: self.window,
            mss_bytes: self.set_mss,
            congestion: self.congestion.clone(),
            nodelay: self.no_delay,
            mptcp: self.mptcp,
            dscp: self.dscp.or(self.tos.map(|tos| tos >> 2)),
            pace_bps: self.fq_rate.filter(|rate| *rate > 0),
            rate_bps: bitrate.rate,
            send: if self.zerocopy { SendMode::Sendfile } else { SendMode::Copy },
            receive: if self.skip_rx_copy { ReceiveMode::Discard } else { ReceiveMode::Copy },
            client_cpus: near.into_iter().collect(),
            server_cpus: far.into_iter().collect(),
            family: match (self.version4, self.version6) {
                (true, _) => Family::V4,
                (_, true) => Family::V6,
                _ => Family::Any,
            },
            bind: self.bind.clone(),
            udp: udp.map(|payload_bytes| UdpParameters {
                payload_bytes,
                burst_packets: bitrate.burst,
                ..UdpParameters::default()
            }),
            title: self.title.clone(),
            ..Parameters::default()
        })
    }

    /// Returns the bytes per write, and per datagram for UDP.
    fn sizes(&self) -> Result<(u64, Option<u32>), String> {
        if !self.udp {
            return Ok((self.length.unwrap_or(128 * 1024), None));
        }
        let default = UdpParameters::default().payload_bytes;
        let payload = self.length.map_or(Ok(default), u32::try_from);
        let payload = payload.map_err(|_| "-l: no datagram is that long".to_owned())?;
        Ok((u64::from(payload), Some(payload)))
    }

    /// Returns the report interval, nanoseconds; one hour if reports are off (`-i 0`).
    pub fn interval_ns(&self) -> u64 {
        if self.interval == 0 { 3_600_000_000_000 } else { self.interval }
    }
}

/// Parses a report interval in seconds into nanoseconds; 0, or 0.1 to 60 as in iperf3.
fn interval(text: &str) -> Result<u64, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("`{text}` is not a number of seconds"))?;
    if seconds == 0.0 || (0.1..=60.0).contains(&seconds) {
        return Ok((seconds * 1e9).round() as u64);
    }
    Err(format!("`{text}`: 0.1 to 60 seconds, or 0 for no reports"))
}

fn affinity(text: &str) -> Result<Affinity, String> {
    let core = |text: &str| text.parse::<u32>().map(Some).map_err(|_| format!("`{text}` is not a CPU number"));
    match text.split_once(',') {
        None => Ok((core(text)?, None)),
        Some(("", far)) => Ok((None, core(far)?)),
        Some((near, far)) => Ok((core(near)?, core(far)?)),
    }
}

/// Parses a size; K, M, G and T are powers of 1024.
fn size(text: &str) -> Result<u64, String> {
    text.parse::<Bytes>().map(Bytes::get).map_err(|error| error.to_string())
}

/// Parses a bit rate; K, M, G and T are powers of 1000.
fn bitrate(text: &str) -> Result<u64, String> {
    text.parse::<BitRate>().map(BitRate::bps).map_err(|error| error.to_string())
}

fn pace(text: &str) -> Result<Pace, String> {
    let (rate, burst) = text.split_once('/').unwrap_or((text, "1"));
    let burst = burst.parse().ok().filter(|burst| (1..=65_536).contains(burst));
    let burst = burst.ok_or_else(|| format!("`{text}`: packets in a burst are 1 to 65536"))?;
    Ok(Pace { rate: Some(bitrate(rate)?).filter(|rate| *rate > 0), burst })
}

/// Parses a number in decimal, octal (`0…`) or hexadecimal (`0x…`), as C does.
fn c_number(text: &str) -> Option<u8> {
    let digits = text.to_ascii_lowercase();
    match digits.strip_prefix("0x") {
        Some(hex) => u8::from_str_radix(hex, 16),
        None if digits.len() > 1 && digits.starts_with('0') => u8::from_str_radix(&digits, 8),
        None => digits.parse(),
    }
    .ok()
}

/// Parses a DSCP: a number, or one of iperf3's names, which include those of RFC 1349 and VOICE-ADMIT (RFC 5865).
fn dscp(text: &str) -> Result<u8, String> {
    match text.to_ascii_lowercase().as_str() {
        "lowdelay" => Ok(4),
        "throughput" => Ok(2),
        "reliability" => Ok(1),
        "va" => Ok(44),
        // A number is read as C does: `08` is none.
        name if name.starts_with(|first: char| first.is_ascii_digit()) => c_number(text)
            .filter(|dscp| *dscp < 64)
            .ok_or_else(|| format!("`{text}`: a DSCP is 0 to 63, also octal (056) or hexadecimal (0x2e), or a name")),
        name => crate::options::dscp(name),
    }
}

/// Parses `IDLE/INTERVAL/COUNT`, of which each may be missing or 0.
fn keep_alive(text: &str) -> Result<KeepAlive, String> {
    let mut values = [None; 3];
    let mut words = text.split('/');
    for value in &mut values {
        let word = words.next().unwrap_or_default();
        let number = if word.is_empty() { Ok(0) } else { word.parse::<u32>() };
        let number = number.ok().filter(|number| *number <= 32_767);
        *value = Some(
            number.ok_or_else(|| format!("`{text}`: seconds idle/seconds between probes/probes, as in 10/2/3"))?,
        );
    }
    let [idle_s, interval_s, probes] = values.map(|value| value.filter(|number| *number > 0));
    let all_s = interval_s.unwrap_or(0) * probes.unwrap_or(0);
    if words.next().is_some() || idle_s.is_some_and(|idle_s| idle_s <= all_s) {
        return Err(format!("`{text}`: the idle time must be longer than all probes, as in 10/2/3"));
    }
    Ok(KeepAlive { idle_s, interval_s, probes })
}

/// Parses a type of service, which has no ECN bits.
fn tos(text: &str) -> Result<u8, String> {
    let value = c_number(text).ok_or_else(|| format!("`{text}` is not a type of service; write 0 to 255 or 0xb8"))?;
    if value & 3 != 0 {
        return Err(format!("`{text}` sets ECN bits, which are the kernel's; {:#x} has none", value & !3));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn read(line: &str) -> Result<Args, clap::Error> {
        Line::try_parse_from(std::iter::once("iperf3").chain(line.split_whitespace())).map(|line| line.args)
    }

    fn parameters(line: &str) -> Parameters {
        read(line)
            .and_then(|args| args.parameters().map_err(|why| clap::Error::raw(clap::error::ErrorKind::Io, why)))
            .unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    #[test]
    fn options_mean_the_same_as_in_iperf3() {
        let p = parameters("-c dtn -u -b 10m/32 -l 1400 -P 4 -R -t 5 -O 2 -S 0xb8 -4");
        assert_eq!((p.protocol, p.direction, p.streams), (Protocol::Udp, Direction::Download, 4));
        assert_eq!((p.rate_bps, p.time_ns, p.omit_ns), (Some(10_000_000), Some(5_000_000_000), 2_000_000_000));
        let udp = p.udp.expect("UDP");
        assert_eq!((udp.payload_bytes, udp.burst_packets, p.dscp, p.family), (1400, 32, Some(46), Family::V4));

        let p =
            parameters("--client dtn --bytes 10M --length 64K --bidir --window 4M --congestion cubic -N -Z -A 1,2");
        assert_eq!((p.bytes, p.time_ns, p.write_bytes, p.window_bytes), (Some(10 << 20), None, 65536, Some(4 << 20)));
        assert_eq!((p.direction, p.nodelay, p.send), (Direction::Both, true, SendMode::Sendfile));
        assert_eq!((p.client_cpus, p.server_cpus, p.congestion.as_deref()), (vec![1], vec![2], Some("cubic")));

        assert_eq!(parameters("-c dtn -k 3 -l 1K").bytes, Some(3072));
        assert_eq!(parameters("-c dtn -b 0").rate_bps, None);
        assert_eq!(parameters("-c dtn -u -b 0").rate_bps, None);
        assert_eq!(parameters("-c dtn -u").rate_bps, Some(1_000_000));
        assert_eq!(parameters("-c dtn").write_bytes, 131_072);
        assert_eq!(parameters("-c dtn -A ,3").server_cpus, [3]);
        assert_eq!(parameters("-c dtn -t 0").time_ns, Some(ENDLESS_NS));
    }

    #[test]
    fn the_last_option_wins() {
        let p = parameters("-c dtn -t 3 -P 2 -R -t 5 -P 4 -R -b 1M -b 2M -4 -6 -S 0x20 --dscp ef -C reno -C cubic");
        assert_eq!(
            (p.time_ns, p.streams, p.rate_bps, p.family),
            (Some(5_000_000_000), 4, Some(2_000_000), Family::V6)
        );
        assert_eq!((p.dscp, p.congestion.as_deref()), (Some(46), Some("cubic")));
        assert_eq!(parameters("-c dtn --dscp ef -S 0x20").dscp, Some(8));
        assert_eq!(parameters("-c dtn --fq-rate 1M --no-fq-socket-pacing").pace_bps, None);
        assert_eq!(parameters("-c dtn --no-fq-socket-pacing --fq-rate 1M").pace_bps, Some(1_000_000));
        assert_eq!(parameters("-c dtn --fq-rate 0").pace_bps, None);
        assert_eq!(
            read("-c one -c two -p 1 -p 2").map(|args| (args.client, args.port)).ok(),
            Some((Some("two".to_owned()), 2))
        );
    }

    #[test]
    fn dscp_is_read_as_c_does() {
        for (text, value) in
            [("46", 46), ("0x2e", 46), ("056", 46), ("EF", 46), ("lowdelay", 4), ("va", 44), ("0", 0)]
        {
            assert_eq!(parameters(&format!("-c dtn --dscp {text}")).dscp, Some(value), "{text}");
        }
        for text in ["64", "0x40", "0100", "08", "x"] {
            assert!(read(&format!("-c dtn --dscp {text}")).is_err(), "{text}");
        }
    }

    #[test]
    fn options_of_newer_releases_are_known() {
        let args =
            read("-c dtn -u --gsro --cntl-ka=10/2/3 -J --json-stream --json-stream-full-output").expect("a line");
        assert!(args.gsro && matches!(args.report_format(), ReportFormat::Events { full_output: true }));
        assert_eq!(args.cntl_ka, Some(KeepAlive { idle_s: Some(10), interval_s: Some(2), probes: Some(3) }));
        for (line, wanted) in [("-c dtn --cntl-ka", None), ("-c dtn --cntl-ka=//4", Some(4))] {
            assert_eq!(read(line).expect(line).cntl_ka.expect(line).probes, wanted);
        }
        for line in
            ["-c dtn --cntl-ka=5/2/3", "-c dtn --cntl-ka=a", "-c dtn --cntl-ka=9/1/1/1", "-c dtn --idle-timeout 5"]
        {
            assert!(read(line).is_err(), "{line}");
        }
        for line in ["-c dtn -d", "-c dtn --debug=2", "-c dtn -Vd"] {
            assert!(matches!(
                read(line).expect(line).report_format(),
                ReportFormat::Text(Style { verbose: true, .. })
            ));
        }
        assert_eq!(read("-s -1 --idle-timeout 5").expect("a server").idle_timeout, Some(5));
    }

    #[test]
    fn server_options_parse_and_exclude_client_options() {
        let args = read("-s -1 -p 5999 -D -I x.pid").expect("a line");
        assert!(args.server && args.one_off && args.daemon && args.port == 5999);
        assert!(read("-s -R").is_err() && read("-c dtn -1").is_err() && read("").is_err());
    }

    #[test]
    fn unsupported_options_are_refused_by_name() {
        for line in
            ["-c dtn --sctp", "-c dtn -F file", "-c dtn -L 5", "-c dtn --timestamps", "-c dtn --dont-fragment"]
        {
            let error = read(line).expect_err(line).to_string();
            let flag = line.split_whitespace().nth(2).expect("a flag");
            assert!(error.contains(flag), "{line}: {error}");
        }
        for line in ["-c dtn -S 0xb9", "-c dtn -i 0.01", "-c dtn -b x", "-c dtn -b 1M/0", "-c dtn -A x"] {
            assert!(read(line).is_err(), "{line}");
        }
    }
}
