//! `landspeed lab kernel`: the kernels that scenarios run on.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context as _, bail};
use landspeed_lab::kernel::{self, Cache, Event, Kernel, Request, RequestedSource, Step, Version};
use landspeed_sys::{clock, process};
use landspeed_units::Bytes;

use crate::CommandOutcome;
use crate::board::duration;
use crate::output::Sink;
use crate::terminal::Stream;

const EXAMPLES: &str = "\
Examples:
  landspeed lab kernel build                             the newest kernel in Debian
  landspeed lab kernel build --version 7.2               an older one, beside it
  landspeed lab kernel build --source linux-6.16.tar.xz  from your own source
  landspeed lab kernel build --keep-build                keep source and objects for patches
  landspeed lab kernel build --patch iw20.patch          a patched kernel, named iw20
  landspeed lab run path.toml --kernels stock,iw20       compare the two on a path
  landspeed lab kernel list
  landspeed lab kernel remove 7.2

Building takes 5 to 7 minutes of CPU time, once, and needs no root. Kernels are stored in
~/.cache/landspeed/kernels; set --cache DIR or LANDSPEED_KERNELS for another directory.";

/// Environment variable with the URL of a Debian mirror.
const MIRROR: &str = "LANDSPEED_DEBIAN_MIRROR";

/// Options of `lab kernel`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Directory of the kernels
    #[arg(long, global = true, value_name = "DIR")]
    cache: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Download, patch for virtual time and build a kernel
    Build(BuildArgs),
    /// List the built kernels
    List(ListArgs),
    /// Remove kernels
    Remove(RemoveArgs),
}

#[derive(Debug, clap::Args)]
struct BuildArgs {
    /// Version in Debian, such as 7.3 or 7.3.4 [default: the newest]
    #[arg(long, conflicts_with = "source")]
    version: Option<Version>,
    /// Tarball or directory with the source of a kernel, 6.16 or newer; it is not modified
    #[arg(long, value_name = "TARBALL|DIR")]
    source: Option<PathBuf>,
    /// Parallel compile jobs [default: one per core]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Patch to apply, as written by `git diff`; may be repeated. The kernel is built beside the stock one
    #[arg(long, value_name = "FILE")]
    patch: Vec<PathBuf>,
    /// Name of the patched kernel [default: that of the patch file]
    #[arg(long, value_name = "NAME", requires = "patch")]
    name: Option<String>,
    /// Keep the source and the object files: patched kernels then compile only what a patch changes
    #[arg(long)]
    keep_build: bool,
    /// Build even if the kernel exists
    #[arg(long)]
    force: bool,
    /// Debian mirror [default: LANDSPEED_DEBIAN_MIRROR, or the mirror of a Debian host]
    #[arg(long, value_name = "URL", conflicts_with = "source")]
    mirror: Option<String>,
    /// Write the kernel's record as JSON (- for standard output)
    #[arg(long, value_name = "FILE")]
    json: Option<Sink>,
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    /// Write the records as JSON (- for standard output)
    #[arg(long, value_name = "FILE")]
    json: Option<Sink>,
}

#[derive(Debug, clap::Args)]
struct RemoveArgs {
    /// Kernel, by id, release, the beginning of either, or the name of a patched one
    #[arg(value_name = "ID|RELEASE", required_unless_present = "all")]
    kernels: Vec<String>,
    /// All kernels, and the remains of interrupted builds
    #[arg(long, conflicts_with = "kernels")]
    all: bool,
}

/// Runs the subcommand.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    let cache = Cache::open(args.cache.as_deref())?;
    match &args.command {
        Command::Build(args) => build(&cache, args),
        Command::List(args) => list(&cache, args),
        Command::Remove(args) => remove(&cache, args),
    }
}

