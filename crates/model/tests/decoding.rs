//! Decoding of facts, `tcp_info` and metrics.

use landspeed_model::{Fact, KernelFacts, Metric, TcpInfo};

#[test]
fn kernel_versions_compare_numerically() {
    let kernel = |release: &str| KernelFacts { release: release.into(), ..KernelFacts::default() };
    assert_eq!(kernel("6.18.5-100.fc42.x86_64").at_least(6, 9), Some(true));
    assert_eq!(kernel("4.18.0-553.el8").at_least(5, 0), Some(false));
    assert_eq!(kernel("").at_least(1, 0), None);
}

#[test]
fn last_value_of_a_repeated_kernel_parameter_wins() {
    let command_line = Fact::Known("quiet iommu=on mitigations=off iommu=pt".into());
    let kernel = KernelFacts { command_line, ..KernelFacts::default() };
    assert_eq!(kernel.parameter("iommu"), Some("pt"));
    assert_eq!(kernel.parameter("quiet"), Some(""));
    assert_eq!(kernel.parameter("splash"), None);
}

#[test]
fn mapping_an_absent_fact_keeps_its_reason() {
    let fact: Fact<u32> = Fact::Absent("no such knob".into());
    assert_eq!(fact.map(|n| n + 1), Fact::Absent("no such knob".into()));
    let text = serde_json::to_string(&Fact::Known(3)).expect("it serialises");
    assert_eq!(text, r#"{"known":3}"#);
}

#[test]
fn short_tcp_info_leaves_missing_fields_none() {
    let mut raw = vec![0u8; 192];
    raw[0] = 1;
    raw[6] = 0x7a;
    raw[80..84].copy_from_slice(&77u32.to_ne_bytes());
    let info = TcpInfo::decode(&raw);
    assert_eq!((info.state, info.snd_wscale, info.rcv_wscale, info.snd_cwnd), (1, 10, 7, 77));
    assert_eq!(info.sndbuf_limited_us, Some(0));
    assert_eq!(info.bytes_sent, None);
    assert_eq!(TcpInfo::decode(&[]).returned_bytes, 0);
}

#[test]
fn unlimited_pacing_rate_decodes_as_none() {
    let mut raw = vec![0u8; 280];
    raw[112..120].copy_from_slice(&u64::MAX.to_ne_bytes());
    raw[104..112].copy_from_slice(&125_000_000u64.to_ne_bytes());
    let info = TcpInfo::decode(&raw);
    assert_eq!(info.max_pacing_rate_bytes_per_s, None);
    assert_eq!(info.pacing_rate_bytes_per_s, Some(125_000_000));
}

#[test]
fn every_metric_is_found_by_name_and_by_field() {
    for metric in Metric::ALL {
        assert_eq!(Metric::find(metric.name()), Some(metric));
        assert_eq!(Metric::find(metric.field()), Some(metric));
    }
    assert_eq!(Metric::find("bandwidth"), None);
}
