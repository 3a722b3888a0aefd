//! Kernels for the lab: where their source comes from, how they are built, where they are kept.
//!
//! A kernel is named by the content it is made of: source, configuration, edits, compiler. [`Cache`] finds one that is
//! built; [`build`] makes one, in steps that report progress as [`Event`]s and that can be interrupted and
//! resumed. `docs/lab-kernel.md` says what is changed in the source and why.

mod apt;
mod build;
mod cache;
mod child;
mod config;
mod edits;
mod error;
mod hash;
mod lock;
mod make;
mod record;
mod source;
mod tools;
mod version;

pub use apt::{DEFAULT_MIRROR, prepare as prepare_apt};
pub use build::{BuildOutcome, Event, Request, Step, Wanted, build};
pub use cache::{Cache, ENVIRONMENT};
pub use config::Features;
pub use edits::{Edit, EditError};
pub use error::Error;
pub use record::{Kernel, SCHEMA, Source};
pub use tools::Tool;
pub use version::{NotAVersion, OLDEST, Version};