fn build(cache: &Cache, args: &BuildArgs) -> anyhow::Result<CommandOutcome> {
    if let Some(sink) = &args.json {
        sink.check()?;
    }
    let request = Request {
        source: args
            .source
            .clone()
            .map_or_else(|| RequestedSource::Packaged(args.version.clone()), RequestedSource::Path),
        jobs: args.jobs.map(usize::from),
        keep_build: args.keep_build,
        force: args.force,
        mirror: args.mirror.clone().or_else(mirror),
        patches: args.patch.clone(),
        name: args.name.clone(),
    };
    let mut view = View::new();
    let result = kernel::build(cache, &request, process::catch_interrupts(), &mut |event| view.show(&event));
    view.clear();
    let outcome = result?;
    let kernel = &outcome.kernel;
    let with = if kernel.is_stock() { String::new() } else { format!(" with {}", kernel.display_name()) };
    if outcome.fresh {
        errln!("built Linux {}{with} ({}) in {}", kernel.release, kernel.id, duration(kernel.build_seconds));
    } else {
        errln!("Linux {}{with} ({}) from {} exists; nothing to do", kernel.release, kernel.id, kernel.source);
    }
    match &args.json {
        Some(sink) => sink.write(format!("{}\n", serde_json::to_string_pretty(kernel)?).as_bytes())?,
        None => outln!("{}", kernel.executable.display()),
    }
    Ok(CommandOutcome::Clean)
}

/// Returns the mirror set in the environment.
pub(super) fn mirror() -> Option<String> {
    std::env::var(MIRROR).ok().filter(|mirror| !mirror.is_empty())
}

fn list(cache: &Cache, args: &ListArgs) -> anyhow::Result<CommandOutcome> {
    let kernels = cache.list()?;
    if let Some(sink) = &args.json {
        sink.write(format!("{}\n", serde_json::to_string_pretty(&kernels)?).as_bytes())?;
        return Ok(CommandOutcome::Clean);
    }
    if kernels.is_empty() {
        errln!("no kernel in {}", cache.root().display());
        errln!("Build one: landspeed lab kernel build");
    } else {
        out!("{}", table(&kernels));
    }
    let (kept, unfinished): (Vec<_>, Vec<_>) =
        cache.unfinished()?.into_iter().partition(|tree| Cache::is_kept_tree(tree));
    if !kept.is_empty() {
        let trees = if kept.len() == 1 { "build tree" } else { "build trees" };
        errln!("{} kept {trees}: `remove --all` deletes everything", kept.len());
    }
    let unfinished = unfinished.len();
    if unfinished > 0 {
        let builds = if unfinished == 1 { "build" } else { "builds" };
        errln!(
            "{unfinished} interrupted {builds}: the same `build` command continues, `remove --all` deletes everything"
        );
    }
    Ok(CommandOutcome::Clean)
}

fn remove(cache: &Cache, args: &RemoveArgs) -> anyhow::Result<CommandOutcome> {
    let kernels = if args.all {
        cache.list()?
    } else {
        // Resolves all names before removing any kernel.
        args.kernels.iter().map(|name| cache.find(Some(name))).collect::<Result<_, _>>()?
    };
    let mut done: Vec<&str> = Vec::new();
    for kernel in &kernels {
        if !done.contains(&kernel.id.as_str()) {
            cache.remove(kernel)?;
            errln!("removed {} ({})", kernel.release, kernel.id);
            done.push(&kernel.id);
        }
    }
    if args.all {
        let busy = cache.clear_unfinished().context("cannot remove interrupted builds")?;
        if let Some(busy) = busy.first() {
            bail!("cannot remove {}: a build is running there\nInterrupt it, and try again.", busy.display());
        }
        if kernels.is_empty() {
            errln!("no kernel in {}", cache.root().display());
        }
    }
    Ok(CommandOutcome::Clean)
}

fn table(kernels: &[Kernel]) -> String {
    let row = |kernel: &Kernel| {
        [
            kernel.id.clone(),
            kernel.display_name().to_owned(),
            kernel.release.clone(),
            Bytes::new(kernel.size_bytes).to_string(),
            date(kernel.built_at_ns),
            kernel.source.to_string(),
        ]
    };
    let head = ["ID", "NAME", "RELEASE", "SIZE", "BUILT (UTC)", "SOURCE"].map(str::to_owned);
    let rows: Vec<[String; 6]> = std::iter::once(head).chain(kernels.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..5).map(width).collect();
    rows.iter().fold(String::new(), |mut text, row| {
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(text, "{cell:width$}  ");
        }
        let _ = writeln!(text, "{}", row[5]);
        text
    })
}

