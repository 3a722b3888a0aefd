//! Emulators between two network namespaces, measured from outside with one method for all of them.

mod load;
mod rig;

pub use load::{Offered, delays, offer, overload};
pub use rig::{Emulator, Path, Rig, needed};
