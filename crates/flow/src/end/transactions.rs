//! Request/response streams and latency probes as streams of a test.

use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use landspeed_model::{LatencyResult, LatencyUnderLoad, Parameters, RrSize, StreamEnd};

use super::Watch;
use super::streams::{DataSocket, Job, StreamPlan};
use crate::control::credentials::Credentials;
use crate::control::deadline::Deadline;
use crate::control::{entry, patient};
use crate::rr::{self, Load, ProbePlan, RrOutcome, RrPlan};

/// How long a probe listens to the idle path before the load comes, nanoseconds.
pub const IDLE_NS: u64 = 1_000_000_000;

/// One request/response measurement in the timeline of a test; times are nanoseconds after the agreed start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RrSlot {
    /// Message sizes.
    pub size: RrSize,
    /// When requests leave.
    pub load: Load,
    /// First request.
    pub from_ns: i64,
    /// Requests before this are omitted.
    pub measure_from_ns: i64,
    /// Last request.
    pub to_ns: i64,
}

impl RrSlot {
    /// The measurements of a test: sizes one after the other, each with an equal share of the time and of the omitted
    /// part. `None` when the parameters ask for no request/response.
    pub fn all(parameters: &Parameters) -> Result<Vec<Self>, rr::PlanError> {
        let Some(wanted) = &parameters.rr else { return Ok(Vec::new()) };
        let load = Load::from_parameters(wanted)?;
        let n = wanted.sizes.len().max(1) as i64;
        let time = parameters.time_ns.unwrap_or(10_000_000_000) as i64 / n;
        let omit = parameters.omit_ns as i64 / n;
        Ok(wanted
            .sizes
            .iter()
            .enumerate()
            .map(|(i, &size)| {
                let from_ns = i as i64 * (time + omit);
                Self { size, load, from_ns, measure_from_ns: from_ns + omit, to_ns: from_ns + omit + time }
            })
            .collect())
    }

    /// The probe that runs beside the bulk streams, starting [`IDLE_NS`] before them.
    pub fn probe(parameters: &Parameters) -> Option<Self> {
        let rate_per_s = parameters.probe_rate_per_s?;
        let time = parameters.time_ns.unwrap_or(10_000_000_000) as i64;
        let omit = parameters.omit_ns as i64;
        Some(Self {
            size: ProbePlan::SIZE,
            load: Load::OpenLoop { rate_per_s },
            from_ns: -(IDLE_NS as i64),
            measure_from_ns: omit,
            to_ns: omit + time,
        })
    }

    fn plan(&self, t0_ns: u64) -> RrPlan {
        let at = |t: i64| t0_ns.saturating_add_signed(t);
        RrPlan {
            measure_from_ns: at(self.measure_from_ns),
            ..RrPlan::new(self.size, self.load, at(self.from_ns), at(self.to_ns))
        }
    }

    fn probe_plan(&self, t0_ns: u64) -> ProbePlan {
        let at = |t: i64| t0_ns.saturating_add_signed(t);
        let Load::OpenLoop { rate_per_s } = self.load else {
            return ProbePlan::new(at(self.from_ns), t0_ns, at(self.to_ns));
        };
        ProbePlan {
            rate_per_s,
            size: self.size,
            // The load starts at zero, but its first packets are under way a little earlier on nobody's clock but ours.
            loaded_from_ns: at(self.measure_from_ns),
            ..ProbePlan::new(at(self.from_ns), t0_ns, at(self.to_ns))
        }
    }
}

/// The body of a request/response thread.
pub(super) fn run(
    stream: &StreamPlan,
    t0_ns: u64,
    watch: &Watch,
    end: &mut StreamEnd,
    outcome: &mut Option<RrOutcome>,
) {
    let (counters, stop) = (&stream.counters, &watch.stop);
    let result = match (stream.job, &stream.socket) {
        (Job::Request(slot), DataSocket::Tcp(tcp)) => {
            tcp.try_clone().map(|tcp| rr::request_tcp(tcp, &slot.plan(t0_ns), counters, stop))
        }
        (Job::Request(slot), DataSocket::Udp(udp)) => {
            udp.try_clone().map(|udp| rr::request_udp(udp, &slot.plan(t0_ns), counters, stop))
        }
        (Job::Request(slot), DataSocket::Connector(connector)) => {
            Ok(rr::request_connect(&mut || connector.connect(stop.sending_flag()), &slot.plan(t0_ns), counters, stop))
        }
        (Job::Probe(slot), DataSocket::Tcp(tcp)) => {
            tcp.try_clone().map(|tcp| slot.probe_plan(t0_ns).run_tcp(tcp, counters, stop))
        }
        (Job::Probe(slot), DataSocket::Udp(udp)) => {
            udp.try_clone().map(|udp| slot.probe_plan(t0_ns).run_udp(udp, counters, stop))
        }
        (Job::Respond(slot) | Job::Echo(slot), socket) => {
            respond(stream, &slot, socket, t0_ns, watch, end);
            return;
        }
        (Job::Send | Job::Receive | Job::Request(_) | Job::Probe(_), _) => {
            end.error = Some("this kind of stream cannot run on this kind of socket".to_owned());
            return;
        }
    };
    match result {
        Ok(measured) => {
            end.syscalls = measured.syscalls;
            end.error = measured.error.as_ref().map(ToString::to_string);
            *outcome = Some(measured);
        }
        Err(error) => end.error = Some(format!("cannot duplicate the socket: {error}")),
    }
}