/// Formats a time as date, hour and minute, UTC.
fn date(epoch_ns: u64) -> String {
    let text = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_nanos(epoch_ns)).to_string();
    text[..16].replace('T', " ")
}

/// Interval between updates on a terminal, nanoseconds.
const DRAW_INTERVAL_NS: u64 = 100_000_000;
/// Interval between lines where standard error is not a terminal, nanoseconds.
const LINE_INTERVAL_NS: u64 = 20_000_000_000;
/// Minimum time into a step for an estimate of the time left, nanoseconds.
const ESTIMATE_NS: u64 = 3_000_000_000;

/// Progress of a build on standard error: one updated line on a terminal, otherwise a line every 20 s.
pub(super) struct View {
    terminal: bool,
    step: Option<(Step, String)>,
    began_ns: u64,
    /// Progress when the step began: above zero when an interrupted build is resumed.
    began_at: Option<u64>,
    next_ns: u64,
    drawn: bool,
}

impl View {
    pub(super) fn new() -> Self {
        let terminal = Stream::Err.is_terminal();
        Self { terminal, step: None, began_ns: 0, began_at: None, next_ns: 0, drawn: false }
    }

    pub(super) fn show(&mut self, event: &Event) {
        let now = clock::monotonic_ns();
        match event {
            Event::Begins(step, on) => {
                self.step = Some((*step, on.clone()));
                (self.began_ns, self.began_at, self.next_ns) = (now, None, now + LINE_INTERVAL_NS);
                let line = format!("{}{}{on}", step_name(*step), if on.is_empty() { "" } else { " " });
                if self.terminal {
                    self.next_ns = now;
                    self.draw(&line);
                } else {
                    errln!("{line}");
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
                    self.next_ns = now + DRAW_INTERVAL_NS;
                    self.draw(&line);
                } else {
                    self.next_ns = now + LINE_INTERVAL_NS;
                    errln!("{line}");
                }
            }
            Event::Note(text) => {
                self.clear();
                errln!("note: {text}");
            }
        }
    }

    fn draw(&mut self, line: &str) {
        // A wrapped line cannot be redrawn, so it is cut.
        let shown: String = line.chars().take(78).collect();
        Stream::Err.redraw_line(&shown);
        self.drawn = true;
    }

    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            Stream::Err.clear_line();
        }
    }
}

fn step_name(step: Step) -> &'static str {
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
    format!("{} {on}: {counts}{left}", step_name(step))
}

/// Estimates the remaining time of a step, nanoseconds; `None` if it is too early.
fn left_ns(elapsed_ns: u64, done: u64, left: u64) -> Option<u64> {
    let known = elapsed_ns >= ESTIMATE_NS && done > 0;
    known.then(|| (elapsed_ns as f64 / done as f64 * left as f64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_calendar_dates_in_utc() {
        let day = 86_400_000_000_000;
        assert_eq!(date(0), "1970-01-01 00:00");
        assert_eq!(date(19_782 * day + 3_660_000_000_000), "2024-02-29 01:01");
        assert_eq!(date(20_089 * day - 1), "2024-12-31 23:59");
    }

    #[test]
    fn the_time_left_ignores_earlier_builds() {
        assert_eq!(left_ns(10_000_000_000, 100, 200), Some(20_000_000_000));
        assert_eq!(left_ns(1_000_000_000, 100, 200), None, "too early to say");
        assert_eq!(left_ns(10_000_000_000, 0, 200), None);
        let line = progress(Step::Compile, "Linux 7.3.4", 100, 300, Some(83_000_000_000));
        assert_eq!(line, "compiling Linux 7.3.4: 100 of about 300 objects, 1 min 23 s left");
        assert_eq!(progress(Step::Unpack, "x", 1, 0, None), "unpacking x: 100 %");
    }
}
