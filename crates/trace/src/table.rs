//! The table of live flows.

use std::collections::VecDeque;

use hashbrown::HashTable;

use crate::connection::Connection;
use crate::key::Key;
use crate::lifetime::Lifetime;
use crate::notices::Notices;
use crate::udp::Datagrams;

/// Number of positions checked for the least recently used flow on eviction.
const EVICTION_SAMPLE: usize = 32;

/// A flow. Every packet needs the first three fields, which share a cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Flow {
    /// Endpoints and protocol.
    pub key: Key,
    /// Timestamp of the latest packet, nanoseconds.
    pub last_ns: u64,
    /// State of the transport protocol.
    pub state: State,
    /// Number of the flow in order of appearance, from 0.
    pub number: u64,
    /// Timestamp of the first packet, nanoseconds.
    pub first_ns: u64,
    /// Progress of a TCP connection.
    pub lifetime: Lifetime,
    /// Whether another connection uses its four-tuple now.
    pub over: bool,
    /// Whether the capture has both sides of a firewall that changes the sequence numbers of this connection.
    pub has_two_sides: bool,
    /// IP identification and TSval of the SYN.
    pub syn: Option<(u16, Option<u32>)>,
    /// ICMP errors about packets of the flow.
    pub notices: Option<Box<Notices>>,
}

impl Flow {
    fn new(number: u64, key: Key, time_ns: u64, window_scale: Option<u8>) -> Self {
        let state = if key.is_tcp() {
            State::Tcp(Box::new(Connection::new(window_scale)))
        } else {
            State::Udp(Box::default())
        };
        Self {
            number,
            key,
            first_ns: time_ns,
            last_ns: time_ns,
            lifetime: Lifetime::default(),
            over: false,
            has_two_sides: false,
            syn: None,
            notices: None,
            state,
        }
    }
}

/// State by transport protocol.
#[derive(Debug)]
pub enum State {
    /// A TCP connection.
    Tcp(Box<Connection>),
    /// UDP by direction: index 0 is from the lower endpoint to the higher.
    Udp(Box<[Datagrams; 2]>),
}

/// Position of a flow, and its hash. It has no key, so that the index of many flows fits a core's cache.
#[derive(Debug, Clone, Copy)]
struct Entry {
    hash: u32,
    at: u32,
}

impl Entry {
    fn new(key: &Key, at: u32) -> Self {
        // The upper bits select the share of a core, and are equal within its table.
        Self { hash: (key.mixed() >> 20) as u32, at }
    }

    /// Returns the hash widened to 64 bits: `HashTable` uses the upper and the lower bits.
    fn widened_hash(self) -> u64 {
        u64::from(self.hash) << 32 | u64::from(self.hash)
    }
}

/// Flows by key, up to a maximum number.
#[derive(Debug)]
pub struct Table {
    index: HashTable<Entry>,
    flows: Vec<Flow>,
    /// Connections whose four-tuple was reused, oldest first.
    over: VecDeque<Flow>,
    capacity: usize,
    /// Window scale assumed for connections without a captured handshake.
    window_scale: Option<u8>,
    /// Position of the last packet's flow: packets of one flow usually come in trains.
    latest: u32,
    clock_hand: usize,
    begun: u64,
}

impl Table {
    /// Creates an empty table for up to `capacity` flows.
    pub fn new(capacity: usize, window_scale: Option<u8>) -> Self {
        Self {
            index: HashTable::new(),
            flows: Vec::new(),
            over: VecDeque::new(),
            capacity: capacity.max(1),
            window_scale,
            latest: 0,
            clock_hand: 0,
            begun: 0,
        }
    }

    /// Returns whether the flow at a position has this key.
    #[inline]
    pub fn is_at(&self, at: u32, key: &Key) -> bool {
        self.flows.get(at as usize).is_some_and(|flow| flow.key == *key)
    }

    /// Returns whether the last packet's flow had this key.
    #[inline]
    pub fn is_latest(&self, key: &Key) -> bool {
        self.is_at(self.latest, key)
    }

    /// Returns the position of the flow with this key; `None` if it is new.
    pub fn position(&self, key: &Key) -> Option<u32> {
        let wanted = Entry::new(key, 0);
        let found =
            self.index.find(wanted.widened_hash(), |entry| entry.hash == wanted.hash && self.is_at(entry.at, key))?;
        Some(found.at)
    }

    /// Returns the position of the first flow with the hash of this key, which is almost always the right one.
    /// Accesses no flow.
    #[inline]
    pub fn guess(&self, key: &Key) -> Option<u32> {
        let wanted = Entry::new(key, 0);
        Some(self.index.find(wanted.widened_hash(), |entry| entry.hash == wanted.hash)?.at)
    }

