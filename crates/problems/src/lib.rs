//! Errors in files that people write, each with its line, its key, the cause and a hint.
#![forbid(unsafe_code)]

mod notation;
mod problem;
mod quantity;
mod source;

pub use notation::{NotationReader, Notations};
pub use problem::{Problem, Problems, TextPosition, near, near_or_list};
pub use quantity::{Quantity, Rate, Share, Size, Time, Written};
pub use source::{Document, EMPTY, MAX_PROBLEMS, Words, parse, span_of, typed};
