//! Transactions on a simulated host in memory.

use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;

use landspeed_model::{Change, Side};
use landspeed_sys::trust::Policy;

use super::*;
use crate::knobs::DeviceDependents;
use crate::{Allow, Context, RestoreOutcome, SimulatedKnobs, plan};

fn sysctl(name: &str) -> Target {
    Target::Sysctl { name: name.into() }
}

fn ring(side: Side) -> Target {
    Target::Ring { interface: "eth0".into(), side }
}

fn mtu() -> Target {
    Target::Mtu { interface: "eth0".into() }
}

fn host() -> SimulatedKnobs {
    SimulatedKnobs::new([
        (sysctl("net.core.rmem_max"), Value::text("212992")),
        (sysctl("net.core.default_qdisc"), Value::text("fq_codel")),
        (sysctl("net.ipv4.tcp_rmem"), Value::text("4096\t131072\t6291456")),
        (ring(Side::Rx), Value::text("512")),
        (ring(Side::Tx), Value::text("512")),
        (mtu(), Value::text("1500")),
    ])
}

fn changes() -> Vec<Change> {
    vec![
        Change::sysctl("net.core.default_qdisc", "fq"),
        Change::sysctl("net.ipv4.tcp_rmem", "4096 131072 1073741824"),
        Change::sysctl("net.core.rmem_max", "536870912"),
        Change::new(mtu(), "9000"),
        Change::new(ring(Side::Rx), "8192"),
    ]
}

const ALL: Allow = Allow { disruptive: true, tied: true };

#[expect(clippy::unnecessary_wraps, reason = "what `StartWatchdog` takes")]
fn watchdog(_: u32) -> Result<Watchdog, String> {
    Ok(Watchdog { process: 1, unit: None, warning: None })
}

mod cut_journals;
mod holds;
mod two_directories;

struct TestState {
    _directory: tempfile::TempDir,
    context: Context,
}

impl TestState {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let state = directory.path().join("state");
        let registry = directory.path().join("registry");
        let (boot, namespace) = ("boot".into(), "net".into());
        let context = Context { state, boot, namespace, policy: Policy::Refuse, registry, fault: None };
        Self { _directory: directory, context }
    }

    fn engine<'a>(&self, twin: &'a SimulatedKnobs) -> Engine<'a> {
        Engine::new(twin, self.context.clone())
    }

    fn apply(&self, twin: &SimulatedKnobs, changes: &[Change]) -> Result<Applied, TuneError> {
        self.engine(twin).apply(&plan(changes, twin, ALL), 60, None, &mut watchdog)
    }
}

#[test]
fn steps_are_ordered_by_dependency() {
    let order: Vec<String> = plan(&changes(), &host(), ALL).steps.into_iter().map(|step| step.name).collect();
    let expected = ["eth0 rx ring", "eth0 mtu", "net.core.rmem_max", "net.ipv4.tcp_rmem", "net.core.default_qdisc"];
    assert_eq!(order, expected);
}

#[test]
fn a_revert_restores_values_in_reverse_order() {
    let (test_state, twin) = (TestState::new(), host());
    let before = twin.values();
    let applied = test_state.apply(&twin, &changes()).expect("it applies");
    assert_eq!(applied.written.len(), 5);
    let forward: Vec<Target> = twin.log().into_iter().map(|(target, _)| target).collect();
    let (id, state) = test_state.engine(&twin).revert(None, false).expect("it reverts");
    assert_eq!((id, state), (1, State::Reverted));
    assert_eq!(twin.values(), before);
    let backward: Vec<Target> = twin.log().into_iter().skip(5).map(|(target, _)| target).collect();
    assert_eq!(backward, forward.into_iter().rev().collect::<Vec<_>>());
}

