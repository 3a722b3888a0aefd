//! Text from elsewhere (peers, files, names), made safe for a terminal, a CSV file and a shell.
#![forbid(unsafe_code)]

mod csv;
mod shell;
mod terminal;

pub use csv::{csv_field, csv_line};
pub use shell::{shell_command, shell_path, shell_word};
pub use terminal::{is_unprintable, printable, printable_bytes};
