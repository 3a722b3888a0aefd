//! Flows that test a section of a long path: settings that do not apply, and targets that the section cannot be tested for.

use landspeed_model::QualifySection;
use landspeed_qualify::check_section;

use crate::scenario::judgement::Judgement;
use crate::scenario::paths::Route;
use crate::scenario::section::sender_rate_bps;
use crate::scenario::{Flow, FlowProtocol};

/// Judges the target of a flow, and settings that do not apply to its protocol.
pub(super) fn judge(key: &str, flow: &Flow, judgement: &mut Judgement) {
    if flow.protocol != Some(FlowProtocol::Qualify) {
        let set = [
            ("target", flow.target.is_some()),
            ("target-rtt", flow.target_rtt.is_some()),
            ("target-mtu", flow.target_mtu.is_some()),
            ("for", flow.target_congestion.is_some()),
        ];
        for (name, _) in set.into_iter().filter(|(_, is_set)| *is_set) {
            judgement.refuse_with(
                format!("{key}.{name}"),
                format!("`{name}` has no effect without `protocol = \"qualify\"`"),
                format!("set the protocol, or remove `{name}`"),
            );
        }
        return;
    }
    for name in settings_beside(flow) {
        judgement.refuse_with(
            format!("{key}.{name}"),
            format!("`{name}` does not apply to qualify"),
            format!("remove `{name}`: rates and bursts follow from `target` and `target-rtt`"),
        );
    }
    if let Err(why) = flow.section_target() {
        let hint = "set both, such as target = \"1G\" and target-rtt = \"40ms\": rate and RTT of the long path";
        judgement.refuse_with(key, why, hint);
    }
}

/// Judges a target against the section between the two hosts.
pub(super) fn judge_path(key: &str, flow: &Flow, route: &Route<'_>, judgement: &mut Judgement) {
    let Ok(target) = flow.section_target() else { return };
    let section = QualifySection {
        client_addr: None,
        server_addr: None,
        rtt_ns: Some(route.rtt_ns()),
        path_mtu_bytes: Some(route.mtu()),
        line_rate_bps: sender_rate_bps(flow, route),
    };
    if let Err(unfit) = check_section(&section, &target) {
        judgement.refuse_with(key, unfit.message, unfit.advice);
    }
}

/// Returns the settings that are given and have no effect on a section's tests.
fn settings_beside(flow: &Flow) -> Vec<&'static str> {
    let set = [
        ("bytes", flow.bytes.is_some()),
        ("omit", flow.omit.is_some()),
        ("interval", flow.interval.is_some()),
        ("streams", flow.streams.is_some()),
        ("bidir", flow.bidir),
        ("len", flow.len.is_some()),
        ("mss", flow.mss.is_some()),
        ("congestion", flow.congestion.is_some()),
        ("nodelay", flow.nodelay),
        ("pace", flow.pace.is_some()),
        ("rate", flow.rate.is_some()),
        ("burst", flow.burst.is_some()),
        ("send", flow.send.is_some()),
        ("receive", flow.receive.is_some()),
        ("read-rate", flow.read_rate.is_some()),
        ("probe", flow.probe.is_some()),
    ];
    set.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name).collect()
}
