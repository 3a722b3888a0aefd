//! `landspeed lab kernel`: the kernels that scenarios run on.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context as _, bail};
use landspeed_lab::kernel::{self, Cache, Event, Kernel, Request, Step, Version, Wanted};
use landspeed_sys::{clock, process};
use landspeed_units::Bytes;

use crate::Outcome;
use crate::output::Sink;

const EXAMPLES: &str = "\
Examples:
  landspeed lab kernel build                             the newest kernel Debian packages
  landspeed lab kernel build --version 7.2               another one, beside it
  landspeed lab kernel build --source linux-6.16.tar.xz  one of your own
  landspeed lab kernel list
  landspeed lab kernel remove 7.2

A kernel is built once, in a few minutes of processor time, without root, and kept in the
user's cache directory. --cache DIR or LANDSPEED_KERNELS name another place.";

/// The environment variable that names a Debian mirror.
const MIRROR: &str = "LANDSPEED_DEBIAN_MIRROR";

/// Options of `lab kernel`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Where kernels are kept
    #[arg(long, global = true, value_name = "DIR")]
    cache: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Get a kernel's source, change it for virtual time, build it and keep it
    Build(BuildArgs),
    /// The kernels that are built
    List(ListArgs),
    /// Remove kernels, and what interrupted builds left
    Remove(RemoveArgs),
}

#[derive(Debug, clap::Args)]
struct BuildArgs {
    /// A version Debian packages, as in 7.3 or 7.3.4 [default: the newest]
    #[arg(long, conflicts_with = "source")]
    version: Option<Version>,
    /// A tarball or a directory with the source of any kernel since 6.16; it is not changed
    #[arg(long, value_name = "TARBALL|DIR")]
    source: Option<PathBuf>,
    /// Compilers at a time [default: one for each processor]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Keep the source and the objects afterwards
    #[arg(long)]
    keep_build: bool,
    /// Build even if it is there
    #[arg(long)]
    force: bool,
    /// Debian mirror to use [default: LANDSPEED_DEBIAN_MIRROR, else the host's own if it is Debian]
    #[arg(long, value_name = "URL", conflicts_with = "source")]
    mirror: Option<String>,
    /// Write the kernel's record as JSON to a file, or to standard output with `-`
    #[arg(long, value_name = "FILE|-")]
    json: Option<Sink>,
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    /// Write the records as JSON to a file, or to standard output with `-`
    #[arg(long, value_name = "FILE|-")]
    json: Option<Sink>,
}

#[derive(Debug, clap::Args)]
struct RemoveArgs {
    /// Its id, its release, or the first digits of either
    #[arg(value_name = "ID|RELEASE", required_unless_present = "all")]
    kernels: Vec<String>,
    /// All kernels, and what interrupted builds left
    #[arg(long, conflicts_with = "kernels")]
    all: bool,
}

/// Runs the subcommand.
pub fn main(args: &Args) -> anyhow::Result<Outcome> {
    let cache = Cache::open(args.cache.as_deref())?;
    match &args.command {
        Command::Build(args) => build(&cache, args),
        Command::List(args) => list(&cache, args),
        Command::Remove(args) => remove(&cache, args),
    }
}

fn build(cache: &Cache, args: &BuildArgs) -> anyhow::Result<Outcome> {
    if let Some(sink) = &args.json {
        sink.check()?;
    }
    let request = Request {
        source: args.source.clone().map_or_else(|| Wanted::Packaged(args.version.clone()), Wanted::Path),
        jobs: args.jobs.map(usize::from),
        keep_build: args.keep_build,
        force: args.force,
        mirror: args.mirror.clone().or_else(mirror),
    };
    let mut view = View::new();
    let result = kernel::build(cache, &request, process::catch_interrupts(), &mut |event| view.show(&event));
    view.clear();
    let outcome = result?;
    let kernel = &outcome.kernel;
    if outcome.fresh {
        eprintln!(
            "Linux {} is built: {} in {}. `landspeed lab kernel list` shows it.",
            kernel.release,
            kernel.id,
            duration(kernel.build_seconds)
        );
    } else {
        eprintln!("Linux {} from {} is here already: {}. Nothing to do.", kernel.release, kernel.source, kernel.id);
    }
    match &args.json {
        Some(sink) => sink.write(format!("{}\n", serde_json::to_string_pretty(kernel)?).as_bytes())?,
        None => println!("{}", kernel.executable.display()),
    }
    Ok(Outcome::Clean)
}

