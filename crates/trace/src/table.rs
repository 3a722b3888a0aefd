//! The table of live flows.

use std::collections::{HashMap, VecDeque};

use foldhash::fast::FixedState;

use crate::connection::Connection;
use crate::key::Key;
use crate::lifetime::Lifetime;
use crate::udp::Datagrams;

/// Positions checked for the least recently used flow when one must go.
const LOOKED_AT: usize = 32;

/// A flow.
#[derive(Debug)]
pub struct Flow {
    /// In the order they began, from 0.
    pub number: u64,
    /// Its ends.
    pub key: Key,
    /// First packet, nanoseconds.
    pub first_ns: u64,
    /// Latest packet, nanoseconds.
    pub last_ns: u64,
    /// How far a TCP connection has come; `None` before its first segment.
    pub lifetime: Option<Lifetime>,
    /// Whether another connection has taken its four-tuple.
    pub over: bool,
    /// What its transport made of it.
    pub state: State,
}

impl Flow {
    fn new(number: u64, key: Key, time_ns: u64, window_scale: Option<u8>) -> Self {
        let state = if key.is_tcp() {
            State::Tcp(Box::new(Connection::new(window_scale)))
        } else {
            State::Udp(Box::default())
        };
        Self { number, key, first_ns: time_ns, last_ns: time_ns, lifetime: None, over: false, state }
    }
}

/// State by transport.
#[derive(Debug)]
pub enum State {
    /// TCP.
    Tcp(Box<Connection>),
    /// UDP, by direction: index 0 is from the lesser end to the greater one.
    Udp(Box<[Datagrams; 2]>),
}

/// Flows by their ends, no more than a fixed number at once.
#[derive(Debug)]
pub struct Table {
    index: HashMap<Key, u32, FixedState>,
    flows: Vec<Flow>,
    /// Connections whose four-tuple another one has taken, the oldest first.
    over: VecDeque<Flow>,
    most: usize,
    /// Window scale of connections whose handshake the capture does not have.
    window_scale: Option<u8>,
    /// The flow of the last packet: trains of one flow are the rule.
    latest: Option<(Key, u32)>,
    hand: usize,
    begun: u64,
}

impl Table {
    /// An empty one for so many flows.
    pub fn new(most: usize, window_scale: Option<u8>) -> Self {
        Self {
            index: HashMap::default(),
            flows: Vec::new(),
            over: VecDeque::new(),
            most: most.max(1),
            window_scale,
            latest: None,
            hand: 0,
            begun: 0,
        }
    }

    /// Whether the last packet's flow had these ends.
    pub fn is_latest(&self, key: &Key) -> bool {
        self.latest.is_some_and(|(latest, _)| latest == *key)
    }

    /// Where the flow with these ends is; `None` if it is new.
    pub fn place(&self, key: &Key) -> Option<u32> {
        self.index.get(key).copied()
    }

    /// The flow that is there.
    pub fn at(&self, place: u32) -> Option<&Flow> {
        self.flows.get(place as usize)
    }

    /// The flow that is there.
    #[inline]
    pub fn at_mut(&mut self, place: u32) -> Option<&mut Flow> {
        self.flows.get_mut(place as usize)
    }

    /// Reads what the next packet of a flow needs, to prefetch it; the value has no meaning.
    pub fn prefetch(&self, place: u32) -> u64 {
        self.flows.get(place as usize).map_or(0, |flow| match &flow.state {
            State::Tcp(connection) => flow.last_ns ^ connection.prefetch(),
            State::Udp(datagrams) => flow.last_ns ^ datagrams[0].packets ^ datagrams[1].packets,
        })
    }

    /// The flow with these ends, made if it is new. The second value is a flow that had to go for it.
    #[inline]
    pub fn flow(&mut self, key: &Key, time_ns: u64) -> (&mut Flow, Option<Flow>) {
        if let Some((latest, at)) = self.latest
            && latest == *key
        {
            return (&mut self.flows[at as usize], None);
        }
        let (at, gone) = self.find(*key, time_ns);
        self.latest = Some((*key, at));
        (&mut self.flows[at as usize], gone)
    }

    fn find(&mut self, key: Key, time_ns: u64) -> (u32, Option<Flow>) {
        if let Some(&at) = self.index.get(&key) {
            return (at, None);
        }
        let flow = Flow::new(self.begun, key, time_ns, self.window_scale);
        self.begun += 1;
        let over = if self.len() < self.most { None } else { self.over.pop_front() };
        if over.is_some() || self.len() < self.most {
            let at = self.flows.len() as u32;
            self.flows.push(flow);
            self.index.insert(key, at);
            return (at, over);
        }
        let at = self.oldest();
        let gone = std::mem::replace(&mut self.flows[at], flow);
        self.index.remove(&gone.key);
        self.index.insert(key, at as u32);
        (at as u32, Some(gone))
    }

    /// Begins another connection with the four-tuple of the last packet. The second value is a flow that had to go for it.
    pub fn renew(&mut self, time_ns: u64) -> Option<(&mut Flow, Option<Flow>)> {
        let (key, at) = self.latest?;
        let gone = if self.len() < self.most { None } else { self.over.pop_front() };
        let flow = self.flows.get_mut(at as usize)?;
        let mut over = std::mem::replace(flow, Flow::new(self.begun, key, time_ns, self.window_scale));
        self.begun += 1;
        over.over = true;
        if gone.is_none() && self.flows.len() + self.over.len() >= self.most {
            return Some((&mut self.flows[at as usize], Some(over)));
        }
        self.over.push_back(over);
        Some((&mut self.flows[at as usize], gone))
    }

    /// The least recently used of the next few: a clock hand, so that no list has to be kept in order.
    fn oldest(&mut self) -> usize {
        let length = self.flows.len();
        let looked_at = (0..LOOKED_AT.min(length)).map(|step| (self.hand + step) % length);
        let at = looked_at.min_by_key(|&at| self.flows[at].last_ns).unwrap_or(0);
        self.hand = (self.hand + LOOKED_AT) % length;
        at
    }

    /// How many flows there are.
    pub fn len(&self) -> usize {
        self.flows.len() + self.over.len()
    }

    /// Takes a flow of another table, which this one did not have.
    pub fn take(&mut self, flow: Flow) {
        self.begun = self.begun.max(flow.number + 1);
        if flow.over {
            self.over.push_back(flow);
            return;
        }
        self.index.insert(flow.key, self.flows.len() as u32);
        self.flows.push(flow);
    }

    /// Takes the flows of another table, which had no flow of this one.
    pub fn join(&mut self, other: Self) {
        self.flows.extend(other.flows);
        self.over.extend(other.over);
    }

    /// All of them.
    pub fn into_flows(self) -> Vec<Flow> {
        self.flows.into_iter().chain(self.over).collect()
    }
}
