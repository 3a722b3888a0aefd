//! Tests: the options of `run` and of iperf3 are those that the table of settings declares.

use std::collections::BTreeMap;

use clap::FromArgMatches as _;
use landspeed_model::{
    Direction, Family, NumaPolicy, PaceScope, Parameters, Protocol, ReceiveMode, RrMode, RrParameters, RrSize,
    SendMode, UdpParameters,
};
use landspeed_settings::{Form, SETTINGS, by_name, options};

use super::Args;

/// Options of `run` that choose the hosts, the output or the credentials, and short forms of settings.
const OTHERS: &[&str] = &[
    "port",
    "from",
    "ask-path",
    "blocks",
    "udp",
    "rr",
    "rrul",
    "zerocopy",
    "iperf3",
    "username",
    "rsa-public-key-path",
    "use-pkcs1-padding",
    "server-output",
    "cport",
    "udp-counters-32bit",
    "key-file",
    "insecure-permissions",
    "json",
    "format",
    "jsonl",
    "report",
    "tap",
    "verbose",
    "quiet",
    "help",
];

fn command() -> clap::Command {
    <Args as clap::Args>::augment_args(clap::Command::new("run"))
}

fn parse(words: &[String]) -> Parameters {
    let words = ["run", "dtn.example"].into_iter().map(str::to_owned).chain(words.iter().cloned());
    let matches = command().try_get_matches_from(words).unwrap_or_else(|error| panic!("{error}"));
    let (parameters, sound) = Args::from_arg_matches(&matches).expect("options of run").parameters();
    sound.unwrap_or_else(|why| panic!("{why}"));
    parameters
}

#[test]
fn every_option_that_sets_a_parameter_is_declared() {
    let declared: BTreeMap<&str, Option<char>> = SETTINGS
        .iter()
        .filter(|setting| setting.form != Form::Hidden)
        .map(|setting| (setting.name, setting.short))
        .collect();
    let command = command();
    let known: BTreeMap<&str, Option<char>> = command
        .get_arguments()
        .filter_map(|argument| Some((argument.get_long()?, argument.get_short())))
        .filter(|(name, _)| !OTHERS.contains(name))
        .collect();
    assert_eq!(known, declared);
}

#[test]
fn declared_options_of_iperf3_exist() {
    let command = <crate::iperf3::Args as clap::Args>::augment_args(clap::Command::new("iperf3"));
    let known: Vec<&str> = command.get_arguments().filter_map(clap::Arg::get_long).collect();
    for setting in SETTINGS {
        if let Some(iperf3) = setting.iperf3 {
            assert!(known.contains(&iperf3.option.trim_start_matches("--")), "{}", iperf3.option);
        }
    }
}

#[test]
fn options_of_every_protocol_give_the_same_parameters() {
    let base = Parameters {
        streams: 4,
        time_ns: Some(2_500_000_000),
        omit_ns: 1_000_000_000,
        interval_ns: 200_000_000,
        host_interval_ns: 200_000_000,
        window_bytes: Some(3 << 19),
        client_cpus: vec![0, 2],
        server_cpus_auto: true,
        client_numa: Some(NumaPolicy::Bind(0)),
        server_numa: Some(NumaPolicy::Local),
        family: Family::V6,
        bind: Some("2001:db8::1".to_owned()),
        title: Some("a title".to_owned()),
        distance_m: Some(4_000_000.0),
        ..Parameters::default()
    };
    let tcp = Parameters {
        direction: Direction::Both,
        dscp: Some(46),
        write_bytes: 128 << 10,
        mss_bytes: Some(1200),
        congestion: Some("bbr".to_owned()),
        notsent_lowat_bytes: Some(131_072),
        nodelay: true,
        mptcp: true,
        pace_bps: Some(9_412_345_678),
        pace_scope: PaceScope::Total,
        rate_bps: Some(1_000_000),
        send: SendMode::Zerocopy,
        receive: ReceiveMode::Discard,
        read_rate_bps: Some(1_000_000),
        probe_rate_per_s: Some(10.0),
        probe_udp: true,
        probe_mtu: true,
        bytes: Some(1500),
        ..base.clone()
    };
    let udp = Parameters {
        stream_dscp: vec![0, 8, 46],
        protocol: Protocol::Udp,
        direction: Direction::Download,
        write_bytes: 200,
        rate_bps: None,
        udp: Some(UdpParameters {
            payload_bytes: 200,
            burst_packets: 5,
            exact_departures: false,
            gso: false,
            gro: false,
        }),
        ..base.clone()
    };
    let rr = |protocol, mode, rate_per_s| Parameters {
        protocol,
        rr: Some(RrParameters {
            mode,
            rate_per_s,
            sizes: vec![
                RrSize { request_bytes: 1, response_bytes: 1024 },
                RrSize { request_bytes: 64, response_bytes: 64 },
            ],
        }),
        ..base.clone()
    };
    let tests = [
        tcp,
        udp,
        rr(Protocol::TcpRr, RrMode::Connect, None),
        rr(Protocol::TcpRr, RrMode::ClosedLoop, None),
        rr(Protocol::UdpRr, RrMode::OpenLoop, Some(2500.5)),
        base,
    ];
    for parameters in tests {
        assert_eq!(parse(&options(&parameters, |_| true)), parameters);
    }
}

#[test]
fn rrul_is_a_combination_of_other_options() {
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let long = "-t 2 --bidir -P 4 --stream-dscp cs0,cs1,cs5,ef --probe --probe-udp";
    assert_eq!(parse(&words("-t 2 --rrul")), parse(&words(long)));
    for line in ["--rrul -R", "--rrul -u", "--rrul --rr", "--rrul -P 2", "--rrul --dscp ef"] {
        let words = ["run", "dtn.example"].into_iter().map(str::to_owned).chain(words(line));
        assert!(command().try_get_matches_from(words).is_err(), "{line}");
    }
}

#[test]
fn udp_options_without_udp_are_refused() {
    for (word, name) in
        [("--burst=65", "burst"), ("--coarse", "coarse"), ("--no-gso", "no-gso"), ("--no-gro", "no-gro")]
    {
        let matches = command().try_get_matches_from(["run", "dtn.example", word]).expect("an option of run");
        let (_, sound) = Args::from_arg_matches(&matches).expect("options of run").parameters();
        let why = sound.expect_err(word);
        assert!(by_name(name).count() == 1 && why.starts_with(&format!("--{name} does not apply to TCP")), "{why}");
    }
}
