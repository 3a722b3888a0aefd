//! The flow engine in the lab's guest.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use landspeed_flow::client::{self, Request, RunEvent, Target};
use landspeed_flow::server::{Limits, Server, ServerConfig};
use landspeed_lab::guest::{Engine, TestRequest};
use landspeed_model::RunDocument;

/// Thirty days; the scenario sets the actual duration.
const MAX_DURATION_NS: u64 = 30 * 86_400 * 1_000_000_000;

/// The engine behind `landspeed run` and `landspeed serve`.
pub struct Flow;

impl Engine for Flow {
    fn serve(&self, listen: &[SocketAddr], ready: &dyn Fn()) -> Result<(), String> {
        let config = ServerConfig {
            listen: listen.to_vec(),
            limits: Limits {
                max_tests: 1024,
                max_tests_per_host: Some(1024),
                max_duration_ns: MAX_DURATION_NS,
                ..Limits::default()
            },
            allow: Vec::new(),
            key: None,
            // Control and data connections of a flow use different networks.
            data_from_anywhere: true,
            describe: false,
            tap: None,
            changes: None,
            third_party: None,
        };
        let server = Server::bind(config, &[], |_| {}).map_err(|error| error.to_string())?;
        ready();
        server.run().map_err(|error| error.to_string())
    }

    fn run(&self, order: &TestRequest<'_>, arrived: &dyn Fn(u64)) -> RunDocument {
        let request = Request {
            target: Target { host: order.control.ip().to_string(), port: Some(order.control.port()) },
            parameters: order.parameters.clone(),
            key: None,
            command: Vec::new(),
            data: Some(order.data),
            local_port: None,
            start_ns: Some(order.start_ns),
        };
        client::run(&request, &AtomicBool::new(false), &mut |event| {
            if let RunEvent::Progress(progress) = event {
                arrived(progress.upload.bytes.saturating_add(progress.download.bytes));
            }
        })
    }
}
