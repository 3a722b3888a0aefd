//! `landspeed tune`: changes to this host as a transaction.

mod hold;
mod persist;
pub mod state;
pub mod text;
pub mod watchdog;

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use landspeed_model::{AuditDocument, Change};
use landspeed_quote::shell_path;
use landspeed_sys::trust::{self as files, Content, Policy};
use landspeed_sys::{file, process};
use landspeed_tune::{
    Allow, CONFIRM_RANGE_S, Engine, Journal, LiveKnobs, Plan, State, TuneError, changes_from_audit, parse_setting,
};
use serde_json::json;

use self::state::{StateArgs, context, need_root, write_json};
use crate::CommandOutcome;
use crate::check;
use crate::output::Sink;

const EXAMPLES: &str = "\
Examples:
  landspeed tune plan --goal 100G --rtt 92ms     what `landspeed check` finds safe to change
  landspeed tune plan --set 'net.ipv4.tcp_rmem=4096 131072 1073741824' --set eth0:qdisc=fq
  landspeed check --json audit.json; landspeed tune plan --findings audit.json
  sudo landspeed tune apply --findings audit.json --only TCP-001,TCP-002 --confirm 120
  sudo landspeed tune confirm           from a new session, within that time
  sudo landspeed tune persist           keep it over reboots
  sudo landspeed tune revert            roll the last transaction back
  sudo landspeed tune revert --persisted

Other settings: eth0:mtu=9000, eth0:rx-ring=8192, eth0:channels=16, eth0:adaptive-rx=on,
eth0:pause-rx=on, eth0:tx-tcp-segmentation=on, eth0:gso_max_size=185000, eth0:txqueuelen=1000,
eth0:rx-0/rps_cpus=ff, eth0:gro_flush_timeout=20000, irq:45/mlx5_comp0=0-7,
cpufreq:policy0/governor=performance, cpufreq:policy0/epp=performance, cpu:3/resume-latency=n/a,
eth0:cgroup/system.slice/backup.service=9gbit (what a group of processes sends; needs fq or htb)

Before the first write, the plan is shown, the original values are on disk and a watchdog runs,
which rolls everything back unless you confirm. The time to confirm begins with the first write:
an apply that is stopped or hangs is killed when it is over, and rolled back.

Exit status: 0 done, 1 a step was refused or is left to you, 2 failure.";

/// Options of `tune`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show what would be changed, in which order, and what is refused; writes nothing
    Plan(PlanArgs),
    /// Change it; it is rolled back unless it is confirmed in time
    Apply(ApplyArgs),
    /// Keep the change, if the host is healthy
    Confirm(PlainArgs),
    /// Roll a transaction back, except for values that were changed since
    Revert(RevertArgs),
    /// Show the transactions and their state
    Status(PlainArgs),
    /// Keep a confirmed transaction over reboots: one file for each owner
    Persist(persist::Args),
    /// Change it for as long as this command runs, here or at a server; for tests
    #[command(hide = true)]
    Hold(hold::Args),
    #[command(hide = true)]
    Watchdog(watchdog::Args),
}

/// What to change.
#[derive(Debug, clap::Args)]
struct ChangeArgs {
    /// Change a setting (repeat for more): net.ipv4.tcp_mtu_probing=1, eth0:mtu=9000, 'eth0:qdisc=fq maxrate 8gbit'
    #[arg(long, value_name = "SETTING=VALUE", value_parser = parse_setting)]
    set: Vec<Change>,
    /// Apply the recommendations of this audit (`landspeed check --json`), instead of auditing now
    #[arg(long, value_name = "FILE")]
    findings: Option<PathBuf>,
    #[command(flatten)]
    goal: check::GoalArgs,
    /// Only findings with these codes; without it, those that are safe
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    only: Vec<String>,
    /// All but findings with these codes
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    except: Vec<String>,
    /// Also steps that take a link down for a moment (rings, channels, MTU, pause frames)
    #[arg(long)]
    disruptive: bool,
    /// Also disruptive steps on interfaces that others depend on (bond and bridge ports, VLANs, XDP, SR-IOV)
    #[arg(long)]
    allow_tied: bool,
}

#[derive(Debug, clap::Args)]
struct PlanArgs {
    #[command(flatten)]
    wanted: ChangeArgs,
    /// Write the plan as JSON (- for standard output)
    #[arg(short = 'J', long, value_name = "FILE")]
    json: Option<Sink>,
}

#[derive(Debug, clap::Args)]
struct ApplyArgs {
    #[command(flatten)]
    wanted: ChangeArgs,
    #[command(flatten)]
    state: StateArgs,
    /// Seconds to confirm in, from the first write
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    confirm: u64,
    /// Write what was done as JSON (- for standard output)
    #[arg(short = 'J', long, value_name = "FILE")]
    json: Option<Sink>,
}

