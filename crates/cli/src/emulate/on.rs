//! A path on one interface of this host, for selected peers only.

use std::sync::atomic::AtomicBool;

use landspeed_emulate::{OnInterface, certificate};
use landspeed_emulation::LoadedPath;
use landspeed_model::{EmulateDocument, EmulatePlacement};

use super::{Args, about, emulate_while, text, wait_while_up, warn_of_claims};

/// Emulates until interrupted, the time is over or the interface disappears.
pub(super) fn run(
    args: &Args,
    path: &LoadedPath,
    interface: &str,
    stop: &AtomicBool,
) -> anyhow::Result<EmulateDocument> {
    let mtu = path.path.mtu.unwrap_or(1500);
    let ssh = std::env::var("SSH_CONNECTION").ok();
    let on = OnInterface::open(interface, &args.peer, mtu, ssh.as_deref())?;
    warn_of_claims(on.locks());
    let peers: Vec<String> = args.peer.iter().map(ToString::to_string).collect();
    let placement = EmulatePlacement::Peers { interface: interface.to_owned(), peers };
    let (carried, ended) = emulate_while(
        (args.datapath, path),
        (on.listen()?, &placement),
        || on.enter_path(),
        |live, is_over| {
            let _diversion = on.divert()?;
            if !args.quiet {
                err!("{}", text::opening(path, &format!("{placement}; Ctrl-C ends it")));
            }
            Ok(wait_while_up(args, stop, live, || on.is_up(), is_over))
        },
    )?;
    Ok(certificate(path, carried, about(placement, ended, None)))
}