#[test]
fn originals_are_on_the_disk_before_the_first_write() {
    // tuned saves original values only after its writes.
    let (test_state, twin) = (TestState::new(), host());
    let context = test_state.context.clone();
    let checked = Rc::new(Cell::new(0));
    let count = Rc::clone(&checked);
    twin.on_write(move |target, value| {
        let journal = Journal::load(&context, 1).map_err(|why| why.to_string())?;
        let last = journal.entries().last().cloned();
        let Some(Entry::Intent { step, before }) = last else { return Err(format!("no intent before {target}")) };
        assert_eq!(&journal.steps()[step].target, target);
        assert_eq!(before, journal.steps()[step].before);
        count.set(count.get() + 1);
        Ok(value.clone())
    });
    test_state.apply(&twin, &changes()).expect("it applies");
    assert_eq!(checked.get(), 5);
}

#[test]
fn clamped_values_are_accepted_and_ignored_ones_are_not() {
    let (test_state, twin) = (TestState::new(), host());
    twin.on_write(|target, value| {
        let clamped = matches!(target, Target::Ring { .. }) && value.number().is_some_and(|n| n > 4096);
        Ok(if clamped { Value::text("4096") } else { value.clone() })
    });
    let applied = test_state.apply(&twin, &[Change::new(ring(Side::Rx), "8192")]).expect("it applies");
    let ring_step = &applied.written[0];
    assert_eq!(
        (ring_step.requested.as_str(), &ring_step.observed, ring_step.rounded),
        ("8192", &Value::text("4096"), true)
    );
    test_state.engine(&twin).revert(None, false).expect("it reverts");
    assert_eq!(twin.values()[&ring(Side::Rx)], Value::text("512"));

    let stubborn = host();
    stubborn.on_write(|target, value| {
        Ok(if matches!(target, Target::Ring { .. }) { Value::text("512") } else { value.clone() })
    });
    let before = stubborn.values();
    let error = TestState::new().apply(&stubborn, &changes()).expect_err("nothing moved");
    assert!(matches!(&error, TuneError::Failed { clean: true, why } if why.contains("eth0 rx ring")), "{error}");
    assert_eq!(stubborn.values(), before);
}

#[test]
fn a_failed_write_rolls_back_the_transaction() {
    // fasterdata-tuning.sh continues after an error.
    let (test_state, twin) = (TestState::new(), host());
    let before = twin.values();
    twin.on_write(|target, value| match (target, value) {
        (Target::Sysctl { name }, Value::Text(text))
            if name == "net.ipv4.tcp_rmem" && text.contains("1073741824") =>
        {
            Err("Invalid argument".into())
        }
        _ => Ok(value.clone()),
    });
    let error = test_state.apply(&twin, &changes()).expect_err("one write fails");
    assert!(
        error.to_string().contains("tcp_rmem") && error.to_string().contains("everything was put back"),
        "{error}"
    );
    assert_eq!(twin.values(), before);
}

#[test]
fn foreign_values_are_kept_unless_forced() {
    let (test_state, twin) = (TestState::new(), host());
    test_state.apply(&twin, &changes()).expect("it applies");
    twin.set(&sysctl("net.core.rmem_max"), Value::text("1000000"));
    let (_, state) = test_state.engine(&twin).revert(None, false).expect("it reverts the rest");
    assert_eq!(state, State::NeedsAttention);
    assert_eq!(twin.values()[&sysctl("net.core.rmem_max")], Value::text("1000000"));
    assert_eq!(twin.values()[&mtu()], Value::text("1500"));
    let journal = Journal::load(&test_state.context, 1).expect("its journal");
    assert!(journal.reason().is_some_and(|why| why.contains("another program")), "{:?}", journal.reason());
    let (_, state) = test_state.engine(&twin).revert(Some(1), true).expect("forced");
    assert_eq!(state, State::Reverted);
    assert_eq!(twin.values(), host().values());
}

