//! Tests: help and terminal output of recorded documents match the files in `golden/`.

use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use clap::{Command, CommandFactory as _};
use landspeed_compare::{Condition, Group, Options};
use landspeed_flow::client::{DirectionProgress, Progress, Request, RunEvent, TcpState, UdpState};
use landspeed_host::RecordedHost;
use landspeed_iperf3::convert::ReportOptions;
use landspeed_iperf3::report::{ReportFormat, Reporter};
use landspeed_iperf3::text::Style;
use landspeed_model::{
    BuildInfo, Change, DemoDocument, Direction, Goal, LabDocument, Protocol, QualifyDocument, Role, RunDocument,
    Sample, Stream, StreamEnd, SweepDocument, TapDocument, Target, TraceDocument, TuneupDocument, WatchDocument,
};
use landspeed_results::Document;
use landspeed_testkit::golden;
use landspeed_tune::{Allow, SimulatedKnobs, Value, changes_from_audit};

use crate::explain::markdown::Line;
use crate::{
    Cli, archive, check, compare, demo, explain, lab, qualify, run, sweep, tap, text, trace, tune, tuneup, watch,
};

/// Width of the help, columns: clap's default where the terminal width is unknown.
const HELP_COLUMNS: usize = 100;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read<T: serde::de::DeserializeOwned>(path: &str) -> T {
    let path = repository().join(path);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Appends the help of a command and of its subcommands.
fn help(words: &str, command: &Command, text: &mut String) {
    let mut alone = command.clone().term_width(HELP_COLUMNS).bin_name(words);
    let _ = write!(text, "$ {words} --help\n{}\n", alone.render_long_help());
    for subcommand in command.get_subcommands().filter(|s| s.get_name() != "help" && !s.is_hide_set()) {
        help(&format!("{words} {}", subcommand.get_name()), subcommand, text);
    }
}

#[test]
fn help_matches_golden_files() {
    let mut cli = Cli::command();
    cli.build();
    let mut top = format!("$ landspeed --help\n{}", cli.clone().term_width(HELP_COLUMNS).render_long_help());
    for command in cli.get_subcommands().filter(|s| s.get_name() != "help" && !s.is_hide_set()) {
        let mut text = String::new();
        help(&format!("landspeed {}", command.get_name()), command, &mut text);
        golden::same(&format!("help/{}.txt", command.get_name()), &text);
    }
    top.push('\n');
    golden::same("help/landspeed.txt", &top);
}

#[test]
fn explanations_match_their_golden_file() {
    let mut printed = String::new();
    for name in ["BUF-001", "receiver window", "undetermined", "window", "recieve-buffer"] {
        let _ = writeln!(printed, "$ landspeed explain {name}");
        match explain::pages(name, 80) {
            Ok(lines) => {
                for Line::Heading(line) | Line::Text(line) in lines {
                    let _ = writeln!(printed, "{line}");
                }
            }
            Err(why) => {
                let _ = writeln!(printed, "landspeed: {}\n[exit status 2]", text::strip_backticks(&why.to_string()));
            }
        }
        printed.push('\n');
    }
    golden::same("explain.txt", &printed);
}

/// Returns recorded runs with current verdicts and warnings.
fn runs() -> Vec<(&'static str, RunDocument)> {
    let files = [
        ("one stream over loopback", "crates/diagnose/fixtures/real/bulk-loopback-bbr.json"),
        ("a receive buffer below the BDP", "crates/diagnose/fixtures/real/receive-buffer-cubic.json"),
        ("random loss", "crates/diagnose/fixtures/real/loss-cubic.json"),
        ("--bidir", "crates/diagnose/fixtures/real/bidir-loopback-bbr.json"),
        ("-u, a receiver without CPU time", "crates/diagnose/fixtures/real/udp-starved-receiver.json"),
        ("-u, a small socket buffer", "fixtures/documents/udp.json"),
        ("--rr", "fixtures/documents/rr.json"),
    ];
    files
        .into_iter()
        .map(|(what, path)| {
            let mut document: RunDocument = read(path);
            document.warnings.clear();
            run::judge(&mut document);
            (what, document)
        })
        .collect()
}

#[test]
fn run_summaries_and_details_match_their_golden_files() {
    let (mut short, mut long) = (String::new(), String::new());
    for (what, document) in runs() {
        let _ = write!(short, "# landspeed run: {what}\n{}\n", text::summary_at(&document, 80));
        let _ = write!(
            long,
            "# landspeed run -v: {what}\n{}{}\n",
            text::summary_at(&document, 80),
            text::details(&document)
        );
    }
    golden::same("run.txt", &short);
    golden::same("run-verbose.txt", &long);
}

/// Returns the progress that the client would have reported at sample `at` of a recorded run.
fn progress(document: &RunDocument, at: usize) -> Option<Progress> {
    let mut progress = Progress::default();
    for direction in document.requested.direction.parts() {
        let streams = || document.streams.iter().filter(|stream| stream.direction == *direction);
        let of = |end: fn(&Stream) -> Option<&StreamEnd>| -> Option<Vec<&Sample>> {
            streams().map(|stream| end(stream)?.samples.get(at)).collect()
        };
        let (sent, received) = (of(|stream| stream.sender.as_ref())?, of(|stream| stream.receiver.as_ref())?);
        let packets = |samples: &[&Sample]| samples.iter().filter_map(|sample| sample.packets).sum::<u64>();
        let udp = (document.requested.protocol == Protocol::Udp).then(|| UdpState {
            delivered: packets(&received),
            lost: packets(&sent).saturating_sub(packets(&received)),
            jitter_ns: document.udp.as_ref().and_then(|udp| udp.jitter_ns),
        });
        let moved = DirectionProgress {
            t_ns: received.iter().map(|sample| sample.t_ns).max()?,
            bytes: received.iter().map(|sample| sample.bytes).sum(),
            tcp: TcpState::sum(sent.iter().filter_map(|sample| sample.tcp.as_deref().cloned())),
            udp,
        };
        match direction {
            Direction::Download => progress.download = moved,
            _ => progress.upload = moved,
        }
    }
    Some(progress)
}

#[test]
fn run_interval_lines_match_golden_file() {
    let mut text = String::new();
    for (what, path) in [
        ("one stream over loopback", "crates/diagnose/fixtures/real/bulk-loopback-bbr.json"),
        ("--bidir", "crates/diagnose/fixtures/real/bidir-loopback-bbr.json"),
        ("-u, a small socket buffer", "fixtures/documents/udp.json"),
    ] {
        let document: RunDocument = read(path);
        let request = Request {
            target: "dtn.example".parse().expect("a name"),
            parameters: document.requested.clone(),
            key: None,
            command: Vec::new(),
            data: None,
            local_port: None,
            start_ns: None,
        };
        let mut view = run::live::View::new(&request);
        let _ = writeln!(text, "# landspeed run, while it lasts: {what}");
        for progress in (0..).map_while(|at| progress(&document, at)) {
            text += &view.lines(&RunEvent::Progress(progress));
        }
        text += &view.last_lines(&document);
    }
    golden::same("run-intervals.txt", &text);
}

/// Shared output buffer.
#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("the only writer").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn iperf3_reports_match_golden_file() {
    let mut downloads: RunDocument = read("crates/diagnose/fixtures/real/bidir-loopback-bbr.json");
    downloads.streams.retain(|stream| stream.direction == Direction::Download);
    for parameters in [Some(&mut downloads.requested), downloads.effective.as_mut()].into_iter().flatten() {
        parameters.direction = Direction::Download;
    }
    let mut text = String::new();
    let reports: Vec<(&str, RunDocument)> = vec![
        ("", read("crates/diagnose/fixtures/real/bulk-loopback-bbr.json")),
        (" -V", read("crates/diagnose/fixtures/real/receive-buffer-cubic.json")),
        (" -R -P 2", downloads),
        (" -u -b 200M", read("fixtures/documents/udp.json")),
    ];
    for (options, document) in reports {
        let report = ReportOptions {
            interval_ns: 1_000_000_000,
            server: ("dtn.example".to_owned(), landspeed_iperf3::DEFAULT_PORT),
            ..ReportOptions::default()
        };
        let page = Page::default();
        let style = Style { verbose: options.contains("-V"), ..Style::default() };
        let written = Reporter::new(ReportFormat::Text(style), &report, Box::new(page.clone())).finish(&document);
        written.expect("a page takes everything");
        let page = String::from_utf8(page.0.lock().expect("written").clone()).expect("text");
        let _ = write!(text, "# landspeed iperf3 -c dtn.example{options}\n{page}\n");
    }
    golden::same("iperf3.txt", &text);
}

