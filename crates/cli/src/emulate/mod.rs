//! `landspeed emulate`.

mod around;
mod between;
mod events;
mod live;
mod on;
pub mod text;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use ipnet::IpNet;
use landspeed_emulate::{
    CertificateInfo, EmulateError, EmulationOutcome, Ends, InterfaceLock, Live, StatusRequests, carry,
    carry_by_kernel, check_kernel, check_memory, serve_status,
};
use landspeed_emulation::{LoadedPath, MAX_TEXT, TEMPLATE, load};
use landspeed_model::{EmulateDocument, EmulateEnd, EmulatePlacement};
use landspeed_report::Source;
use landspeed_sys::clock::monotonic_ns;
use landspeed_sys::file;
use landspeed_units::Nanos;

use crate::output::Sink;
use crate::{CommandOutcome, keep, options};

const EXAMPLES: &str = "\
Examples:
  landspeed emulate --example > path.toml                  a commented path file
  landspeed emulate path.toml -- iperf3 -c 198.18.0.2      beside a server at the remote end
  landspeed emulate path.toml -- landspeed run 198.18.0.2
  landspeed emulate path.toml --remote 'nc -l 9000' -- sh  a shell, and another program there
  landspeed emulate path.toml --event 5s:rate=10M -- sh    a path that becomes slower after 5 s
  landspeed emulate path.toml --between eth1,eth2          a bump in the wire, until Ctrl-C
  landspeed emulate path.toml --on eth0 --peer 10.0.0.2    packets to and from one host only

The command runs at 198.18.0.1 and 2001:2::1, the remote end is 198.18.0.2 and 2001:2::2; there is
no other network. Neither needs a privilege where user namespaces are allowed; --between and --on
need root.
Exit status: 0 clean, 1 invalid seconds, 2 failure; a command's status other than 0 is passed on.";

/// Maximum size of a trace file, bytes.
const MAX_TRACE: u64 = 64 << 20;
/// Polling interval for the command and the emulation.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Maximum number of other users' claims printed for each interface.
const MAX_CLAIMS: usize = 3;
/// Interfaces are checked once in this many polls.
const POLLS_PER_CHECK: u32 = 10;

/// Options of `emulate`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Path file (TOML): links and queues, in both directions
    #[arg(value_name = "PATH", required_unless_present = "example")]
    path: Option<PathBuf>,
    /// Run this command at one end of the path
    #[arg(last = true, value_name = "CMD", required_unless_present_any = ["between", "on", "example"],
        conflicts_with_all = ["between", "on"])]
    command: Vec<String>,
    /// Run this command at the remote end, by the shell [default: landspeed serve, for landspeed and iperf3 clients]
    #[arg(long, value_name = "CMD", conflicts_with_all = ["between", "on"])]
    remote: Option<String>,
    /// Join two interfaces of this host by the path; forward is from the first to the second
    #[arg(long, value_name = "IF,IF", value_delimiter = ',', num_args = 1)]
    between: Vec<String>,
    /// Put the path on this interface, for the packets to and from the peers only; forward is to the peers
    #[arg(long, value_name = "IF", requires = "peer", conflicts_with = "between")]
    on: Option<String>,
    /// Whose packets take the path: addresses or networks, separated by commas
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',', value_parser = crate::serve::network, requires = "on")]
    peer: Vec<IpNet>,
    /// What carries the frames: a thread of this program, or the kernel's queueing disciplines (tbf, netem)
    #[arg(long, value_enum, default_value_t, value_name = "WHICH")]
    datapath: Datapath,
    /// Stop after this time
    #[arg(short, long, value_parser = options::time)]
    time: Option<Nanos>,
    /// Change the path at a time, as an [[event]] of the file does: 5s:rate=10M, 8s:link.1.reverse.delay=80ms
    #[arg(long, value_name = "TIME:KEY=VALUE")]
    event: Vec<String>,
    /// Seed of every random draw, instead of the file's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Print a commented path file and exit
    #[arg(long, exclusive = true)]
    example: bool,
    /// Write the certificate as JSON (- for standard output)
    #[arg(short = 'J', long, value_name = "FILE", help_heading = "Output")]
    json: Option<Sink>,
    /// Draw the certificate as an HTML report
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    report: Option<PathBuf>,
    /// Print nothing but what the command prints
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,
}

