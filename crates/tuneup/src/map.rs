//! A map of cores: goodput with the receiving thread on each core, and its interrupts, or the sending thread, on each.

use std::collections::BTreeSet;

use landspeed_model::{Change, Target, TuneupMap, TuneupMapCell, TuneupMapColumns};
use landspeed_stats::SplitMix64;

use crate::facts::EndFacts;
use crate::ladder::middle_bps;
use crate::{Facts, Measurement, Settings};

/// Most cores of a host, unless they were named.
const MOST_CORES: usize = 8;
/// Most tests of each cell.
pub(crate) const MOST_ROUNDS: u32 = 5;

/// Two cores and what they gave.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    receiver_core: u32,
    column_core: u32,
    pub settings: Settings,
    tests: Vec<Measurement>,
    refused: Option<String>,
}

/// Every cell in turns.
#[derive(Debug, Clone)]
pub(crate) struct Mapping {
    columns: TuneupMapColumns,
    cells: Vec<Cell>,
    /// What is left of this round, the next last.
    queue: Vec<usize>,
    rounds: u32,
}

impl Mapping {
    /// With `cores` of each host, or some of all where it is empty. With `moves_interrupts` the columns are those of the receiver's
    /// interrupts, else the sending thread's.
    ///
    /// # Errors
    /// There are not two cells to compare.
    pub fn new(
        original: &Settings,
        facts: &Facts,
        cores: &[u32],
        moves_interrupts: bool,
        random: &mut SplitMix64,
    ) -> Result<Self, String> {
        let receiver = facts.receiver();
        let columns = if moves_interrupts { TuneupMapColumns::Interrupts } else { TuneupMapColumns::Sender };
        let column_end = if moves_interrupts { receiver } else { facts.sender() };
        if moves_interrupts && receiver.interface.is_none() {
            return Err("the receiver's interface is not known, so its interrupts cannot be moved".to_owned());
        }
        let (rows, across) = (chosen(receiver, cores)?, chosen(column_end, cores)?);
        if rows.len() * across.len() < 2 {
            return Err("there is one core only, and nothing to compare".to_owned());
        }
        let cell = |receiver_core: u32, column_core: u32| {
            let mut settings = original.clone();
            let p = &mut settings.parameters;
            let (receiving, sending, plan) = if facts.client_sends {
                (&mut p.server_cpus, &mut p.client_cpus, &mut settings.plan.server)
            } else {
                (&mut p.client_cpus, &mut p.server_cpus, &mut settings.plan.client)
            };
            *receiving = vec![receiver_core];
            match columns {
                TuneupMapColumns::Sender => *sending = vec![column_core],
                TuneupMapColumns::Interrupts => plan.extend(interrupts_on(receiver, column_core)),
            }
            Cell { receiver_core, column_core, settings, tests: Vec::new(), refused: None }
        };
        let cells = rows.iter().flat_map(|row| across.iter().map(|column| cell(*row, *column))).collect();
        let mut mapping = Self { columns, cells, queue: Vec::new(), rounds: 0 };
        mapping.begin_round(random);
        Ok(mapping)
    }

    fn begin_round(&mut self, random: &mut SplitMix64) {
        self.queue = (0..self.cells.len()).filter(|cell| self.cells[*cell].refused.is_none()).collect();
        for at in (1..self.queue.len()).rev() {
            self.queue.swap(at, random.below(at as u64 + 1) as usize);
        }
    }

    /// The cell to test.
    fn cell(&self) -> &Cell {
        &self.cells[self.queue.last().copied().unwrap_or(0)]
    }

    pub fn settings(&self) -> &Settings {
        &self.cell().settings
    }

    pub fn what(&self) -> String {
        format!("{}, round {}", self.words(self.cell()), self.rounds + 1)
    }

    /// `receiver on core 1, interrupts on core 0`.
    pub fn words(&self, cell: &Cell) -> String {
        let other = match self.columns {
            TuneupMapColumns::Interrupts => "interrupts",
            TuneupMapColumns::Sender => "sender",
        };
        format!("receiver on core {}, {other} on core {}", cell.receiver_core, cell.column_core)
    }

    /// Takes a test. Returns whether a round is complete.
    pub fn take(&mut self, measured: Result<Measurement, String>, random: &mut SplitMix64) -> bool {
        let Some(cell) = self.queue.pop() else { return true };
        match measured {
            Ok(measured) => self.cells[cell].tests.push(measured),
            Err(why) => self.cells[cell].refused = Some(why),
        }
        if !self.queue.is_empty() {
            return false;
        }
        self.rounds += 1;
        self.begin_round(random);
        true
    }

    /// Tests of a round.
    pub fn round_tests(&self) -> u64 {
        self.queue.len() as u64
    }

    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// The cells with the highest and with the lowest median; the error is why there are not two.
    pub fn extremes(&self) -> Result<(&Cell, &Cell), String> {
        let mut measured: Vec<&Cell> = self.cells.iter().filter(|cell| cell.refused.is_none()).collect();
        measured.sort_by(|a, b| middle_bps(&a.tests).total_cmp(&middle_bps(&b.tests)));
        match (measured.last(), measured.first()) {
            (Some(fastest), Some(slowest)) if measured.len() > 1 => Ok((fastest, slowest)),
            _ => {
                let why = self.cells.iter().find_map(|cell| cell.refused.clone()).unwrap_or_default();
                Err(format!("fewer than two placements are possible: {why}"))
            }
        }
    }

