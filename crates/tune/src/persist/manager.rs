//! Network managers that configure an interface after udev: NetworkManager and systemd-networkd. Their
//! settings override a .link file, so they are written for the manager, in a separate file next to its own;
//! profiles of the user are not modified.

use std::path::Path;

use super::plan::{Assignment, banner, read, sections};
use crate::Device;
use crate::error::TuneError;

/// The manager of an interface.
pub(super) enum Manager {
    /// Neither of them.
    None,
    /// NetworkManager, with its active profile.
    Profile { device: Device, uuid: String, profile: Option<Vec<Assignment>> },
    /// systemd-networkd, with its active .network file.
    Networkd { device: Device, file: String, text: String },
}

/// Who sets a key of systemd.link(5).
pub(super) enum KeyOwner {
    /// The .link file.
    None,
    /// A file of the manager, relative to the root; `text` returns its content for a value.
    File { path: String, text: Box<dyn Fn(&str) -> String> },
    /// The user, with the instruction to follow.
    ByHand(String),
}

impl Manager {
    /// Detects the manager of a device from its state below `/run`.
    pub(super) fn detect(device: &Device, root: &Path) -> Result<Self, TuneError> {
        if let Some(state) = read(&root.join(format!("run/NetworkManager/devices/{}", device.ifindex)))?
            && let Some(uuid) = state.lines().find_map(|line| line.strip_prefix("connection-uuid="))
        {
            let (device, uuid) = (device.clone(), uuid.trim().to_owned());
            let profile = profile(root, &uuid)?;
            return Ok(Self::Profile { device, uuid, profile });
        }
        if let Some(state) = read(&root.join(format!("run/systemd/netif/links/{}", device.ifindex)))?
            && let Some(file) = state.lines().find_map(|line| line.strip_prefix("NETWORK_FILE="))
        {
            let text = read(&root.join(file.trim_start_matches('/')))?.unwrap_or_default();
            return Ok(Self::Networkd { device: device.clone(), file: file.to_owned(), text });
        }
        Ok(Self::None)
    }

    /// Returns who sets this key of systemd.link(5).
    pub(super) fn claims(&self, key: &str) -> KeyOwner {
        match self {
            Self::Profile { device, uuid, profile } => match (profile, key) {
                (None, _) => KeyOwner::ByHand(format!(
                    "NetworkManager has {} in a profile that is not a file here (connection {uuid}): set it there, with nmcli \
                     connection modify",
                    device.name
                )),
                (Some(lines), "MTUBytes") => mtu_of_network_manager(device, uuid, lines),
                (Some(lines), key) => by_ethtool(device, uuid, lines, key),
            },
            Self::Networkd { device, file, text } if key == "MTUBytes" => mtu_of_networkd(device, file, text),
            Self::None | Self::Networkd { .. } => KeyOwner::None,
        }
    }
}

/// Writes a default for this device, which applies if the profile does not set the MTU
/// (NetworkManager.conf(5), connection section).
fn mtu_of_network_manager(device: &Device, uuid: &str, profile: &[Assignment]) -> KeyOwner {
    let own = profile.iter().any(|(section, key, value)| {
        ["ethernet", "802-3-ethernet"].contains(&section.as_str()) && key == "mtu" && value != "0" && value != "auto"
    });
    if own || device.mac.is_empty() {
        return KeyOwner::ByHand(format!(
            "the profile of NetworkManager for {} sets it: nmcli connection modify {uuid} 802-3-ethernet.mtu BYTES",
            device.name
        ));
    }
    let (name, mac) = (device.name.clone(), device.mac.clone());
    KeyOwner::File {
        path: format!("etc/NetworkManager/conf.d/90-landspeed-{name}.conf"),
        text: Box::new(move |value| {
            let banner = banner("the MTU of a device whose connection profile leaves it open");
            format!("{banner}[connection-landspeed-{name}]\nmatch-device=mac:{mac}\nethernet.mtu={value}\n")
        }),
    }
}

/// A profile with an `[ethtool]` section applies it on activation, after udev.
fn by_ethtool(device: &Device, uuid: &str, profile: &[Assignment], key: &str) -> KeyOwner {
    let prefix = match key {
        "RxBufferSize" | "TxBufferSize" => "ring-",
        "CombinedChannels" => "channels-",
        "RxFlowControl" | "TxFlowControl" => "pause-",
        key if key.contains("Coalesce") => "coalesce-",
        key if key.ends_with("Offload") || key.ends_with("OffloadHardware") => "feature-",
        _ => return KeyOwner::None,
    };
    let own = profile.iter().any(|(section, key, _)| section == "ethtool" && key.starts_with(prefix));
    if own {
        return KeyOwner::ByHand(format!(
            "the profile of NetworkManager for {} has ethtool.{prefix}*: nmcli connection modify {uuid} ethtool.{prefix}…",
            device.name
        ));
    }
    KeyOwner::None
}

/// Writes a drop-in for a .network file that sets the MTU of this interface only (systemd.network(5)).
fn mtu_of_networkd(device: &Device, file: &str, text: &str) -> KeyOwner {
    let lines = sections(text);
    if !lines.iter().any(|(section, key, _)| section == "Link" && key == "MTUBytes") {
        return KeyOwner::None;
    }
    let only = lines.iter().any(|(section, key, value)| {
        section == "Match"
            && match key.as_str() {
                "Name" | "OriginalName" => *value == device.name,
                "MACAddress" | "PermanentMACAddress" => value.eq_ignore_ascii_case(&device.mac),
                _ => false,
            }
    });
    let name = Path::new(file).file_name().map(|name| name.to_string_lossy().into_owned());
    match name {
        Some(name) if only => KeyOwner::File {
            path: format!("etc/systemd/network/{name}.d/90-landspeed.conf"),
            text: Box::new(|value| {
                banner("the MTU, over that of the file it belongs to") + "[Link]\nMTUBytes=" + value + "\n"
            }),
        },
        _ => KeyOwner::ByHand(format!(
            "systemd-networkd sets it by {file}, which is not for {} alone: give it a separate file",
            device.name
        )),
    }
}

/// Returns the profile with a UUID; `None` if no keyfile contains it.
fn profile(root: &Path, uuid: &str) -> Result<Option<Vec<Assignment>>, TuneError> {
    for directory in ["etc/NetworkManager/system-connections", "run/NetworkManager/system-connections"] {
        for entry in std::fs::read_dir(root.join(directory)).into_iter().flatten().flatten() {
            let lines = sections(&read(&entry.path())?.unwrap_or_default());
            if lines.iter().any(|(section, key, value)| section == "connection" && key == "uuid" && value == uuid) {
                return Ok(Some(lines));
            }
        }
    }
    Ok(None)
}
