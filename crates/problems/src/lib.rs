//! Errors in files that people write, each with its line, its key, the cause and a hint.
#![forbid(unsafe_code)]

mod notation;
mod problem;
mod quantity;
mod source;

pub use notation::{NotationReader, Notations};
pub use problem::{Problem, Problems, TextPosition, suggest, suggest_or_list};
pub use quantity::{Quantity, Rate, Share, Size, Time, Written};
pub use source::{Document, EMPTY, FormatTerms, MAX_PROBLEMS, parse, renamed, span_of, typed};
