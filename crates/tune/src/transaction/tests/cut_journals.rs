//! Truncated journals: the plan is compared with the host, and nothing is reported as restored without a
//! check.

use super::*;

impl TestState {
    fn journal(&self) -> PathBuf {
        self.context.state.join("0001.journal")
    }

    /// Truncates the journal after `records` records.
    fn cut(&self, records: usize) {
        let text = std::fs::read_to_string(self.journal()).expect("its journal");
        let kept: String = text.split_inclusive('\n').take(records).collect();
        std::fs::write(self.journal(), kept).expect("cut");
    }

    fn outcomes(&self) -> Vec<RestoreOutcome> {
        let journal = Journal::load(&self.context, 1).expect("its journal");
        let settled = (0..journal.steps().len()).filter_map(|step| match journal.step_state(step) {
            StepState::Settled { outcome, .. } => Some(outcome),
            _ => None,
        });
        settled.collect()
    }
}

#[test]
fn a_truncated_journal_is_not_a_complete_revert() {
    // One record for the plan, one for the watchdog, two per step.
    for records in 1..=11 {
        for recovered in [false, true] {
            let (test_state, twin) = (TestState::new(), host());
            let before = twin.values();
            test_state.apply(&twin, &changes()).expect("it applies");
            let written = twin.values();
            test_state.cut(records);
            let engine = test_state.engine(&twin);
            let state = if recovered {
                engine.recover_orphans().expect("it looks")[0].state.clone()
            } else {
                engine.revert(Some(1), false).expect("it looks").1
            };
            // If only the last records are missing, every write is known.
            let known = records.saturating_sub(1) / 2;
            let complete = known == changes().len();
            assert_eq!(state, if complete { State::Reverted } else { State::NeedsAttention }, "{records}");
            let drifts = test_state.outcomes().iter().filter(|o| matches!(o, RestoreOutcome::Drift { .. })).count();
            assert_eq!(drifts, changes().len() - known, "{records}: {:?}", test_state.outcomes());
            for (target, value) in twin.values() {
                assert!(value == before[&target] || value == written[&target], "{target}");
            }
            if !complete {
                assert_eq!(engine.revert(Some(1), true).expect("forced").1, State::Reverted, "{records}");
            }
            assert_eq!(twin.values(), before, "{records}");
        }
    }
}

#[test]
fn a_journal_without_a_plan_needs_attention() {
    let (test_state, twin) = (TestState::new(), host());
    test_state.apply(&twin, &changes()).expect("it applies");
    test_state.cut(0);
    let engine = test_state.engine(&twin);
    assert!(engine.recover_orphans().expect("it looks").is_empty());
    assert_eq!(engine.revert(Some(1), true).expect("it looks").1, State::NeedsAttention);
    let journal = Journal::load(&test_state.context, 1).expect("it loads");
    assert!(journal.reason().is_some_and(|why| why.contains("no plan")), "{:?}", journal.reason());
}

#[test]
fn an_unreadable_setting_is_not_confirmed() {
    let (test_state, twin) = (TestState::new(), host());
    let engine = test_state.engine(&twin);
    test_state.apply(&twin, &changes()).expect("it applies");
    let hidden = sysctl("net.core.rmem_max");
    twin.hide(&hidden);
    let error = engine.confirm(None).expect_err("one cannot be checked");
    assert!(matches!(&error, TuneError::Unhealthy(problems) if problems[0].contains("cannot be checked")), "{error}");
    let (_, state) = engine.revert(None, false).expect("it reverts the rest");
    assert_eq!(state, State::NeedsAttention);
    assert!(test_state.outcomes().iter().any(|outcome| matches!(outcome, RestoreOutcome::Unchecked { .. })));
    let journal = Journal::load(&test_state.context, 1).expect("its journal");
    let number = journal.steps().iter().position(|step| step.target == hidden).expect("planned");
    assert!(matches!(engine.check_step(&journal, number), StepCheck::NotChecked { .. }));
    twin.show(&hidden);
    assert_eq!(engine.revert(None, false).expect("now it can be read").1, State::Reverted);
    assert_eq!(twin.values(), host().values());
}