#[test]
fn value_changed_since_the_plan_stops_the_apply() {
    let (test_state, twin) = (TestState::new(), host());
    let made = plan(&changes(), &twin, ALL);
    twin.set(&sysctl("net.ipv4.tcp_rmem"), Value::text("1 2 3"));
    let error = test_state.engine(&twin).apply(&made, 60, None, &mut watchdog).expect_err("it moved");
    assert!(error.to_string().contains("another program is changing it"), "{error}");
    assert_eq!(twin.values()[&sysctl("net.ipv4.tcp_rmem")], Value::text("1 2 3"));
    assert_eq!(twin.values()[&mtu()], Value::text("1500"));
}

#[test]
fn nothing_is_written_without_a_watchdog() {
    let (test_state, twin) = (TestState::new(), host());
    let made = plan(&changes(), &twin, ALL);
    let error = test_state.engine(&twin).apply(&made, 60, None, &mut |_| Err("no".into())).expect_err("none");
    assert!(matches!(error, TuneError::Watchdog { .. }), "{error}");
    assert!(twin.log().is_empty());
}

#[test]
fn second_transaction_is_refused_until_the_first_is_confirmed() {
    let (test_state, twin) = (TestState::new(), host());
    test_state.apply(&twin, &changes()[..2]).expect("it applies");
    // With a running watchdog, so that the transaction is not an orphan.
    let engine = test_state.engine(&twin);
    let awake = engine.try_lock("0001.watchdog").expect("a directory").expect("nobody else");
    let error = test_state.apply(&twin, &[Change::new(mtu(), "9000")]).expect_err("one is open");
    assert!(matches!(error, TuneError::Open { id: 1 }), "{error}");
    engine.confirm(None).expect("all is well");
    drop(awake);
    let second = test_state.apply(&twin, &[Change::new(mtu(), "9000")]).expect("now it may");
    assert_eq!(second.id, 2);
}

#[test]
fn an_orphaned_transaction_is_rolled_back() {
    let (test_state, twin) = (TestState::new(), host());
    test_state.apply(&twin, &changes()).expect("it applies");
    let found = test_state.engine(&twin).recover_orphans().expect("it recovers");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].state, State::Reverted);
    assert_eq!(twin.values(), host().values());
}

#[test]
fn transaction_of_an_earlier_boot_writes_nothing() {
    let (test_state, twin) = (TestState::new(), host());
    test_state.apply(&twin, &changes()).expect("it applies");
    let rebooted = host();
    let context = Context { boot: "next".into(), ..test_state.context.clone() };
    let found = Engine::new(&rebooted, context).recover_orphans().expect("it looks");
    assert_eq!(found[0].state, State::Reverted);
    assert!(found[0].why.contains("restarted"), "{}", found[0].why);
    assert!(rebooted.log().is_empty());
}

#[test]
fn another_network_namespace_is_not_changed() {
    let (test_state, twin) = (TestState::new(), host());
    test_state.apply(&twin, &changes()).expect("it applies");
    let other = host();
    let context = Context { namespace: "other".into(), ..test_state.context.clone() };
    let engine = Engine::new(&other, context);
    assert!(engine.recover_orphans().expect("it looks").is_empty());
    assert!(engine.revert(Some(1), false).expect_err("not here").to_string().contains("another network namespace"));
    assert!(other.log().is_empty());
}

#[test]
fn unreachable_management_peer_prevents_confirmation() {
    let (test_state, twin) = (TestState::new(), host());
    let engine = test_state.engine(&twin);
    engine
        .apply(&plan(&changes(), &twin, ALL), 60, Some("192.0.2.1 5000 192.0.2.2 22"), &mut watchdog)
        .expect("applied");
    twin.cut("no route");
    let error = engine.confirm(None).expect_err("the peer is gone");
    assert!(matches!(&error, TuneError::Unhealthy(problems) if problems[0].contains("192.0.2.1")), "{error}");
}

