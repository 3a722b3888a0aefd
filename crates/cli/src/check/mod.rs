//! `landspeed check`.

pub mod text;

use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context as _, anyhow, bail};
use landspeed_checks::Check;
use landspeed_flow::client::Target;
use landspeed_flow::control::channel::Key;
use landspeed_host::{LiveHost, RecordedHost};
use landspeed_model::{AUDIT_SCHEMA, AuditDocument, BuildInfo, Facts, Family, Goal, Role, Severity, Warning};
use landspeed_sys::clock;
use landspeed_units::{BitRate, Nanos};

use crate::output::Sink;
use crate::{CommandOutcome, explain, keep, options};

const EXAMPLES: &str = "\
Examples:
  landspeed check                                  this host, for the speed of its interface
  landspeed check --goal 100G --rtt 92ms           as one end of a long path
  landspeed check --role latency --iface ens1f0    for small messages, on one interface
  landspeed check --peer dtn.example               both ends, and where they differ
  landspeed explain TCP-001                        what one check reads and why
  landspeed check --record here --redact           save what was read
  landspeed check --host here                      audit the record on another host
  landspeed check --json audit.json --report audit.html

Nothing is changed. `landspeed tune plan` shows what would be.
Exit status: 0 nothing to do, 1 findings, 2 failure.";

/// Options of `check`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    goal: GoalArgs,
    /// Audit a landspeed server too, and say where the two differ
    #[arg(long, value_name = "HOST[:PORT]", conflicts_with_all = ["host", "record"])]
    peer: Option<Target>,
    /// File with the pre-shared key of the peer
    #[arg(long, value_name = "FILE", requires = "peer")]
    key_file: Option<PathBuf>,
    #[command(flatten)]
    trust: crate::trust::TrustArgs,
    /// Record this host's facts in a new directory
    #[arg(long, value_name = "DIR", conflicts_with = "host")]
    record: Option<PathBuf>,
    /// Replace addresses, names and secrets in what is saved
    #[arg(long, requires = "record")]
    redact: bool,
    /// Audit a host that was recorded, instead of this one
    #[arg(long, value_name = "DIR")]
    host: Option<PathBuf>,
    /// Run only these checks: codes or groups, separated by commas
    #[arg(long, value_name = "CODE,…", value_delimiter = ',')]
    only: Vec<String>,
    /// Skip these checks: codes or groups, separated by commas
    #[arg(long, value_name = "CODE,…", value_delimiter = ',')]
    except: Vec<String>,
    /// Also list checks that pass, do not apply or are unknown
    #[arg(short, long)]
    verbose: bool,
    /// Print errors only; the exit status says whether there are findings
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
    /// Write the document (JSON) to FILE, or `-` for standard output
    #[arg(long, value_name = "FILE")]
    json: Option<Sink>,
    /// Write a page (HTML) to FILE
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// The same as `landspeed explain CODE`
    #[arg(long, value_name = "CODE", exclusive = true)]
    explain: Option<String>,
    /// List all checks, and do nothing else
    #[arg(long, exclusive = true)]
    list: bool,
}

/// What a host is judged for.
#[derive(Debug, Clone, clap::Args)]
pub struct GoalArgs {
    /// The rate to reach [default: the interface's]
    #[arg(long, value_name = "RATE", value_parser = options::rate, allow_hyphen_values = true)]
    pub goal: Option<BitRate>,
    /// The longest round trip to reach it over [default: 1 ms, a local network]
    #[arg(long, value_name = "TIME", value_parser = options::time, allow_hyphen_values = true)]
    pub rtt: Option<Nanos>,
    /// The host's job
    #[arg(long, value_enum, value_name = "ROLE")]
    pub role: Option<RoleName>,
    /// The interface the data takes [default: that of the default route]
    #[arg(long, visible_alias = "interface", value_name = "NAME")]
    pub iface: Option<String>,
}

/// [`Role`] on the command line.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub enum RoleName {
    /// A data transfer node in production
    Dtn,
    /// One repeatable figure, at the cost of everything else
    Benchmark,
    /// Small messages, short tails
    Latency,
    /// A virtual machine
    Guest,
    /// Forwards other hosts' packets
    Router,
}

impl From<RoleName> for Role {
    fn from(name: RoleName) -> Self {
        match name {
            RoleName::Dtn => Self::Dtn,
            RoleName::Benchmark => Self::Benchmark,
            RoleName::Latency => Self::Latency,
            RoleName::Guest => Self::Guest,
            RoleName::Router => Self::Router,
        }
    }
}

/// Audits the host and prints the result.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    if args.list {
        out!("{}", text::list(landspeed_checks::all()));
        return Ok(CommandOutcome::Clean);
    }
    if let Some(code) = &args.explain {
        explain::print_check(find(code)?);
        return Ok(CommandOutcome::Clean);
    }
    for name in args.only.iter().chain(&args.except) {
        known(name)?;
    }
    let report = args.report.clone().map(Sink::File);
    for sink in [&args.json, &report].into_iter().flatten() {
        sink.check()?;
    }
    let key = args.key_file.as_deref().map(|path| options::key(path, args.trust.policy())).transpose()?;
    let facts = facts(args)?;
    let chosen =
        |check: &Check| names(&args.only, check).unwrap_or(true) && !names(&args.except, check).unwrap_or(false);
    let goal = goal(&args.goal, &facts);
    let mut document = audit(facts, &goal, &chosen)?;
    if let Some(peer) = &args.peer {
        with_peer(&mut document, peer, key.as_ref(), args.goal.role, &chosen)?;
    }
    let written = deliver(args, &document, report.as_ref());
    // A recorded host was not audited here and now, so the result is not kept.
    if args.host.is_none() {
        keep::keep(&document);
    }
    written?;
    if !args.quiet && args.json != Some(Sink::Stdout) {
        out!("{}", text::audit(&document, args.verbose));
        if let Some(path) = &args.report {
            outln!("  report   {}", path.display());
        }
        if let Some(path) = &args.record {
            outln!("  record   {}", path.display());
        }
    }
    let notable = |audit: &AuditDocument| audit.findings.iter().any(|finding| finding.severity > Severity::Note);
    let found = notable(&document) || document.peer.as_deref().is_some_and(notable);
    Ok(if found { CommandOutcome::Findings } else { CommandOutcome::Clean })
}

