//! Full and fractional factorial designs.

use std::fmt::Write as _;

use landspeed_model::SweepDesign;

use crate::{Plan, Rules};

/// Maximum number of factors of a two-level design: 2^20 sums are searched in well under a second.
pub const MAX_FACTORS: usize = 20;
/// Maximum number of aliases listed.
const MAX_ALIASES: usize = 40;
/// Maximum number of choices of generators compared.
const MAX_CHOICES: u32 = 20_000;

/// The cells of an experiment, each as the index of the level of every factor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Design {
    /// The cells in lexicographic order of the levels: the first factor varies slowest.
    pub cells: Vec<Vec<usize>>,
    /// The defining words, which multiply to 1 (Box, Hunter, Hunter, Statistics for Experimenters, chapter 6), as
    /// sets of factors; empty in a full design.
    words: Vec<u32>,
    factors: usize,
}

/// Error of [`Design::fraction`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FractionError {
    /// Too many factors; see [`MAX_FACTORS`].
    #[error("{0} factors, the maximum of a fractional design is {MAX_FACTORS}")]
    TooMany(usize),
    /// Main effects would be aliased with each other: denominator of the fraction, number of factors.
    #[error("1/{0} of {1} factors cannot separate their effects")]
    TooSmall(u64, usize),
}

impl Design {
    /// The design for a plan, which must be valid.
    pub fn of(plan: &Plan) -> Self {
        match plan.fraction {
            0 => Self::full(&plan.factors.iter().map(|factor| factor.levels.len()).collect::<Vec<_>>()),
            power => {
                Self::fraction(plan.factors.len(), power).unwrap_or_else(|_| Self::full(&vec![2; plan.factors.len()]))
            }
        }
    }

    /// All combinations of levels; `levels` has the number of levels of each factor.
    pub fn full(levels: &[usize]) -> Self {
        let count = levels.iter().product::<usize>();
        let cell = |number: usize| {
            let mut rest = number;
            let mut cell = vec![0; levels.len()];
            for (level, &count) in cell.iter_mut().zip(levels).rev() {
                *level = rest % count;
                rest /= count;
            }
            cell
        };
        Self { cells: (0..count).map(cell).collect(), words: Vec::new(), factors: levels.len() }
    }

    /// One of 2^`power` of the combinations of `factors` factors with two levels each: the fraction with the
    /// highest resolution and, among those, with the fewest words of that length (minimum aberration, Fries and
    /// Hunter 1980), of the choices that are compared.
    ///
    /// # Errors
    /// Main effects would be aliased with each other.
    pub fn fraction(factors: usize, power: u32) -> Result<Self, FractionError> {
        let too_small = || FractionError::TooSmall(1_u64.checked_shl(power).unwrap_or(0), factors);
        if factors > MAX_FACTORS {
            return Err(FractionError::TooMany(factors));
        }
        let added = power as usize;
        let base = factors.checked_sub(added).filter(|base| *base >= 1).ok_or_else(too_small)?;
        let generators = generators(base, added).ok_or_else(too_small)?;
        let level = |run: u32, factor: usize| match factor.checked_sub(base) {
            None => (run >> (base - 1 - factor)) & 1,
            // The product of columns of -1 and +1, written as 0 and 1.
            Some(column) => {
                let word = generators[column];
                (0..base).fold(1 ^ (word.count_ones() & 1), |sign, factor| {
                    sign ^ if word >> factor & 1 == 1 { (run >> (base - 1 - factor)) & 1 } else { 0 }
                })
            }
        };
        let cells = (0..1_u32 << base).map(|run| (0..factors).map(|factor| level(run, factor) as usize).collect());
        Ok(Self { cells: cells.collect(), words: words(&generators, base), factors })
    }

    /// Resolution of the design: the length of the shortest defining word; `None` for a full design.
    pub fn resolution(&self) -> Option<u32> {
        self.words.iter().map(|word| word.count_ones()).min()
    }

    /// Aliases among main effects and two-factor interactions, each as `a = b×c`.
    pub fn aliases(&self, names: &[&str]) -> Vec<String> {
        let pairs = (0..self.factors).flat_map(|a| (a + 1..self.factors).map(move |b| (1_u32 << a) | (1 << b)));
        let effects: Vec<u32> = (0..self.factors).map(|factor| 1_u32 << factor).chain(pairs).collect();
        let mut listed: Vec<u32> = Vec::new();
        let mut aliases = Vec::new();
        for &effect in &effects {
            if listed.contains(&effect) {
                continue;
            }
            let same: Vec<u32> =
                effects.iter().copied().filter(|other| self.words.contains(&(effect ^ other))).collect();
            if same.is_empty() {
                continue;
            }
            listed.extend(&same);
            let all: Vec<String> = [effect].iter().chain(&same).map(|&effect| name(effect, names)).collect();
            aliases.push(all.join(" = "));
            if aliases.len() == MAX_ALIASES {
                aliases.push("and more".to_owned());
                break;
            }
        }
        aliases
    }

    /// The design as part of a sweep document.
    pub fn describe(&self, plan: &Plan, rules: &Rules) -> SweepDesign {
        let names: Vec<&str> = plan.factors.iter().map(|factor| factor.name.as_str()).collect();
        SweepDesign {
            kind: match plan.fraction {
                0 => "full".to_owned(),
                power => format!("2^({}-{power})", self.factors),
            },
            resolution: self.resolution().map(roman),
            aliases: if self.words.is_empty() { Vec::new() } else { self.aliases(&names) },
            blocks: rules.blocks.unwrap_or(0),
            seed: plan.seed,
            until: rules.until.map(|until| until.to_string()),
        }
    }
}

