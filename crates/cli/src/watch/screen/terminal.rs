//! Takes and restores the terminal of the full-screen view.

use std::io::{self, BufWriter, Stdout, Write as _};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use landspeed_quote::printable;
use landspeed_sys::job;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::terminal::Terminal;
use ratatui_core::text::{Line, Span};
use ratatui_crossterm::CrosstermBackend;
use ratatui_crossterm::crossterm::cursor::{Hide, Show};
use ratatui_crossterm::crossterm::execute;
use ratatui_crossterm::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

/// Whether raw mode and the alternate screen are on.
static RAW_MODE: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();

/// The terminal in raw mode with the alternate screen. Dropping it restores the terminal.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
}

impl Screen {
    /// Takes the terminal. A panic hook restores it before the panic message is printed.
    pub fn open() -> io::Result<Self> {
        HOOK.call_once(|| {
            let inner = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                restore_terminal();
                inner(info);
            }));
        });
        job::catch_stops();
        take()?;
        let backend = CrosstermBackend::new(BufWriter::with_capacity(1 << 14, io::stdout()));
        match Terminal::new(backend) {
            Ok(terminal) => Ok(Self { terminal }),
            Err(why) => {
                restore_terminal();
                Err(why)
            }
        }
    }

    /// Returns the size in columns and lines.
    pub fn size(&self) -> io::Result<(usize, usize)> {
        let size = self.terminal.size()?;
        Ok((size.width.into(), size.height.into()))
    }

    /// Draws the lines; only changed cells are written.
    pub fn draw(&mut self, lines: &[Line<'_>]) -> io::Result<()> {
        self.terminal.draw(|frame| place(lines, frame.area(), frame.buffer_mut()))?;
        Ok(())
    }

    /// Restores the terminal and stops the process group until the shell continues it.
    pub fn stop(&mut self) -> io::Result<()> {
        restore_terminal();
        job::stop_group();
        self.resume()
    }

    /// Takes the terminal again after a stop: the shell has reset its mode.
    pub fn resume(&mut self) -> io::Result<()> {
        let _ = job::continued();
        RAW_MODE.store(false, Ordering::Relaxed);
        let _ = disable_raw_mode();
        take()?;
        // Unlike `clear`, this does not query the cursor position, which would wait for the terminal's answer.
        let size = self.terminal.size()?;
        self.terminal.resize(size.into())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore_terminal();
        job::release_stops();
    }
}

/// Writes lines into a buffer, from the top, with control characters escaped.
pub fn place(lines: &[Line<'_>], area: Rect, buffer: &mut Buffer) {
    for (y, line) in (area.top()..area.bottom()).zip(lines) {
        let spans = line.spans.iter().map(|span| Span::styled(printable(&span.content), span.style)).collect();
        buffer.set_line(area.left(), y, &Line { spans, ..line.clone() }, area.width);
    }
}

fn take() -> io::Result<()> {
    enable_raw_mode()?;
    RAW_MODE.store(true, Ordering::Relaxed);
    execute!(io::stdout(), EnterAlternateScreen, Hide)
}

fn restore_terminal() {
    if RAW_MODE.swap(false, Ordering::Relaxed) {
        let _ = execute!(io::stdout(), Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
        let _ = io::stdout().flush();
    }
}
