//! Document of a test as the server has it: its own measurements, and what the client reported.

use std::net::SocketAddr;

use landspeed_flow::assemble::{self, CollectedRun};
use landspeed_flow::client::{Request, Target};
use landspeed_flow::end::{EndReport, Side};
use landspeed_flow::layout::StreamSpec;
use landspeed_model::{Direction, HostSnapshot, Iperf3End, Parameters};
use serde_json::Value;

use crate::client::remote;
use crate::convert::{self, ReportOptions};
use crate::document::{Document, HostPort};
use crate::results::Results;

/// A test that the server has completed.
pub struct ServedTest<'a> {
    /// Identifier of the test.
    pub id: &'a str,
    /// Address of the client.
    pub peer: SocketAddr,
    /// Parameters of the test.
    pub parameters: &'a Parameters,
    /// Streams of the test.
    pub specs: &'a [StreamSpec],
    /// Start, nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// Facts of the host that serves.
    pub host: HostSnapshot,
}

impl ServedTest<'_> {
    /// Returns iperf3's document of the test with the results of both ends: the local end is the server.
    ///
    /// # Errors
    /// A message: the client's results lack a stream.
    pub fn document(&self, report: &EndReport, theirs: &Results, interval_ns: u64) -> Result<Document, String> {
        let mut near = report.clone();
        near.streams.iter_mut().for_each(|stream| stream.direction = opposite(stream.direction));
        let mut far = remote::report_of(Side::Client, theirs, self.specs, report, false)?;
        far.streams.iter_mut().for_each(|stream| stream.direction = opposite(stream.direction));
        let parameters = Parameters { direction: opposite(self.parameters.direction), ..self.parameters.clone() };
        let target = Target { host: self.peer.ip().to_string(), port: Some(self.peer.port()) };
        let (key, data, command) = (None, None, Vec::new());
        let request =
            Request { target, parameters: parameters.clone(), key, command, data, local_port: None, start_ns: None };
        let found = CollectedRun {
            id: self.id.to_owned(),
            started_unix_ns: self.started_unix_ns,
            effective: Some(parameters),
            client_host: Some(self.host.clone()),
            client: Some(near),
            server: Some(far),
            ..CollectedRun::new(&request)
        };
        let mut run = assemble::document(found);
        let results = Value::Object(theirs.encode());
        run.iperf3 = Some(Iperf3End { results, output: None, not_visible: Vec::new() });
        let options = ReportOptions { interval_ns, remote_after_omit: true, ..ReportOptions::default() };
        let mut document = convert::document(&run, &options);
        let start = &mut document.start;
        start.connecting_to = None;
        start.accepted_connection = Some(HostPort { host: self.peer.ip().to_string(), port: self.peer.port() });
        if let Some(test) = &mut start.test_start {
            test.reverse = u8::from(self.parameters.direction == Direction::Download);
        }
        Ok(document)
    }
}

/// The direction as the server sees it.
fn opposite(direction: Direction) -> Direction {
    match direction {
        Direction::Upload => Direction::Download,
        Direction::Download => Direction::Upload,
        Direction::Both => Direction::Both,
    }
}