/// What carries the frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum Datapath {
    /// This program
    #[default]
    Userspace,
    /// The kernel
    Kernel,
}

/// Runs the subcommand.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    if args.example {
        out!("{TEMPLATE}");
        return Ok(CommandOutcome::Clean);
    }
    let file = args.path.as_deref().context("name a path file")?;
    if let Some(sink) = &args.json {
        if *sink == Sink::Stdout && !args.command.is_empty() {
            bail!(
                "cannot write the certificate to standard output: the command's output goes there\nWrite it to a file: --json FILE."
            );
        }
        sink.check()?;
    }
    if let Some(file) = &args.report {
        let sink = Sink::File(file.clone());
        sink.check()?;
        anyhow::ensure!(args.json.as_ref() != Some(&sink), "two outputs go to {sink}: give each its own");
    }
    let mut path = read(file, &args.event)?;
    if let Some(seed) = args.seed {
        path.path.seed = seed;
    }
    if args.datapath == Datapath::Kernel {
        check_kernel(&path)?;
    }
    check_memory(&path)?;
    let stop = landspeed_sys::process::catch_interrupts();
    landspeed_sys::process::catch_hangup();
    let document = match (&args.on, args.between.is_empty()) {
        (Some(interface), _) => on::run(args, &path, interface, stop)?,
        (None, true) => around::run(args, &path, stop)?,
        (None, false) => between::run(args, &path, stop)?,
    };
    if !args.quiet {
        let summary = text::summary(&document);
        if args.command.is_empty() && args.json != Some(Sink::Stdout) {
            out!("{summary}");
        } else {
            // Standard output is used by the command or the document.
            err!("{summary}");
        }
    }
    keep::keep(&document);
    if let Some(sink) = &args.json {
        sink.write(&serde_json::to_vec_pretty(&document)?)?;
    }
    if let Some(file) = &args.report {
        draw(file, &document)?;
    }
    outcome(&document)
}

/// Writes the certificate as an HTML report.
fn draw(file: &Path, document: &EmulateDocument) -> anyhow::Result<()> {
    let source = Source {
        name: file.display().to_string(),
        document: landspeed_results::Document::Emulate(Box::new(document.clone())),
    };
    let html = landspeed_report::render_document(&source, &[]).context("cannot draw the report")?;
    Sink::File(file.to_path_buf()).write(html.as_bytes())
}

fn outcome(document: &EmulateDocument) -> anyhow::Result<CommandOutcome> {
    match document.ended {
        EmulateEnd::Loop => bail!(
            "cannot emulate: what leaves by one interface arrives at the other: frames would go round for ever\nUse interfaces that lead to \
             different networks."
        ),
        EmulateEnd::InterfaceGone => bail!(
            "the emulation ended: an interface disappeared or went down\nSet it up, and start again; until then nothing passes."
        ),
        _ => {}
    }
    if let Some(status) = document.exit_status
        && status != 0
    {
        errln!("landspeed: the command ended with status {status}");
        // The kernel keeps eight bits of a status.
        return Ok(u8::try_from(status).map_or(CommandOutcome::Failure, CommandOutcome::Program));
    }
    Ok(if document.invalid.is_empty() { CommandOutcome::Clean } else { CommandOutcome::Findings })
}

fn read(path: &Path, events: &[String]) -> anyhow::Result<LoadedPath> {
    let text =
        file::read_text(path, MAX_TEXT as u64).map_err(|why| anyhow!("cannot read {}: {why}", path.display()))?;
    let text = events::add(&text, events)?;
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut traces = |name: &str| {
        file::read_text(&directory.join(name), MAX_TRACE).map_err(|why| format!("cannot read {name}: {why}"))
    };
    load(&text, &mut traces).map_err(|problems| anyhow!("{}", problems.named(path.display().to_string())))
}