/// The mirror that the environment names.
pub(super) fn mirror() -> Option<String> {
    std::env::var(MIRROR).ok().filter(|mirror| !mirror.is_empty())
}

fn list(cache: &Cache, args: &ListArgs) -> anyhow::Result<Outcome> {
    let kernels = cache.list()?;
    if let Some(sink) = &args.json {
        sink.write(format!("{}\n", serde_json::to_string_pretty(&kernels)?).as_bytes())?;
        return Ok(Outcome::Clean);
    }
    if kernels.is_empty() {
        eprintln!("No kernel is built in {}.", cache.root().display());
        eprintln!("`landspeed lab kernel build` gets one, in a few minutes.");
    } else {
        print!("{}", table(&kernels));
    }
    let unfinished = cache.unfinished()?.len();
    if unfinished > 0 {
        let things = if unfinished == 1 { "build is" } else { "builds are" };
        eprintln!(
            "{unfinished} unfinished {things} kept: the same `build` goes on, `remove --all` clears everything."
        );
    }
    Ok(Outcome::Clean)
}

fn remove(cache: &Cache, args: &RemoveArgs) -> anyhow::Result<Outcome> {
    let kernels = if args.all {
        cache.list()?
    } else {
        // All names are understood before anything is removed.
        args.kernels.iter().map(|name| cache.find(Some(name))).collect::<Result<_, _>>()?
    };
    let mut done: Vec<&str> = Vec::new();
    for kernel in &kernels {
        if !done.contains(&kernel.id.as_str()) {
            cache.remove(kernel)?;
            eprintln!("removed {} ({})", kernel.release, kernel.id);
            done.push(&kernel.id);
        }
    }
    if args.all {
        let busy = cache.clear_unfinished().context("cannot clear what interrupted builds left")?;
        if let Some(busy) = busy.first() {
            bail!("a build is going on in {}: interrupt it first", busy.display());
        }
        if kernels.is_empty() {
            eprintln!("No kernel is built in {}.", cache.root().display());
        }
    }
    Ok(Outcome::Clean)
}

fn table(kernels: &[Kernel]) -> String {
    let row = |kernel: &Kernel| {
        [
            kernel.id.clone(),
            kernel.release.clone(),
            Bytes::new(kernel.size_bytes).to_string(),
            date(kernel.built_at_ns),
            kernel.source.to_string(),
        ]
    };
    let head = ["ID", "RELEASE", "SIZE", "BUILT (UTC)", "SOURCE"].map(str::to_owned);
    let rows: Vec<[String; 5]> = std::iter::once(head).chain(kernels.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..4).map(width).collect();
    rows.iter().fold(String::new(), |mut text, row| {
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(text, "{cell:width$}  ");
        }
        let _ = writeln!(text, "{}", row[4]);
        text
    })
}

/// Day and minute of a moment, UTC.
fn date(epoch_ns: u64) -> String {
    let text = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_nanos(epoch_ns)).to_string();
    text[..16].replace('T', " ")
}

fn duration(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    if seconds < 60 { format!("{seconds} s") } else { format!("{} min {:02} s", seconds / 60, seconds % 60) }
}

/// How often the line on a terminal is drawn, nanoseconds.
const FRAME_NS: u64 = 100_000_000;
/// How often a plain line is printed, nanoseconds.
const LINE_NS: u64 = 20_000_000_000;
/// Before this long into a step nobody can say how long it takes, nanoseconds.
const ESTIMATE_NS: u64 = 3_000_000_000;

/// What a person sees on standard error while a kernel is built: one line that changes on a terminal, few lines
/// elsewhere.
pub(super) struct View {
    terminal: bool,
    step: Option<(Step, String)>,
    began_ns: u64,
    /// How much was done when the step was first heard of: a build that goes on did that some other time.
    began_at: Option<u64>,
    next_ns: u64,
    drawn: bool,
}

