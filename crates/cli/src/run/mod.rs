//! `landspeed run`.

mod args;
mod emulation;
pub mod iperf3;
pub mod live;
mod readings;
#[cfg(test)]
mod settings;
mod sparks;
mod taps;

use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, anyhow};
use landspeed_flow::client::{self, Request, RunEvent, Target};
use landspeed_iperf3::Extras;
use landspeed_model::{Direction, ErrorEntry, Parameters, RunDocument, Status};
use landspeed_sys::trust::TrustError;

pub use args::{Args, ReceiveArg, SendArg};

use crate::output::Sink;
use crate::terminal;
use crate::{CommandOutcome, keep, options, text};

/// Minimum document size for a note about its size, bytes.
const LARGE_BYTES: usize = 4 << 20;

/// Runs a test and prints its result.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    let report = args.report.clone().map(Sink::File);
    let sinks: Vec<&Sink> = [&args.json, &args.jsonl, &report].into_iter().flatten().collect();
    for (i, sink) in sinks.iter().enumerate() {
        sink.check()?;
        anyhow::ensure!(!sinks[..i].contains(sink), "two outputs go to {sink}: give each its own");
    }
    let (parameters, sound) = args.parameters();
    let mut request = Request {
        target: args.server(),
        parameters,
        key: None,
        command: landspeed_sys::process::command_line(),
        data: None,
        local_port: args.cport,
        start_ns: None,
    };
    let prints = sinks.contains(&&Sink::Stdout);
    let quiet = args.quiet || prints;
    let mut lines = Lines::open(args.jsonl.as_ref())?;
    let mut taps = args.tap.as_deref().map(taps::Taps::new);
    let view = if quiet { live::View::silent() } else { live::View::new(&request).every(args.interval) };
    let document = match ready(args, &mut request, sound) {
        Ok(()) => {
            let interrupted = landspeed_sys::process::catch_interrupts();
            if let Some(taps) = &mut taps {
                let mut view = view;
                let mut document = taps.run(&request, interrupted, &mut |event| {
                    lines.event(&event);
                    view.show(&event);
                })?;
                view.finish(&document);
                emulation::note(&mut document, args.ask_path, interrupted);
                judge(&mut document);
                document
            } else {
                let remote = match &args.from {
                    Some(from) => Ok(RemoteEnd::ThirdParty(from.clone())),
                    None => args.with_iperf3.remote_end(args.iperf3, args.trust.policy()),
                };
                match remote {
                    Ok(remote) => {
                        measure(&request, &remote, args.ask_path, interrupted, view, &mut |event| lines.event(event))
                    }
                    Err(why) => client::not_started_document(&request, why),
                }
            }
        }
        Err(why) => client::not_started_document(&request, why),
    };
    if document.status == Status::Failed || prints {
        for error in &document.errors {
            errln!("landspeed: {}", text::error(error));
        }
    } else if !quiet {
        out!("{}", text::summary(&document));
        if args.verbose {
            out!("\n{}", text::details(&document));
        }
        if let Some(taps) = &taps {
            out!("\n{}", taps.summary(&document)?);
        }
    }
    // All outputs are tried: a full disk for one must not lose the others.
    let failures: Vec<_> =
        [lines.finish(&document), deliver(args, &document, quiet)].into_iter().filter_map(Result::err).collect();
    // A failed test measured nothing, so it is not kept.
    let kept = (document.status != Status::Failed).then(|| keep::keep(&document)).flatten();
    if let Some(id) = kept.filter(|_| args.verbose && !quiet) {
        let mut page = text::Page::default();
        page.line("archive", id.short());
        out!("{}", page.text);
    }
    match failures.into_iter().reduce(|a, b| anyhow!("{a:#}; {b:#}")) {
        Some(error) => Err(error),
        None => Ok(outcome(&document)),
    }
}

/// Checks parameters, capture permission and key before a test. An error goes into the document like any other
/// failure.
pub fn ready(args: &Args, request: &mut Request, sound: Result<(), String>) -> Result<(), ErrorEntry> {
    let entry = |code: &str, message| ErrorEntry { code: code.to_owned(), message, advice: None };
    sound.map_err(|message| entry("bad-parameters", message))?;
    if args.tap.is_some() {
        taps::check_permission()?;
    }
    let key = args.key_file.as_deref().map(|path| options::key(path, args.trust.policy())).transpose();
    request.key = key.map_err(|error| match error.downcast_ref() {
        Some(TrustError::Untrusted(why)) => {
            ErrorEntry { advice: Some(why.advice()), ..entry("bad-key", why.cause()) }
        }
        _ => entry("bad-key", format!("{error:#}")),
    })?;
    Ok(())
}

/// The remote side of a test.
#[derive(Debug)]
pub enum RemoteEnd {
    /// `landspeed serve`.
    Landspeed,
    /// `iperf3 -s`.
    Iperf3(Extras),
    /// Another `landspeed serve` is the client of the test (`--from`).
    ThirdParty(Target),
}