/// Prints which other users claim to emulate on the locked interfaces.
fn warn_of_claims(locks: &[InterfaceLock]) {
    for claim in locks.iter().flat_map(|lock| lock.ignored_claims().take(MAX_CLAIMS)) {
        errln!("landspeed: {claim}");
    }
}

/// Carries frames on a separate thread while `wait_for_end` runs on this one, and answers status requests. `enter`
/// opens the path on the carrying thread. `wait_for_end` starts when frames pass; its second argument returns whether
/// the carrying thread has ended.
fn emulate_while<T>(
    (datapath, path): (Datapath, &LoadedPath),
    (requests, placement): (StatusRequests, &EmulatePlacement),
    enter: impl FnOnce() -> Result<Ends, EmulateError> + Send,
    wait_for_end: impl FnOnce(&Live, &dyn Fn() -> bool) -> anyhow::Result<T>,
) -> anyhow::Result<(EmulationOutcome, T)> {
    let (live, ending) = (Live::default(), AtomicBool::new(false));
    let (signal_ready, ready) = mpsc::channel();
    let (carried, attended) = std::thread::scope(|scope| {
        let (ending, live) = (&ending, &live);
        // The sender is moved into the thread: if the thread fails before frames pass, the channel closes.
        let carrying = scope.spawn(move || {
            let ready = move || {
                let _ = signal_ready.send(());
            };
            match datapath {
                Datapath::Userspace => carry(path, enter()?, ending, live, ready),
                Datapath::Kernel => carry_by_kernel(path, enter()?, ending, live, ready),
            }
        });
        scope.spawn(move || serve_status(requests, path, placement, live, ending));
        let attended = ready.recv().is_ok().then(|| wait_for_end(live, &|| carrying.is_finished()));
        ending.store(true, Ordering::Relaxed);
        (carrying.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), attended)
    });
    let carried = carried?;
    Ok((carried, attended.context("no frame could pass")??))
}

/// Waits until the emulation ends, `--time` is over or an interrupt.
fn wait_for_end(args: &Args, stop: &AtomicBool, live: &Live, mut is_over: impl FnMut() -> bool) -> EmulateEnd {
    let deadline_ns = args.time.map(|time| monotonic_ns().saturating_add(time.get()));
    let mut view = live::View::new(args.quiet);
    loop {
        if is_over() || stop.load(Ordering::Relaxed) {
            return EmulateEnd::Stopped;
        }
        if deadline_ns.is_some_and(|at_ns| monotonic_ns() >= at_ns) {
            return EmulateEnd::Time;
        }
        landspeed_sys::clock::sleep_until(monotonic_ns() + POLL_INTERVAL.as_nanos() as u64);
        view.show(live);
    }
}

/// Like [`wait_for_end`], but also ends when `is_up` returns false because an interface disappeared.
fn wait_while_up(
    args: &Args,
    stop: &AtomicBool,
    live: &Live,
    is_up: impl Fn() -> bool,
    is_over: &dyn Fn() -> bool,
) -> EmulateEnd {
    let (mut gone, mut looks) = (false, 0_u32);
    let ended = wait_for_end(args, stop, live, || {
        looks += 1;
        gone = looks.is_multiple_of(POLLS_PER_CHECK) && !is_up();
        gone || is_over()
    });
    if gone { EmulateEnd::InterfaceGone } else { ended }
}

/// Returns the certificate's information about this program and run.
fn about(placement: EmulatePlacement, ended: EmulateEnd, exit_status: Option<i32>) -> CertificateInfo {
    CertificateInfo {
        command: landspeed_sys::process::command_line(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        placement,
        ended,
        exit_status,
    }
}