impl View {
    pub(super) fn new() -> Self {
        let terminal = io::stderr().is_terminal();
        Self { terminal, step: None, began_ns: 0, began_at: None, next_ns: 0, drawn: false }
    }

    pub(super) fn show(&mut self, event: &Event) {
        let now = clock::monotonic_ns();
        match event {
            Event::Begins(step, on) => {
                self.step = Some((*step, on.clone()));
                (self.began_ns, self.began_at, self.next_ns) = (now, None, now + LINE_NS);
                let line = format!("{}{}{on}", doing(*step), if on.is_empty() { "" } else { " " });
                if self.terminal {
                    self.next_ns = now;
                    self.draw(&line);
                } else {
                    eprintln!("{line}");
                }
            }
            Event::Progress { done, total, .. } => {
                let first = *self.began_at.get_or_insert(done.saturating_sub(1));
                if now < self.next_ns {
                    return;
                }
                let Some((step, on)) = &self.step else { return };
                let left = left_ns(now - self.began_ns, done.saturating_sub(first), total.saturating_sub(*done));
                let line = progress(*step, on, *done, *total, left);
                if self.terminal {
                    self.next_ns = now + FRAME_NS;
                    self.draw(&line);
                } else {
                    self.next_ns = now + LINE_NS;
                    eprintln!("{line}");
                }
            }
            Event::Note(text) => {
                self.clear();
                eprintln!("note: {text}");
            }
        }
    }

    fn draw(&mut self, line: &str) {
        // Back to the start of the line, and clear what is longer than the new text. A terminal that is too narrow
        // would break the line, and the next drawing would not find its start.
        let shown: String = line.chars().take(78).collect();
        let _ = write!(io::stderr(), "\r{shown}\x1b[K");
        let _ = io::stderr().flush();
        self.drawn = true;
    }

    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

fn doing(step: Step) -> &'static str {
    match step {
        Step::Index | Step::Read => "reading",
        Step::Download => "downloading",
        Step::Unpack => "unpacking",
        Step::Edit => "applying",
        Step::Configure => "configuring",
        Step::Compile => "compiling",
        Step::Link => "linking",
    }
}

fn progress(step: Step, on: &str, done: u64, total: u64, left_ns: Option<u64>) -> String {
    let counts = match step {
        Step::Download => format!("{} of {}", Bytes::new(done), Bytes::new(total)),
        Step::Compile => format!("{done} of about {total} objects"),
        _ => format!("{} %", done * 100 / total.max(1)),
    };
    let left = left_ns.map(|ns| format!(", {} left", duration(ns as f64 / 1e9))).unwrap_or_default();
    format!("{} {on}: {counts}{left}", doing(step))
}

/// The time left of a step that did `done` in `elapsed_ns` and has `left` to do.
fn left_ns(elapsed_ns: u64, done: u64, left: u64) -> Option<u64> {
    let known = elapsed_ns >= ESTIMATE_NS && done > 0;
    known.then(|| (elapsed_ns as f64 / done as f64 * left as f64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_written_as_the_calendar_has_them() {
        let day = 86_400_000_000_000;
        assert_eq!(date(0), "1970-01-01 00:00");
        assert_eq!(date(19_782 * day + 3_660_000_000_000), "2024-02-29 01:01");
        assert_eq!(date(20_089 * day - 1), "2024-12-31 23:59");
    }

    #[test]
    fn the_time_left_comes_from_what_this_run_did() {
        assert_eq!(left_ns(10_000_000_000, 100, 200), Some(20_000_000_000));
        assert_eq!(left_ns(1_000_000_000, 100, 200), None, "too early to say");
        assert_eq!(left_ns(10_000_000_000, 0, 200), None);
        let line = progress(Step::Compile, "Linux 7.3.4", 100, 300, Some(83_000_000_000));
        assert_eq!(line, "compiling Linux 7.3.4: 100 of about 300 objects, 1 min 23 s left");
        assert_eq!(progress(Step::Unpack, "x", 1, 0, None), "unpacking x: 100 %");
    }
}
