//! Map of cores: goodput with the receiving thread on each core, and its interrupts or the sending thread on
//! each core.

use std::collections::BTreeSet;

use landspeed_model::{Change, Target, TuneupMap, TuneupMapCell, TuneupMapColumns};
use landspeed_stats::SplitMix64;

use crate::facts::EndFacts;
use crate::ladder::median_bps;
use crate::{Facts, Measurement, Settings};

/// Maximum number of cores per host, unless given by the user.
const MAX_CORES: usize = 8;
/// Maximum number of tests per cell.
pub(crate) const MAX_ROUNDS: u32 = 5;

/// A placement (two cores) and its tests.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    receiver_core: u32,
    column_core: u32,
    pub settings: Settings,
    tests: Vec<Measurement>,
    refused: Option<String>,
}

/// State of the measurement of all cells.
#[derive(Debug, Clone)]
pub(crate) struct Mapping {
    columns: TuneupMapColumns,
    cells: Vec<Cell>,
    /// Remaining cells of this round, the next one last.
    queue: Vec<usize>,
    rounds: u32,
}

impl Mapping {
    /// Creates a map with `cores` of each host, or a selection if empty. Columns are the cores of the receiver's
    /// interrupts with `moves_interrupts`, otherwise of the sending thread.
    ///
    /// # Errors
    /// If there are fewer than two cells to compare, or a core does not exist.
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

    /// The cell to test next.
    fn cell(&self) -> &Cell {
        &self.cells[self.queue.last().copied().unwrap_or(0)]
    }

    pub fn settings(&self) -> &Settings {
        &self.cell().settings
    }

    pub fn what(&self) -> String {
        format!("{}, round {}", self.words(self.cell()), self.rounds + 1)
    }

    /// Description such as `receiver on core 1, interrupts on core 0`.
    pub fn words(&self, cell: &Cell) -> String {
        let other = match self.columns {
            TuneupMapColumns::Interrupts => "interrupts",
            TuneupMapColumns::Sender => "sender",
        };
        format!("receiver on core {}, {other} on core {}", cell.receiver_core, cell.column_core)
    }

    /// Handles a test's result. Returns whether the round is complete.
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

    /// Number of tests left in this round.
    pub fn round_tests(&self) -> u64 {
        self.queue.len() as u64
    }

    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Cells with the highest and the lowest median; an error explains why there are not two.
    pub fn extremes(&self) -> Result<(&Cell, &Cell), String> {
        let mut measured: Vec<&Cell> = self.cells.iter().filter(|cell| cell.refused.is_none()).collect();
        measured.sort_by(|a, b| median_bps(&a.tests).total_cmp(&median_bps(&b.tests)));
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
            // `None` if the kernel moved the queue between tests.
            let mut served = cell.tests.iter().map(|test| test.receive_queue_cpu);
            let first = served.next().flatten();
            TuneupMapCell {
                receiver_core: cell.receiver_core,
                column_core: cell.column_core,
                goodput_bps: (!cell.tests.is_empty()).then(|| median_bps(&cell.tests)),
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

/// The given cores, or a selection at equal distances.
fn chosen(end: &EndFacts, named: &[u32]) -> Result<Vec<u32>, String> {
    if let Some(missing) = named.iter().find(|core| !end.cores.contains(core)) {
        let has = crate::command::comma_separated(&end.cores);
        return Err(format!("core {missing} is not among those of the host: {has}"));
    }
    if !named.is_empty() {
        let each: BTreeSet<u32> = named.iter().copied().collect();
        return Ok(each.into_iter().collect());
    }
    let step = end.cores.len().div_ceil(MAX_CORES).max(1);
    Ok(end.cores.iter().copied().step_by(step).collect())
}

/// Changes that move the processing of received packets to `cpu`: interrupt affinity, or RPS if the interface
/// has no interrupts.
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

/// CPU mask with one CPU in sysfs format: 32-bit words, highest first.
fn mask(cpu: u32) -> String {
    let first = format!("{:x}", 1_u32 << (cpu % 32));
    std::iter::once(first).chain((0..cpu / 32).map(|_| "00000000".to_owned())).collect::<Vec<_>>().join(",")
}

/// Why a search ends whose time does not suffice for this many placements.
pub(crate) fn short_of_map(placements: u64) -> String {
    format!(
        "the time does not suffice to measure each of {placements} placements once: more time (`--budget`) or fewer cores \
         (`--map=0,2`) are needed"
    )
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
    fn cpu_masks_have_words_of_32_bits() {
        assert_eq!([0, 5, 32, 70].map(mask), ["1", "20", "1,00000000", "40,00000000,00000000"]);
    }

    #[test]
    fn interrupts_move_by_affinity_or_by_rps_without_interrupts() {
        let with = |interrupts: Vec<(u32, String)>| {
            let end = EndFacts { interrupts, receive_queues: 2, ..host(4) };
            let changes = interrupts_on(&end, 3);
            changes.iter().map(|change| format!("{}={}", change.target, change.desired)).collect::<Vec<_>>()
        };
        assert_eq!(with(Vec::new()), ["eth0 rx-0 rps_cpus=8", "eth0 rx-1 rps_cpus=8"]);
        assert_eq!(with(vec![(41, "eth0-rx-0".to_owned())]), ["interrupt 41 (eth0-rx-0) affinity=3"]);
    }

    #[test]
    fn maps_of_many_cores_use_evenly_spaced_ones() {
        let facts = Facts { client_sends: true, client: host(4), server: host(128), ..Facts::default() };
        let map = mapping(&facts, &[], false).expect("cores").map();
        let rows: BTreeSet<u32> = map.cells.iter().map(|cell| cell.receiver_core).collect();
        assert_eq!(rows.into_iter().collect::<Vec<_>>(), [0, 16, 32, 48, 64, 80, 96, 112]);
        assert_eq!(map.cells.len(), 8 * 4);
        assert_eq!(mapping(&facts, &[1, 0, 1], false).expect("cores").cells.len(), 4, "a core named twice is one");
        assert!(mapping(&facts, &[0, 5], false).is_err_and(|why| why.contains("core 5 is not among")));
    }

    #[test]
    fn single_core_hosts_have_no_map() {
        let facts = Facts { client: host(1), server: host(1), ..Facts::default() };
        assert!(mapping(&facts, &[], false).is_err());
        assert!(mapping(&facts, &[], true).is_err());
    }

    #[test]
    fn map_pins_the_receiving_host() {
        let facts = Facts { client_sends: false, client: host(2), server: host(2), ..Facts::default() };
        let cells = mapping(&facts, &[], true).expect("cores").cells;
        assert!(cells.iter().all(|cell| {
            let p = &cell.settings.parameters;
            p.client_cpus.len() == 1 && p.server_cpus.is_empty() && cell.settings.plan.client.len() == 1
        }));
    }
}
