//! Clients that wait for a test. Client hosts take turns; of one host, the client that came first is first.
//!
//! The order is that of start-time fair queueing (Goyal, Vin and Cheng, IEEE/ACM Transactions on Networking 5(5), 1997,
//! <https://doi.org/10.1109/90.649569>) with tests instead of packets: a host with many clients delays another host by one test
//! at a time.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use landspeed_model::ErrorEntry;

/// Time of a test beyond its own duration, for connections and reports, nanoseconds; for estimates.
const SETUP_NS: u64 = 2_000_000_000;

/// Waiting clients of a server.
#[derive(Debug)]
pub struct Queue {
    most: usize,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    /// Turn of the latest client that got its test.
    turn: u64,
    /// In the order in which they get their tests.
    clients: Vec<WaitingClient>,
}

#[derive(Debug)]
struct WaitingClient {
    number: u64,
    host: IpAddr,
    /// One more than that of the client of the same host before it.
    turn: u64,
    /// Duration of its test, nanoseconds; `None` if it ends after a number of bytes.
    duration_ns: Option<u64>,
    /// Other tests of the same client host leave it no share: clients behind it may take a test before it.
    held_back: bool,
}

/// A place in the queue; freed on drop.
#[derive(Debug)]
pub struct Ticket {
    queue: Arc<Queue>,
    number: u64,
}

/// Position of a client in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuePosition {
    /// Place in the order of waiting clients; 1 is next.
    pub position: u32,
    /// Number of waiting clients.
    pub waiting: u32,
    /// Estimated time until its test starts, nanoseconds; `None` if a test before it has no known duration.
    pub wait_ns: Option<u64>,
}

impl Queue {
    /// Creates a queue for at most `most` clients; 0 for none.
    pub fn new(most: usize) -> Self {
        Self { most, waiting: Mutex::default() }
    }

    /// Puts a client into the queue, behind the others of its host; `None` if the queue is full, or if the client's host has three quarters of it.
    pub fn enter(self: &Arc<Self>, host: IpAddr, duration_ns: Option<u64>) -> Option<Ticket> {
        let mut waiting = self.lock();
        let of_host = waiting.clients.iter().filter(|client| client.host == host).count();
        if waiting.clients.len() >= self.most || of_host >= (self.most - self.most / 4).max(1) {
            return None;
        }
        let number = waiting.next;
        waiting.next += 1;
        let last = waiting.clients.iter().filter(|client| client.host == host).map(|client| client.turn + 1).max();
        let turn = last.unwrap_or(0).max(waiting.turn);
        let at = waiting.clients.partition_point(|client| client.turn <= turn);
        waiting.clients.insert(at, WaitingClient { number, host, turn, duration_ns, held_back: false });
        Some(Ticket { queue: Arc::clone(self), number })
    }

