//! Validation of parameters, and comparison of granted with requested ones.

use std::fmt;

use landspeed_model::{Parameters, Protocol};
use serde_json::Value;

use crate::setting::{Agreement, Setting, Unit, to_json};
use crate::table::{SETTINGS, by_name};

/// A setting that a test cannot have.
#[derive(Debug, Clone, Copy)]
pub struct Problem {
    /// Declaration of the setting.
    pub setting: &'static Setting,
    /// Reason for the refusal.
    pub reason: Reason,
}

/// Why a test cannot have a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Its value is outside its range.
    Range,
    /// It does not apply to the protocol of the test.
    Protocol(Protocol),
    /// It has no effect without another setting, which is not given.
    Needs(&'static str),
}

impl fmt::Display for Problem {
    /// For a command line: `--pace does not apply to UDP: use --rate`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { setting, reason } = self;
        match reason {
            Reason::Range => write!(f, "--{}: {}", setting.name, setting.range.text()),
            Reason::Protocol(protocol) => {
                write!(f, "--{} does not apply to {}: ", setting.name, protocol_name(*protocol))?;
                write!(f, "{}", substitute(setting, *protocol).unwrap_or("drop it"))
            }
            Reason::Needs(other) => write!(f, "--{} has no effect without --{other}", setting.name),
        }
    }
}

/// What to use with the protocol instead; `None` if there is nothing.
fn substitute(setting: &Setting, protocol: Protocol) -> Option<&'static str> {
    let applies = match setting.instead.strip_prefix("use --") {
        // Requests per second replace no rate in bits/s.
        Some(name) => by_name(name).any(|other| other.applies_to(protocol) && other.unit != Unit::PerSecond),
        // `-u` makes UDP of TCP, and of request/response over TCP one over UDP, to which it does not apply either.
        None if setting.instead == "add -u" => protocol == Protocol::Tcp,
        None => !setting.instead.is_empty(),
    };
    applies.then_some(setting.instead)
}

/// Name of a protocol in messages.
pub fn protocol_name(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tcp => "TCP",
        Protocol::Udp => "UDP",
        Protocol::TcpRr => "request/response over TCP",
        Protocol::UdpRr => "request/response over UDP",
    }
}

/// Settings that a test with these parameters cannot have, in the order of the table.
pub fn problems(parameters: &Parameters) -> Vec<Problem> {
    let json = to_json(parameters);
    let mut found = Vec::new();
    for setting in SETTINGS {
        let mut add = |reason| found.push(Problem { setting, reason });
        if !setting.range.contains(&setting.value(&json)) || not_finite(parameters, setting.field) {
            add(Reason::Range);
        }
        if !setting.is_set(&json) {
            continue;
        }
        if !applies(setting, parameters.protocol) {
            add(Reason::Protocol(parameters.protocol));
        } else if let Some(other) = setting.needs
            && !by_name(other).any(|other| other.is_set(&json))
        {
            add(Reason::Needs(other));
        }
    }
    found
}

/// Whether the field is a fraction that JSON has no number for: its JSON is `null`, as without a value.
fn not_finite(parameters: &Parameters, field: &str) -> bool {
    let value = match field {
        "probe_rate_per_s" => parameters.probe_rate_per_s,
        "distance_m" => parameters.distance_m,
        "rr.rate_per_s" => parameters.rr.as_ref().and_then(|rr| rr.rate_per_s),
        _ => None,
    };
    value.is_some_and(|value| !value.is_finite())
}

/// Whether the setting applies to the protocol, or another field with its name and unit does: UDP's write size is its payload.
fn applies(setting: &Setting, protocol: Protocol) -> bool {
    by_name(setting.name).any(|same| same.unit == setting.unit && same.applies_to(protocol))
}

/// Sets every setting that does not apply to the protocol to its default, and returns these settings.
pub fn reset_inapplicable(parameters: &mut Parameters) -> Vec<&'static Setting> {
    let mut json = to_json(parameters);
    let mut reset = Vec::new();
    for setting in SETTINGS {
        if setting.is_set(&json)
            && !applies(setting, parameters.protocol)
            && let Some(field) = json.pointer_mut(&setting.pointer())
        {
            *field = setting.default();
            reset.push(setting);
        }
    }
    if !reset.is_empty()
        && let Ok(changed) = serde_json::from_value(json)
    {
        *parameters = changed;
    }
    reset
}

/// Settings in which the granted parameters differ from the requested ones by more than their [`Agreement`] permits.
pub fn differences(requested: &Parameters, granted: &Parameters) -> Vec<&'static Setting> {
    let (requested, granted) = (to_json(requested), to_json(granted));
    let agrees = |setting: &&Setting| {
        let (asked, given) = (setting.value(&requested), setting.value(&granted));
        match setting.agreement {
            Agreement::Same => equal(&asked, &given),
            Agreement::AtMost => asked.is_null() || at_most(&given, &asked),
            Agreement::AtLeast => at_most(&asked, &given),
        }
    };
    SETTINGS.iter().filter(|setting| !agrees(setting)).collect()
}

/// Whether two values are equal; fractions may lose their last digit in JSON.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) if a.is_f64() || b.is_f64() => {
            let (Some(a), Some(b)) = (a.as_f64(), b.as_f64()) else { return false };
            (a - b).abs() <= 1e-9 * a.abs()
        }
        (a, b) => a == b,
    }
}

/// Whether `value` is a number of at most `limit`.
fn at_most(value: &Value, limit: &Value) -> bool {
    match (value.as_u64(), limit.as_u64()) {
        (Some(value), Some(limit)) => value <= limit,
        _ => value.as_f64().zip(limit.as_f64()).is_some_and(|(value, limit)| value <= limit),
    }
}
