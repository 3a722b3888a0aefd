//! The reference page of the settings.

use std::fmt::Write as _;

use landspeed_model::Protocol;

use crate::setting::{Agreement, Form, Setting, Unit};
use crate::table::SETTINGS;

const INTRODUCTION: &str = "\
# Settings of a test

Every setting of a test, as declared in `crates/settings/src/table.rs`; this page is generated from there. `run --help` says what
each option does. A scenario of the lab and the `[run]` table of a sweep plan use the same names.

- **Field**: path below `requested` and `effective` in the document (`landspeed schema run`).
- **Applies to**: with any other protocol the setting is refused. `rr` is request/response.
- **Server may**: how the granted test may differ from the requested one.
- **iperf3**: the key in the request of iperf3's protocol (`run --iperf3`, `serve --iperf3`).

| Option | Field | Unit | Range | Applies to | Server may | iperf3 |
|---|---|---|---|---|---|---|
";

/// The page in Markdown.
pub fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    for setting in SETTINGS.iter().filter(|setting| !matches!(setting.form, Form::Hidden | Form::Auto)) {
        let short = setting.short.map_or(String::new(), |short| format!("`-{short}`, "));
        let iperf3 = setting.iperf3.map_or(String::new(), |key| format!("`{}`", key.key));
        let _ = writeln!(
            page,
            "| {short}`{}` | `{}` | {} | {} | {} | {} | {iperf3} |",
            setting.option(),
            setting.field,
            unit(setting),
            setting.range.text(),
            protocols(setting.protocols),
            match setting.agreement {
                Agreement::Same => "",
                Agreement::AtMost => "lower it",
                Agreement::AtLeast => "raise it",
            }
        );
    }
    page
}

fn unit(setting: &Setting) -> &'static str {
    match setting.unit {
        Unit::Count | Unit::Flag | Unit::Text | Unit::Parts => "",
        Unit::Bytes => "bytes",
        Unit::Nanoseconds => "ns",
        Unit::BitsPerSecond => "bit/s",
        Unit::PerSecond => "1/s",
        Unit::Metres => "m",
        Unit::Cores => "core numbers",
        Unit::Classes => "DSCP of each stream in turn",
    }
}

fn protocols(protocols: &[Protocol]) -> String {
    if protocols.len() == 4 {
        return "all".to_owned();
    }
    let name = |protocol: &Protocol| match protocol {
        Protocol::Tcp => "TCP",
        Protocol::Udp => "UDP",
        Protocol::TcpRr => "TCP rr",
        Protocol::UdpRr => "UDP rr",
    };
    protocols.iter().map(name).collect::<Vec<_>>().join(", ")
}
