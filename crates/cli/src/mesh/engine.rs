//! Runs the tests of a mesh as its schedule asks for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use landspeed_flow::client::{self, RunEvent};
use landspeed_mesh::{Scheduler, Start, TaskId};
use landspeed_model::{ErrorEntry, RunDocument, Status};
use landspeed_sys::clock;

use super::journal::{EndEntry, EndOutcome, Entry, Journal, Key, Stamp};
use super::outcome;
use super::plan::{MeshPlan, PairTest};
use super::state::{MeshState, moment, outcome_of, rfc3339};
use super::store::Store;
use super::text;

/// Longest wait for a result before flags and limits are checked.
const TICK: Duration = Duration::from_millis(100);
/// Time between two attempts to store what waits, nanoseconds.
const RETRY_NS: u64 = 30_000_000_000;
/// Time that running tests get to end after an interrupt, nanoseconds.
const STOP_NS: u64 = 20_000_000_000;

/// A test in progress.
struct Running {
    start: Start,
    key: Key,
    began_ns: u64,
    stop: Arc<AtomicBool>,
    /// Whether it exceeded its limit.
    over_limit: bool,
}

/// What a thread sends when its test has ended.
struct Ended {
    task: TaskId,
    document: Box<RunDocument>,
    /// Whether a server accepted the test, so that data may have been sent.
    accepted: bool,
    mirrored: bool,
}

/// Runs tests until the schedule is over or the user interrupts.
pub struct Engine<'a> {
    pub plan: &'a MeshPlan,
    pub scheduler: &'a mut Scheduler,
    pub state: &'a mut MeshState,
    pub journal: &'a mut Journal,
    pub store: &'a mut Store,
    /// Whether a line is printed for each test.
    pub prints: bool,
    pub interrupted: &'static AtomicBool,
}

