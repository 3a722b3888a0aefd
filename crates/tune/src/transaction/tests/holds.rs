//! Held transactions, which end with their process.

use super::*;

/// Process id and start time of a process that cannot exist, as the one that applied.
const GONE: (u32, u64) = (1, u64::MAX);

fn hold(test_state: &TestState, twin: &SimulatedKnobs, changes: &[Change]) -> Result<Applied, TuneError> {
    test_state.engine(twin).hold(&plan(changes, twin, ALL), 60, &mut watchdog)
}

/// Rewrites the journal of a transaction as if a process had applied it that has ended since.
fn orphan(test_state: &TestState, id: u32) {
    let journal = Journal::load(&test_state.context, id).expect("its journal");
    let entries: Vec<Entry> = journal.entries().cloned().collect();
    std::fs::remove_file(test_state.context.state.join(format!("{id:04}.journal"))).expect("a journal");
    let mut entries = entries.into_iter();
    let Some(Entry::Planned { steps, confirm_s, baseline, monotonic_ns, held, .. }) = entries.next() else {
        panic!("no plan")
    };
    let planned = Entry::Planned { steps, confirm_s, baseline, monotonic_ns, held, applier: GONE };
    let mut journal = Journal::create(&test_state.context, planned).expect("room");
    entries.for_each(|entry| journal.append(&test_state.context, entry).expect("room"));
}

#[test]
fn a_released_transaction_is_rolled_back() {
    let (test_state, twin) = (TestState::new(), host());
    let held = hold(&test_state, &twin, &changes()).expect("it applies");
    assert!(test_state.engine(&twin).is_in_force(held.id) && twin.values() != host().values());
    assert_eq!(test_state.engine(&twin).release(held.id).expect("it releases"), State::Reverted);
    assert_eq!(twin.values(), host().values());
    assert!(!test_state.engine(&twin).is_in_force(held.id));
    assert_eq!(test_state.engine(&twin).release(held.id).expect("once more"), State::Reverted);
}

#[test]
fn watchdog_rolls_back_when_the_holder_ends() {
    for (held, gone, reverted) in [(true, true, true), (true, false, false), (false, true, false)] {
        let (test_state, twin) = (TestState::new(), host());
        let made = plan(&changes(), &twin, ALL);
        let engine = test_state.engine(&twin);
        let applied =
            if held { engine.hold(&made, 2, &mut watchdog) } else { engine.apply(&made, 2, None, &mut watchdog) };
        let applied = applied.expect("it applies");
        if gone {
            orphan(&test_state, applied.id);
        }
        engine.watch(applied.id, || {}).expect("it watches");
        assert_eq!(twin.values(), host().values(), "at the deadline at the latest");
        let in_time = clock::monotonic_ns() < applied.deadline_ns;
        assert_eq!(in_time, reverted, "held {held}, gone {gone}");
        let journal = Journal::load(&test_state.context, applied.id).expect("its journal");
        let why = if reverted { "the process that held it ended" } else { "it was not confirmed in time" };
        assert_eq!(journal.reason(), Some(why));
    }
}

#[test]
fn a_held_transaction_cannot_be_confirmed() {
    let (test_state, twin) = (TestState::new(), host());
    let held = hold(&test_state, &twin, &changes()).expect("it applies");
    let error = test_state.engine(&twin).confirm(None).expect_err("it is held").to_string();
    assert!(error.contains("is held by process"), "{error}");
    assert_eq!(test_state.engine(&twin).release(held.id).expect("it releases"), State::Reverted);
    assert_eq!(twin.values(), host().values());
}

#[test]
fn foreign_value_is_left_by_a_release() {
    let (test_state, twin) = (TestState::new(), host());
    let held = hold(&test_state, &twin, &changes()).expect("it applies");
    twin.set(&mtu(), Value::text("4000"));
    assert_eq!(test_state.engine(&twin).release(held.id).expect("it releases"), State::NeedsAttention);
    assert_eq!(twin.values()[&mtu()], Value::text("4000"));
}

#[test]
fn a_series_of_held_transactions_leaves_one_journal() {
    let (test_state, twin) = (TestState::new(), host());
    test_state.apply(&twin, &changes()).expect("it applies");
    test_state.engine(&twin).revert(None, false).expect("it reverts");
    for number in 2..20 {
        let held = hold(&test_state, &twin, &changes()).expect("it applies");
        assert_eq!(held.id, number, "no number is given twice");
        assert_eq!(test_state.engine(&twin).release(held.id).expect("it releases"), State::Reverted);
    }
    let left = Journal::list(&test_state.context).expect("listed");
    assert_eq!(left, [1, 18, 19], "those of a person stay");
}

#[test]
fn one_open_transaction_excludes_a_held_one() {
    let (test_state, twin) = (TestState::new(), host());
    test_state.apply(&twin, &[Change::new(mtu(), "9000")]).expect("it applies");
    let _awake = test_state.engine(&twin).try_lock("0001.watchdog").expect("a lock").expect("it is free");
    let error =
        hold(&test_state, &twin, &[Change::sysctl("net.core.rmem_max", "536870912")]).expect_err("one is open");
    assert!(matches!(error, TuneError::Open { id: 1 }), "{error}");
}
