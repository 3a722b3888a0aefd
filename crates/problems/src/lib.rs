//! Mistakes in files that people write: every one with its line, its key, what is wrong and what to do.
#![forbid(unsafe_code)]

mod problem;
mod source;

pub use problem::{Problem, Problems, TextPosition, near, near_or_list};
pub use source::{Document, EMPTY, MAX_PROBLEMS, Words, parse, span_of, typed};
