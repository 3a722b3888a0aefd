//! Scales and ticks.

use std::time::{Duration, UNIX_EPOCH};

use landspeed_model::{FigureAxis, FigureScale};

use crate::figures::quantity;

/// Approximate number of ticks of a linear axis.
const TICKS: f64 = 5.0;
/// Maximum number of levels for which every level is a tick.
const LEVELS: usize = 12;

/// An axis mapped to pixels.
pub(crate) struct PixelAxis {
    pub(crate) from: f64,
    pub(crate) to: f64,
    scale: FigureScale,
    low: f64,
    high: f64,
    /// Values and labels of the ticks.
    pub(crate) ticks: Vec<(f64, String)>,
    /// Title with the unit.
    pub(crate) title: String,
}

impl PixelAxis {
    /// Creates a horizontal axis for these values.
    pub(crate) fn across(axis: &FigureAxis, values: &[f64], (from, to): (f64, f64)) -> Self {
        let mut levels: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
        levels.sort_by(f64::total_cmp);
        levels.dedup();
        let (least, most) = (levels.first().copied().unwrap_or(0.0), levels.last().copied().unwrap_or(1.0));
        let (size, unit) = quantity::fitting(most, &axis.unit);
        let number = |value: f64| quantity::significant(value / size);
        let few = |ticks: Vec<f64>| ticks.into_iter().map(|value| (value, number(value))).collect::<Vec<_>>();
        let (low, high, ticks) = match axis.scale {
            FigureScale::Category => {
                let places = axis.labels.len().max(1);
                let ticks = axis.labels.iter().enumerate().map(|(at, label)| (at as f64, label.clone())).collect();
                (-0.5, places as f64 - 0.5, ticks)
            }
            FigureScale::Date => {
                let room = (most - least).max(60.0) * 0.04;
                (least - room, most + room, dates(least - room, most + room))
            }
            FigureScale::Log if least > 0.0 => {
                let ticks = if levels.len() <= LEVELS { levels.clone() } else { decades(least, most) };
                let room = (most / least).max(2.0).powf(0.03);
                // Levels span several units: each label has its own unit.
                let own = |value: f64| (value, quantity::text(value, &axis.unit));
                (least / room, most * room, ticks.into_iter().map(own).collect())
            }
            _ if levels.len() <= LEVELS && !levels.is_empty() => {
                let room = if most > least { (most - least) * 0.04 } else { most.abs().max(1.0) * 0.1 };
                (least - room, most + room, few(levels.clone()))
            }
            _ => {
                let step = round_step(((most - least.min(0.0)) / size / (TICKS + 1.0)).max(f64::MIN_POSITIVE)) * size;
                (least.min(0.0), most, even(steps(least.min(0.0), most, step), size))
            }
        };
        let own_units = axis.scale == FigureScale::Log || unit.is_empty();
        Self {
            from,
            to,
            scale: axis.scale,
            low,
            high,
            ticks,
            title: titled(&axis.title, if own_units { "" } else { unit }),
        }
    }

    /// Creates a vertical axis, from 0 unless it is logarithmic; `from` is the lower edge.
    pub(crate) fn upwards(axis: &FigureAxis, values: &[f64], (from, to): (f64, f64)) -> Self {
        let finite = || values.iter().copied().filter(|v| v.is_finite());
        let most = finite().fold(f64::MIN, f64::max);
        let most = if most > f64::MIN { most } else { 1.0 };
        let (size, unit) = quantity::fitting(most, &axis.unit);
        let positive = finite().filter(|v| *v > 0.0).fold(f64::MAX, f64::min);
        if axis.scale == FigureScale::Log && positive < f64::MAX {
            let (low, high) = (
                10f64.powf(positive.log10().floor()),
                10f64.powf(most.log10().ceil().max(positive.log10().floor() + 1.0)),
            );
            let ticks = decades(low, high).into_iter().map(|v| (v, quantity::text(v, &axis.unit))).collect();
            return Self { from, to, scale: FigureScale::Log, low, high, ticks, title: axis.title.clone() };
        }
        let least = finite().fold(0.0, f64::min);
        let span = if most > least { most - least } else { 1.0 };
        let step = round_step(span / size / TICKS) * size;
        let (low, high) = ((least / step).floor() * step, (most / step - 1e-9).ceil().max(1.0) * step);
        let ticks = even(steps(low, high, step), size);
        Self { from, to, scale: FigureScale::Linear, low, high, ticks, title: titled(&axis.title, unit) }
    }

    /// Creates a horizontal axis for rows, with a margin around these values.
    pub(crate) fn along(axis: &FigureAxis, values: &[f64], from_zero: bool, (from, to): (f64, f64)) -> Self {
        if from_zero {
            return Self::upwards(axis, values, (from, to));
        }
        let (least, most) = values.iter().fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(*v), b.max(*v)));
        let (least, most) = if least <= most { (least, most) } else { (0.0, 1.0) };
        let room = ((most - least) * 0.08).max(most.abs() * 0.005).max(1e-9);
        let (low, high) = (least - room, most + room);
        let step = round_step((high - low) / TICKS);
        let ticks = steps((low / step).ceil() * step, high, step);
        let ticks = even(ticks, 1.0);
        Self { from, to, scale: FigureScale::Linear, low, high, ticks, title: axis.title.clone() }
    }

    /// Returns the pixel of a value; `None` if the scale cannot show it (0 on a logarithmic one).
    pub(crate) fn at(&self, value: f64) -> Option<f64> {
        let scaled = |v: f64| if self.scale == FigureScale::Log { v.ln() } else { v };
        if !value.is_finite() || (self.scale == FigureScale::Log && value <= 0.0) {
            return None;
        }
        let (low, high) = (scaled(self.low), scaled(self.high));
        let share = if high > low { (scaled(value) - low) / (high - low) } else { 0.5 };
        Some(self.from + (self.to - self.from) * share)
    }
}

