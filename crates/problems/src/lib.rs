//! Mistakes in files that people write: every one with its line, its key, what is wrong and what to do.
#![forbid(unsafe_code)]

mod notation;
mod problem;
mod quantity;
mod source;

pub use notation::{NotationReader, Notations};
pub use problem::{Problem, Problems, TextPosition, near, near_or_list};
pub use quantity::{Quantity, Rate, Share, Size, Time, Written};
pub use source::{Document, EMPTY, MAX_PROBLEMS, Words, parse, span_of, typed};
