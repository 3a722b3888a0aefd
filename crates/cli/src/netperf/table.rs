//! netperf's classic output: a table with one row.

use std::fmt::Write as _;

use super::keys::Report;

/// Returns the table; with `-v 0` its figure alone. Unknown figures are `-`.
pub fn table(report: &Report<'_>, headings: bool, verbosity: u8) -> String {
    let throughput = report.throughput().map_or_else(|| "-".to_owned(), |rate| format!("{rate:.2}"));
    if verbosity == 0 {
        return format!("{throughput}\n");
    }
    let mut text = String::new();
    if headings {
        let server = report.run.path.as_ref().map_or("-", |path| path.server_addr.as_str());
        let _ = writeln!(text, "{} TEST to {server}", report.test.title());
    }
    let or_unknown = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
    let (local, remote) = (report.local(), report.remote());
    let elapsed = report.elapsed_ns().map_or_else(|| "-".to_owned(), |ns| format!("{:.2}", ns as f64 / 1e9));
    if report.test.is_rr() {
        if headings {
            text.push_str(
                "Local /Remote\n\
                 Socket Size   Request  Resp.   Elapsed  Trans.\n\
                 Send   Recv   Size     Size    Time     Rate\n\
                 bytes  Bytes  bytes    bytes   secs.    per sec\n\n",
            );
        }
        let rr = report.latency();
        let (request, response) = rr.map_or((None, None), |rr| (Some(rr.request_bytes), Some(rr.response_bytes)));
        let size = |size: Option<u32>| or_unknown(size.map(u64::from));
        let buffers = |end: Option<&landspeed_model::StreamEnd>| {
            let (send, receive) = end.map_or((None, None), |end| (end.sndbuf_bytes, end.rcvbuf_bytes));
            format!("{:<6} {:<6}", or_unknown(send), or_unknown(receive))
        };
        let _ =
            writeln!(text, "{} {:<8} {:<7} {elapsed:<8} {throughput}", buffers(local), size(request), size(response));
        let _ = writeln!(text, "{}", buffers(remote).trim_end());
        return text;
    }
    if headings {
        let _ = write!(
            text,
            "Recv   Send    Send\n\
             Socket Socket  Message  Elapsed\n\
             Size   Size    Size     Time     Throughput\n\
             bytes  bytes   bytes    secs.    {}/sec\n\n",
            report.unit.name()
        );
    }
    let receive = or_unknown(report.receiver().and_then(|end| end.rcvbuf_bytes));
    let send = or_unknown(report.sender().and_then(|end| end.sndbuf_bytes));
    let size = report.parameters().write_bytes;
    let _ = writeln!(text, "{receive:>6} {send:>6} {size:>6}    {elapsed:<8} {throughput:>8}");
    text
}

#[cfg(test)]
mod tests {
    use landspeed_model::RunDocument;

    use super::*;
    use crate::netperf::kind::Test;
    use crate::netperf::units::Unit;

    fn read(path: &str) -> RunDocument {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
        serde_json::from_slice(&std::fs::read(path).expect("a document")).expect("a run")
    }

    #[test]
    fn the_last_column_of_the_row_is_the_throughput() {
        for (path, test, unit) in [
            ("crates/diagnose/fixtures/real/bulk-loopback-bbr.json", Test::TcpStream, Unit::Bits(2)),
            ("fixtures/documents/rr.json", Test::TcpRr, Unit::Transactions),
        ] {
            let run = read(path);
            let report = Report { run: &run, test, unit };
            let figure = table(&report, true, 0);
            let printed = table(&report, false, 1);
            let row = printed.lines().next().expect("a row");
            assert_eq!(row.split_whitespace().last(), Some(figure.trim_end()), "{printed}");
            assert!(table(&report, true, 1).ends_with(&printed));
        }
    }

    #[test]
    fn an_unknown_figure_is_a_dash() {
        let mut run = read("crates/diagnose/fixtures/real/bulk-loopback-bbr.json");
        run.streams[0].receiver = None;
        assert_eq!(table(&Report { run: &run, test: Test::TcpStream, unit: Unit::Bits(2) }, false, 0), "-\n");
    }
}
