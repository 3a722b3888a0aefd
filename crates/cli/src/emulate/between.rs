//! A path between two interfaces of this host.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc;

use anyhow::bail;
use landspeed_emulate::{Between, Live, carry, certificate};
use landspeed_emulation::LoadedPath;
use landspeed_model::{EmulateDocument, EmulatePlacement};

use super::{Args, about, attend, text};

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
    let held = Between::hold([first, second], mtu, ssh.as_deref())?;
    let (live, ending) = (Live::default(), AtomicBool::new(false));
    let (tell_ready, ready) = mpsc::channel();
    let (carried, ended) = std::thread::scope(|scope| {
        // The sender moves there: it is gone when nothing will be ready any more.
        let (ends, ending, live) = (held.ends(), &ending, &live);
        let carrying = scope.spawn(move || {
            carry(path, &ends, Vec::new(), ending, live, move || {
                let _ = tell_ready.send(());
            })
        });
        if ready.recv().is_ok() && !args.quiet {
            eprint!("{}", text::opening(path, &format!("between {first} and {second}; Ctrl-C ends it")));
        }
        let ended = attend(args, stop, ending, live, || carrying.is_finished());
        (carrying.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), ended)
    });
    let placement = EmulatePlacement::Between { first: first.clone(), second: second.clone() };
    Ok(certificate(path, carried?, about(placement, ended, None)))
}
