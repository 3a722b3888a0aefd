//! Simulations of a mesh in virtual time.

mod simulation;
