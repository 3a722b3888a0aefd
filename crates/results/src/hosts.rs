//! Host properties as names and values that can be compared.

use std::collections::BTreeMap;

use landspeed_model::HostSnapshot;

/// Adds all properties of a host that could influence a result, each with a dotted name that starts with
/// `prefix`.
pub fn flatten(prefix: &str, host: &HostSnapshot, into: &mut BTreeMap<String, String>) {
    let mut put = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            into.insert(format!("{prefix}.{name}"), value);
        }
    };
    put("hostname", Some(host.hostname.clone()));
    put("kernel_release", Some(host.kernel_release.clone()));
    put("machine", Some(host.machine.clone()));
    put("os", host.os.clone());
    put("cpu_model", host.cpu_model.clone());
    put("cores_online", Some(host.cores_online.to_string()));
    put("governor", host.governor.as_ref().map(|governor| format!("{} {}", governor.driver, governor.governor)));
    put("smt", host.smt.clone());
    put("virtualization", host.virtualization.clone());
    put("memory_bytes", Some(host.memory_bytes.to_string()));
    for (name, value) in &host.sysctls {
        put(&format!("sysctl.{name}"), Some(value.clone()));
    }
    let Some(nic) = &host.nic else { return };
    put("nic.name", Some(nic.name.clone()));
    put("nic.driver", nic.driver.clone());
    put("nic.driver_version", nic.driver_version.clone());
    put("nic.firmware", nic.firmware.clone());
    put("nic.speed_bps", nic.speed_bps.map(|speed| speed.to_string()));
    put("nic.mtu_bytes", Some(nic.mtu_bytes.to_string()));
    put("nic.qdiscs", Some(nic.qdiscs.join(" ")));
    put("nic.rx_ring", nic.rx_ring.map(|(now, _)| now.to_string()));
    put("nic.tx_ring", nic.tx_ring.map(|(now, _)| now.to_string()));
    put("nic.channels", nic.channels.map(|(now, _)| now.to_string()));
    for (name, on) in &nic.offloads {
        put(&format!("nic.offload.{name}"), Some(if *on { "on" } else { "off" }.to_owned()));
    }
}