#[test]
fn lab_summary_matches_golden_file() {
    let mut document: LabDocument = read("crates/diagnose/fixtures/lab/policer-cubic.json");
    let verdicts: Vec<_> = document
        .flows
        .iter()
        .map(|flow| landspeed_diagnose::diagnose_lab(&document, flow, Direction::Upload))
        .collect();
    for (flow, verdict) in document.flows.iter_mut().zip(verdicts) {
        if let (Some(run), Some(verdict)) = (&mut flow.run, verdict) {
            run.verdict = verdict;
        }
    }
    golden::same("lab.txt", &format!("# landspeed lab run\n{}", lab::text::run(&document)));
}

#[test]
fn trace_summary_matches_golden_file() {
    let document: TraceDocument = read("fixtures/traces/whole.json");
    golden::same("trace.txt", &format!("# landspeed trace\n{}", trace::text::summary(&document)));
}

#[test]
fn tap_summary_matches_golden_file() {
    let document: TapDocument = read("fixtures/documents/tap.json");
    golden::same("tap.txt", &format!("# landspeed tap\n{}", tap::text::summary(&document)));
}

#[test]
fn watch_output_matches_golden_file() {
    let document: WatchDocument = read("fixtures/documents/watch.json");
    let text =
        watch::text::Table::default().interval(&document, document.flows.len()) + &watch::text::summary(&document);
    golden::same("watch.txt", &format!("# landspeed watch\n{text}"));
}

