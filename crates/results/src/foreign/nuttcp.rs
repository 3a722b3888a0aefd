//! Text output of nuttcp and its `-fparse` lines. Neither contains a time or a host, so both are unknown.

use landspeed_model::Metric;

use super::{ForeignDocument, ForeignError, record, set_loss, variation};
use crate::record::{Record, RecordStatus};

/// A line with results.
#[derive(Debug, Default, Clone, PartialEq)]
struct Line {
    megabytes: f64,
    mbps: f64,
    retransmits: Option<f64>,
    loss_ratio: Option<f64>,
    udp: bool,
    /// Whether it is the last line of a test: one with CPU figures, or the receiver's with `-v`.
    last: bool,
}

/// The lines of one transfer.
#[derive(Debug, Default)]
struct Transfer {
    version: Option<String>,
    /// Ends that printed their version.
    ends: Vec<String>,
    streams: Option<f64>,
    intervals: Vec<Line>,
    /// What `-v` prints in lines of their own.
    verbose: Line,
    /// The line of the transfer's end.
    total: Option<Line>,
    /// Whether there is a line of nuttcp.
    begun: bool,
}

/// Parses the output of one or more transfers; one record each.
pub fn read(text: &str) -> Result<ForeignDocument, ForeignError> {
    let (mut transfers, mut open) = (Vec::new(), Transfer::default());
    for line in text.lines() {
        if open.ends_before(line) {
            transfers.push(std::mem::take(&mut open));
        }
        open.add(line);
    }
    transfers.push(open);
    transfers.retain(|transfer| transfer.begun);
    if transfers.is_empty() {
        return Err(ForeignError::Unknown);
    }
    if transfers.iter().all(|transfer| transfer.total.is_none()) {
        return Err(ForeignError::Incomplete { program: "nuttcp", what: "the line of its end" });
    }
    Ok(ForeignDocument { kind: "nuttcp", records: transfers.into_iter().map(Transfer::record).collect() })
}

/// Splits `nuttcp-t: TEXT` of `-v` into the end and the text.
fn verbose_line(line: &str) -> Option<(&str, &str)> {
    ["nuttcp-t: ", "nuttcp-r: "].into_iter().find_map(|end| line.strip_prefix(end).map(|rest| (end, rest)))
}

fn version_of(rest: &str) -> Option<&str> {
    rest.strip_prefix('v').and_then(|rest| rest.strip_suffix(": socket"))
}

impl Transfer {
    /// Whether a line belongs to another transfer.
    fn ends_before(&self, line: &str) -> bool {
        match verbose_line(line) {
            // Each end prints its version once, first.
            Some((end, rest)) => version_of(rest).is_some() && self.ends.iter().any(|seen| seen == end),
            None => self.total.is_some() && parse(line).is_some(),
        }
    }

    fn add(&mut self, line: &str) {
        let Some((end, rest)) = verbose_line(line) else {
            let Some(found) = parse(line) else { return };
            self.begun = true;
            if found.last {
                self.total = Some(found);
            } else {
                self.intervals.push(found);
            }
            return;
        };
        self.begun = true;
        if let Some(version) = version_of(rest) {
            self.version = Some(version.to_owned());
            self.ends.push(end.to_owned());
        }
        self.streams = self.streams.or_else(|| value(rest, "nstream"));
        let verbose = &mut self.verbose;
        verbose.udp |= rest.contains(" udp") || rest.contains("mode=udp");
        verbose.retransmits =
            verbose.retransmits.or_else(|| value(rest, "retrans").or_else(|| before(rest, " retrans")));
        // The goodput is the receiver's rate.
        if end == "nuttcp-r: " {
            let megabytes = value(rest, "megabytes").or_else(|| before(rest, " MB"));
            let mbps = value(rest, "rate_Mbps").or_else(|| before(rest, " Mbps"));
            if let (Some(megabytes), Some(mbps)) = (megabytes, mbps) {
                (verbose.megabytes, verbose.mbps) = (megabytes, mbps);
                self.total = Some(Line { last: true, ..verbose.clone() });
            }
        }
    }

    fn record(self) -> Record {
        let name = self.version.map_or_else(|| "nuttcp".to_owned(), |version| format!("nuttcp {version}"));
        let mut record = record(name);
        let udp = self.verbose.udp || self.total.iter().chain(&self.intervals).any(|line| line.udp);
        record.settings.insert("protocol".to_owned(), if udp { "udp" } else { "tcp" }.to_owned());
        if let Some(streams) = self.streams {
            record.settings.insert("streams".to_owned(), format!("{streams:.0}"));
        }
        let rates: Vec<f64> = self.intervals.iter().map(|line| line.mbps).collect();
        record.figures.set(Metric::GoodputCv, variation(&rates));
        let Some(total) = self.total else {
            record.status = RecordStatus::Partial;
            record.notes.push("goodput unknown: the line of the transfer's end is missing".to_owned());
            return record;
        };
        let figures = &mut record.figures;
        figures.set(Metric::Goodput, Some(total.mbps * 1e6));
        // nuttcp's MB is 2^20 bytes.
        let bytes = Some(total.megabytes * f64::from(1 << 20)).filter(|bytes| *bytes > 0.0);
        let retransmits = total.retransmits.or(self.verbose.retransmits);
        figures.set(Metric::Retransmits, retransmits.zip(bytes).map(|(count, bytes)| count * 1e9 / bytes));
        set_loss(&mut record, total.loss_ratio);
        record
    }
}

