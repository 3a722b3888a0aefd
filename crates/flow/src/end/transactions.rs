//! Request/response streams and latency probes as streams of a test.

use std::time::Duration;

use landspeed_model::{LatencyResult, LatencyUnderLoad, StreamEnd};

use super::plan::{DataSocket, Job, StreamPlan};
use super::slots::RrSlot;
use super::watch::Watch;
use crate::rr::{self, RrOutcome, RrPlan};

/// Runs a request/response stream; the body of its thread.
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
            end.error = measured.error.as_ref().map(ToString::to_string);
            *outcome = Some(measured);
        }
        Err(error) => end.error = Some(format!("cannot duplicate the socket: {error}")),
    }
}

fn respond(stream: &StreamPlan, slot: &RrSlot, socket: &DataSocket, t0_ns: u64, watch: &Watch, end: &mut StreamEnd) {
    let (counters, stop) = (&stream.counters, &watch.stop);
    // The requester ends the measurement; the responder's end time is only an upper limit.
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
                        rr::respond_tcp(tcp, &plan, counters, stop);
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
            end.error = outcome.error.map(|e| e.to_string());
        }
        Err(error) => end.error = Some(format!("cannot duplicate the socket: {error}")),
    }
}

/// Merges the results of one side's requesters: one for each message size over all its streams, and the
/// probe's.
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
