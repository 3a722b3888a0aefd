//! A path on one interface of this host, for given peers only.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use landspeed_emulate::{Live, OnInterface, answer, carry, certificate, listen};
use landspeed_emulation::LoadedPath;
use landspeed_model::{EmulateDocument, EmulateEnd, EmulatePlacement};

use super::{Args, about, attend, text};

/// Emulates until something ends it.
pub(super) fn run(
    args: &Args,
    path: &LoadedPath,
    interface: &str,
    stop: &AtomicBool,
) -> anyhow::Result<EmulateDocument> {
    let mtu = path.path.mtu.unwrap_or(1500);
    let ssh = std::env::var("SSH_CONNECTION").ok();
    let held = OnInterface::hold(interface, &args.peer, mtu, ssh.as_deref())?;
    let listener = [listen(held.index())?];
    let peers: Vec<String> = args.peer.iter().map(ToString::to_string).collect();
    let place = format!("on {interface} for {}; Ctrl-C ends it", peers.join(", "));
    let placement = EmulatePlacement::Peers { interface: interface.to_owned(), peers };
    let (live, ending) = (Live::default(), AtomicBool::new(false));
    let (tell_ready, ready) = mpsc::channel();
    let (carried, ended) = std::thread::scope(|scope| {
        // The sender moves there: it is gone when nothing will be ready any more.
        let (held, ending, live) = (&held, &ending, &live);
        let carrying = scope.spawn(move || {
            let (ends, watched) = held.enter_path()?;
            carry(path, &ends, watched, ending, live, move || {
                let _ = tell_ready.send(());
            })
        });
        scope.spawn(|| answer(&listener, path, &placement, live, ending));
        let ended = if ready.recv().is_ok() {
            held.divert().map(|diversion| {
                if !args.quiet {
                    eprint!("{}", text::opening(path, &place));
                }
                let (mut gone, mut looks) = (false, 0_u32);
                let ended = attend(args, stop, ending, live, || {
                    looks += 1;
                    gone = looks.is_multiple_of(10) && !held.is_up();
                    gone || carrying.is_finished()
                });
                drop(diversion);
                if gone { EmulateEnd::InterfaceGone } else { ended }
            })
        } else {
            Ok(EmulateEnd::Stopped)
        };
        ending.store(true, Ordering::Relaxed);
        (carrying.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), ended)
    });
    Ok(certificate(path, carried?, about(placement, ended?, None)))
}