fn deliver(args: &Args, document: &AuditDocument, report: Option<&Sink>) -> anyhow::Result<()> {
    if let Some(sink) = &args.json {
        let mut json = serde_json::to_vec_pretty(document)?;
        json.push(b'\n');
        sink.write(&json)?;
    }
    if let Some(sink) = report {
        sink.write(landspeed_report::render_audit(document)?.as_bytes())?;
    }
    Ok(())
}

/// Returns the goal described by the options; the role defaults to [`usual_role`].
pub fn goal(args: &GoalArgs, facts: &Facts) -> Goal {
    Goal {
        rate_bps: args.goal.map(BitRate::bps),
        rtt_ns: args.rtt.map(Nanos::get),
        role: args.role.map_or_else(|| usual_role(facts), Role::from),
        interface: args.iface.clone(),
    }
}

/// Returns the default role: guest in a virtual machine, DTN otherwise.
pub fn usual_role(facts: &Facts) -> Role {
    if facts.virtualization.hypervisor.known().is_some() { Role::Guest } else { Role::Dtn }
}

fn facts(args: &Args) -> anyhow::Result<Facts> {
    if let Some(directory) = &args.host {
        let host = RecordedHost::open(directory)
            .map_err(|error| anyhow!("cannot audit {}: {error}", directory.display()))?;
        return Ok(landspeed_host::collect(&host));
    }
    match &args.record {
        Some(directory) => landspeed_host::record(directory, args.redact)
            .with_context(|| format!("cannot record this host in {}", directory.display())),
        None => Ok(landspeed_host::collect(&LiveHost::new())),
    }
}

/// Audits a host from its facts. `chosen` selects the checks.
pub fn audit(facts: Facts, goal: &Goal, chosen: &dyn Fn(&Check) -> bool) -> anyhow::Result<AuditDocument> {
    let audit = landspeed_checks::audit(&facts, goal, chosen)?;
    let started = UNIX_EPOCH + Duration::from_nanos(clock::realtime_ns());
    Ok(AuditDocument {
        schema: AUDIT_SCHEMA.to_owned(),
        landspeed: BuildInfo { version: env!("CARGO_PKG_VERSION").to_owned(), server_version: None },
        command: landspeed_sys::process::command_line(),
        started: humantime::format_rfc3339_seconds(started).to_string(),
        hostname: facts.hostname.known().cloned().unwrap_or_default(),
        warnings: warnings(&facts, goal),
        goal: goal.clone(),
        interface: audit.interface,
        ports: audit.ports,
        findings: audit.findings,
        passed: audit.passed,
        not_applicable: audit.not_applicable,
        unknown: audit.unknown,
        peer: None,
        differences: Vec::new(),
        facts: Box::new(facts),
    })
}

fn warnings(facts: &Facts, goal: &Goal) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |code: &str, message: String| warnings.push(Warning { code: code.into(), message });
    if !facts.root {
        warn("not-root", "not run as root: facts that only root may read are unknown".into());
    }
    if goal.rtt_ns.is_none() {
        warn("no-rtt", "no --rtt was given: buffers are judged for a local network of 1 ms".into());
    }
    warnings
}

fn with_peer(
    document: &mut AuditDocument,
    target: &Target,
    key: Option<&Key>,
    role: Option<RoleName>,
    chosen: &dyn Fn(&Check) -> bool,
) -> anyhow::Result<()> {
    let interrupted = landspeed_sys::process::catch_interrupts();
    let facts = landspeed_flow::client::facts(target, Family::Any, key, interrupted).map_err(|error| match error
        .advice()
    {
        Some(advice) => anyhow!("cannot audit {target}: {error}; {advice}"),
        None => anyhow!("cannot audit {target}: {error}"),
    })?;
    // `--iface` names an interface of this host; the peer is audited on the interface of its default route.
    let role = role.map_or_else(|| usual_role(&facts), Role::from);
    let theirs = Goal { interface: None, role, ..document.goal.clone() };
    let peer = audit(facts, &theirs, chosen)?;
    document.differences = landspeed_checks::compare(
        (&document.facts, document.interface.as_deref()),
        (&peer.facts, peer.interface.as_deref()),
    );
    document.peer = Some(Box::new(peer));
    Ok(())
}

/// Whether `list` contains `check` by code, name or group; `None` if the list is empty.
fn names(list: &[String], check: &Check) -> Option<bool> {
    let is = |name: &String| {
        name.eq_ignore_ascii_case(check.code)
            || *name == check.name()
            || name.eq_ignore_ascii_case(check.group.name())
    };
    (!list.is_empty()).then(|| list.iter().any(is))
}

fn known(name: &str) -> anyhow::Result<()> {
    let list = [name.to_owned()];
    if landspeed_checks::all().any(|check| names(&list, check) == Some(true)) {
        return Ok(());
    }
    bail!("no check and no group is called `{name}`; `landspeed check --list` names them");
}

fn find(code: &str) -> anyhow::Result<&'static Check> {
    let found = landspeed_checks::all().find(|check| code.eq_ignore_ascii_case(check.code) || code == check.name());
    found.with_context(|| format!("no check is called `{code}`; `landspeed check --list` names them"))
}
