//! Two state directories on one host: neither restores a value that belongs to the other.

use super::*;

/// Another state directory of the same host.
fn second_directory(test_state: &TestState) -> Context {
    Context { state: test_state.context.state.with_file_name("other"), ..test_state.context.clone() }
}

fn try_apply(context: &Context, twin: &SimulatedKnobs, value: &str) -> Result<Applied, TuneError> {
    let changes = [Change::sysctl("net.core.rmem_max", value)];
    Engine::new(twin, context.clone()).apply(&plan(&changes, twin, ALL), 60, None, &mut watchdog)
}

fn now(twin: &SimulatedKnobs) -> String {
    twin.values()[&sysctl("net.core.rmem_max")].to_string()
}

#[test]
fn settings_of_an_open_transaction_are_locked() {
    let (test_state, twin) = (TestState::new(), host());
    let other = second_directory(&test_state);
    test_state.apply(&twin, &changes()[2..]).expect("it applies");
    let error = try_apply(&other, &twin, "1000000").expect_err("it is open elsewhere");
    let text = error.to_string();
    assert!(matches!(error, TuneError::OpenElsewhere { id: 1, .. }) && text.contains("net.core.rmem_max"), "{text}");
    assert!(text.contains("nothing was changed") && text.contains("--state"), "{text}");
    assert_eq!(now(&twin), "536870912");
    // Settings that are not shared may be changed.
    let changes = [Change::sysctl("net.core.default_qdisc", "fq")];
    Engine::new(&twin, other.clone())
        .apply(&plan(&changes, &twin, ALL), 60, None, &mut watchdog)
        .expect("another setting");
    Engine::new(&twin, other.clone()).revert(None, false).expect("it reverts");
    // Confirmed and reverted transactions are not open.
    test_state.engine(&twin).confirm(None).expect("all is well");
    try_apply(&other, &twin, "1000000").expect("it is confirmed");
}

#[test]
fn a_later_transaction_of_another_directory_is_reverted_first() {
    let (test_state, twin) = (TestState::new(), host());
    let other = second_directory(&test_state);
    let (mine, theirs) = (test_state.engine(&twin), Engine::new(&twin, other.clone()));
    test_state.apply(&twin, &changes()[2..3]).expect("1 -> 2");
    mine.confirm(None).expect("all is well");
    try_apply(&other, &twin, "1000000").expect("2 -> 3");
    theirs.confirm(None).expect("all is well");
    for force in [false, true] {
        let text = mine.revert(None, force).expect_err("theirs is later").to_string();
        assert!(text.contains("other") && text.contains("revert that first"), "{text}");
        assert_eq!(now(&twin), "1000000");
    }
    theirs.revert(None, false).expect("3 -> 2");
    assert_eq!(now(&twin), "536870912");
    mine.revert(None, false).expect("2 -> 1");
    assert_eq!(twin.values(), host().values());
}

#[test]
fn recovery_keeps_values_of_another_state_directory() {
    // The registry was lost in between: only the value shows the other transaction.
    let (test_state, twin) = (TestState::new(), host());
    let other = second_directory(&test_state);
    test_state.apply(&twin, &changes()[2..3]).expect("1 -> 2");
    std::fs::remove_dir_all(&test_state.context.registry).expect("removed");
    try_apply(&other, &twin, "1000000").expect("2 -> 3");
    let found = test_state.engine(&twin).recover_orphans().expect("it looks");
    assert_eq!(found[0].state, State::NeedsAttention, "drift");
    assert_eq!(now(&twin), "1000000");
}

#[test]
fn a_stale_registry_entry_blocks_nothing() {
    let (test_state, twin) = (TestState::new(), host());
    let other = second_directory(&test_state);
    test_state.apply(&twin, &changes()[2..3]).expect("it applies");
    // The applying process (this one) is alive, and its journal is gone.
    std::fs::remove_dir_all(&test_state.context.state).expect("removed");
    let error = try_apply(&other, &twin, "1000000").expect_err("a process still works on it");
    assert!(matches!(error, TuneError::OpenElsewhere { .. }), "{error}");
    for entry in std::fs::read_dir(&test_state.context.registry).expect("there").flatten() {
        let text = std::fs::read_to_string(entry.path()).expect("readable");
        // Process ids that have been reused since.
        let dead = text.replace(&format!("\"applier\":[{},", std::process::id()), "\"applier\":[0,");
        let dead = dead.replace("\"watchdog\":[1,", "\"watchdog\":[0,");
        std::fs::write(entry.path(), dead).expect("written");
    }
    try_apply(&other, &twin, "1000000").expect("no process works on it");
}

#[test]
fn namespaces_share_only_host_wide_settings() {
    let (test_state, twin) = (TestState::new(), host());
    let governor = Target::Governor { policy: "policy0".into() };
    let twin = {
        let mut values = twin.values();
        values.insert(governor.clone(), Value::text("powersave"));
        SimulatedKnobs::new(values)
    };
    let wanted = [Change::sysctl("net.core.rmem_max", "536870912"), Change::new(governor.clone(), "performance")];
    test_state.apply(&twin, &wanted).expect("it applies");
    let other = Context { namespace: "elsewhere".into(), ..second_directory(&test_state) };
    try_apply(&other, &twin, "1000000").expect("a sysctl of another namespace");
    let engine = Engine::new(&twin, Context { state: test_state.context.state.with_file_name("third"), ..other });
    let changes = [Change::new(governor, "powersave")];
    let error = engine.apply(&plan(&changes, &twin, ALL), 60, None, &mut watchdog).expect_err("one for all");
    assert!(matches!(&error, TuneError::OpenElsewhere { setting, .. } if setting.contains("policy0")), "{error}");
}