#[test]
fn qualify_summary_matches_golden_file() {
    let document: QualifyDocument = read("fixtures/documents/qualify.json");
    golden::same("qualify.txt", &format!("# landspeed qualify\n{}", qualify::text::summary(&document)));
}

#[test]
fn tuneup_summaries_match_golden_file() {
    let document: TuneupDocument = read("fixtures/documents/tuneup.json");
    let map: TuneupDocument = read("fixtures/documents/tuneup-map.json");
    let texts = [&document, &map].map(tuneup::text::summary);
    golden::same("tuneup.txt", &format!("# landspeed tuneup\n{}\n# landspeed tuneup --map\n{}", texts[0], texts[1]));
}

fn read_sweep(path: &str) -> SweepDocument {
    match Document::read(&std::fs::read(repository().join(path)).expect("a fixture")) {
        Ok(Document::Sweep(sweep)) => *sweep,
        other => panic!("not a sweep: {other:?}"),
    }
}

#[test]
fn sweep_summaries_match_golden_file() {
    let lab: SweepDocument = read("fixtures/documents/sweep.json");
    let hosts: SweepDocument = read("fixtures/documents/sweep-hosts.json");
    let text = |document, directory: &str| sweep::text::summary(document, Some(Path::new(directory)));
    let texts = [text(&lab, "buffer.sweep"), text(&hosts, "streams.sweep")];
    let mut once = read_sweep("fixtures/reports/labset.json");
    let few = sweep::text::summary(&once, None);
    once.cells.iter_mut().for_each(|cell| cell.runs.truncate(1));
    golden::same(
        "sweep.txt",
        &format!(
            "# landspeed sweep: a scenario\n{}\n# landspeed sweep: hosts\n{}\n# landspeed lab run: two runs per cell, of an earlier \
             version\n{few}\n# landspeed lab run: one run per cell\n{}",
            texts[0],
            texts[1],
            sweep::text::summary(&once, None)
        ),
    );
}