fn respond(stream: &StreamPlan, slot: &RrSlot, socket: &DataSocket, t0_ns: u64, watch: &Watch, end: &mut StreamEnd) {
    let (counters, stop) = (&stream.counters, &watch.stop);
    // The requester ends the measurement; the responder's own end is only a bound.
    let mut plan = RrPlan { measure_from_ns: 0, ..slot.plan(t0_ns) };
    plan.t0_ns = plan.t0_ns.min(landspeed_sys::clock::monotonic_ns());
    let answered = match socket {
        DataSocket::Tcp(tcp) => tcp.try_clone().map(|tcp| rr::respond_tcp(tcp, &plan, counters, stop)),
        DataSocket::Udp(udp) => udp.try_clone().map(|udp| rr::respond_udp(udp, &plan, counters, stop)),
        DataSocket::Acceptor(connections) => {
            plan.max_transactions = Some(1);
            let Ok(connections) = connections.lock() else { return };
            while !stop.receiving() {
                match connections.recv_timeout(Duration::from_millis(20)) {
                    Ok(tcp) => {
                        let outcome = rr::respond_tcp(tcp, &plan, counters, stop);
                        end.syscalls += outcome.syscalls;
                    }
                    Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                        if stop.sending() {
                            return;
                        }
                    }
                    Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return,
                }
            }
            return;
        }
        DataSocket::Connector(_) => return,
    };
    match answered {
        Ok(outcome) => {
            end.syscalls = outcome.syscalls;
            end.error = outcome.error.map(|e| e.to_string());
        }
        Err(error) => end.error = Some(format!("cannot duplicate the socket: {error}")),
    }
}

/// Results of the requesters of one end: one for each size over all its streams, and the probe's.
pub(super) fn merge(outcomes: &[(Job, RrOutcome)], t0_ns: u64) -> (Vec<LatencyResult>, Option<LatencyUnderLoad>) {
    let mut slots: Vec<RrSlot> = Vec::new();
    let mut probe = None;
    for (job, outcome) in outcomes {
        match job {
            Job::Request(slot) if !slots.contains(slot) => slots.push(*slot),
            Job::Probe(slot) => probe = Some(slot.probe_plan(t0_ns).under_load(std::slice::from_ref(outcome))),
            _ => {}
        }
    }
    let results = slots
        .iter()
        .map(|slot| {
            let of_slot = outcomes.iter().filter(|(job, _)| *job == Job::Request(*slot)).map(|(_, outcome)| outcome);
            rr::merge(of_slot, &slot.plan(t0_ns))
        })
        .collect();
    (results, probe)
}

/// Makes connections for connect/request/response.
#[derive(Debug)]
pub struct Connector {
    /// Where to.
    pub server: std::net::SocketAddr,
    /// From where.
    pub bind: Option<std::net::SocketAddr>,
    /// Number of the stream.
    pub stream: u32,
    /// What each connection shows.
    pub credentials: Credentials,
}

impl Connector {
    /// Connects and is answered, within 2 s in all, sooner when `stop` is set.
    fn connect(&self, stop: &AtomicBool) -> std::io::Result<TcpStream> {
        const PATIENCE: Duration = Duration::from_secs(2);
        let deadline = Deadline::after(PATIENCE).or_stop(stop);
        let socket = socket2::Socket::new(socket2::Domain::for_address(self.server), socket2::Type::STREAM, None)?;
        if let Some(local) = self.bind {
            socket.bind(&local.into())?;
        }
        patient::connect(&socket, self.server, &deadline)?;
        let mut stream: TcpStream = socket.into();
        entry::enter(&mut stream, self.server, self.stream, &self.credentials, &deadline)
            .map_err(|error| std::io::Error::other(error.to_string()))?;
        // A closed connection lingers in TIME_WAIT on our side; thousands of them would use up the ports.
        let _ = socket2::SockRef::from(&stream.as_fd()).set_linger(Some(Duration::ZERO));
        Ok(stream)
    }
}
