//! The core map as text.

use landspeed_model::{Direction, TuneupDocument, TuneupMap, TuneupMapCell, TuneupMapColumns};
use landspeed_units::BitRate;

use crate::text::Page;

/// Core columns per block: eight fit into 80 columns of text.
const BLOCK_COLUMNS: usize = 8;
/// Shades from zero to the highest rate.
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];

/// Prints the map.
pub fn draw(document: &TuneupDocument, map: &TuneupMap, page: &mut Page) {
    let highest = map.cells.iter().filter_map(|cell| cell.goodput_bps).fold(0.0, f64::max);
    let (unit, divisor) = unit(highest);
    page.text.push('\n');
    page.line(
        "map",
        &format!("{}; median of {} tests each, {unit}", axes(document.direction, map.columns), map.rounds),
    );
    let row_of = |cell: &&TuneupMapCell| cell.receiver_core == map.cells[0].receiver_core;
    let columns: Vec<u32> = map.cells.iter().take_while(row_of).map(|cell| cell.column_core).collect();
    for first in (0..columns.len()).step_by(BLOCK_COLUMNS) {
        let block = first..(first + BLOCK_COLUMNS).min(columns.len());
        let heads: Vec<String> = columns[block.clone()].iter().map(|core| format!("{core:>8}")).collect();
        page.raw("", &heads.concat());
        for row in map.cells.chunks(columns.len()) {
            let cells: String = row[block.clone()].iter().map(|cell| text_of(cell, highest, divisor)).collect();
            page.raw(&format!("{:>7}", row[0].receiver_core), &cells);
        }
    }
    for cell in map.cells.iter().filter(|cell| cell.refused.is_some()) {
        let (row, column) = (cell.receiver_core, cell.column_core);
        page.line("refused", &format!("{row}/{column}: {}", cell.refused.as_deref().unwrap_or_default()));
    }
}

/// Describes rows and columns.
fn axes(direction: Direction, columns: TuneupMapColumns) -> String {
    let (rows, columns) = landspeed_report::map_axes(direction, columns);
    format!("rows: {rows}; columns: {columns}")
}

/// Returns a note if interrupts were handled on other cores than requested.
pub fn note(map: &TuneupMap) -> Option<String> {
    let moved =
        |cell: &&TuneupMapCell| cell.goodput_bps.is_some() && cell.receive_queue_cpu != Some(cell.column_core);
    let elsewhere = map.cells.iter().filter(moved).count();
    (map.columns == TuneupMapColumns::Interrupts && elsewhere > 0).then(|| {
        format!(
            "in {elsewhere} of {} placements the kernel did not say that the core of the column served the flow: \
             SO_INCOMING_CPU named another, or several",
            map.cells.len()
        )
    })
}

fn text_of(cell: &TuneupMapCell, highest: f64, divisor: f64) -> String {
    let Some(bps) = cell.goodput_bps else { return format!("{:>8}", "-") };
    let shade = SHADES[((bps / highest * SHADES.len() as f64) as usize).min(SHADES.len() - 1)];
    let value = bps / divisor;
    let digits = match value {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    };
    format!(" {shade}{value:>6.digits$}")
}

/// Returns a unit in which the highest rate has one to three integer digits, and its size in bits/s.
fn unit(highest: f64) -> (String, f64) {
    let text = BitRate::from_bps(highest.round() as u64).to_string();
    let name = text.split_whitespace().last().unwrap_or("b/s").to_owned();
    let divisor = match name.chars().next() {
        Some('T') => 1e12,
        Some('G') => 1e9,
        Some('M') => 1e6,
        Some('k') => 1e3,
        _ => 1.0,
    };
    (name, divisor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(receiver_core: u32, column_core: u32, goodput_bps: Option<f64>) -> TuneupMapCell {
        TuneupMapCell {
            receiver_core,
            column_core,
            goodput_bps,
            lowest_bps: goodput_bps,
            highest_bps: goodput_bps,
            cpu_s_per_gb: None,
            receive_queue_cpu: Some(column_core),
            refused: goodput_bps.is_none().then(|| "no".to_owned()),
        }
    }

    #[test]
    fn unmoved_interrupts_are_noted() {
        let mut map = TuneupMap {
            columns: TuneupMapColumns::Interrupts,
            rounds: 1,
            cells: vec![cell(0, 0, Some(1e9)), cell(0, 1, Some(2e9)), cell(1, 0, None)],
        };
        assert_eq!(note(&map), None);
        map.cells[1].receive_queue_cpu = Some(0);
        assert!(note(&map).is_some_and(|note| note.starts_with("in 1 of 3")));
        map.columns = TuneupMapColumns::Sender;
        assert_eq!(note(&map), None);
    }

    #[test]
    fn a_cell_is_shaded_by_its_share_of_the_highest() {
        assert_eq!(text_of(&cell(0, 0, Some(71.04e9)), 71.04e9, 1e9), " █  71.0");
        assert_eq!(text_of(&cell(0, 0, Some(5e9)), 71e9, 1e9), "    5.00");
        assert_eq!(text_of(&cell(0, 0, None), 71e9, 1e9), "       -");
        assert_eq!(unit(940e6), ("Mb/s".to_owned(), 1e6));
    }
}