/// Runs a test with its interval lines and adds the verdict. With `ask_path`, hosts on the path are asked for the status of an
/// emulation.
pub fn measure(
    request: &Request,
    remote: &RemoteEnd,
    ask_path: bool,
    interrupted: &AtomicBool,
    mut view: live::View,
    also: &mut dyn FnMut(&RunEvent<'_>),
) -> RunDocument {
    let mut observe = |event: RunEvent<'_>| {
        also(&event);
        view.show(&event);
    };
    let mut document = match remote {
        RemoteEnd::Landspeed => client::run(request, interrupted, &mut observe),
        RemoteEnd::ThirdParty(from) => client::third_party(from, request, interrupted, &mut observe),
        RemoteEnd::Iperf3(extras) => landspeed_iperf3::client::run(request, extras, interrupted, &mut observe),
    };
    view.finish(&document);
    emulation::note(&mut document, ask_path, interrupted);
    judge(&mut document);
    document
}

/// Adds verdicts and warnings to the document.
pub fn judge(document: &mut RunDocument) {
    document.warnings.extend(landspeed_diagnose::warnings(document));
    if document.status == Status::Failed {
        return;
    }
    let direction = document.requested.direction;
    document.verdict = landspeed_diagnose::diagnose(document, direction.parts()[0]);
    if direction == Direction::Both {
        document.reverse_verdict = Some(landspeed_diagnose::diagnose(document, Direction::Download));
    }
}

fn deliver(args: &Args, document: &RunDocument, quiet: bool) -> anyhow::Result<()> {
    // Both outputs are tried: a full disk for one must not lose the other.
    let mut failures = Vec::new();
    if let Some(sink) = &args.json {
        let written = args.encode(document).and_then(|text| {
            sink.write(&text)?;
            Ok(text.len())
        });
        match written {
            Ok(bytes) => warn_of_size(bytes, args.quiet),
            Err(error) => failures.push(error),
        }
    }
    if let Some(path) = &args.report {
        let written = landspeed_report::render(document)
            .context("cannot draw the report")
            .and_then(|html| Sink::File(path.clone()).write(html.as_bytes()));
        match written {
            Ok(()) if !quiet => {
                let mut page = text::Page::default();
                page.line("report", &path.display().to_string());
                out!("{}", page.text);
            }
            Ok(()) => {}
            Err(error) => failures.push(error),
        }
    }
    match failures.into_iter().reduce(|a, b| anyhow!("{a:#}; {b:#}")) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// Prints how to make a large document smaller.
fn warn_of_size(bytes: usize, quiet: bool) {
    if bytes >= LARGE_BYTES && !quiet {
        let size = landspeed_units::Bytes::new(bytes as u64);
        errln!(
            "landspeed: the document takes {size}: each stream has a sample every --interval\nUse a longer --interval for a smaller one."
        );
    }
}

fn outcome(document: &RunDocument) -> CommandOutcome {
    match document.status {
        Status::Failed => CommandOutcome::Failure,
        Status::Complete if document.conservation.holds => CommandOutcome::Clean,
        Status::Complete | Status::Partial => CommandOutcome::Findings,
    }
}

/// Writes events as JSON lines (`--jsonl`).
struct Lines {
    out: Option<Box<dyn std::io::Write>>,
    failed: Option<std::io::Error>,
    parameters: Parameters,
    grid: readings::Grid,
}

impl Lines {
    fn open(sink: Option<&Sink>) -> anyhow::Result<Self> {
        let out: Option<Box<dyn std::io::Write>> = match sink {
            None => None,
            Some(Sink::Stdout) => Some(Box::new(terminal::stdout())),
            Some(Sink::File(path)) => {
                let file =
                    landspeed_sys::file::create(path).with_context(|| format!("cannot write {}", path.display()))?;
                Some(Box::new(file))
            }
        };
        Ok(Self {
            out,
            failed: None,
            parameters: Parameters::default(),
            grid: readings::Grid::new(readings::MIN_INTERVAL_NS),
        })
    }

    fn event(&mut self, event: &RunEvent<'_>) {
        let value = match event {
            RunEvent::Accepted { id, parameters, notes, path } => {
                self.parameters = (*parameters).clone();
                self.grid = readings::Grid::new(parameters.interval_ns);
                serde_json::json!({
                    "event": "accepted", "id": id, "parameters": parameters, "notes": notes, "path": path,
                })
            }
            RunEvent::Mtu(probe) => serde_json::json!({ "event": "mtu", "probe": probe }),
            RunEvent::Queued(at) => serde_json::json!({
                "event": "queued", "position": at.position, "waiting": at.waiting, "wait_ns": at.wait_ns,
            }),
            RunEvent::Opened(_) | RunEvent::Readings { .. } => return,
            RunEvent::Progress(p) => {
                let t_ns = readings::reading_ns(&self.parameters, p);
                if !self.grid.passes(t_ns) {
                    return;
                }
                serde_json::json!({
                    "event": "progress", "t_ns": t_ns, "uploaded_bytes": p.upload.bytes,
                    "downloaded_bytes": p.download.bytes, "sent_bytes": p.sent, "transactions": p.transactions,
                })
            }
        };
        self.line(&value);
    }

    fn line(&mut self, value: &serde_json::Value) {
        if let Some(out) = &mut self.out
            && self.failed.is_none()
        {
            self.failed = writeln!(out, "{value}").and_then(|()| out.flush()).err();
        }
    }

    fn finish(&mut self, document: &RunDocument) -> anyhow::Result<()> {
        let document = serde_json::to_value(document).context("cannot encode the document")?;
        self.line(&serde_json::json!({ "event": "document", "document": document }));
        match self.failed.take() {
            Some(error) => Err(error).context("cannot write the events"),
            None => Ok(()),
        }
    }
}