    /// Returns the flow at a position.
    pub fn at(&self, position: u32) -> Option<&Flow> {
        self.flows.get(position as usize)
    }

    /// Returns the flow at a position, mutably.
    #[inline]
    pub fn at_mut(&mut self, position: u32) -> Option<&mut Flow> {
        self.flows.get_mut(position as usize)
    }

    /// Reads what the next packet of a flow needs, to prefetch it; the value is meaningless.
    pub fn prefetch(&self, position: u32) -> u64 {
        self.flows.get(position as usize).map_or(0, |flow| match &flow.state {
            State::Tcp(connection) => flow.last_ns ^ connection.prefetch(),
            State::Udp(datagrams) => flow.last_ns ^ datagrams[0].packets ^ datagrams[1].packets,
        })
    }

    /// Returns the position of the flow with this key, which becomes the latest. `guess` is its likely position.
    #[inline]
    pub fn find(&mut self, key: &Key, guess: Option<u32>) -> Option<u32> {
        let guess = guess.unwrap_or(self.latest);
        self.latest = if self.is_at(guess, key) { guess } else { self.position(key)? };
        Some(self.latest)
    }

    /// Makes the flow at a position the latest.
    pub fn select(&mut self, at: u32) {
        self.latest = at;
    }

    /// Adds a flow. Returns its position, and the flow that was evicted for it.
    pub fn begin(&mut self, key: Key, time_ns: u64) -> (u32, Option<Flow>) {
        let flow = Flow::new(self.begun, key, time_ns, self.window_scale);
        self.begun += 1;
        let over = if self.len() < self.capacity { None } else { self.over.pop_front() };
        if over.is_some() || self.len() < self.capacity {
            self.latest = self.flows.len() as u32;
            self.push(flow);
            return (self.latest, over);
        }
        let at = self.oldest();
        let gone = std::mem::replace(&mut self.flows[at], flow);
        self.latest = at as u32;
        let entry = Entry::new(&gone.key, self.latest);
        if let Ok(found) = self.index.find_entry(entry.widened_hash(), |other| other.at == entry.at) {
            found.remove();
        }
        let entry = Entry::new(&key, self.latest);
        self.index.insert_unique(entry.widened_hash(), entry, |entry| entry.widened_hash());
        (self.latest, Some(gone))
    }

    fn push(&mut self, flow: Flow) {
        let entry = Entry::new(&flow.key, self.flows.len() as u32);
        self.index.insert_unique(entry.widened_hash(), entry, |entry| entry.widened_hash());
        self.flows.push(flow);
    }

    /// Starts another connection with the four-tuple of the last packet. Returns the flow that was evicted for it.
    pub fn replace_latest(&mut self, time_ns: u64) -> Option<Flow> {
        let gone = if self.len() < self.capacity { None } else { self.over.pop_front() };
        let flow = self.flows.get_mut(self.latest as usize)?;
        let mut over = std::mem::replace(flow, Flow::new(self.begun, flow.key, time_ns, self.window_scale));
        self.begun += 1;
        over.over = true;
        if gone.is_none() && self.flows.len() + self.over.len() >= self.capacity {
            return Some(over);
        }
        self.over.push_back(over);
        gone
    }

    /// Returns the least recently used of the next few flows (clock algorithm, which needs no ordered list).
    fn oldest(&mut self) -> usize {
        let length = self.flows.len();
        let looked_at = (0..EVICTION_SAMPLE.min(length)).map(|step| (self.clock_hand + step) % length);
        let at = looked_at.min_by_key(|&at| self.flows[at].last_ns).unwrap_or(0);
        self.clock_hand = (self.clock_hand + EVICTION_SAMPLE) % length;
        at
    }

    /// Returns the number of flows.
    pub fn len(&self) -> usize {
        self.flows.len() + self.over.len()
    }

    /// Adds a flow of another table that is not in this one.
    pub fn take(&mut self, flow: Flow) {
        self.begun = self.begun.max(flow.number + 1);
        if flow.over {
            self.over.push_back(flow);
            return;
        }
        self.push(flow);
    }

    /// Adds the flows of another table, none of which are in this one.
    pub fn join(&mut self, other: Self) {
        self.flows.extend(other.flows);
        self.over.extend(other.over);
    }

    /// Returns all flows.
    pub fn into_flows(self) -> Vec<Flow> {
        self.flows.into_iter().chain(self.over).collect()
    }
}
