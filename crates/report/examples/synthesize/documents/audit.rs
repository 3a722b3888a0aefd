//! Audits.

use landspeed_model::{
    AUDIT_SCHEMA, Answer, Applicability, AuditDocument, BuildInfo, Change, Difference, Facts, Finding, Goal, Role,
    Severity, Side, Target, Warning,
};

use super::lab::hostile_text;

/// A host with findings of every weight, and a peer without any.
pub fn both_ends() -> AuditDocument {
    let mut out = findings();
    out.peer = Some(Box::new(clean()));
    out.differences = vec![Difference {
        what: "MTU".into(),
        here: "1500 bytes".into(),
        there: "9000 bytes".into(),
        why: "the smaller one bounds every segment".into(),
    }];
    out
}

/// A host with findings of every weight.
pub fn findings() -> AuditDocument {
    let ring = |side| Change::new(Target::Ring { interface: "ens1f0np0".into(), side }, "8192");
    let governors = (0..12).map(|n| Change::new(Target::Governor { policy: format!("policy{n}") }, "performance"));
    let mut out = clean();
    out.findings = vec![
        finding("PCI-001", Severity::Critical, Applicability::DisplayOnly, Vec::new()),
        finding("CPU-001", Severity::Major, Applicability::Safe, governors.collect()),
        finding("NIC-006", Severity::Minor, Applicability::NeedsCare, vec![ring(Side::Rx), ring(Side::Tx)]),
        finding(
            "BUF-001",
            Severity::Note,
            Applicability::Safe,
            vec![Change::sysctl("net.ipv4.tcp_rmem", "4096 131072 2147483647")],
        ),
    ];
    out.findings[2].interface = Some("ens1f0np0".into());
    out.unknown = vec![answer("PCI-004", "the capability lies beyond the 64 bytes that are read without root")];
    out.warnings = vec![Warning { code: "not-root".into(), message: "not run as root".into() }];
    out
}

/// A host in good order.
pub fn clean() -> AuditDocument {
    let mut facts = Facts::default();
    facts.kernel.release = "6.18.5-1.el10.x86_64".into();
    AuditDocument {
        schema: AUDIT_SCHEMA.into(),
        landspeed: BuildInfo { version: "0.1.0".into(), server_version: None },
        command: ["landspeed", "check", "--goal", "100G", "--rtt", "92ms"].map(str::to_owned).to_vec(),
        started: "2026-11-21T10:00:00Z".into(),
        goal: Goal { rate_bps: Some(100_000_000_000), rtt_ns: Some(92_000_000), role: Role::Dtn, interface: None },
        hostname: "dtn.example".into(),
        interface: Some("bond0".into()),
        ports: vec!["ens1f0np0".into(), "ens1f1np1".into()],
        findings: Vec::new(),
        passed: (1..=40).map(|n| answer(&format!("TCP-{n:03}"), "on")).collect(),
        not_applicable: vec![answer("ENV-002", "bare metal")],
        unknown: Vec::new(),
        peer: None,
        differences: Vec::new(),
        warnings: Vec::new(),
        facts: Box::new(facts),
    }
}

/// Markup wherever there is text.
pub fn hostile() -> AuditDocument {
    let mut out = both_ends();
    let text = hostile_text();
    for finding in &mut out.findings {
        for part in [&mut finding.title, &mut finding.observed, &mut finding.by_hand, &mut finding.source] {
            part.clone_from(&text);
        }
        finding.changes = vec![Change::new(Target::Feature { interface: text.clone(), name: text.clone() }, &*text)];
    }
    out.passed = vec![answer(&text, &text)];
    out.differences[0].what.clone_from(&text);
    out.warnings[0].message.clone_from(&text);
    out.interface = Some(text.clone());
    out.hostname = text;
    out
}

fn finding(code: &str, severity: Severity, applicability: Applicability, changes: Vec<Change>) -> Finding {
    Finding {
        code: code.into(),
        name: code.to_lowercase(),
        group: "tcp".into(),
        severity,
        title: format!("What {code} is about"),
        interface: None,
        observed: "x8 of x16 lanes".into(),
        recommended: "x16".into(),
        why: "A hundred gigabits do not fit through eight lanes of the third generation.".into(),
        effect: "63 Gb/s at most before, by arithmetic.".into(),
        by_hand: "lspci -vv -s 3b:00.0".into(),
        applicability,
        source: "PCI Express Base Specification".into(),
        sources: vec!["a second one".into()],
        changes,
    }
}

fn answer(code: &str, text: &str) -> Answer {
    Answer { code: code.into(), title: format!("What {code} is about"), interface: None, text: text.into() }
}