/// An effect as a product of factor names, such as `a×b`.
fn name(effect: u32, names: &[&str]) -> String {
    let mut text = String::new();
    for (_, name) in names.iter().enumerate().filter(|(i, _)| effect >> i & 1 == 1) {
        let _ = write!(text, "{}{name}", if text.is_empty() { "" } else { "×" });
    }
    text
}

fn roman(number: u32) -> String {
    match number {
        3 => "III".to_owned(),
        4 => "IV".to_owned(),
        5 => "V".to_owned(),
        6 => "VI".to_owned(),
        7 => "VII".to_owned(),
        n => n.to_string(),
    }
}

/// For each added factor, the set of base factors whose product defines it.
fn generators(base: usize, added: usize) -> Option<Vec<u32>> {
    // Longest words first: they reach the highest resolution soonest.
    let mut candidates: Vec<u32> = (1_u32..1 << base).filter(|word| word.count_ones() >= 2).collect();
    candidates.sort_by_key(|word| std::cmp::Reverse(word.count_ones()));
    if candidates.len() < added {
        return None;
    }
    let mut best: Option<(Vec<u32>, Vec<usize>)> = None;
    let mut choice: Vec<usize> = (0..added).collect();
    for _ in 0..MAX_CHOICES {
        let generators: Vec<u32> = choice.iter().map(|&i| candidates[i]).collect();
        // Number of words of each length, shortest first; fewer short words are better.
        let mut pattern = vec![0; base + added + 1];
        words(&generators, base).iter().for_each(|word| pattern[word.count_ones() as usize] += 1);
        if best.as_ref().is_none_or(|(_, least)| pattern < *least) {
            best = Some((generators, pattern));
        }
        if !advance(&mut choice, candidates.len()) {
            break;
        }
    }
    best.map(|(generators, _)| generators)
}

/// Advances to the next combination of distinct positions below `count`, in lexicographic order. Returns
/// `false` after the last.
fn advance(choice: &mut [usize], count: usize) -> bool {
    let taken = choice.len();
    for i in (0..taken).rev() {
        if choice[i] + (taken - i) < count {
            choice[i] += 1;
            for j in i + 1..taken {
                choice[j] = choice[j - 1] + 1;
            }
            return true;
        }
    }
    false
}

/// All defining words: the products of all subsets of the generators.
fn words(generators: &[u32], base: usize) -> Vec<u32> {
    let own: Vec<u32> = generators.iter().enumerate().map(|(i, word)| word | 1 << (base + i)).collect();
    (1_u32..1 << own.len())
        .map(|set| own.iter().enumerate().filter(|(i, _)| set >> i & 1 == 1).fold(0, |word, (_, own)| word ^ own))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_design_has_every_combination_once() {
        let design = Design::full(&[2, 3]);
        assert_eq!(design.cells, [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]);
        assert_eq!(design.resolution(), None);
        assert_eq!(Design::full(&[]).cells, [Vec::<usize>::new()]);
    }

    #[test]
    fn fractions_have_the_published_resolution() {
        // Box, Hunter, Hunter, Statistics for Experimenters, table 6.22.
        for (factors, power, resolution) in [
            (3, 1, 3),
            (4, 1, 4),
            (5, 1, 5),
            (5, 2, 3),
            (6, 1, 6),
            (6, 2, 4),
            (7, 1, 7),
            (7, 3, 4),
            (7, 4, 3),
            (8, 2, 5),
            (8, 4, 4),
        ] {
            let design = Design::fraction(factors, power).expect("a fraction");
            assert_eq!(design.resolution(), Some(resolution), "2^({factors}-{power})");
            assert_eq!(design.cells.len(), 1 << (factors as u32 - power));
        }
    }

    #[test]
    fn columns_of_a_fraction_are_orthogonal() {
        for (factors, power) in [(3, 1), (5, 2), (6, 2), (7, 4), (9, 4), (11, 7)] {
            let design = Design::fraction(factors, power).expect("a fraction");
            for a in 0..factors {
                for b in 0..a {
                    let sum: i32 = design.cells.iter().map(|cell| if cell[a] == cell[b] { 1 } else { -1 }).sum();
                    assert_eq!(sum, 0, "2^({factors}-{power}): {a} and {b}");
                }
                let ones = design.cells.iter().filter(|cell| cell[a] == 1).count();
                assert_eq!(2 * ones, design.cells.len());
            }
        }
    }

    #[test]
    fn half_fraction_of_three_factors_aliases_main_effects_with_interactions() {
        let design = Design::fraction(3, 1).expect("a half");
        assert_eq!(design.aliases(&["a", "b", "c"]), ["a = b×c", "b = a×c", "c = a×b"]);
        // C = AB: the product of the signs is +1 in every cell.
        assert!(design.cells.iter().all(|cell| (cell[0] == cell[1]) == (cell[2] == 1)));
    }

    #[test]
    fn fractions_with_aliased_main_effects_are_rejected() {
        assert!(Design::fraction(2, 1).is_err());
        assert!(Design::fraction(3, 2).is_err());
        assert!(Design::fraction(3, 63).is_err());
        assert!(Design::fraction(40, 1).is_err());
    }
}