#[test]
fn comparisons_match_golden_file() {
    let compare = |path: &str, factor: &str, levels: [&str; 2], conditions: &[&str]| {
        let sweep = Document::Sweep(Box::new(read::<SweepDocument>(path)));
        let group = |level: &str| {
            let of_level = sweep.records().into_iter().filter(|record| record.settings[factor] == level);
            Group::new(level, format!("{path}:{factor}={level}"), of_level.collect())
        };
        let options = Options { factors: vec![factor.to_owned()], ..Options::default() };
        let conditions: Vec<Condition> = conditions.iter().map(|text| text.parse().expect("a condition")).collect();
        let groups = levels.map(group).to_vec();
        compare::text::report(&landspeed_compare::document(groups, &options, &conditions, BuildInfo::default()))
    };
    let buffers = compare("fixtures/documents/sweep.json", "buffer", ["64KB", "16MB"], &["goodput worse 3%"]);
    let streams = compare("fixtures/documents/sweep-hosts.json", "cc", ["cubic", "bbr"], &[]);
    golden::same(
        "compare.txt",
        &format!("# landspeed compare: paired\n{buffers}\n# landspeed compare: two factors\n{streams}"),
    );
}

#[test]
fn demo_output_matches_golden_file() {
    let document: DemoDocument = read("fixtures/documents/demo.json");
    let mut text = format!("# landspeed demo\n{}", demo::text::opening());
    for (number, scene) in document.scenes.iter().enumerate() {
        text += &demo::text::before(number + 1, scene);
        text += &demo::text::after(scene);
    }
    text += &demo::text::closing(&document, Path::new("target/demo"));
    golden::same("demo.txt", &text);
}

#[test]
fn tune_plan_of_an_audit_matches_golden_file() {
    let directory = landspeed_testkit::hosts::unpack("deck-40g");
    let recorded = RecordedHost::open(directory.path()).expect("a recorded host");
    let goal = Goal { rate_bps: Some(40_000_000_000), rtt_ns: Some(50_000_000), role: Role::Dtn, interface: None };
    let audit = check::audit(landspeed_host::collect(&recorded), &goal, &|_| true).expect("an audit");
    // Sysctl values of this recorded host are files below proc/sys.
    let value = |change: &Change| {
        let Target::Sysctl { name } = &change.target else { return None };
        let path = directory.path().join("proc/sys").join(name.replace('.', "/"));
        Some(Value::text(std::fs::read_to_string(path).ok()?.trim()))
    };
    let known = |change: &Change| value(change).map(|value| (change.target.clone(), value));
    let changes = changes_from_audit(&audit, &[], &[]).into_iter().filter(|change| known(change).is_some());
    let mut changes: Vec<Change> = changes.collect();
    let host = SimulatedKnobs::new(changes.iter().filter_map(known));
    // A sysctl that the host does not have.
    changes.push(Change::sysctl("net.ipv4.tcp_notsent_lowat", "131072"));
    let plan = landspeed_tune::plan(&changes, &host, Allow::default());
    golden::same("tune-plan.txt", &format!("# landspeed tune plan\n{}", tune::text::plan(&plan)));
}

