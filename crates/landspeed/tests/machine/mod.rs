//! The program on machines with hardware (`landspeed_testkit::machine`): drivers of real NICs, NUMA nodes, interrupts,
//! reboots.
#![forbid(unsafe_code)]

mod persist;
mod settings;
mod traffic;

use landspeed_testkit::machine::{Blueprint, Machine, ScriptOutput, Suite};
use serde_json::Value;

use crate::common::chosen_program;

fn blueprint(suite: Suite) -> Blueprint {
    Blueprint::new(suite, &chosen_program())
}

/// Runs the program with these arguments and `--json -`; returns its document.
#[track_caller]
fn document(machine: &mut Machine, arguments: &str, status: i32) -> Value {
    let said = landspeed(machine, &format!("{arguments} --json -")).expect(status);
    serde_json::from_str(&said).unwrap_or_else(|why| panic!("{arguments}: {why}: {said}"))
}

#[track_caller]
fn landspeed(machine: &mut Machine, arguments: &str) -> ScriptOutput {
    machine.run(&format!("export LANDSPEED_ARCHIVE=off; landspeed {arguments}"))
}

/// Returns a file's text without white space at its ends.
#[track_caller]
fn read(machine: &mut Machine, path: &str) -> String {
    machine.run(&format!("cat {path}")).expect(0).trim().to_owned()
}

/// Sets links up, and waits for their carriers.
#[track_caller]
fn set_up(machine: &mut Machine, interfaces: &[&str]) {
    for interface in interfaces {
        let wait = format!(
            "ip link set {interface} up
             until [ \"$(cat /sys/class/net/{interface}/carrier)\" = 1 ]; do sleep 0.2; done"
        );
        machine.run(&wait).expect(0);
    }
}

/// Number of the interrupt with this name.
#[track_caller]
fn interrupt(machine: &mut Machine, name: &str) -> u32 {
    let number = format!("sed -n 's/^ *\\([0-9]*\\):.* {name}$/\\1/p' /proc/interrupts");
    machine.run(&number).expect(0).trim().parse().expect("an interrupt of this name")
}