#[derive(Debug, clap::Args)]
struct PlainArgs {
    #[command(flatten)]
    state: StateArgs,
    /// Write the answer as JSON (- for standard output)
    #[arg(short = 'J', long, value_name = "FILE")]
    json: Option<Sink>,
}

#[derive(Debug, clap::Args)]
struct RevertArgs {
    /// Number of the transaction [default: the last one in force]
    id: Option<u32>,
    #[command(flatten)]
    state: StateArgs,
    /// Also overwrite values that were changed since
    #[arg(long)]
    force: bool,
    /// Restore the files of `persist` instead; current values stay
    #[arg(long, conflicts_with = "force")]
    persisted: bool,
    /// Write the answer as JSON (- for standard output)
    #[arg(short = 'J', long, value_name = "FILE")]
    json: Option<Sink>,
}

/// Runs the subcommand.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    match &args.command {
        Command::Plan(args) => plan(args),
        Command::Apply(args) => apply(args),
        Command::Confirm(args) => confirm(args),
        Command::Revert(args) => revert(args),
        Command::Status(args) => status(args),
        Command::Persist(args) => persist::main(args),
        Command::Hold(args) => hold::main(args),
        Command::Watchdog(args) => watchdog::main(args),
    }
}

/// Returns `SSH_CONNECTION`: identifies the management peer, and whether a confirmation comes from the same
/// session.
fn session() -> Option<String> {
    std::env::var("SSH_CONNECTION").ok().filter(|text| !text.trim().is_empty())
}

/// Returns the user who called sudo: besides root and the effective user, it may own the audit file.
fn auditors() -> Vec<u32> {
    std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok()).into_iter().collect()
}

/// Returns the requested changes. `policy` is `None` for `plan`, which only shows them.
fn changes(wanted: &ChangeArgs, policy: Option<Policy>) -> anyhow::Result<Vec<Change>> {
    let mut changes = wanted.set.clone();
    match &wanted.findings {
        Some(path) => {
            let cannot = || format!("cannot read {}", path.display());
            let text = match policy {
                Some(policy) => {
                    let file = files::open(path, "audit", Content::Public, &auditors(), policy)?;
                    file::read_text_from(file, file::MAX_DOCUMENT_BYTES).with_context(cannot)?
                }
                None => file::read_text(path, file::MAX_DOCUMENT_BYTES).with_context(cannot)?,
            };
            let audit: AuditDocument = serde_json::from_slice(text.as_bytes()).with_context(|| {
                let name = path.display();
                format!("{name} is not an audit; write one with `landspeed check --json {}`", shell_path(path))
            })?;
            if audit.schema != landspeed_model::AUDIT_SCHEMA {
                bail!("{} is `{}` and not `{}`", path.display(), audit.schema, landspeed_model::AUDIT_SCHEMA);
            }
            changes.extend(changes_from_audit(&audit, &wanted.only, &wanted.except));
        }
        // Explicit settings need no audit, unless findings are selected, too.
        None if !changes.is_empty() && wanted.only.is_empty() && wanted.except.is_empty() => {}
        None => {
            let facts = landspeed_host::collect(&landspeed_host::LiveHost::new());
            let goal = check::goal(&wanted.goal, &facts);
            let audit = check::audit(facts, &goal, &|_| true)?;
            changes.extend(changes_from_audit(&audit, &wanted.only, &wanted.except));
        }
    }
    Ok(changes)
}

fn make_plan(wanted: &ChangeArgs, policy: Option<Policy>) -> anyhow::Result<Plan> {
    let allow = Allow { disruptive: wanted.disruptive, tied: wanted.allow_tied };
    Ok(landspeed_tune::plan(&changes(wanted, policy)?, &LiveKnobs, allow))
}

fn plan(args: &PlanArgs) -> anyhow::Result<CommandOutcome> {
    let plan = make_plan(&args.wanted, None)?;
    if write_json(args.json.as_ref(), &json!({"schema": "landspeed.tune-plan/1", "steps": plan.steps}))? {
        out!("{}", text::plan(&plan));
    }
    Ok(if plan.refused().next().is_some() { CommandOutcome::Findings } else { CommandOutcome::Clean })
}

