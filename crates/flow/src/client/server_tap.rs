//! Packet capture on the server: requested before a test, fetched after it.

use std::io::Write;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::connect::STEP_TIMEOUT;
use super::conversation::unexpected;
use crate::control::channel::{Receiver, Sender};
use crate::control::deadline::Deadline;
use crate::control::message::{MAX_CAPTURE, ToClient, ToServer};
use crate::control::printable;
use crate::error::FlowError;

/// Timeout for each part of the server's capture.
const PART_TIMEOUT: Duration = Duration::from_secs(20);

/// Destination and result of the server's capture.
pub struct ServerTap<'a> {
    /// Receives the bytes of a pcapng file.
    pub sink: &'a mut dyn Write,
    /// Bytes fetched, or the reason why the capture is missing or incomplete; `None` before it was requested.
    pub outcome: Option<Result<u64, String>>,
}

impl<'a> ServerTap<'a> {
    /// Creates a tap before anything is requested.
    pub fn new(sink: &'a mut dyn Write) -> Self {
        Self { sink, outcome: None }
    }

    /// Asks the server to capture. A refusal does not fail the test.
    pub(super) fn ask(&mut self, tx: &mut Sender, rx: &mut Receiver, stop: &AtomicBool) -> Result<(), FlowError> {
        tx.send(&ToServer::Tap, &Deadline::after(STEP_TIMEOUT).with_stop(stop))?;
        match rx.wait::<ToClient>("the server to begin its capture", STEP_TIMEOUT, stop)? {
            ToClient::Tapping { refused } => {
                self.outcome = Some(refused.map_or(Ok(0), |why| Err(printable(&why, 400))));
                Ok(())
            }
            other => Err(unexpected("before the capture", other)),
        }
    }

    /// Fetches the capture, which follows the report. An error is stored in the outcome: the test itself is
    /// complete.
    pub(super) fn fetch(&mut self, rx: &mut Receiver, stop: &AtomicBool) {
        if matches!(self.outcome, Some(Ok(_))) {
            self.outcome = Some(self.receive_all(rx, stop));
        }
    }

    fn receive_all(&mut self, rx: &mut Receiver, stop: &AtomicBool) -> Result<u64, String> {
        let mut total = 0;
        loop {
            let part = rx.wait::<ToClient>("the next part of the server's capture", PART_TIMEOUT, stop);
            let (data, last) = match part.map_err(|error| error.to_string())? {
                ToClient::Capture { failed: Some(why), .. } => return Err(printable(&why, 400)),
                ToClient::Capture { data, last, failed: None } => (data, last),
                other => return Err(unexpected("in the server's capture", other).to_string()),
            };
            let part = STANDARD_NO_PAD.decode(data.as_bytes()).map_err(|_| "its capture is damaged".to_owned())?;
            total += part.len() as u64;
            if total > MAX_CAPTURE {
                return Err(format!("its capture is larger than {} MiB", MAX_CAPTURE >> 20));
            }
            self.sink.write_all(&part).map_err(|why| format!("cannot write it: {why}"))?;
            if last {
                return self.sink.flush().map(|()| total).map_err(|why| format!("cannot write it: {why}"));
            }
        }
    }
}
