//! Hosts that do not answer: when to ask them again.

/// First and longest time until an unreachable host is asked again, nanoseconds.
const FIRST_RETRY_NS: i64 = 60_000_000_000;
const MAX_RETRY_NS: i64 = 3_600_000_000_000;

/// Whether a host answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostState {
    /// No test has told yet.
    Unknown,
    /// It took part in the latest test that told.
    Reachable,
    /// It does not answer.
    Unreachable {
        /// First attempt without an answer, monotonic nanoseconds.
        since_ns: i64,
        /// Next attempt, monotonic nanoseconds.
        retry_ns: i64,
    },
}

/// What tests have told about a host.
#[derive(Debug, Clone, Default)]
pub(super) struct Health {
    known: bool,
    /// Attempts without an answer since the last answer.
    misses: u32,
    since_ns: i64,
    retry_ns: i64,
    /// The client that did not reach it, while that is the only one.
    suspect: Option<usize>,
    unreachable: bool,
}

impl Health {
    /// Records that the host answered.
    pub fn reached(&mut self) {
        *self = Self { known: true, ..Self::default() };
    }

    /// Records an attempt without an answer, of the mesh or of a client. The server is unreachable when the mesh or two
    /// different clients do not reach it: one client may have lost its path only.
    pub fn missed(&mut self, client: Option<usize>, now_ns: i64) {
        if self.misses == 0 {
            self.since_ns = now_ns;
        }
        self.misses = self.misses.saturating_add(1);
        let another = self.suspect.is_some_and(|suspect| Some(suspect) != client);
        self.unreachable |= client.is_none() || another;
        self.suspect = self.suspect.or(client);
        if self.unreachable {
            let wait_ns = FIRST_RETRY_NS.saturating_mul(1 << self.misses.saturating_sub(1).min(20));
            self.retry_ns = now_ns + wait_ns.min(MAX_RETRY_NS);
        }
    }

    /// Returns the time of the next attempt, if the host is unreachable.
    pub fn retry_ns(&self) -> Option<i64> {
        self.unreachable.then_some(self.retry_ns)
    }

    pub fn state(&self) -> HostState {
        match (self.unreachable, self.known) {
            (true, _) => HostState::Unreachable { since_ns: self.since_ns, retry_ns: self.retry_ns },
            (false, true) => HostState::Reachable,
            (false, false) => HostState::Unknown,
        }
    }
}