fn apply(args: &ApplyArgs) -> anyhow::Result<CommandOutcome> {
    need_root("changing settings")?;
    if !CONFIRM_RANGE_S.contains(&args.confirm) {
        bail!("--confirm takes {} to {} seconds", CONFIRM_RANGE_S.start(), CONFIRM_RANGE_S.end());
    }
    if let Some(sink) = &args.json {
        sink.check()?;
    }
    let context = context(&args.state)?;
    let plan = make_plan(&args.wanted, Some(args.state.trust.policy()))?;
    let quiet = args.json == Some(Sink::Stdout);
    if !quiet {
        out!("{}", text::plan(&plan));
    }
    // Requested settings are applied all or none.
    let asked = |step: &&landspeed_tune::Step| args.wanted.set.iter().any(|change| change.target == step.target);
    if let Some(step) = plan.refused().find(asked) {
        bail!("nothing was changed: {} is refused: {}", step.name, step.refused.as_deref().unwrap_or_default());
    }
    let some_refused = plan.refused().next().is_some();
    let engine = Engine::new(&LiveKnobs, context);
    if plan.writes() == 0 {
        // The current values may belong to another open transaction and be lost when it is rolled back.
        if let Some(id) = engine.open_transaction()? {
            return Err(TuneError::Open { id }.into());
        }
        if !quiet {
            outln!("Nothing to write.");
        }
        write_json(args.json.as_ref(), &json!({"schema": "landspeed.tune/1", "written": []}))?;
        return Ok(if some_refused { CommandOutcome::Findings } else { CommandOutcome::Clean });
    }
    let applied = engine
        .apply(&plan, args.confirm, session().as_deref(), &mut |id| watchdog::start(&engine, &args.state, id))?;
    let document = json!({
        "schema": "landspeed.tune/1",
        "id": applied.id,
        "state": "awaiting-confirm",
        "confirm_s": applied.confirm_s,
        "watchdog": applied.watchdog,
        "written": applied.written,
        "refused": plan.refused().collect::<Vec<_>>(),
    });
    if write_json(args.json.as_ref(), &document)? {
        out!("{}", text::applied(&applied));
    }
    Ok(if some_refused { CommandOutcome::Findings } else { CommandOutcome::Clean })
}

fn confirm(args: &PlainArgs) -> anyhow::Result<CommandOutcome> {
    need_root("confirming")?;
    let engine = Engine::new(&LiveKnobs, context(&args.state)?);
    let session = session();
    let id = engine.confirm(session.as_deref())?;
    let journal = Journal::load(engine.context(), id)?;
    let same = session.is_some() && journal.baseline().is_some_and(|baseline| baseline.session == session);
    let document = json!({"schema": "landspeed.tune/1", "id": id, "state": State::Committed, "same_session": same});
    if write_json(args.json.as_ref(), &document)? {
        outln!("Transaction {id} stays, until the next reboot. `landspeed tune persist` keeps it longer.");
        if same {
            outln!(
                "It was confirmed from the session it was applied in: whether a new login works is not shown by that."
            );
        }
    }
    Ok(CommandOutcome::Clean)
}

fn revert(args: &RevertArgs) -> anyhow::Result<CommandOutcome> {
    need_root("reverting")?;
    let engine = Engine::new(&LiveKnobs, context(&args.state)?);
    if args.persisted {
        let (id, left) = engine.unpersist(args.id)?;
        let document = json!({"schema": "landspeed.tune/1", "id": id, "state": "unpersisted", "left": left});
        if write_json(args.json.as_ref(), &document)? {
            outln!("The files of transaction {id} are as they were before it.");
            for path in &left {
                outln!("  ! {} was changed since and is not restored", path.display());
            }
        }
        return Ok(if left.is_empty() { CommandOutcome::Clean } else { CommandOutcome::Findings });
    }
    let (id, state) = engine.revert(args.id, args.force)?;
    let journal = Journal::load(engine.context(), id)?;
    let document = text::transaction_json(&engine, &journal);
    if write_json(args.json.as_ref(), &document)? {
        out!("{}", text::reverted(&engine, &journal, &state));
    }
    Ok(if state == State::Reverted { CommandOutcome::Clean } else { CommandOutcome::Findings })
}

fn status(args: &PlainArgs) -> anyhow::Result<CommandOutcome> {
    let engine = Engine::new(&LiveKnobs, context(&args.state)?);
    let there = args.state.state.is_dir();
    let recovered = if there && process::is_root() { engine.recover_orphans()? } else { Vec::new() };
    let mut journals = Vec::new();
    for id in Journal::list(engine.context())? {
        journals.push(Journal::load(engine.context(), id)?);
    }
    let transactions: Vec<_> = journals.iter().map(|journal| text::transaction_json(&engine, journal)).collect();
    let found: Vec<u32> = recovered.iter().map(|found| found.id).collect();
    let document = json!({"schema": "landspeed.tune-status/1", "recovered": found, "transactions": transactions});
    if write_json(args.json.as_ref(), &document)? {
        out!("{}", text::status(&engine, &journals, &recovered));
    }
    let open = |journal: &Journal| !matches!(journal.state(), State::Committed | State::Reverted);
    Ok(if journals.iter().any(open) { CommandOutcome::Findings } else { CommandOutcome::Clean })
}
