//! Problems and warnings found while a scenario is validated.

use landspeed_model::Warning;
use landspeed_problems::Problem;

use super::Time;

/// Result of the validation of a scenario.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Reasons why it cannot be run, without positions (see [`super::load`], which finds them).
    pub problems: Vec<Problem>,
    /// Warnings: `code` is a stable identifier, `message` begins with the key it is about.
    pub warnings: Vec<Warning>,
}

impl Judgement {
    pub(super) fn refuse(&mut self, key: impl Into<String>, message: impl Into<String>) {
        self.add(Problem::new(key, message));
    }

    pub(super) fn refuse_with(
        &mut self,
        key: impl Into<String>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.add(Problem::new(key, message).hint(hint));
    }

    pub(super) fn add(&mut self, problem: Problem) {
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    pub(super) fn warn(&mut self, code: &str, key: &str, message: impl AsRef<str>) {
        let warning = Warning { code: code.to_owned(), message: format!("{key}: {}", message.as_ref()) };
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Refuses a time outside `least..=most` nanoseconds.
    pub(super) fn time(&mut self, key: impl Into<String>, time: Option<Time>, least: u64, most: u64, range: &str) {
        if let Some(time) = time
            && !(least..=most).contains(&time.0.get())
        {
            self.refuse_with(key, format!("{time} is out of range"), range);
        }
    }
}
