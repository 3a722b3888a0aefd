//! Parameters as options of `run`.

use landspeed_model::{Parameters, Protocol};
use serde_json::Value;

use crate::setting::{Form, Setting, Unit, to_json};
use crate::table::SETTINGS;

/// Options of `landspeed run` for these parameters, each option and value as a separate argument; only for settings that
/// `wanted` selects, and without defaults.
pub fn options(parameters: &Parameters, wanted: impl Fn(&Setting) -> bool) -> Vec<String> {
    let json = to_json(parameters);
    let mut words: Vec<String> = match parameters.protocol {
        Protocol::Tcp => Vec::new(),
        Protocol::Udp => vec!["-u".to_owned()],
        Protocol::TcpRr => vec!["--rr".to_owned()],
        Protocol::UdpRr => vec!["-u".to_owned(), "--rr".to_owned()],
    };
    for setting in SETTINGS.iter().filter(|setting| setting.applies_to(parameters.protocol) && wanted(setting)) {
        let option = setting.short.map_or_else(|| setting.option(), |short| format!("-{short}"));
        // UDP without a rate is unlimited; `run` has a default.
        let unlimited = parameters.protocol == Protocol::Udp && setting.field == "rate_bps";
        match setting.form {
            Form::Hidden => {}
            Form::Value if unlimited && parameters.rate_bps.is_none() => {
                words.extend([option, "unlimited".to_owned()]);
            }
            _ if !setting.is_set(&json) => {}
            Form::Flag(_) => words.push(option),
            Form::Auto => words.extend([option, "auto".to_owned()]),
            Form::OptionalValue => words.push(format!("{option}={}", text(setting, &setting.value(&json)))),
            Form::Value => words.extend([option, text(setting, &setting.value(&json))]),
        }
    }
    words
}

/// A value in the syntax of the command line.
fn text(setting: &Setting, value: &Value) -> String {
    let number = value.as_u64().unwrap_or_default();
    match (setting.unit, value) {
        (Unit::Bytes, _) => scaled(number, 1024, &["", "K", "M", "G"]),
        (Unit::Nanoseconds, _) => scaled(number, 1000, &["ns", "us", "ms", "s"]),
        (Unit::Metres, _) => format!("{}m", value.as_f64().unwrap_or_default()),
        (Unit::PerSecond, _) => value.as_f64().unwrap_or_default().to_string(),
        (Unit::Cores | Unit::Classes, Value::Array(cores)) => joined(cores, Value::to_string),
        (Unit::Parts, Value::Array(sizes)) => {
            joined(sizes, |size| format!("{}/{}", size["request_bytes"], size["response_bytes"]))
        }
        (Unit::Parts, Value::Object(numa)) => {
            let policy = numa.get("policy").and_then(Value::as_str).unwrap_or_default();
            numa.get("node").map_or(policy.to_owned(), |node| format!("{policy}:{node}"))
        }
        (_, Value::String(text)) => text.clone(),
        _ => value.to_string(),
    }
}

fn joined(values: &[Value], text: impl Fn(&Value) -> String) -> String {
    values.iter().map(text).collect::<Vec<_>>().join(",")
}

/// A number with the largest unit in which it is whole: `64K`, `100ms`, `1500`.
fn scaled(number: u64, step: u64, units: &[&str]) -> String {
    let mut number = number;
    let mut units = units.iter().peekable();
    while let Some(unit) = units.next() {
        if number == 0 || !number.is_multiple_of(step) || units.peek().is_none() {
            return format!("{number}{unit}");
        }
        number /= step;
    }
    number.to_string()
}