#[test]
fn archive_tables_and_trends_match_their_golden_file() {
    use landspeed_archive::{Archive, Query, TagChange};
    use landspeed_model::{Better, Metric, TrendChange, TrendPoint, TrendSegment};

    let directory = tempfile::tempdir().expect("a directory");
    let mut kept = Archive::open(&directory.path().join("archive")).expect("an archive");
    let files = [
        "crates/diagnose/fixtures/real/bulk-loopback-bbr.json",
        "crates/diagnose/fixtures/real/receive-buffer-cubic.json",
        "fixtures/documents/udp.json",
        "fixtures/documents/rr.json",
        "fixtures/documents/tuneup.json",
        "fixtures/reports/lab.json",
        "fixtures/reports/labset.json",
        "fixtures/iperf3/3.12/tcp.json",
        "fixtures/foreign/pscheduler-throughput.json",
    ];
    let mut last = None;
    for file in files {
        let bytes = std::fs::read(repository().join(file)).expect("a fixture");
        last = Some((kept.insert(&bytes).expect("a result"), bytes));
    }
    let future =
        br#"{"schema": "landspeed.run/9", "landspeed": {"version": "9.0.0"}, "started": "2036-01-01T00:00:00Z"}"#;
    let later = kept.insert(future).expect("it is kept");
    let (foreign, bytes) = last.expect("a fixture");
    kept.tag(&foreign, &TagChange { add: ["before".to_owned()].into(), ..TagChange::default() }).expect("a tag");
    let home = Path::new("/home/ada/.local/share/landspeed/archive");
    let (all, rows) =
        (kept.documents(&Query::all(), None).expect("an index"), kept.find(&Query::all()).expect("an index"));
    let heading = |id| archive::text::heading(&kept.resolve(id).expect("it is there"));
    let reading = |bytes| landspeed_archive::Reading::of(bytes).expect("a result");
    let point = |i: u64| TrendPoint {
        id: format!("{i:064x}"),
        started: format!("2026-11-{:02}T03:00:00Z", i + 1),
        flow: None,
        value: if i < 12 { 9.41e9 + 1e7 * (i % 3) as f64 } else { 9.12e9 + 1e7 * (i % 4) as f64 },
    };
    let segment =
        |first, values, median| TrendSegment { first, values, median, p10: median - 1e7, p90: median + 1e7 };
    let trend = landspeed_model::TrendDocument {
        schema: landspeed_model::TREND_SCHEMA.to_owned(),
        landspeed: BuildInfo::default(),
        query: "target=dtn2.example".to_owned(),
        metric: "goodput".to_owned(),
        field: "goodput_bps".to_owned(),
        unit: "bit/s".to_owned(),
        better: Better::Higher,
        level: 0.01,
        points: (0..20).map(point).collect(),
        segments: vec![segment(0, 12, 9.42e9), segment(12, 8, 9.135e9)],
        changes: vec![TrendChange {
            index: 12,
            id: format!("{:064x}", 12),
            started: "2026-11-13T03:00:00Z".to_owned(),
            ratio: Some(9.135 / 9.42),
            p_value: 0.001,
            differences: [("client.kernel_release".to_owned(), ("6.12.0".to_owned(), "6.18.1".to_owned()))].into(),
        }],
    };
    let check = landspeed_model::ArchiveCheckDocument {
        schema: landspeed_model::ARCHIVE_CHECK_SCHEMA.to_owned(),
        landspeed: BuildInfo::default(),
        intact: 41_307,
        adopted: 1,
        unfinished: 2,
        series_rebuilt: 3,
        damaged: vec![landspeed_model::ArchiveDamage {
            id: foreign.to_string(),
            why: "its bytes have another SHA-256".to_owned(),
            moved_to: Some(format!("damaged/{foreign}.json.gz")),
        }],
        unreadable: vec![landspeed_model::ArchiveUnreadable {
            path: "documents/4b".to_owned(),
            why: "Permission denied (os error 13)".to_owned(),
        }],
    };
    let parts = [
        ("list", archive::text::documents(&all, all.len() as u64 + 200, home)),
        ("find", archive::text::records(&rows, rows.len() as u64, &Query::all())),
        ("show: perfSONAR", heading(foreign.as_str()) + &archive::text::figures(&reading(&bytes))),
        ("show: a later version", heading(later.as_str()) + &archive::text::later(&reading(future))),
        ("trend", archive::text::trend(&trend, Metric::Goodput, Some("2 targets (--target selects one)"))),
        ("prune", archive::text::pruned(&[], false)),
        ("verify", archive::text::verification(&check, home, false)),
    ];
    let mut text = String::new();
    for (what, part) in parts {
        let _ = write!(text, "# landspeed archive {what}\n{part}\n");
    }
    golden::same("archive.txt", &text);
}
