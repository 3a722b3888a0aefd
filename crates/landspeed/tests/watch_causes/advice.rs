//! The advice for a buffer, followed: the transfer is not slower, and no setting is lower than before.

use landspeed_testkit::netns::Namespace;
use landspeed_testkit::or_skip;
use serde_json::Value;

use crate::common::only_flow;
use crate::watch_causes::{
    READER, SENDER, TIMEOUT_S, begin_for, command, document_of, python, two_hosts, until, wait_for_data,
};

/// A limit on a buffer: calls of the programs before they connect, and sysctls of the hosts.
struct Limit {
    reader: &'static str,
    sender: &'static str,
    sysctl: Option<(&'static str, &'static str)>,
}

/// Watches a transfer on both hosts; the verdicts at the sender and at the receiver.
fn watch_transfer([left, right]: [&Namespace; 2], reader: &str, sender: &str) -> Result<[Value; 2], String> {
    let reads = READER.replace("l.bind(", &format!("{reader}\nl.bind("));
    let reads = python(right, &format!("def work(data): pass\n{reads}"))?;
    until(TIMEOUT_S, "a listener", || reads.stdout().contains("ready"));
    let connect = format!("s = socket.socket()\n{sender}\ns.connect(('10.93.0.2', 5998))");
    let sends = SENDER.replace("s = socket.create_connection(('10.93.0.2', 5998))", &connect);
    let _sends = python(left, &format!("zeros = bytes(1 << 18)\ndef chunk(): return zeros\n{sends}"))?;
    wait_for_data(left);
    let watches = [left, right].map(|namespace| begin_for(namespace, command(&[]), "2500ms"));
    Ok(watches.map(|watch| only_flow(&document_of(watch)).clone()))
}

/// Values of `tcp_rmem` and `tcp_wmem` of a host.
fn buffers(namespace: &Namespace) -> Vec<u64> {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).expect("a file");
    let text = namespace.run(|| read("tcp_rmem") + &read("tcp_wmem"));
    text.split_whitespace().map(|word| word.parse().expect("a number")).collect()
}

#[test]
fn following_advice_on_a_buffer_lowers_no_setting() {
    let lock_receive = "l.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)";
    let lock_send = "s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)";
    for limit in [
        Limit { reader: lock_receive, sender: "", sysctl: None },
        Limit { reader: "", sender: lock_send, sysctl: None },
        Limit { reader: "", sender: "", sysctl: Some(("net.ipv4.tcp_wmem", "4096 8192 8192")) },
    ] {
        let (left, right, _link) = or_skip!(two_hosts());
        if let Some((name, value)) = limit.sysctl {
            left.sysctl(name, value);
        }
        let before = or_skip!(watch_transfer([&left, &right], limit.reader, limit.sender));
        let settings = [&left, &right].map(buffers);
        for (flow, host) in before.iter().zip([&left, &right]) {
            let advice = flow["next_step"].as_str().expect("text");
            for code in advice.split('`').skip(1).step_by(2).filter(|code| code.starts_with("sysctl -w ")) {
                // Commands are for this host: the settings of the other one were not read.
                host.exec(["sh", "-c", code]);
            }
        }
        let step = before[0]["next_step"].as_str().expect("text");
        let names_option = step.starts_with("The program set SO_SNDBUF");
        assert!(before[0]["cause"] != "send-buffer" || names_option != limit.sender.is_empty(), "{:#}", before[0]);
        for (then, now) in settings.iter().zip([&left, &right].map(buffers)) {
            assert!(now.iter().zip(then).all(|(now, then)| now >= then), "{then:?} {now:?} {before:#?}");
        }
    }
}
