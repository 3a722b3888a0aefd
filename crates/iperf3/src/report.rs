//! Writer of the client's report: at the end (`-J`) or during the test.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use landspeed_flow::client::RunEvent;
use landspeed_model::{RunDocument, Sample};

use super::text::{self, Style};
use crate::convert::{self, ReportOptions, Reported};
use crate::document::{Document, Interval};

/// Output format of a report.
#[derive(Debug, Clone, Copy)]
pub enum ReportFormat {
    /// Text lines, as printed by iperf3.
    Text(Style),
    /// One JSON document (`-J`).
    Json,
    /// One JSON object per line (`--json-stream`).
    Events {
        /// Whether the JSON document follows (`--json-stream-full-output`).
        full_output: bool,
    },
}

/// Writer for the report of one test.
pub struct Reporter<'a> {
    form: ReportFormat,
    options: &'a ReportOptions,
    out: Box<dyn Write + Send + 'a>,
    failed: Option<io::Error>,
    begun: Option<ReportState>,
}

/// A test whose report has begun.
struct ReportState {
    /// The run's document before the first byte.
    run: RunDocument,
    document: Document,
    reported: Reported,
    /// Whether no interval has been written yet.
    first_interval_pending: bool,
}

impl<'a> Reporter<'a> {
    /// Creates a report that is written to `out`.
    pub fn new(form: ReportFormat, options: &'a ReportOptions, out: impl Write + Send + 'a) -> Self {
        Self { form, options, out: Box::new(out), failed: None, begun: None }
    }

    /// Whether intervals are written during the test ([`RunEvent::Readings`]).
    pub fn is_live(&self) -> bool {
        !matches!(self.form, ReportFormat::Json)
    }

    /// Handles an event of the run. If the report cannot be written, the test is interrupted.
    pub fn event(&mut self, event: &RunEvent<'_>, interrupted: &AtomicBool) {
        match event {
            RunEvent::Opened(run) => self.begin(run),
            RunEvent::Readings { due_ns, streams } => self.interval(*due_ns, streams),
            RunEvent::Accepted { .. } | RunEvent::Queued(_) | RunEvent::Progress(_) | RunEvent::Mtu(_) => {}
        }
        if self.failed.is_some() {
            interrupted.store(true, Ordering::Relaxed);
        }
    }

    fn begin(&mut self, run: &RunDocument) {
        let document = Document { intervals: Vec::new(), ..convert::document(run, self.options) };
        match self.form {
            ReportFormat::Text(style) => self.write(&text::head(&document, style)),
            ReportFormat::Events { .. } => self.object("start", &document.start),
            ReportFormat::Json => return,
        }
        self.begun = Some(ReportState {
            run: run.clone(),
            document,
            reported: Reported::default(),
            first_interval_pending: true,
        });
    }

    fn interval(&mut self, due_ns: u64, streams: &[(u32, Sample)]) {
        let Some(begun) = &mut self.begun else { return };
        let interval = convert::interval(&begun.run, &mut begun.reported, due_ns, streams);
        self.show(interval);
    }

    fn show(&mut self, interval: Interval) {
        let Some(begun) = &mut self.begun else { return };
        let first = std::mem::replace(&mut begun.first_interval_pending, false);
        match self.form {
            ReportFormat::Text(style) => {
                begun.document.intervals = vec![interval];
                let rows = text::intervals(&begun.document, style, first);
                self.write(&rows);
            }
            ReportFormat::Events { .. } => self.object("interval", &interval),
            ReportFormat::Json => {}
        }
    }

    /// Writes the rest of the report and the result of the test. Returns the test's error if the report, as text, does
    /// not contain it.
    ///
    /// # Errors
    /// If the report could not be written.
    pub fn finish(mut self, run: &RunDocument) -> io::Result<Option<String>> {
        let mut ended = match &self.begun {
            Some(begun) => convert::remaining_document(run, self.options, &begun.reported),
            None => convert::document(run, self.options),
        };
        match (self.form, self.begun.is_some()) {
            (ReportFormat::Json, _) => self.json(&ended),
            (ReportFormat::Text(style), false) => self.write(&text::client(&ended, style)),
            (ReportFormat::Events { .. }, false) => {
                self.object("start", &ended.start);
                ended.intervals.iter().for_each(|interval| self.object("interval", interval));
                self.end(&ended);
            }
            (_, true) => {
                for interval in std::mem::take(&mut ended.intervals) {
                    self.show(interval);
                }
                match self.form {
                    ReportFormat::Text(style) => self.write(&text::end(&ended, style)),
                    _ => self.end(&ended),
                }
            }
        }
        if matches!(self.form, ReportFormat::Events { full_output: true }) {
            self.json(&convert::document(run, self.options));
        }
        let error = ended.error.filter(|_| matches!(self.form, ReportFormat::Text(_)));
        self.failed.map_or(Ok(error), Err)
    }

    /// Writes the document of a test that is over, as JSON or a JSON stream.
    ///
    /// # Errors
    /// If it could not be written.
    pub fn write_document(mut self, document: &Document) -> io::Result<()> {
        if let ReportFormat::Events { full_output } = self.form {
            self.object("start", &document.start);
            document.intervals.iter().for_each(|interval| self.object("interval", interval));
            self.end(document);
            if full_output {
                self.json(document);
            }
        } else {
            self.json(document);
        }
        self.failed.map_or(Ok(()), Err)
    }

    /// Writes the last events of a JSON stream.
    fn end(&mut self, ended: &Document) {
        if let Some(output) = &ended.server_output_text {
            self.object("server_output_text", output);
        }
        if let Some(output) = &ended.server_output_json {
            self.object("server_output_json", output);
        }
        if let Some(error) = &ended.error {
            self.object("error", error);
        }
        self.object("end", &ended.end);
    }

    fn json(&mut self, document: &Document) {
        match serde_json::to_string_pretty(document) {
            Ok(text) => self.write(&(text + "\n")),
            Err(error) => self.failed = Some(error.into()),
        }
    }

    fn object(&mut self, event: &str, data: &impl serde::Serialize) {
        #[derive(serde::Serialize)]
        struct Event<'a, D> {
            event: &'a str,
            data: &'a D,
        }
        match serde_json::to_string(&Event { event, data }) {
            Ok(text) => self.write(&(text + "\n")),
            Err(error) => self.failed = Some(error.into()),
        }
    }

    /// Writes and flushes, so that a reader sees each line at once.
    fn write(&mut self, text: &str) {
        if self.failed.is_none() {
            self.failed = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()).err();
        }
    }
}
