//! The parts of a setting's declaration.

use std::sync::LazyLock;

use landspeed_model::{Direction, Parameters, Protocol, UdpParameters};
use serde_json::Value;

/// One setting of a test.
#[derive(Debug)]
pub struct Setting {
    /// Name: the long option of `run` without dashes, the key of a flow in a scenario and of `run.NAME` in a sweep plan.
    pub name: &'static str,
    /// Path of the field in the JSON of [`Parameters`](landspeed_model::Parameters): `pace_bps`, `udp.burst_packets`.
    pub field: &'static str,
    /// Short option of `run`.
    pub short: Option<char>,
    /// How a value is written on the command line of `run`.
    pub form: Form,
    /// Unit of the field's value.
    pub unit: Unit,
    /// Values that a test may have; `null` is always permitted.
    pub range: Range,
    /// Protocols to which it applies.
    pub protocols: &'static [Protocol],
    /// What to use with the other protocols; empty if there is no substitute.
    pub instead: &'static str,
    /// Where it acts.
    pub acts: Acts,
    /// Setting without which it has no effect.
    pub needs: Option<&'static str>,
    /// How the server may change it.
    pub agreement: Agreement,
    /// Key of iperf3's request with the same meaning.
    pub iperf3: Option<Iperf3Key>,
}

/// How a value is written on the command line of `run`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// An option with a value.
    Value,
    /// An option whose value may be left out: `--name=VALUE`.
    OptionalValue,
    /// A flag, given if the field has this value.
    Flag(FieldValue),
    /// The value `auto` of the option with the same name, given if the field is true.
    Auto,
    /// Not an option of `run`.
    Hidden,
}

/// Host on which a setting acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acts {
    /// Client and server.
    Both,
    /// Hosts that send.
    Sender,
    /// Hosts that receive.
    Receiver,
    /// Only the client, in either direction.
    Client,
    /// Only the server, in either direction.
    Server,
}

/// A value of a field that a flag stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldValue {
    /// Value of a boolean field.
    Bool(bool),
    /// Value of a field with a few words, such as `download`.
    Word(&'static str),
}

impl FieldValue {
    /// Whether the JSON value is this one.
    pub fn is(self, value: &Value) -> bool {
        match self {
            Self::Bool(expected) => value.as_bool() == Some(expected),
            Self::Word(expected) => value.as_str() == Some(expected),
        }
    }
}

/// Unit of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A number of things.
    Count,
    /// Bytes; K, M and G on the command line are powers of 1024.
    Bytes,
    /// Nanoseconds; seconds on the command line.
    Nanoseconds,
    /// Bits per second.
    BitsPerSecond,
    /// Events per second.
    PerSecond,
    /// Metres; `m` or `km` on the command line.
    Metres,
    /// Core numbers, separated by commas on the command line.
    Cores,
    /// DSCPs of streams, separated by commas on the command line.
    Classes,
    /// A word, or text.
    Text,
    /// True or false.
    Flag,
    /// Several values with different units.
    Parts,
}

/// Permitted values. A field that is `null` is always permitted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Range {
    /// All values of the field's type.
    Any,
    /// Integers from `min` to `max`.
    Integers {
        /// Least permitted value, in the setting's unit.
        min: u64,
        /// Greatest permitted value, in the setting's unit.
        max: u64,
        /// The range in words.
        text: &'static str,
    },
    /// Fractions from `min` to `max`.
    Fractions {
        /// Least permitted value, in the setting's unit.
        min: f64,
        /// Greatest permitted value, in the setting's unit.
        max: f64,
        /// The range in words.
        text: &'static str,
    },
    /// Text or lists of at most `max` bytes or elements.
    Length {
        /// Greatest length, bytes of text or elements of a list.
        max: usize,
        /// The range in words.
        text: &'static str,
    },
    /// A name: 1 to 15 ASCII letters, digits, `_` and `-`, the longest that the kernel accepts (`TCP_CA_NAME_MAX`).
    Name {
        /// The range in words.
        text: &'static str,
    },
}

impl Range {
    /// Whether `value` is permitted.
    pub fn contains(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Any, _) | (_, Value::Null) => true,
            (Self::Integers { min, max, .. }, value) => value.as_u64().is_some_and(|n| (*min..=*max).contains(&n)),
            (Self::Fractions { min, max, .. }, value) => value.as_f64().is_some_and(|x| (*min..=*max).contains(&x)),
            (Self::Length { max, .. }, Value::String(text)) => text.len() <= *max,
            (Self::Length { max, .. }, Value::Array(list)) => list.len() <= *max,
            (Self::Length { .. }, _) => false,
            (Self::Name { .. }, value) => value.as_str().is_some_and(|name| {
                (1..=15).contains(&name.len())
                    && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
            }),
        }
    }

    /// The range in words; empty for any value.
    pub fn text(&self) -> &'static str {
        match self {
            Self::Any => "",
            Self::Integers { text, .. }
            | Self::Fractions { text, .. }
            | Self::Length { text, .. }
            | Self::Name { text } => text,
        }
    }
}

/// How the parameters that a server grants may differ from the requested ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agreement {
    /// Not at all.
    Same,
    /// The server may lower the value, or set one where none was requested.
    AtMost,
    /// The server may raise the value.
    AtLeast,
}

/// Key of iperf3's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Iperf3Key {
    /// Name in the JSON of the request.
    pub key: &'static str,
    /// Long option of iperf3, such as `--fq-rate`.
    pub option: &'static str,
    /// Greatest value that iperf3 permits; 0 for flags and text.
    pub max: u64,
}

impl Setting {
    /// Value in `parameters`, as in its JSON; `null` if the setting is off or its group of parameters is absent.
    pub fn value(&self, parameters: &Value) -> Value {
        parameters.pointer(&self.pointer()).cloned().unwrap_or(Value::Null)
    }

    /// Whether `parameters` have another value than the default.
    pub fn is_set(&self, parameters: &Value) -> bool {
        let value = self.value(parameters);
        match self.form {
            Form::Flag(when) => when.is(&value),
            Form::Auto => value.as_bool() == Some(true),
            _ => !value.is_null() && value != self.default(),
        }
    }

    /// Value that the setting has if it is not given.
    pub fn default(&self) -> Value {
        self.value(defaults())
    }

    /// Whether the server needs it for a test in this direction.
    pub fn acts_on_server(&self, direction: Direction) -> bool {
        match self.acts {
            Acts::Both | Acts::Server => true,
            Acts::Client => false,
            Acts::Sender => direction != Direction::Upload,
            Acts::Receiver => direction != Direction::Download,
        }
    }

    /// Whether it applies to `protocol`.
    pub fn applies_to(&self, protocol: Protocol) -> bool {
        self.protocols.contains(&protocol)
    }

    /// Long option of `run`.
    pub fn option(&self) -> String {
        format!("--{}", self.name)
    }

    pub(crate) fn pointer(&self) -> String {
        format!("/{}", self.field.replace('.', "/"))
    }
}

/// Default parameters as JSON, with those of UDP.
fn defaults() -> &'static Value {
    static DEFAULTS: LazyLock<Value> = LazyLock::new(|| {
        let parameters = Parameters { udp: Some(UdpParameters::default()), ..Parameters::default() };
        to_json(&parameters)
    });
    &DEFAULTS
}

/// Parameters as JSON.
pub(crate) fn to_json(parameters: &Parameters) -> Value {
    // Parameters are plain data; a float that is not finite becomes null.
    serde_json::to_value(parameters).unwrap_or(Value::Null)
}
