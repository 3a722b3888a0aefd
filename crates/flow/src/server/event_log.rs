//! The only path of an event to the server's owner, who logs it. Clients cause most events, so each client host
//! and all together are limited, and what is left out is counted in one event.

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use landspeed_sys::clock;

use super::events::ServerEvent;
use super::rate_limit::{RateLimit, RateLimiter};
use crate::address::client_host;
use crate::control::printable;

/// Events of one client host, and of all. At once: all changes that one request may contain.
const HOST_LIMIT: RateLimit = RateLimit { burst: 300, interval_ns: 500_000_000 };
const TOTAL_LIMIT: RateLimit = RateLimit { burst: 600, interval_ns: 200_000_000 };
/// Interval of the events that count what was left out, nanoseconds.
const SUMMARY_NS: u64 = 10_000_000_000;
/// Maximum length of a text, characters.
const MAX_TEXT: usize = 400;

/// Reports events to the server's owner, at a limited rate.
pub(super) struct EventLog {
    sink: Box<dyn Fn(ServerEvent) + Send + Sync>,
    /// Changes of the host have a limit of their own: a flood of other events cannot hide them.
    host_changes: EventClass,
    others: EventClass,
}

/// Events with a common limit.
struct EventClass {
    limiter: RateLimiter,
    left_out: Mutex<Option<LeftOut>>,
}

/// Events that were not reported.
struct LeftOut {
    since_ns: u64,
    events: u64,
    last_peer: SocketAddr,
}

impl EventClass {
    fn new() -> Self {
        Self { limiter: RateLimiter::new(HOST_LIMIT, TOTAL_LIMIT), left_out: Mutex::default() }
    }

    /// Whether an event of this client may be reported now; counts it otherwise.
    fn admit(&self, peer: SocketAddr, now_ns: u64) -> bool {
        if self.limiter.admit(client_host(peer), now_ns).is_ok() {
            return true;
        }
        let mut left_out = self.left_out.lock().unwrap_or_else(PoisonError::into_inner);
        let left_out = left_out.get_or_insert(LeftOut { since_ns: now_ns, events: 0, last_peer: peer });
        left_out.events += 1;
        left_out.last_peer = peer;
        false
    }

    /// Takes the count if it is older than `age_ns`.
    fn take_left_out(&self, age_ns: u64, now_ns: u64) -> Option<LeftOut> {
        let mut left_out = self.left_out.lock().unwrap_or_else(PoisonError::into_inner);
        left_out.take_if(|left_out| now_ns.saturating_sub(left_out.since_ns) >= age_ns)
    }
}

impl EventLog {
    /// Creates a log that calls `sink` for each event.
    pub fn new(sink: impl Fn(ServerEvent) + Send + Sync + 'static) -> Self {
        Self { sink: Box::new(sink), host_changes: EventClass::new(), others: EventClass::new() }
    }

    /// Reports an event, or counts it as left out.
    pub fn report(&self, event: ServerEvent) {
        self.report_at(event, clock::monotonic_ns());
    }

    fn report_at(&self, mut event: ServerEvent, now_ns: u64) {
        if let Some(text) = event.text_mut() {
            *text = printable(text, MAX_TEXT);
        }
        let class = if matches!(event, ServerEvent::HostChanged { .. }) { &self.host_changes } else { &self.others };
        if event.peer().is_none_or(|peer| class.admit(peer, now_ns)) {
            (self.sink)(event);
        }
    }

    /// Reports counts of events left out for some time. Cheap if called often.
    pub fn summarize(&self, now_ns: u64) {
        self.summarize_older(SUMMARY_NS, now_ns);
    }

    /// Reports the counts of all events left out.
    pub fn finish(&self) {
        self.summarize_older(0, clock::monotonic_ns());
    }

    fn summarize_older(&self, age_ns: u64, now_ns: u64) {
        for (class, host_changes) in [(&self.host_changes, true), (&self.others, false)] {
            if let Some(LeftOut { events, last_peer, .. }) = class.take_left_out(age_ns, now_ns) {
                (self.sink)(ServerEvent::LeftOut { events, last_peer, host_changes });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    /// A log and the events that it reported.
    fn log() -> (EventLog, Arc<Mutex<Vec<ServerEvent>>>) {
        let events = Arc::<Mutex<Vec<ServerEvent>>>::default();
        let sink = Arc::clone(&events);
        (EventLog::new(move |event| sink.lock().unwrap().push(event)), events)
    }

    fn peer(n: u8) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, n], 4000))
    }

    /// One event of each kind that a client can cause.
    fn events_of_clients(peer: SocketAddr) -> [ServerEvent; 5] {
        let text = || "text".to_owned();
        [
            ServerEvent::TestStarted { id: text(), peer, what: text() },
            ServerEvent::TestEnded { id: text(), peer, outcome: text() },
            ServerEvent::Described { peer },
            ServerEvent::Refused { peer, why: text() },
            ServerEvent::HostChanged { peer, what: text() },
        ]
    }

    #[test]
    fn each_kind_of_event_is_limited_and_counted() {
        for at in 0..events_of_clients(peer(1)).len() {
            let (log, events) = log();
            // 1,000 events a second for 100 s.
            for n in 0..100_000 {
                let now_ns = 5 * SECOND_NS + n * SECOND_NS / 1000;
                log.report_at(events_of_clients(peer(1))[at].clone(), now_ns);
                log.summarize(now_ns);
            }
            log.finish();
            let events = events.lock().unwrap();
            let counted = events.iter().filter_map(|event| match event {
                ServerEvent::LeftOut { events, .. } => Some(*events),
                _ => None,
            });
            let counted: Vec<u64> = counted.collect();
            let reported = (events.len() - counted.len()) as u64;
            assert!((499..=501).contains(&reported), "{reported}: {:?}", events[0]);
            assert!((10..=11).contains(&counted.len()), "{counted:?}");
            assert_eq!(reported + counted.iter().sum::<u64>(), 100_000);
        }
    }

    #[test]
    fn many_clients_are_limited_together() {
        let (log, events) = log();
        for n in 0..100_000_u32 {
            let peer = SocketAddr::from((std::net::Ipv4Addr::from_bits(n), 4000));
            log.report_at(ServerEvent::Described { peer }, 5 * SECOND_NS + u64::from(n) * SECOND_NS / 1000);
        }
        let reported = events.lock().unwrap().len() as u64;
        assert!((1099..=1100).contains(&reported), "{reported} in 100 s");
    }

    #[test]
    fn one_client_does_not_silence_another_or_host_changes() {
        let (log, events) = log();
        let refused = |n| ServerEvent::Refused { peer: peer(n), why: String::new() };
        for _ in 0..100_000 {
            log.report_at(refused(1), SECOND_NS);
        }
        events.lock().unwrap().clear();
        log.report_at(refused(2), SECOND_NS);
        log.report_at(ServerEvent::HostChanged { peer: peer(1), what: "x".to_owned() }, SECOND_NS);
        assert_eq!(events.lock().unwrap().len(), 2);
    }

    #[test]
    fn texts_are_printable_and_short() {
        let (log, events) = log();
        log.report(ServerEvent::Refused { peer: peer(1), why: "\u{1b}[2J\n".repeat(1000) });
        let events = events.lock().unwrap();
        let ServerEvent::Refused { why, .. } = &events[0] else { panic!("{events:?}") };
        assert!(!why.contains(char::is_control) && why.chars().count() < 8 * MAX_TEXT, "{why}");
    }
}
