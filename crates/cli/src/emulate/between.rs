//! A path between two interfaces of this host.

use std::sync::atomic::AtomicBool;

use anyhow::bail;
use landspeed_emulate::{Between, BetweenByKernel, certificate};
use landspeed_emulation::LoadedPath;
use landspeed_model::{EmulateDocument, EmulatePlacement};

use super::{Args, Datapath, about, emulate_while, text, wait_while_up, warn_of_claims};

/// Emulates until interrupted, the time is over or an interface disappears.
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
    warn_of_claims(interfaces.locks());
    let placement = EmulatePlacement::Between { first: first.clone(), second: second.clone() };
    let by_kernel = match args.datapath {
        Datapath::Userspace => None,
        Datapath::Kernel => Some(BetweenByKernel::open(&interfaces, mtu)?),
    };
    let (carried, ended) = emulate_while(
        (args.datapath, path),
        (interfaces.listen()?, &placement),
        || by_kernel.as_ref().map_or_else(|| Ok(interfaces.ends()), BetweenByKernel::enter_path),
        |live, is_over| {
            let _taken = by_kernel.as_ref().map(BetweenByKernel::divert).transpose()?;
            if !args.quiet {
                err!("{}", text::opening(path, &format!("{placement}; Ctrl-C ends it")));
            }
            let is_up = || by_kernel.as_ref().is_none_or(BetweenByKernel::is_up);
            Ok(wait_while_up(args, stop, live, is_up, is_over))
        },
    )?;
    Ok(certificate(path, carried, about(placement, ended, None)))
}
