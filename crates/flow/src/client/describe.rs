//! Requests the facts of the server's host.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use landspeed_model::{Facts, Family};
use serde_json::Value;

use super::connect;
use super::conversation::unexpected;
use super::target::Target;
use crate::control::channel::Key;
use crate::control::deadline::Deadline;
use crate::control::message::{MAX_FACTS, ToClient, ToServer};
use crate::control::{deserialize_value, make_printable};
use crate::error::FlowError;

/// Timeout for each part.
const STEP_TIMEOUT: Duration = Duration::from_secs(15);
/// Timeout for all parts together.
const TOTAL_TIMEOUT: Duration = Duration::from_mins(1);

/// Requests the facts of the server's host. A server without a key sends them only if configured to.
///
/// # Errors
/// The server cannot be reached, is too old for the request, refuses, or sends an unexpected answer.
pub fn facts(target: &Target, family: Family, key: Option<&Key>, stop: &AtomicBool) -> Result<Facts, FlowError> {
    let request = ToServer::Describe { version: env!("CARGO_PKG_VERSION").to_owned() };
    let (_tx, mut rx, _) = connect::control_of(target, family, key, &request, stop)?;
    let deadline = Deadline::after(TOTAL_TIMEOUT).with_stop(stop);
    let mut text = String::new();
    loop {
        let (part, last) = match rx.wait::<ToClient>("the description of the server's host", STEP_TIMEOUT, stop)? {
            ToClient::Report { text, last } => (text, last),
            other => return Err(unexpected("in the description of the server's host", other)),
        };
        text.push_str(&part);
        let protocol_error =
            |message: String| FlowError::Protocol { during: "in the description of the server's host", message };
        if text.len() > MAX_FACTS {
            return Err(protocol_error(format!("it is longer than {MAX_FACTS} bytes")));
        }
        if deadline.passed() {
            return Err(deadline.missed("the description of the server's host"));
        }
        if last {
            let mut value: Value = serde_json::from_str(&text).map_err(|error| protocol_error(error.to_string()))?;
            make_printable(&mut value);
            return deserialize_value(&value).map_err(|error| protocol_error(error.to_string()));
        }
    }
}