    /// Whether a client may take a test now: no client that is not held back waits before it. Without a ticket, it is
    /// behind all.
    pub fn is_turn(&self, ticket: Option<&Ticket>) -> bool {
        let waiting = self.lock();
        let before = waiting.clients.iter().take_while(|client| ticket.is_none_or(|own| client.number != own.number));
        before.into_iter().all(|client| client.held_back)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticket {
    /// Leaves the queue because the client has its test.
    pub fn granted(self) {
        let mut waiting = self.queue.lock();
        let turn = waiting.clients.iter().find(|client| client.number == self.number).map(|client| client.turn);
        waiting.turn = waiting.turn.max(turn.unwrap_or(0));
    }

    /// Sets whether other tests of the same client host leave the client no share.
    pub fn hold_back(&self, held_back: bool) {
        let mut waiting = self.queue.lock();
        if let Some(client) = waiting.clients.iter_mut().find(|client| client.number == self.number) {
            client.held_back = held_back;
        }
    }

    /// Returns the position and the estimated wait. `ends_ns` are the expected ends of the running tests, on the clock of
    /// `now_ns`; `None` for an unknown one.
    pub fn position(&self, now_ns: u64, ends_ns: &[Option<u64>]) -> QueuePosition {
        let waiting = self.queue.lock();
        let before: Vec<Option<u64>> = waiting
            .clients
            .iter()
            .take_while(|client| client.number != self.number)
            .map(|client| client.duration_ns)
            .collect();
        QueuePosition {
            position: before.len() as u32 + 1,
            waiting: waiting.clients.len() as u32,
            wait_ns: estimate_ns(now_ns, ends_ns, &before),
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.queue.lock().clients.retain(|client| client.number != self.number);
    }
}

/// Returns the time until the client behind `before` starts, if each waiting test starts when the next running one ends.
fn estimate_ns(now_ns: u64, ends_ns: &[Option<u64>], before: &[Option<u64>]) -> Option<u64> {
    let mut ends: Vec<u64> = ends_ns.iter().copied().collect::<Option<_>>()?;
    for duration_ns in before {
        let first = ends.iter_mut().min()?;
        *first = (*first).max(now_ns).saturating_add((*duration_ns)?).saturating_add(SETUP_NS);
    }
    Some(ends.into_iter().min()?.saturating_sub(now_ns))
}

/// Expected ends of running tests.
#[derive(Debug, Default)]
pub struct ExpectedEnds(Mutex<Vec<(u64, Option<u64>)>>);

impl ExpectedEnds {
    /// Adds a test that starts now and lasts `duration_ns`, and returns its number.
    pub fn add(&self, now_ns: u64, duration_ns: Option<u64>) -> u64 {
        let mut ends = self.lock();
        let number = ends.iter().map(|(number, _)| number + 1).max().unwrap_or(0);
        ends.push((number, duration_ns.map(|ns| now_ns.saturating_add(ns).saturating_add(SETUP_NS))));
        number
    }

    /// Removes a test that ended.
    pub fn remove(&self, number: u64) {
        self.lock().retain(|(other, _)| *other != number);
    }

    /// Returns the expected end of each running test; `None` for an unknown one.
    pub fn list(&self) -> Vec<Option<u64>> {
        self.lock().iter().map(|(_, end_ns)| *end_ns).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(u64, Option<u64>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the refusal of a client behind others that wait.
pub(super) fn behind_others() -> ErrorEntry {
    ErrorEntry {
        code: "server-busy".to_owned(),
        message: "other clients wait for this server".to_owned(),
        advice: Some("try again in a moment".to_owned()),
    }
}

/// Returns the refusal of a client whose turn did not come in time.
pub(super) fn waited_too_long(seconds: u64) -> ErrorEntry {
    ErrorEntry {
        code: "server-busy".to_owned(),
        message: format!("no test ended within {seconds} s, which is how long a client may wait here"),
        advice: Some("try again later, or raise --queue-time there".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn host(n: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, n])
    }

    #[test]
    fn clients_are_served_in_order() {
        let queue = Arc::new(Queue::new(4));
        assert!(queue.is_turn(None), "no client waits");
        let enter = |n| queue.enter(host(n), Some(10 * S)).expect("a place");
        let (first, second, third) = (enter(1), enter(2), enter(3));
        assert!(queue.is_turn(Some(&first)) && !queue.is_turn(Some(&second)) && !queue.is_turn(None));
        assert_eq!(third.position(0, &[]).position, 3);
        drop(first);
        assert!(queue.is_turn(Some(&second)), "a client that left is not waited for");
        second.hold_back(true);
        assert!(queue.is_turn(Some(&third)) && queue.is_turn(Some(&second)));
        drop((second, third));
        assert!(queue.is_turn(None));
    }

    #[test]
    fn hosts_take_turns() {
        let queue = Arc::new(Queue::new(16));
        let enter = |n| queue.enter(host(n), None).expect("a place");
        let mut crowd: Vec<Ticket> = (0..6).map(|_| enter(1)).collect();
        crowd.reverse();
        let second = enter(2);
        assert_eq!((second.position(0, &[]).position, crowd[0].position(0, &[]).position), (2, 7));
        crowd.pop().expect("the first").granted();
        assert!(queue.is_turn(Some(&second)));
        second.granted();
        // A host that comes back waits for one test of the crowd, as at first.
        crowd.pop().expect("the second").granted();
        let again = enter(2);
        assert_eq!(again.position(0, &[]).position, 1);
        let others: Vec<Ticket> = (3..6).map(enter).collect();
        assert_eq!(others.iter().map(|other| other.position(0, &[]).position).collect::<Vec<_>>(), [2, 3, 4]);
        drop(again);
        assert!(queue.is_turn(Some(&others[0])) && !queue.is_turn(crowd.last()));
    }

    #[test]
    fn one_host_cannot_fill_the_queue() {
        let queue = Arc::new(Queue::new(4));
        let tickets: Vec<Ticket> = std::iter::from_fn(|| queue.enter(host(1), None)).collect();
        assert_eq!(tickets.len(), 3);
        let other = queue.enter(host(2), None).expect("a place");
        assert!(queue.enter(host(3), None).is_none(), "the queue is full");
        drop(other);
        assert!(queue.enter(host(3), None).is_some());
        assert!(Arc::new(Queue::new(0)).enter(host(1), None).is_none());
        assert!(Arc::new(Queue::new(1)).enter(host(1), None).is_some());
    }

    #[test]
    fn the_wait_is_estimated_from_running_and_waiting_tests() {
        let ends = [Some(10 * S), Some(20 * S)];
        assert_eq!(estimate_ns(4 * S, &ends, &[]), Some(6 * S));
        assert_eq!(estimate_ns(4 * S, &ends, &[Some(5 * S)]), Some(13 * S));
        assert_eq!(estimate_ns(4 * S, &ends, &[Some(5 * S), Some(5 * S)]), Some(16 * S));
        assert_eq!(estimate_ns(4 * S, &[None, Some(1)], &[]), None);
        assert_eq!(estimate_ns(4 * S, &ends, &[None]), None);
        assert_eq!(estimate_ns(30 * S, &ends, &[]), Some(0), "a test is late");
    }
}
