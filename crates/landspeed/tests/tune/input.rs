//! Invalid input and missing privileges: a clear error, nothing written.

use std::os::unix::process::CommandExt as _;

use landspeed_testkit::skip;

use crate::common::chosen_program;
use crate::tune::bench::{bench, expect, output_text, run};
use crate::tune::crash::apply;

#[test]
fn an_impossible_plan_is_refused_entirely() {
    let bench = bench!();
    let before = bench.snapshot();
    for (setting, word) in [
        ("nosuch0:mtu=9000", "no interface nosuch0"),
        ("nosuch0:qdisc=pfifo", "no interface nosuch0"),
        ("v0:rx-ring=4096", "v0 rx ring"),
        ("v0:rx-9/rps_cpus=1", "does not exist"),
        ("v0:mtu=70000", "65536"),
        ("v0:mtu=1000", "IPv6"),
        ("v0:qdisc=nosuch", "nosuch"),
        ("v0:nosuch-feature=on", "feature"),
        ("net.ipv4.nosuch=1", "does not exist"),
        ("net.ipv4.tcp_rmem=4096 131072 -1", "three numbers"),
        ("net.core.rmem_max=536870912", "read-only"),
        ("net.ipv4.conf.nosuch0.arp_filter=1", "nosuch0"),
        ("net.ipv6.conf.v0.disable_ipv6=1", "addresses"),
        ("net.ipv6.conf.all.disable_ipv6=1", "addresses"),
    ] {
        // Together with a valid setting.
        let text = expect(bench.tune(&apply(&[setting, "net.ipv4.tcp_mtu_probing=1"], "600")), 2);
        assert!(text.contains("nothing was changed") && text.contains(word), "{setting}: {text}");
        bench.snapshot().must_equal(&before, &setting);
        assert!(!bench.state().exists(), "{setting}");
    }
    // Values that only the kernel rejects: everything is rolled back.
    for setting in ["net.ipv4.tcp_ecn=77", "net.ipv4.tcp_congestion_control=nosuch", "v0:qdisc=fq_codel flows 0"] {
        let text = expect(bench.tune(&apply(&["v0:mtu=9000", setting], "600")), 2);
        assert!(text.contains("everything was put back"), "{setting}: {text}");
        bench.snapshot().must_equal(&before, &setting);
    }
}

#[test]
fn without_privilege_only_the_plan_works() {
    if !landspeed_sys::process::is_root() {
        skip!("becoming nobody needs root");
    }
    let state = tempfile::tempdir().expect("a directory");
    let nobody = |arguments: &[&str]| {
        let mut command = std::process::Command::new(chosen_program());
        command.args(arguments).uid(65534).gid(65534).current_dir("/");
        run(command)
    };
    let plan = nobody(&["tune", "plan", "--set", "net.ipv4.tcp_mtu_probing=1"]);
    if output_text(&plan).contains("Permission denied") {
        skip!("nobody may not start the program here");
    }
    assert!(plan.code == 0, "{}", output_text(&plan));
    let place = state.path().to_str().expect("plain");
    for arguments in [
        &["apply", "--set", "net.ipv4.tcp_mtu_probing=1"][..],
        &["confirm"],
        &["revert"],
        &["revert", "--persisted"],
        &["persist"],
    ] {
        let output = nobody(&[&["tune"], arguments, &["--state", place]].concat());
        assert_eq!(output.code, 2, "{arguments:?}");
        assert!(
            output_text(&output).contains("needs root") && output_text(&output).contains("tune plan"),
            "{}",
            output_text(&output)
        );
    }
    assert!(std::fs::read_dir(state.path()).expect("there").next().is_none());
}
