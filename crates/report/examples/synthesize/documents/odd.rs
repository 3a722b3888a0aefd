//! Documents that lack things, or mean harm.

use landspeed_model::{Direction, Ends, ErrorEntry, Evidence, Parameters, RunDocument, Status, Verdict, Warning};

use super::{bulk, skeleton};

/// The server refused the connection: nothing but the client is known.
pub fn failed() -> RunDocument {
    let mut document = skeleton(Parameters::default());
    document.status = Status::Failed;
    document.errors.push(ErrorEntry {
        code: "connection-refused".to_owned(),
        message: "cannot connect to dtn2.example.net port 5210: connection refused".to_owned(),
        advice: Some("start `landspeed serve` there, or open the port in its firewall".to_owned()),
    });
    document.landspeed.server_version = None;
    document.effective = None;
    document.path = None;
    document.hosts.server = None;
    document.verdict.missing.push("everything: no connection".to_owned());
    document
}

/// The server vanished mid-test: its half is missing.
pub fn partial() -> RunDocument {
    let mut document = bulk::congested();
    document.status = Status::Partial;
    document.errors.push(ErrorEntry {
        code: "peer-lost".to_owned(),
        message: "dtn2.example.net stopped answering 6.2 s into the test".to_owned(),
        advice: Some("look there for a crash or a reboot; the figures below end at that moment".to_owned()),
    });
    let cut = 6_200_000_000;
    for stream in &mut document.streams {
        stream.receiver = None;
        "sender".clone_into(&mut stream.intervals_from);
        stream.intervals.retain(|i| i.end_ns <= cut);
        if let Some(sender) = &mut stream.sender {
            sender.samples.retain(|s| s.t_ns <= cut);
            sender.error = Some("connection reset by peer".to_owned());
        }
    }
    document.phases.truncate(3);
    if let Some(last) = document.phases.last_mut() {
        last.end_ns = cut;
    }
    document.host_series.server = None;
    document.totals = Ends { client: document.totals.client.take(), server: None };
    document.cost.server = None;
    document.summary.goodput_bps = None;
    document.conservation.holds = false;
    document.conservation.notes.push("the receiver's totals were lost with it".to_owned());
    document
}

/// Every string tries to be markup.
pub fn hostile() -> RunDocument {
    let bad = "</script><img src=x onerror=\"document.title='owned'\"><!--<script>alert(1)</script>";
    let mut document = bulk::congested();
    let text = || bad.to_owned();
    document.id = text();
    document.started = text();
    document.command = vec![text(), "\u{202e}\u{0}\u{7}".to_owned()];
    document.landspeed.version = text();
    document.warnings.push(Warning { code: text(), message: text() });
    document.requested.title = Some(text());
    document.requested.congestion = Some(text());
    document.verdict = Verdict {
        summary: text(),
        place: Some(text()),
        missing: vec![text()],
        next_step: text(),
        epochs: Vec::new(),
        ..document.verdict
    };
    for e in document.verdict.evidence.iter_mut().chain(&mut document.verdict.ruled_out) {
        *e = Evidence {
            metric: text(),
            unit: text(),
            threshold: text(),
            host: Some(text()),
            source: text(),
            value: f64::NAN,
            ..e.clone()
        };
    }
    for host in [&mut document.hosts.client, &mut document.hosts.server].into_iter().flatten() {
        host.hostname = text();
        host.os = Some(text());
        host.sysctls.insert(text(), text());
        host.sysctls.insert("__proto__".to_owned(), "x".to_owned());
        host.unavailable.insert(text(), text());
        if let Some(nic) = &mut host.nic {
            nic.name = text();
            nic.offloads.insert(text(), true);
        }
    }
    for stream in &mut document.streams {
        stream.client_addr = text();
        stream.intervals_from = text();
        if let Some(end) = &mut stream.sender {
            end.error = Some(text());
            end.congestion = Some(text());
        }
    }
    for term in &mut document.conservation.terms {
        term.name = text();
        term.source = text();
        term.sign = text();
    }
    document.conservation.notes.push(text());
    if let Some(path) = &mut document.path {
        path.target = text();
        for probe in &mut path.mtu {
            probe.note = Some(text());
            probe.direction = Direction::Both;
        }
    }
    document
}
