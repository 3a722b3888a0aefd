//! What the tune commands share: the state directory, the need for root, the JSON answer.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use landspeed_sys::file;
use landspeed_sys::process;
use landspeed_tune::{Context, Fault};

use crate::output::Sink;
use crate::trust::TrustArgs;

/// Environment variable that makes the process end at a point in the journal, to test crash recovery.
pub(super) const FAULT: &str = "LANDSPEED_TUNE_FAULT";
/// Environment variable that overrides the boot id, to test recovery after a reboot.
const BOOT_ID: &str = "LANDSPEED_TUNE_BOOT_ID";
/// Registry of this host's transactions, independent of their state directory. A reboot empties it.
const REGISTRY: &str = "/run/landspeed/tune";

/// Default directory of the journals.
pub const DEFAULT_STATE_DIR: &str = "/var/lib/landspeed/tune";

/// Where the journals are.
#[derive(Debug, Clone, clap::Args)]
pub struct StateArgs {
    /// Directory of the journals
    #[arg(long, value_name = "DIR", default_value = DEFAULT_STATE_DIR)]
    pub state: PathBuf,
    #[command(flatten)]
    pub trust: TrustArgs,
}

/// Returns the context of this process: state directory, boot id, network namespace.
pub fn context(args: &StateArgs) -> anyhow::Result<Context> {
    let boot = match std::env::var(BOOT_ID) {
        Ok(boot) => boot,
        Err(_) => {
            file::read_text("/proc/sys/kernel/random/boot_id".as_ref(), 4096).context("cannot read the boot id")?
        }
    };
    let namespace = std::fs::read_link("/proc/self/ns/net").context("cannot read the network namespace")?;
    let fault = match std::env::var(FAULT) {
        Ok(text) => Some(Fault::parse(&text).with_context(|| format!("{FAULT}: `{text}` is not a fault"))?),
        Err(_) => None,
    };
    let state = std::path::absolute(&args.state)
        .with_context(|| format!("cannot use the state directory {}", args.state.display()))?;
    Ok(Context {
        state,
        boot: boot.trim().to_owned(),
        namespace: namespace.to_string_lossy().into_owned(),
        policy: args.trust.policy(),
        registry: REGISTRY.into(),
        fault,
    })
}

/// Fails unless this process runs as root.
pub(super) fn need_root(what: &str) -> anyhow::Result<()> {
    if process::is_root() {
        return Ok(());
    }
    bail!("{what} needs root: run it with sudo. `landspeed tune plan` needs no privilege");
}

/// Writes the document if requested. Returns whether standard output is free for text.
pub(super) fn write_json(sink: Option<&Sink>, document: &serde_json::Value) -> anyhow::Result<bool> {
    let Some(sink) = sink else { return Ok(true) };
    let text = serde_json::to_string_pretty(document).context("cannot encode the answer")?;
    sink.write((text + "\n").as_bytes())?;
    Ok(*sink != Sink::Stdout)
}