impl Engine<'_> {
    /// Runs the tests. `export` is called many times a second; its argument is whether a test has ended since.
    pub fn run(&mut self, export: &mut dyn FnMut(&mut Scheduler, &MeshState, bool)) -> anyhow::Result<()> {
        let (send, received) = mpsc::channel::<Ended>();
        let mut running: Vec<Running> = Vec::new();
        let mut retry_ns = clock::monotonic_ns() + RETRY_NS;
        let mut stop_ns = None;
        let mut full = false;
        loop {
            let now_ns = clock::monotonic_ns();
            if self.interrupted.load(Ordering::Relaxed) && stop_ns.is_none() {
                stop_ns = Some(now_ns + STOP_NS);
                running.iter().for_each(|test| test.stop.store(true, Ordering::Relaxed));
            }
            if stop_ns.is_some_and(|stop_ns| running.is_empty() || now_ns > stop_ns) {
                break;
            }
            if now_ns > retry_ns {
                retry_ns = now_ns + RETRY_NS;
                self.store.flush();
                self.write(None);
            }
            if self.store.is_full() != full {
                full = !full;
                if full {
                    errln!("landspeed: no test starts until results can be stored: too many wait in memory");
                }
            }
            if stop_ns.is_none() && !full {
                for start in self.scheduler.poll(moment()) {
                    running.push(self.begin(start, &send)?);
                }
                if self.scheduler.is_over() {
                    break;
                }
            }
            for test in &mut running {
                if now_ns > test.began_ns.saturating_add(test.start.cost.limit_ns) && !test.over_limit {
                    test.over_limit = true;
                    test.stop.store(true, Ordering::Relaxed);
                }
            }
            let ended = match received.recv_timeout(TICK) {
                Ok(end) => running.iter().position(|test| test.start.task == end.task).map(|at| (at, end)),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Err(anyhow!("the threads of the tests are gone")),
            };
            let has_ended = ended.is_some();
            if let Some((at, end)) = ended {
                self.end(running.swap_remove(at), end);
            }
            export(self.scheduler, self.state, has_ended);
        }
        Ok(())
    }

    fn begin(&mut self, start: Start, send: &mpsc::Sender<Ended>) -> anyhow::Result<Running> {
        let inventory = &self.plan.inventory;
        let name = |host: usize| inventory.hosts[host].name.clone();
        let key = Key {
            test: inventory.tests[start.test].name.clone(),
            from: name(start.pair.from),
            to: name(start.pair.to),
            start: Stamp::now(),
            reserved_bytes: start.cost.reservation().bytes,
            reserved_ns: start.cost.reservation().time_ns,
        };
        self.write(Some(&Entry::Start(key.clone())));
        let test = self.plan.pair_test(start.test, start.pair).map_err(|refused| anyhow!("{}", refused.message))?;
        let stop = Arc::new(AtomicBool::new(false));
        let (flag, task, send) = (Arc::clone(&stop), start.task, send.clone());
        let work = move || {
            let (document, accepted) = measure(&test, &flag);
            // The mesh has ended if no one receives it.
            let _ = send.send(Ended { task, document: Box::new(document), accepted, mirrored: test.is_mirrored() });
        };
        std::thread::Builder::new()
            .name("mesh".to_owned())
            .spawn(work)
            .context("cannot start a thread for a test")?;
        Ok(Running { start, key, began_ns: clock::monotonic_ns(), stop, over_limit: false })
    }

    fn end(&mut self, test: Running, ended: Ended) {
        let Ended { document, accepted, mirrored, .. } = ended;
        let Start { task, test: number, pair, cost } = test.start;
        let hosts = &self.plan.inventory.hosts;
        let local = (hosts[pair.from].local, hosts[pair.to].local);
        let mut end = EndEntry {
            duration_ns: clock::monotonic_ns() - test.began_ns,
            bytes: outcome::sent_bytes(&document, accepted),
            outcome: outcome::outcome(&document, local, test.stop.load(Ordering::Relaxed)),
            versions: outcome::versions(&document, mirrored),
            result: outcome::result(&document),
            key: test.key,
        };
        if test.over_limit && end.outcome == EndOutcome::Interrupted {
            end.outcome = EndOutcome::Failed;
            end.result.error = Some(over_limit(cost.limit_ns));
        }
        if end.result.started.is_empty() {
            end.result.started = rfc3339(end.key.start.unix_ns);
        }
        if let (Some(bytes), Some(most)) = (end.bytes, cost.bytes)
            && bytes > most
        {
            let test = format!("{}, {} to {} sent ", end.key.test, end.key.from, end.key.to);
            let message = format!("{test}{bytes} bytes, more than the worst case of {most}");
            let advice = Some("raise `capacity` of the hosts to the rate of their interfaces".to_owned());
            // The latest of each pair.
            self.state.errors.retain(|error| error.code != "worst-case" || !error.message.starts_with(&test));
            self.state.errors.push(ErrorEntry { code: "worst-case".to_owned(), message, advice });
        }
        self.scheduler.finish(task, outcome_of(end.outcome, pair, local.0), end.bytes, moment());
        self.state.count(number, end.outcome);
        self.state.take(task.index(), &end);
        self.state.take_hosts(pair, &end);
        if document.status != Status::Failed {
            match serde_json::to_vec(&document) {
                Ok(bytes) => self.store.keep(bytes),
                Err(why) => errln!("landspeed: cannot encode a result: {why}"),
            }
        }
        if self.prints && end.outcome != EndOutcome::Interrupted {
            out!("{}", text::line(&end));
        }
        self.write(Some(&Entry::End(Box::new(end))));
    }

    /// Writes an entry of the journal, and those that could not be written before. Tests continue if it cannot be written.
    fn write(&mut self, entry: Option<&Entry>) {
        let written = match entry {
            Some(entry) => self.journal.add(entry),
            None => self.journal.flush(),
        };
        let failed = |error: &ErrorEntry| error.code == "journal";
        match written {
            Ok(()) => self.state.errors.retain(|error| !failed(error)),
            Err(why) => {
                let path = self.journal.path().display();
                let message = format!("cannot write {path}: {why}; budgets would not survive a restart");
                if !self.state.errors.iter().any(failed) {
                    errln!("landspeed: {message}\nFree some space. Tests continue meanwhile.");
                    let advice = Some("free some space".to_owned());
                    self.state.errors.push(ErrorEntry { code: "journal".to_owned(), message, advice });
                }
            }
        }
    }
}

fn over_limit(limit_ns: u64) -> ErrorEntry {
    ErrorEntry {
        code: "limit".to_owned(),
        message: format!("stopped after its limit of {}", landspeed_units::Nanos::new(limit_ns)),
        advice: Some("raise `limit` of the test".to_owned()),
    }
}

/// Runs a test; failures are in the document. Returns whether a server accepted it.
fn measure(test: &PairTest, stop: &AtomicBool) -> (RunDocument, bool) {
    let mut accepted = false;
    let document = match test.request() {
        Ok(request) => test.test().measure(&request, test.from.as_ref(), stop, &mut |event| {
            accepted |= matches!(event, RunEvent::Accepted { .. });
        }),
        Err(why) => {
            let request = client::Request {
                target: test.test().server(),
                parameters: test.test().parameters().0,
                key: None,
                command: Vec::new(),
                data: None,
                local_port: None,
                start_ns: None,
            };
            client::not_started_document(&request, why)
        }
    };
    (document, accepted)
}
