//! Every unsafe block of landspeed lives in this crate.
