//! A path between two interfaces of this host.

use std::sync::atomic::AtomicBool;

use anyhow::bail;
use landspeed_emulate::{Between, certificate};
use landspeed_emulation::LoadedPath;
use landspeed_model::{EmulateDocument, EmulatePlacement};

use super::{Args, about, attend, carry_while, text};

/// Emulates until something ends it.
pub(super) fn run(args: &Args, path: &LoadedPath, stop: &AtomicBool) -> anyhow::Result<EmulateDocument> {
    let [first, second] = &args.between[..] else {
        bail!(
            "--between {}: two interfaces are needed\nSeparate them by a comma: --between eth1,eth2.",
            args.between.join(",")
        );
    };
    let mtu = path.path.mtu.unwrap_or(1500);
    let ssh = std::env::var("SSH_CONNECTION").ok();
    let interfaces = Between::open([first, second], mtu, ssh.as_deref())?;
    let placement = EmulatePlacement::Between { first: first.clone(), second: second.clone() };
    let (carried, ended) = carry_while(
        path,
        (&[], &placement),
        || Ok(interfaces.ends()),
        |live, is_over| {
            if !args.quiet {
                eprint!("{}", text::opening(path, &format!("{placement}; Ctrl-C ends it")));
            }
            Ok(attend(args, stop, live, is_over))
        },
    )?;
    Ok(certificate(path, carried, about(placement, ended, None)))
}
