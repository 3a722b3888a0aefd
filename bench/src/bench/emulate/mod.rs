//! Emulators between two network namespaces, all measured from outside with the same method.

mod load;
mod rig;

pub use load::{Offered, delays, offer, overload};
pub use rig::{Emulator, Path, Rig, check_requirements};
