//! Settings that systemd-udevd applies when a device appears: a .link file that includes the contents of
//! the current one, because only the first matching file is used (systemd.link(5)).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use landspeed_model::{Side, Target};

use super::manager::{KeyOwner, Manager};
use super::plan::{PersistPlan, PersistedSetting, banner, read, sections};
use crate::error::TuneError;
use crate::{Device, Value};

const DIRECTORY: &str = "etc/systemd/network";
/// Contents of systemd's 99-default.link, for hosts where the current file is unknown.
const DEFAULT: &str = "NamePolicy=keep kernel database onboard slot path\n\
                       AlternativeNamesPolicy=database onboard slot path mac\n\
                       MACAddressPolicy=persistent\n";

/// Key, value, and the name of the setting.
type Line = (String, String, String);

pub(super) fn plan(kept: &[PersistedSetting<'_>], root: &Path, plan: &mut PersistPlan) -> Result<(), TuneError> {
    let mut devices: BTreeMap<&str, (&Device, Vec<Line>)> = BTreeMap::new();
    for setting in kept {
        let Some(device) = setting.device else { continue };
        if matches!(
            setting.target,
            Target::Qdisc { .. } | Target::Queue { .. } | Target::InterfaceFile { .. } | Target::EgressRate { .. }
        ) {
            continue;
        }
        match assignment(setting.target, setting.value) {
            Some((key, value)) => {
                let lines = &mut devices.entry(&device.name).or_insert((device, Vec::new())).1;
                lines.push((key.to_owned(), value, setting.target.to_string()));
            }
            None => plan.hand(
                setting.target,
                format!(
                    "systemd.link has no word for it: set it to {} in a service that runs once the link is up",
                    setting.value
                ),
            ),
        }
    }
    for (name, (device, lines)) in devices {
        one(name, device, lines, root, plan)?;
    }
    Ok(())
}

fn one(name: &str, device: &Device, lines: Vec<Line>, root: &Path, plan: &mut PersistPlan) -> Result<(), TuneError> {
    let unsupported_reason = unsupported_reason(device, root)?;
    let manager = Manager::detect(device, root)?;
    let (mut keys, mut covered) = (Vec::new(), Vec::new());
    for (key, value, target) in lines {
        let claim = manager.claims(&key);
        let why = match &claim {
            KeyOwner::None => unsupported_reason.as_ref(),
            KeyOwner::File { .. } => None,
            KeyOwner::ByHand(why) => Some(why),
        };
        if let Some(why) = why {
            plan.hand(&target, format!("{why}; the value is {value}"));
        } else if let KeyOwner::File { path, text } = claim {
            plan.file(root, &path, text(&value))?;
            plan.covered.push(target);
        } else {
            keys.push((key, value));
            covered.push(target);
        }
    }
    if keys.is_empty() {
        return Ok(());
    }
    let file = format!("{DIRECTORY}/00-landspeed-{name}.link");
    let inherited = match read(&root.join(&file))? {
        Some(text) => section(&text, "Link"),
        None => active_link_file(device, root)?
            .map_or_else(|| section(&format!("[Link]\n{DEFAULT}"), "Link"), |text| section(&text, "Link")),
    };
    let mut text = banner("settings of one device, after those of the .link file that was in force");
    let _ = write!(text, "[Match]\nPermanentMACAddress={}\n\n[Link]\n", device.mac);
    for (key, value) in inherited.iter().filter(|(key, _)| !keys.iter().any(|(ours, _)| ours == key)) {
        let _ = writeln!(text, "{key}={value}");
    }
    for (key, value) in keys {
        let _ = writeln!(text, "{key}={value}");
    }
    plan.covered.extend(covered);
    plan.notes.push(format!("{name}: read when the device appears, so from the next boot on"));
    plan.file(root, &file, text)
}

/// Returns the key of systemd.link(5) and its value.
fn assignment(target: &Target, value: &Value) -> Option<(&'static str, String)> {
    let Value::Text(text) = value else { return None };
    let text = text.trim();
    let yes = || if text == "on" { "yes" } else { "no" }.to_owned();
    Some(match target {
        Target::Mtu { .. } => ("MTUBytes", text.to_owned()),
        Target::TxQueueLen { .. } => ("TransmitQueueLength", text.to_owned()),
        Target::Ring { side: Side::Rx, .. } => ("RxBufferSize", text.to_owned()),
        Target::Ring { side: Side::Tx, .. } => ("TxBufferSize", text.to_owned()),
        Target::Channels { .. } => ("CombinedChannels", text.to_owned()),
        Target::Pause { side: Side::Rx, .. } => ("RxFlowControl", yes()),
        Target::Pause { side: Side::Tx, .. } => ("TxFlowControl", yes()),
        Target::SegmentLimit { name, .. } if name == "gso_max_size" => {
            ("GenericSegmentOffloadMaxBytes", text.to_owned())
        }
        Target::Coalescing { parameter, .. } => match parameter.as_str() {
            "adaptive-rx" => ("UseAdaptiveRxCoalesce", yes()),
            "adaptive-tx" => ("UseAdaptiveTxCoalesce", yes()),
            "rx-usecs" => ("RxCoalesceSec", format!("{text}us")),
            "tx-usecs" => ("TxCoalesceSec", format!("{text}us")),
            "rx-frames" => ("RxMaxCoalescedFrames", text.to_owned()),
            "tx-frames" => ("TxMaxCoalescedFrames", text.to_owned()),
            _ => return None,
        },
        Target::Feature { name, .. } => {
            let key = match name.as_str() {
                "tx-tcp-segmentation" => "TCPSegmentationOffload",
                "tx-tcp6-segmentation" => "TCP6SegmentationOffload",
                "tx-generic-segmentation" => "GenericSegmentationOffload",
                "rx-gro" => "GenericReceiveOffload",
                "rx-gro-hw" => "GenericReceiveOffloadHardware",
                "rx-lro" => "LargeReceiveOffload",
                "rx-checksum" => "ReceiveChecksumOffload",
                _ => return None,
            };
            (key, yes())
        }
        _ => return None,
    })
}

/// Returns why a .link file does not work for this device; `None` if it does.
fn unsupported_reason(device: &Device, root: &Path) -> Result<Option<String>, TuneError> {
    let udevd = ["usr/lib/systemd/systemd-udevd", "lib/systemd/systemd-udevd", "usr/bin/udevadm", "bin/udevadm"];
    if !udevd.iter().any(|program| root.join(program).exists()) {
        return Ok(Some(
            "this host has no systemd-udevd: set it where the distribution configures the interface".into(),
        ));
    }
    if device.bus.is_empty() {
        return Ok(Some(format!(
            "{} is not hardware: set it in the configuration of the program that creates it",
            device.name
        )));
    }
    let kind = read(&root.join(format!("sys/class/net/{}/addr_assign_type", device.name)))?;
    if kind.is_some_and(|kind| kind.trim() != "0") {
        return Ok(Some(format!(
            "the hardware address of {} is not its own, so a .link file cannot know it",
            device.name
        )));
    }
    // Our file must sort first: only the first matching file is used.
    let first = link_file(device, root)?
        .and_then(|path| Path::new(&path).file_name().map(|n| n.to_string_lossy().into_owned()));
    Ok(first
        .filter(|name| name.as_str() < "00-landspeed")
        .map(|name| format!("{name} is read first: put it in there")))
}

/// The current .link file, as recorded by udev (`ID_NET_LINK_FILE`).
fn link_file(device: &Device, root: &Path) -> Result<Option<String>, TuneError> {
    let noted = read(&root.join(format!("run/udev/data/n{}", device.ifindex)))?.unwrap_or_default();
    Ok(noted.lines().find_map(|line| line.strip_prefix("E:ID_NET_LINK_FILE=")).map(ToOwned::to_owned))
}

fn active_link_file(device: &Device, root: &Path) -> Result<Option<String>, TuneError> {
    match link_file(device, root)? {
        Some(path) => read(&root.join(path.trim_start_matches('/'))),
        None => Ok(None),
    }
}

/// Returns the assignments of one section.
fn section(text: &str, wanted: &str) -> Vec<(String, String)> {
    let all = sections(text).into_iter();
    all.filter(|(section, ..)| section == wanted).map(|(_, key, value)| (key, value)).collect()
}