/// Parses a line of either form, without `-v`.
fn parse(line: &str) -> Option<Line> {
    if let (Some(megabytes), Some(mbps)) = (value(line, "megabytes"), value(line, "rate_Mbps")) {
        return Some(Line {
            megabytes,
            mbps,
            retransmits: value(line, "retrans"),
            loss_ratio: value(line, "data_loss").map(|percent| percent / 100.0),
            udp: value(line, "pkt").is_some(),
            last: value(line, "tx_cpu").is_some(),
        });
    }
    // ` 1612.5625 MB /   1.00 sec = 13526.6271 Mbps     0 retrans`
    let (megabytes, rest) = line.split_once(" MB / ")?;
    let (_, rest) = rest.split_once(" sec = ")?;
    let (mbps, rest) = rest.split_once(" Mbps")?;
    // After `Tot:` the same fields follow as a running total.
    let rest = rest.split("Tot:").next()?;
    Some(Line {
        megabytes: number(megabytes)?,
        mbps: number(mbps)?,
        retransmits: before(rest, " retrans"),
        loss_ratio: before(rest, " %loss").map(|percent| percent / 100.0),
        udp: rest.contains("drop/pkt"),
        last: rest.contains("%TX"),
    })
}

/// The number after `NAME=` or `NAME = `.
fn value(text: &str, name: &str) -> Option<f64> {
    let starts =
        |at: usize| at == 0 || !text.as_bytes()[at - 1].is_ascii_alphanumeric() && text.as_bytes()[at - 1] != b'_';
    let (at, _) = text
        .match_indices(name)
        .find(|(at, _)| starts(*at) && text[at + name.len()..].trim_start().starts_with('='))?;
    let rest = text[at + name.len()..].trim_start().strip_prefix('=')?.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    number(&rest[..end])
}

/// The number before `unit`.
fn before(text: &str, unit: &str) -> Option<f64> {
    let (head, _) = text.split_once(unit)?;
    number(head.rsplit([' ', '=']).next()?)
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(name: &str) -> String {
        let path = format!("{}/../../fixtures/foreign/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{path}: {why}"))
    }

    fn fixture(name: &str) -> Record {
        let mut records = read(&text_of(name)).unwrap_or_else(|why| panic!("{name}: {why}")).records;
        assert_eq!(records.len(), 1, "{name}");
        records.remove(0)
    }

    #[test]
    fn every_transfer_of_a_file_is_a_record() {
        for name in [
            "nuttcp-tcp.txt",
            "nuttcp-tcp-parse.txt",
            "nuttcp-udp.txt",
            "nuttcp-udp-parse.txt",
            "nuttcp-tcp-verbose.txt",
            "nuttcp-tcp-verbose-parse.txt",
        ] {
            let (one, text) = (fixture(name), text_of(name));
            let records = read(&format!("{text}\n{text}{text}")).expect("three transfers").records;
            assert_eq!(records, vec![one; 3], "{name}");
        }
        let text = text_of("nuttcp-tcp.txt");
        let first = text.lines().next().expect("an interval");
        let records = read(&format!("{text}{first}\n")).expect("a transfer and a half").records;
        let statuses: Vec<RecordStatus> = records.iter().map(|record| record.status).collect();
        assert_eq!(statuses, [RecordStatus::Complete, RecordStatus::Partial]);
        assert!(records[1].notes[0].contains("missing"), "{records:?}");
        assert_eq!(read(first), Err(ForeignError::Incomplete { program: "nuttcp", what: "the line of its end" }));
        // An interrupted transfer with `-v` does not lend its lines to the next.
        let verbose = text_of("nuttcp-tcp-verbose-parse.txt");
        let begun: String = verbose.split_inclusive('\n').take(13).collect();
        let records = read(&format!("{begun}{verbose}")).expect("a half and a transfer").records;
        assert_eq!(
            (records.len(), records[0].status, &records[1]),
            (2, RecordStatus::Partial, &fixture("nuttcp-tcp-verbose-parse.txt"))
        );
    }

    #[test]
    fn nuttcp_text_and_fparse_output_are_parsed() {
        let text = fixture("nuttcp-tcp.txt");
        assert_eq!(text.figures.get(Metric::Goodput), Some(12_308_696_900.0));
        assert_eq!(text.figures.get(Metric::Retransmits), Some(0.0));
        assert!(text.figures.get(Metric::GoodputCv).is_some());
        let parsed = fixture("nuttcp-tcp-parse.txt");
        assert_eq!(parsed.figures.get(Metric::Goodput), Some(11_089_721_600.0));
        assert_eq!(parsed.settings["protocol"], "tcp");
    }

    #[test]
    fn nuttcp_udp_loss_is_converted_to_a_ratio() {
        let udp = fixture("nuttcp-udp.txt");
        assert_eq!(udp.settings["protocol"], "udp");
        assert!(udp.figures.get(Metric::Loss).is_some_and(|loss| (loss - 0.1171).abs() < 1e-9));
        assert_eq!(fixture("nuttcp-udp-parse.txt").figures.get(Metric::Loss), Some(0.0));
    }

    #[test]
    fn verbose_nuttcp_output_gives_the_receiver_rate() {
        let verbose = fixture("nuttcp-tcp-verbose.txt");
        assert_eq!(verbose.tool, "nuttcp 6.1.2");
        assert_eq!(verbose.settings["streams"], "4");
        assert_eq!(verbose.figures.get(Metric::Goodput), Some(9_161_544_200.0));
        let parsed = fixture("nuttcp-tcp-verbose-parse.txt");
        assert_eq!(parsed.figures.get(Metric::Goodput), Some(7_381_459_200.0));
        assert_eq!(parsed.figures.get(Metric::Retransmits), Some(0.0));
    }

    #[test]
    fn other_text_is_not_nuttcp_output() {
        assert_eq!(read("We sent 3 MB / 1 sec"), Err(ForeignError::Unknown));
        assert_eq!(read(""), Err(ForeignError::Unknown));
    }
}