fn titled(title: &str, unit: &str) -> String {
    match (title, unit) {
        (title, "") => title.to_owned(),
        ("", unit) => unit.to_owned(),
        (title, unit) => format!("{title}, {unit}"),
    }
}

/// Returns the smallest of 1, 2 or 5 times a power of ten that is at least `value`.
fn round_step(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= value * (1.0 - 1e-9))
        .unwrap_or(power * 10.0)
}

fn steps(low: f64, high: f64, step: f64) -> Vec<f64> {
    let count = ((high - low) / step + 1e-6).floor().clamp(0.0, 60.0) as usize;
    let clean = |v: f64| if v.abs() < step * 1e-9 { 0.0 } else { v };
    (0..=count).map(|at| clean(low + step * at as f64)).collect()
}

/// Labels values with equal decimals, as many as distinguish them.
fn even(values: Vec<f64>, size: f64) -> Vec<(f64, String)> {
    let decimals = (0..=6).find(|digits| {
        let power = 10f64.powi(*digits);
        values
            .iter()
            .all(|value| ((value / size * power).round() / power - value / size).abs() < 1e-7 / power.max(1.0) + 1e-9)
    });
    let decimals = decimals.unwrap_or(6) as usize;
    let label = |value: f64| {
        if value == 0.0 { "0".to_owned() } else { format!("{:.decimals$}", value / size).replace('-', "−") }
    };
    values.into_iter().map(|value| (value, label(value))).collect()
}

/// Returns the powers of ten in a range, with 2 and 5 between them if there are few.
fn decades(low: f64, high: f64) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let factors: &[f64] = if last - first <= 2 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    (first..=last)
        .flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powi(power)))
        .filter(|v| (low * (1.0 - 1e-9)..=high * (1.0 + 1e-9)).contains(v))
        .collect()
}

/// Returns ticks at years, days or times, UTC.
fn dates(low: f64, high: f64) -> Vec<(f64, String)> {
    const DAY: f64 = 86_400.0;
    const YEAR: f64 = 365.2425 * DAY;
    let text = |at: f64| {
        let time = UNIX_EPOCH + Duration::from_secs(at.clamp(0.0, 2.5e11) as u64);
        humantime::format_rfc3339_seconds(time).to_string()
    };
    let span = high - low;
    if span > 3.0 * YEAR {
        let step = round_step(span / YEAR / TICKS).max(1.0);
        let first = ((1970.0 + low / YEAR) / step).ceil() * step;
        let years = steps(first, 1970.0 + high / YEAR, step);
        return years.into_iter().map(|year| ((year - 1970.0) * YEAR, format!("{year:.0}"))).collect();
    }
    (0..=4)
        .map(|at| low + span * (0.06 + 0.22 * f64::from(at)))
        .map(|at| {
            let text = text(at);
            let shown = if span > 4.0 * DAY { text[..10].to_owned() } else { text[5..16].replace('T', " ") };
            (at, shown)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(unit: &str, scale: FigureScale) -> FigureAxis {
        FigureAxis { title: "Goodput".to_owned(), unit: unit.to_owned(), scale, labels: Vec::new() }
    }

    #[test]
    fn a_rate_has_round_ticks_from_zero_in_one_unit() {
        let laid = PixelAxis::upwards(&axis("bit/s", FigureScale::Linear), &[9.4e9, 1e9], (100.0, 0.0));
        let labels: Vec<&str> = laid.ticks.iter().map(|(_, label)| label.as_str()).collect();
        assert_eq!(labels, ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(laid.title, "Goodput, Gb/s");
        assert_eq!((laid.at(0.0), laid.at(1e10), laid.at(f64::NAN)), (Some(100.0), Some(0.0), None));
    }

    #[test]
    fn zero_is_not_on_a_logarithmic_axis() {
        let laid =
            PixelAxis::across(&axis("B", FigureScale::Log), &[65536.0, 1_048_576.0, 16_777_216.0], (0.0, 100.0));
        let labels: Vec<&str> = laid.ticks.iter().map(|(_, label)| label.as_str()).collect();
        assert_eq!(labels, ["64 KiB", "1 MiB", "16 MiB"]);
        assert_eq!(laid.at(0.0), None);
    }

    #[test]
    fn long_date_axes_have_ticks_at_years() {
        let ticks = dates(1.1e9, 1.8e9);
        assert!(ticks.iter().any(|(_, label)| label == "2010"), "{ticks:?}");
    }

    #[test]
    fn axes_support_one_value_or_none() {
        for values in [&[][..], &[0.0], &[5.0]] {
            for scale in [FigureScale::Linear, FigureScale::Log, FigureScale::Date] {
                assert!(PixelAxis::across(&axis("", scale), values, (0.0, 1.0)).ticks.len() < 70);
                assert!(PixelAxis::upwards(&axis("", scale), values, (0.0, 1.0)).ticks.len() < 70);
            }
        }
    }
}
