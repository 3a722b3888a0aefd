//! A benchmark case: its metrics, and the contestants that take turns.

use std::any::Any;
use std::rc::Rc;

use anyhow::{Result, ensure};

use super::row::{Better, Metric, Row, Series, Skipped, Target, Unit};
use super::tools::Found;

/// Runs once and returns one value per metric of the case.
pub type Measure = Box<dyn FnMut() -> Result<Vec<f64>>>;

/// Role of a contestant in the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Landspeed; the target applies to it.
    Ours,
    /// Another configuration of landspeed, for information.
    OursVariant,
    /// A rival; the target is relative to the best of these.
    Rival,
    /// Another configuration of a rival, for information.
    RivalVariant,
}

struct Contestant {
    name: String,
    role: Role,
    measure: Measure,
    values: Vec<Option<Vec<f64>>>,
    error: Option<String>,
}

/// A case under construction.
pub struct Case {
    name: String,
    metrics: Vec<Metric>,
    contestants: Vec<Contestant>,
    skipped: Vec<Skipped>,
    rounds: Option<u32>,
    /// What the contestants run in; it ends after them.
    surroundings: Option<Rc<dyn Any>>,
}

impl Case {
    /// Creates an empty case.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            metrics: Vec::new(),
            contestants: Vec::new(),
            skipped: Vec::new(),
            rounds: None,
            surroundings: None,
        }
    }

    /// Adds a metric; `target` is a ratio to the best rival.
    #[must_use]
    pub fn metric(mut self, name: &str, unit: Unit, better: Better, target: Option<f64>) -> Self {
        self.metrics.push(Metric { name: name.to_owned(), unit, better, target, further: Vec::new() });
        self
    }

    /// Adds a target for one contestant relative to another, for the metric added last.
    #[must_use]
    pub fn target(mut self, who: &str, rival: &str, target: f64) -> Self {
        if let Some(metric) = self.metrics.last_mut() {
            metric.further.push(Target { who: who.to_owned(), rival: rival.to_owned(), target });
        }
        self
    }

    /// Sets the number of rounds.
    #[must_use]
    pub fn rounds(mut self, rounds: u32) -> Self {
        self.rounds = Some(rounds);
        self
    }

    /// Keeps what the contestants run in until the last of them has ended.
    #[must_use]
    pub fn keep(mut self, surroundings: Rc<dyn Any>) -> Self {
        self.surroundings = Some(surroundings);
        self
    }

    /// Adds a contestant if its tool was found and `prepare` (which starts its server) succeeds.
    #[must_use]
    pub fn with<T: ?Sized>(
        mut self,
        role: Role,
        name: &str,
        tool: &Found<T>,
        prepare: impl FnOnce(Rc<T>) -> Result<Measure>,
    ) -> Self {
        let prepared = tool.clone().and_then(|tool| prepare(tool).map_err(|error| format!("{error:#}")));
        match prepared {
            Ok(measure) => {
                self.contestants.push(Contestant {
                    name: name.to_owned(),
                    role,
                    measure,
                    values: Vec::new(),
                    error: None,
                });
                self
            }
            Err(why) => self.without(name, &why),
        }
    }

    /// Records that a contestant is skipped, and why.
    #[must_use]
    pub fn without(mut self, name: &str, why: &str) -> Self {
        println!("  SKIPPED {name}: {why}");
        self.skipped.push(Skipped { name: name.to_owned(), why: why.to_owned() });
        self
    }

    /// Runs all rounds; each round starts with the next contestant. A contestant that failed twice in a row is
    /// skipped from then on.
    pub fn run_rounds(mut self, rounds: u32) -> Vec<Row> {
        for round in 0..self.rounds.unwrap_or(rounds) as usize {
            for turn in 0..self.contestants.len() {
                let at = (round + turn) % self.contestants.len();
                let contestant = &mut self.contestants[at];
                if contestant.values.len() >= 2 && contestant.values.iter().rev().take(2).all(Option::is_none) {
                    contestant.values.push(None);
                    continue;
                }
                let expected = self.metrics.len();
                let outcome = (contestant.measure)().and_then(|values| {
                    ensure!(values.len() == expected, "{} values for {expected} metrics", values.len());
                    ensure!(values.iter().all(|value| value.is_finite()), "a value is not a number");
                    Ok(values)
                });
                match outcome {
                    Ok(values) => {
                        let shown: Vec<String> = self
                            .metrics
                            .iter()
                            .zip(&values)
                            .map(|(metric, &value)| metric.unit.show(value))
                            .collect();
                        println!("  {:>2} {:<28} {}", round + 1, contestant.name, shown.join("  "));
                        contestant.values.push(Some(values));
                    }
                    Err(error) => {
                        println!("  {:>2} {:<28} FAILED: {error:#}", round + 1, contestant.name);
                        contestant.error = Some(format!("{error:#}"));
                        contestant.values.push(None);
                    }
                }
            }
        }
        self.rows()
    }

    fn rows(self) -> Vec<Row> {
        let Self { name, metrics, contestants, skipped, .. } = self;
        let series = |at: usize| {
            contestants
                .iter()
                .map(|contestant| Series {
                    name: contestant.name.clone(),
                    ours: matches!(contestant.role, Role::Ours | Role::OursVariant),
                    judged: matches!(contestant.role, Role::Ours | Role::Rival),
                    values: contestant.values.iter().map(|values| Some(values.as_ref()?[at])).collect(),
                    error: contestant.error.clone(),
                })
                .collect()
        };
        metrics
            .iter()
            .enumerate()
            .map(|(at, metric)| Row::new(&name, metric.clone(), series(at), skipped.clone()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    const FOUND: fn() -> Found<()> = || Ok(Rc::new(()));

    fn case() -> Case {
        Case::new("c").metric("goodput", Unit::Bps, Better::Higher, Some(1.0))
    }

    #[test]
    fn every_round_begins_with_the_next_contestant() {
        let order = Rc::new(RefCell::new(String::new()));
        let plays = |letter: char| {
            let order = Rc::clone(&order);
            move |_| {
                Ok(Box::new(move || {
                    order.borrow_mut().push(letter);
                    Ok(vec![1.0])
                }) as Measure)
            }
        };
        let case = case().with(Role::Ours, "a", &FOUND(), plays('a')).with(Role::Rival, "b", &FOUND(), plays('b'));
        let _ = case.with(Role::Rival, "c", &FOUND(), plays('c')).run_rounds(3);
        assert_eq!(order.borrow().as_str(), "abcbcacab");
    }

    #[test]
    fn a_missing_tool_is_skipped_with_its_reason() {
        let missing: Found<()> = Err("not installed".to_owned());
        let rows = case()
            .with(Role::Rival, "gone", &missing, |_| Ok(Box::new(|| Ok(vec![1.0]))))
            .with(Role::Rival, "stuck", &FOUND(), |_| anyhow::bail!("port taken"))
            .run_rounds(1);
        let why: Vec<&str> = rows[0].skipped.iter().map(|skipped| skipped.why.as_str()).collect();
        assert_eq!(why, ["not installed", "port taken"]);
    }

    #[test]
    fn two_failures_in_a_row_exclude_a_tool() {
        let runs = Rc::new(RefCell::new(0));
        let counted = Rc::clone(&runs);
        let rows = case()
            .with(Role::Rival, "broken", &FOUND(), move |_| {
                Ok(Box::new(move || {
                    *counted.borrow_mut() += 1;
                    anyhow::bail!("refused")
                }))
            })
            .run_rounds(5);
        assert_eq!((*runs.borrow(), rows[0].series[0].values.len()), (2, 5));
        assert_eq!(rows[0].series[0].error.as_deref(), Some("refused"));
    }

    #[test]
    fn a_value_that_is_not_a_number_is_a_failure() {
        let rows = case().with(Role::Ours, "odd", &FOUND(), |_| Ok(Box::new(|| Ok(vec![f64::NAN])))).run_rounds(1);
        assert_eq!(rows[0].series[0].values, [None]);
    }
}