#[test]
fn every_step_is_compared_with_its_value_from_before() {
    let (test_state, twin) = (TestState::new(), host());
    let engine = test_state.engine(&twin);
    test_state.apply(&twin, &changes()).expect("it applies");
    let checks = || {
        let journal = Journal::load(&test_state.context, 1).expect("its journal");
        (0..changes().len()).map(|step| engine.check_step(&journal, step)).collect::<Vec<_>>()
    };
    assert!(checks().iter().all(|check| *check == StepCheck::AsWritten), "{:?}", checks());
    engine.revert(None, false).expect("it reverts");
    assert!(checks().iter().all(|check| *check == StepCheck::AsBefore), "{:?}", checks());
    twin.set(&mtu(), Value::text("4000"));
    assert!(checks().contains(&StepCheck::Differs { now: Value::text("4000") }));
    twin.remove("eth0");
    assert!(checks().contains(&StepCheck::Gone));
}

#[test]
fn apply_past_its_deadline_is_rolled_back() {
    let (test_state, twin) = (TestState::new(), host());
    let before = twin.values();
    let error =
        test_state.engine(&twin).apply(&plan(&changes(), &twin, ALL), 0, None, &mut watchdog).expect_err("late");
    assert!(matches!(&error, TuneError::Failed { clean: true, why } if why.contains("--confirm")), "{error}");
    assert_eq!(twin.values(), before);
}

#[test]
fn apply_writes_nothing_after_a_takeover() {
    let (test_state, twin) = (TestState::new(), host());
    let context = test_state.context.clone();
    // The watchdog takes over during the write of the second setting.
    let writes = Cell::new(0);
    twin.on_write(move |_, value| {
        writes.set(writes.get() + 1);
        if writes.get() == 2 {
            let mut theirs = Journal::open(&context, 1).map_err(|why| why.to_string())?;
            theirs.append(&context, Entry::TakenOver { from: (1, 1) }).map_err(|why| why.to_string())?;
        }
        Ok(value.clone())
    });
    let error = test_state.apply(&twin, &changes()).expect_err("taken over");
    assert!(error.to_string().contains("taken transaction 1 over"), "{error}");
    assert!(matches!(error, TuneError::Failed { clean: false, .. }), "{error}");
    assert_eq!(twin.log().len(), 2, "neither the third setting nor anything back: {:?}", twin.log());
    let journal = Journal::load(&test_state.context, 1).expect("whole");
    assert_eq!(journal.entries().last(), Some(&Entry::TakenOver { from: (1, 1) }));
}

#[test]
fn late_writes_are_undone_and_foreign_values_kept() {
    let (test_state, twin) = (TestState::new(), host());
    let engine = test_state.engine(&twin);
    test_state.apply(&twin, &changes()).expect("it applies");
    let written = twin.values();
    // The third step was being written when the watchdog took over.
    test_state.cut(7);
    let mut journal = Journal::open(&test_state.context, 1).expect("it opens");
    journal.append(&test_state.context, Entry::TakenOver { from: (1, 1) }).expect("room");
    let steps = journal.steps().to_vec();
    for step in &steps[3..] {
        twin.set(&step.target, step.before.clone());
    }
    let caveat = RollBack { caveat: Some("it may still change".into()), ..RollBack::default() };
    let state = engine.roll_back(&mut journal, "hangs", &caveat).expect("it rolls back");
    assert_eq!(state, State::NeedsAttention);
    assert_eq!(twin.values(), host().values());
    // The hung write completes; another program sets another setting to the planned value.
    for step in [&steps[2], &steps[0]] {
        twin.set(&step.target, written[&step.target].clone());
    }
    let state = engine.roll_back(&mut journal, "gone", &RollBack::default()).expect("it rolls back");
    assert_eq!(state, State::NeedsAttention, "one belongs to another program");
    assert_eq!(twin.values()[&steps[2].target], steps[2].before);
    assert_eq!(twin.values()[&steps[0].target], written[&steps[0].target]);
}
