//! landspeed.
fn main() {}
