//! The flow engine in the lab's guest.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use landspeed_flow::call_cost::{self, CallTime, DataCall};
use landspeed_flow::client::{self, Request, RunEvent, Target};
use landspeed_flow::server::{Limits, Server, ServerConfig};
use landspeed_lab::guest::{ChargeLookup, Engine, TestRequest};
use landspeed_lab::plan::{HostCall, PlannedSection};
use landspeed_model::{ErrorEntry, Parameters, QualifyDocument, QualifyTarget, RunDocument, Status};
use landspeed_qualify::{IpVersion, Target as SectionTarget};
use landspeed_sys::clock;
use landspeed_units::{BitRate, Nanos};

use crate::qualify::drive::{self, Ended, Runner, Task};

/// Thirty days; the scenario sets the actual duration.
const MAX_DURATION_NS: u64 = 30 * 86_400 * 1_000_000_000;

/// The engine behind `landspeed run` and `landspeed serve`.
pub struct Flow;

impl Engine for Flow {
    fn charge_calls(&self, lookup: ChargeLookup) {
        call_cost::set_lookup(move |address| {
            let charge = lookup(address)?;
            Some(Arc::new(move |call: &DataCall| {
                let DataCall { sends, copies, bytes, datagrams, mss_bytes } = *call;
                let time = charge(&HostCall { sends, copies, bytes, datagrams, mss_bytes });
                CallTime { cpu_ns: time.cpu_ns, wait_ns: time.wait_ns }
            }))
        });
    }

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
        let request = request(order, order.parameters.clone(), Some(order.start_ns));
        client::run(&request, &AtomicBool::new(false), &mut |event| {
            if let RunEvent::Progress(progress) = event {
                arrived(progress.upload.bytes.saturating_add(progress.download.bytes));
            }
        })
    }

    fn qualify(&self, order: &TestRequest<'_>, section: &PlannedSection, arrived: &dyn Fn(u64)) -> QualifyDocument {
        let QualifyTarget { rate_bps, rtt_ns, mtu_bytes, congestion } = section.target;
        let target = SectionTarget {
            rate: BitRate::from_bps(rate_bps),
            rtt: Nanos::new(rtt_ns),
            mtu_bytes,
            ip_version: if order.data.is_ipv6() { IpVersion::V6 } else { IpVersion::V4 },
            congestion,
        };
        let task = Task {
            server: order.data.to_string(),
            target,
            direction: order.parameters.direction,
            max_test_ns: section.max_test_ns,
            gentle: false,
            parameters: order.parameters.clone(),
            section: Some(section.section.clone()),
        };
        let mut runner = GuestRunner { order, arrived, start_ns: Some(order.start_ns), arrived_bytes: 0 };
        // The scenario was refused if its target is impossible.
        drive::qualify(&task, &mut runner).unwrap_or_else(|error| panic!("{error:#}"))
    }
}

fn request(order: &TestRequest<'_>, parameters: Parameters, start_ns: Option<u64>) -> Request {
    Request {
        target: Target { host: order.control.ip().to_string(), port: Some(order.control.port()) },
        parameters,
        key: None,
        command: Vec::new(),
        data: Some(order.data),
        local_port: None,
        start_ns,
    }
}

/// Runs the streams of a section in the guest.
struct GuestRunner<'a> {
    order: &'a TestRequest<'a>,
    arrived: &'a dyn Fn(u64),
    /// Start of the next stream; `None` for as soon as possible.
    start_ns: Option<u64>,
    arrived_bytes: u64,
}

impl Runner for GuestRunner<'_> {
    fn run(&mut self, parameters: Parameters) -> Result<RunDocument, Ended> {
        let request = request(self.order, parameters, self.start_ns.take());
        let run = client::run(&request, &AtomicBool::new(false), &mut |_| {});
        if run.status == Status::Failed {
            let unknown =
                || ErrorEntry { code: "failed".to_owned(), message: "a test failed".to_owned(), advice: None };
            return Err(Ended::Failed(run.errors.first().cloned().unwrap_or_else(unknown)));
        }
        self.arrived_bytes += run.conservation.delivered.unwrap_or(0);
        (self.arrived)(self.arrived_bytes);
        Ok(run)
    }

    fn pause(&mut self, pause_ns: u64) -> bool {
        clock::sleep_until(clock::monotonic_ns() + pause_ns);
        true
    }
}