    pub fn map(&self) -> TuneupMap {
        let cell = |cell: &Cell| {
            let rates = || cell.tests.iter().map(|test| test.goodput_bps);
            let costs: Option<Vec<f64>> = cell.tests.iter().map(|test| test.cpu_s_per_gb).collect();
            // Where the kernel moved it meanwhile, there is no one CPU.
            let mut served = cell.tests.iter().map(|test| test.receive_queue_cpu);
            let first = served.next().flatten();
            TuneupMapCell {
                receiver_core: cell.receiver_core,
                column_core: cell.column_core,
                goodput_bps: (!cell.tests.is_empty()).then(|| middle_bps(&cell.tests)),
                lowest_bps: rates().reduce(f64::min),
                highest_bps: rates().reduce(f64::max),
                cpu_s_per_gb: costs.and_then(|costs| landspeed_stats::median(&costs)),
                receive_queue_cpu: first.filter(|_| served.all(|cpu| cpu == first)),
                refused: cell.refused.clone(),
            }
        };
        TuneupMap { columns: self.columns, rounds: self.rounds, cells: self.cells.iter().map(cell).collect() }
    }
}

/// The cores that were named, or some of all, at equal distances.
fn chosen(end: &EndFacts, named: &[u32]) -> Result<Vec<u32>, String> {
    if let Some(missing) = named.iter().find(|core| !end.cores.contains(core)) {
        let has = crate::command::comma_separated(&end.cores);
        return Err(format!("core {missing} is not among those of the host: {has}"));
    }
    if !named.is_empty() {
        let each: BTreeSet<u32> = named.iter().copied().collect();
        return Ok(each.into_iter().collect());
    }
    let step = end.cores.len().div_ceil(MOST_CORES).max(1);
    Ok(end.cores.iter().copied().step_by(step).collect())
}

/// What puts the handling of received packets on `cpu`: the affinity of the interface's interrupts; RPS where it has none.
fn interrupts_on(end: &EndFacts, cpu: u32) -> Vec<Change> {
    let Some(interface) = &end.interface else { return Vec::new() };
    if end.interrupts.is_empty() {
        let queue = |queue: u32| Target::Queue {
            interface: interface.clone(),
            queue: format!("rx-{queue}"),
            file: "rps_cpus".to_owned(),
        };
        return (0..end.receive_queues.max(1)).map(|at| Change::new(queue(at), mask(cpu))).collect();
    }
    let affinity = |(number, name): &(u32, String)| Target::InterruptAffinity { number: *number, name: name.clone() };
    end.interrupts.iter().map(|interrupt| Change::new(affinity(interrupt), cpu.to_string())).collect()
}

/// A mask with one CPU as sysfs has it: words of 32 bits, the highest first.
fn mask(cpu: u32) -> String {
    let first = format!("{:x}", 1_u32 << (cpu % 32));
    std::iter::once(first).chain((0..cpu / 32).map(|_| "00000000".to_owned())).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use landspeed_model::{Parameters, TuneupPlan};

    use super::*;

    fn host(cores: u32) -> EndFacts {
        EndFacts { cores: (0..cores).collect(), interface: Some("eth0".to_owned()), ..EndFacts::default() }
    }

    fn mapping(facts: &Facts, cores: &[u32], moves_interrupts: bool) -> Result<Mapping, String> {
        let original = Settings { parameters: Parameters::default(), plan: TuneupPlan::default() };
        Mapping::new(&original, facts, cores, moves_interrupts, &mut SplitMix64::new(1))
    }

    #[test]
    fn a_mask_has_words_of_32_bits() {
        assert_eq!([0, 5, 32, 70].map(mask), ["1", "20", "1,00000000", "40,00000000,00000000"]);
    }

    #[test]
    fn interrupts_are_moved_by_affinity_or_else_by_rps() {
        let with = |interrupts: Vec<(u32, String)>| {
            let end = EndFacts { interrupts, receive_queues: 2, ..host(4) };
            let changes = interrupts_on(&end, 3);
            changes.iter().map(|change| format!("{}={}", change.target, change.desired)).collect::<Vec<_>>()
        };
        assert_eq!(with(Vec::new()), ["eth0 rx-0 rps_cpus=8", "eth0 rx-1 rps_cpus=8"]);
        assert_eq!(with(vec![(41, "eth0-rx-0".to_owned())]), ["interrupt 41 (eth0-rx-0) affinity=3"]);
    }

    #[test]
    fn a_host_with_many_cores_is_sampled_across_all() {
        let facts = Facts { client_sends: true, client: host(4), server: host(128), ..Facts::default() };
        let map = mapping(&facts, &[], false).expect("cores").map();
        let rows: BTreeSet<u32> = map.cells.iter().map(|cell| cell.receiver_core).collect();
        assert_eq!(rows.into_iter().collect::<Vec<_>>(), [0, 16, 32, 48, 64, 80, 96, 112]);
        assert_eq!(map.cells.len(), 8 * 4);
        assert_eq!(mapping(&facts, &[1, 0, 1], false).expect("cores").cells.len(), 4, "a core named twice is one");
        assert!(mapping(&facts, &[0, 5], false).is_err_and(|why| why.contains("core 5 is not among")));
    }

    #[test]
    fn one_core_has_no_map() {
        let facts = Facts { client: host(1), server: host(1), ..Facts::default() };
        assert!(mapping(&facts, &[], false).is_err());
        assert!(mapping(&facts, &[], true).is_err());
    }

    #[test]
    fn the_receiver_is_the_end_that_receives() {
        let facts = Facts { client_sends: false, client: host(2), server: host(2), ..Facts::default() };
        let cells = mapping(&facts, &[], true).expect("cores").cells;
        assert!(cells.iter().all(|cell| {
            let p = &cell.settings.parameters;
            p.client_cpus.len() == 1 && p.server_cpus.is_empty() && cell.settings.plan.client.len() == 1
        }));
    }
}
