//! Writes to standard output and standard error; nothing else in the program does. Text from elsewhere (peers, files,
//! names) is in every message, so all text is escaped ([`landspeed_quote::printable`]); the few control sequences of the
//! program are functions of [`Stream`].

use std::fmt;
use std::io::{self, IsTerminal as _, Write};
use std::os::fd::{AsFd as _, OwnedFd};

use landspeed_quote::{printable, printable_bytes};

/// Prints on standard output, like `print!`, with control characters escaped.
macro_rules! out {
    ($($text:tt)*) => { $crate::terminal::Stream::Out.print(format_args!($($text)*)) };
}

/// Prints a line on standard output, like `println!`, with control characters escaped.
macro_rules! outln {
    ($($text:tt)*) => { $crate::terminal::Stream::Out.print(format_args!("{}\n", format_args!($($text)*))) };
}

/// Prints on standard error, like `eprint!`, with control characters escaped.
macro_rules! err {
    ($($text:tt)*) => { $crate::terminal::Stream::Err.print(format_args!($($text)*)) };
}

/// Prints a line on standard error, like `eprintln!`, with control characters escaped.
macro_rules! errln {
    ($($text:tt)*) => { $crate::terminal::Stream::Err.print(format_args!("{}\n", format_args!($($text)*))) };
}

/// A standard stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

impl Stream {
    /// Prints text, with control characters escaped.
    pub fn print(self, text: fmt::Arguments<'_>) {
        let text = text.to_string();
        let shown = printable(&text);
        match self {
            Self::Out => print!("{shown}"),
            Self::Err => eprint!("{shown}"),
        }
    }

    /// Prints a line: bold on a terminal (ECMA-48 SGR), unless `NO_COLOR` is set.
    pub fn heading(self, line: &str) {
        if self.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) {
            self.control(&format!("\x1b[1m{}\x1b[0m\n", printable(line)));
        } else {
            self.print(format_args!("{line}\n"));
        }
    }

    /// Returns whether it is a terminal.
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Out => io::stdout().is_terminal(),
            Self::Err => io::stderr().is_terminal(),
        }
    }

    /// Replaces the current line of the terminal by this one, without a line end.
    pub fn redraw_line(self, line: &str) {
        self.control(&format!("\r{}\x1b[K", printable(line)));
    }

    /// Clears the current line of the terminal.
    pub fn clear_line(self) {
        self.control("\r\x1b[K");
    }

    /// Writes control sequences: carriage return, ECMA-48 EL (erase to the end of the line) and SGR (bold).
    fn control(self, text: &str) {
        let mut stream: Box<dyn Write> = match self {
            Self::Out => Box::new(io::stdout()),
            Self::Err => Box::new(io::stderr()),
        };
        let _ = stream.write_all(text.as_bytes()).and_then(|()| stream.flush());
    }
}

/// Returns another descriptor of standard error, for a command that this program starts.
pub fn stderr_descriptor() -> io::Result<OwnedFd> {
    io::stderr().as_fd().try_clone_to_owned()
}

/// Returns the width of the terminal on standard output, columns.
pub fn columns() -> Option<usize> {
    let size = terminal_size::terminal_size_of(io::stdout());
    size.filter(|_| Stream::Out.is_terminal()).map(|(width, _)| usize::from(width.0))
}

/// Writes a document to standard output, with control characters escaped; JSON keeps its meaning.
pub fn write_text(content: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(&printable_bytes(content)).and_then(|()| out.flush())
}

/// Writes bytes to standard output as they are, for another program; a terminal gets them escaped.
pub fn write_bytes(content: &[u8]) -> io::Result<()> {
    if Stream::Out.is_terminal() {
        return write_text(content);
    }
    let mut out = io::stdout().lock();
    out.write_all(content).and_then(|()| out.flush())
}

/// Standard output as a writer of whole pieces of text, with control characters escaped.
pub fn stdout() -> Printable<io::Stdout> {
    Printable(io::stdout())
}

/// A writer of whole pieces of text that escapes control characters.
pub struct Printable<W>(pub W);

impl<W: Write> Write for Printable<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_all(&printable_bytes(bytes))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_keeps_its_meaning() {
        let document = serde_json::json!({ "host": "a\u{1b}[31m\u{7f}\u{9b}\u{202e}b", "n": 1 });
        let mut written = Vec::new();
        serde_json::to_writer_pretty(Printable(&mut written), &document).expect("written");
        let text = String::from_utf8(written).expect("text");
        assert!(!text.contains(landspeed_quote::is_unprintable), "{text:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("JSON"), document);
    }
}