#[test]
fn renamed_devices_are_found_and_removed_ones_skipped() {
    let (test_state, twin) = (TestState::new(), host());
    test_state.apply(&twin, &changes()).expect("it applies");
    twin.rename("eth0", "lan0");
    let (_, state) = test_state.engine(&twin).revert(None, false).expect("it reverts");
    assert_eq!(state, State::Reverted);
    assert_eq!(twin.values()[&Target::Mtu { interface: "lan0".into() }], Value::text("1500"));

    let (test_state, twin) = (TestState::new(), host());
    test_state.apply(&twin, &changes()).expect("it applies");
    twin.remove("eth0");
    let (_, state) = test_state.engine(&twin).revert(None, false).expect("it reverts");
    assert_eq!(state, State::Reverted);
    assert_eq!(twin.values()[&sysctl("net.core.rmem_max")], Value::text("212992"));
}

#[test]
fn disruptive_steps_need_their_options() {
    let twin = host();
    twin.set_dependents("eth0", DeviceDependents { hardware: true, tied: vec!["bond0 on top of it".into()] });
    let refused = |allow| plan(&[Change::new(mtu(), "9000")], &twin, allow).steps[0].refused.clone();
    assert!(refused(Allow { disruptive: true, tied: false }).is_some_and(|why| why.contains("bond0")));
    assert!(refused(Allow { disruptive: false, tied: true }).is_some_and(|why| why.contains("--disruptive")));
    assert_eq!(refused(ALL), None);
}

#[test]
fn conflicting_values_are_refused_and_current_ones_skipped() {
    let twin = host();
    let two = [Change::new(mtu(), "9000"), Change::new(mtu(), "4000")];
    assert!(plan(&two, &twin, ALL).steps[0].refused.as_ref().is_some_and(|why| why.contains("twice")));
    let same = plan(&[Change::sysctl("net.ipv4.tcp_rmem", "4096 131072 6291456")], &twin, ALL);
    assert!(same.steps[0].no_op);
    assert_eq!(same.writes(), 0);
}

#[test]
fn ring_sizes_are_restored_exactly() {
    // fasterdata-tuning.sh does not parse ring sizes and restores 0.
    let (test_state, twin) = (TestState::new(), host());
    test_state
        .apply(&twin, &[Change::new(ring(Side::Rx), "8192"), Change::new(ring(Side::Tx), "8192")])
        .expect("applied");
    test_state.engine(&twin).revert(None, false).expect("reverted");
    for side in [Side::Rx, Side::Tx] {
        assert_eq!(twin.values()[&ring(side)], Value::text("512"));
    }
}

#[test]
fn a_group_rate_needs_a_pacing_qdisc() {
    let qdisc = Target::Qdisc { interface: "eth0".into() };
    let rate = Target::EgressRate { cgroup: "backup.slice".into(), interface: "eth0".into() };
    let tree = |kind: &str| {
        let root = crate::QdiscNode { kind: kind.into(), parent: u32::MAX, ..crate::QdiscNode::default() };
        Value::Qdiscs(crate::QdiscTree { default_kind: kind.into(), qdiscs: vec![root] })
    };
    for (now, asked, limit, fits) in [
        ("fq", None, "9000000000", true),
        ("htb", None, "9000000000", true),
        ("fq_codel", None, "9000000000", false),
        ("fq_codel", Some("fq"), "9000000000", true),
        ("fq_codel", Some("htb"), "9000000000", true),
        ("fq", Some("fq_codel"), "9000000000", false),
        // Removing a limit needs no particular qdisc.
        ("fq_codel", None, "0", true),
    ] {
        let before = if limit == "0" { "8000000" } else { "0" };
        let twin = SimulatedKnobs::new([(qdisc.clone(), tree(now)), (rate.clone(), Value::text(before))]);
        let mut changes = vec![Change::new(rate.clone(), limit)];
        changes.extend(asked.map(|kind| Change::new(qdisc.clone(), kind)));
        let plan = plan(&changes, &twin, ALL);
        let step = plan.steps.iter().find(|step| step.target == rate).expect("it is planned");
        assert_eq!(step.refused.is_none(), fits, "{now}, {asked:?}, {limit}: {:?}", step.refused);
        assert_eq!(plan.steps.last().map(|step| &step.target), Some(&rate), "the queue comes first");
    }
}
