//! Makes the runs of a scenario that varies keys.

use std::sync::Mutex;

use landspeed_experiment::lab::Lab;
use landspeed_experiment::session::Session;
use landspeed_experiment::setup::{CostEstimate, Setup};
use landspeed_experiment::{cells, local};

use crate::board::{Nouns, ProgressLine};

/// Makes the runs of a sweep that are missing.
pub fn measure(lab: &Lab, setup: Setup, quiet: bool) -> Session {
    let need = CostEstimate::of(&setup);
    let session = Session::begin(setup, landspeed_sys::process::catch_interrupts());
    let mut board = ProgressLine::new(Nouns { runs: "runs", time: " of virtual time" }, session.setup.jobs, quiet);
    board.expect(need.missing, need.span_ns);
    let board = Mutex::new(board);
    local::run(&session, lab, &board);
    cells::lock(&board).clear();
    session
}
