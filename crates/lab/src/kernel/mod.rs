//! Kernels for the lab: origin of the source, build, and cache.
//!
//! A kernel is identified by what it is built from: source, configuration, edits, compiler, patches. [`Cache`] finds one
//! that is built; [`build`] builds one, in steps that report progress as [`Event`]s and that can be interrupted
//! and resumed. `docs/lab-kernel.md` describes the edits of the source and their reasons.

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
mod patch;
mod record;
mod source;
mod tools;
mod version;

pub use apt::{DEFAULT_MIRROR, prepare as prepare_apt};
pub use build::{BuildOutcome, Event, Request, RequestedSource, Step, build};
pub use cache::{Cache, ENVIRONMENT};
pub use config::Features;
pub use edits::{Edit, EditError};
pub use error::{Error, PatchError};
pub use record::{AppliedPatch, Kernel, SCHEMA, STOCK, Source};
pub use tools::Tool;
pub use version::{MIN_VERSION, NotAVersion, Version};
