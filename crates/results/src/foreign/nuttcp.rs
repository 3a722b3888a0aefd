//! Text output of nuttcp and its `-fparse` lines. Neither contains a time or a host, so both are unknown.

use landspeed_model::Metric;

use super::{ForeignDocument, ForeignError, record, variation};

/// A line with results.
#[derive(Debug, Default, Clone, PartialEq)]
struct Line {
    megabytes: f64,
    mbps: f64,
    retransmits: Option<f64>,
    rtt_ms: Option<f64>,
    loss_ratio: Option<f64>,
    udp: bool,
    /// Whether it is the last line of a test: one with CPU figures, or the receiver's with `-v`.
    last: bool,
}

/// Parses the output of a transfer.
pub fn read(text: &str) -> Result<ForeignDocument, ForeignError> {
    let mut version = None;
    let mut streams = None;
    let mut intervals = Vec::new();
    let mut last: Option<Line> = None;
    let mut verbose = Line::default();
    let mut is_verbose = false;
    for line in text.lines() {
        let end =
            ["nuttcp-t: ", "nuttcp-r: "].into_iter().find_map(|end| line.strip_prefix(end).map(|rest| (end, rest)));
        if let Some((end, rest)) = end {
            is_verbose = true;
            if let Some(found) = rest.strip_prefix('v').and_then(|rest| rest.strip_suffix(": socket")) {
                version = Some(found.to_owned());
            }
            streams = streams.or_else(|| value(rest, "nstream"));
            verbose.udp |= rest.contains(" udp") || rest.contains("mode=udp");
            verbose.rtt_ms = verbose.rtt_ms.or_else(|| value(rest, "RTT").or_else(|| value(rest, "rtt_ms")));
            verbose.retransmits =
                verbose.retransmits.or_else(|| value(rest, "retrans").or_else(|| before(rest, " retrans")));
            // The goodput is the receiver's rate.
            if end == "nuttcp-r: " {
                let megabytes = value(rest, "megabytes").or_else(|| before(rest, " MB"));
                let mbps = value(rest, "rate_Mbps").or_else(|| before(rest, " Mbps"));
                if let (Some(megabytes), Some(mbps)) = (megabytes, mbps) {
                    (verbose.megabytes, verbose.mbps) = (megabytes, mbps);
                    last = Some(Line { last: true, ..verbose.clone() });
                }
            }
            continue;
        }
        let Some(found) = parse(line) else { continue };
        if found.last { last = Some(found) } else { intervals.push(found) }
    }
    let Some(mut total) = last else {
        return Err(if intervals.is_empty() && !is_verbose {
            ForeignError::Unknown
        } else {
            ForeignError::Incomplete { program: "nuttcp", what: "the line of its end" }
        });
    };
    total.retransmits = total.retransmits.or(verbose.retransmits);
    total.rtt_ms = total.rtt_ms.or(verbose.rtt_ms);
    let mut record = record(version.map_or_else(|| "nuttcp".to_owned(), |version| format!("nuttcp {version}")));
    record.settings.insert("protocol".to_owned(), if total.udp { "udp" } else { "tcp" }.to_owned());
    if let Some(streams) = streams {
        record.settings.insert("streams".to_owned(), format!("{streams:.0}"));
    }
    let figures = &mut record.figures;
    figures.set(Metric::Goodput, Some(total.mbps * 1e6));
    // nuttcp's MB is 2^20 bytes.
    let bytes = Some(total.megabytes * f64::from(1 << 20)).filter(|bytes| *bytes > 0.0);
    figures.set(Metric::Retransmits, total.retransmits.zip(bytes).map(|(count, bytes)| count * 1e9 / bytes));
    figures.set(Metric::Loss, total.loss_ratio);
    let rates: Vec<f64> = intervals.iter().map(|line| line.mbps).collect();
    figures.set(Metric::GoodputCv, variation(&rates));
    Ok(ForeignDocument { kind: "nuttcp", records: vec![record] })
}

/// Parses a line of either form, without `-v`.
fn parse(line: &str) -> Option<Line> {
    if let (Some(megabytes), Some(mbps)) = (value(line, "megabytes"), value(line, "rate_Mbps")) {
        return Some(Line {
            megabytes,
            mbps,
            retransmits: value(line, "retrans"),
            rtt_ms: value(line, "rtt_ms"),
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
        rtt_ms: before(rest, " msRTT"),
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
    use crate::Record;

    fn fixture(name: &str) -> Record {
        let path = format!("{}/../../fixtures/foreign/{name}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{path}: {why}"));
        read(&text).unwrap_or_else(|why| panic!("{path}: {why}")).records.remove(0)
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
