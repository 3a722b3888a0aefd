//! The streams of a test and who reported on them: every figure over several streams is taken from here, so that a
//! report that never came cannot count as zero.

use landspeed_model::{Direction, Parameters, Stream, StreamEnd, UdpEnd};

use super::known::Known;
use crate::end::{EndReport, Side};
use crate::layout::{self, StreamSpec};

/// Reports of both hosts, joined by stream.
pub struct Reports<'a> {
    parameters: &'a Parameters,
    /// Streams of the test, reported or not.
    specs: Vec<StreamSpec>,
    streams: &'a [Stream],
    client: Option<&'a EndReport>,
    server: Option<&'a EndReport>,
}

impl<'a> Reports<'a> {
    /// Joins the reports of a test with these parameters.
    pub fn new(
        parameters: &'a Parameters,
        streams: &'a [Stream],
        client: Option<&'a EndReport>,
        server: Option<&'a EndReport>,
    ) -> Self {
        let specs = layout::streams(parameters).unwrap_or_default();
        Self { parameters, specs, streams, client, server }
    }

    /// Returns the directions of the test.
    pub fn directions(&self) -> &'static [Direction] {
        self.parameters.direction.parts()
    }

    /// Returns the bulk streams that at least one side reported.
    pub fn streams(&self) -> &'a [Stream] {
        self.streams
    }

    /// Returns the report of one side.
    pub fn side(&self, side: Side) -> Option<&'a EndReport> {
        match side {
            Side::Client => self.client,
            Side::Server => self.server,
        }
    }

    /// Returns the report of a direction's sending or receiving host, or the reason why there is none.
    pub fn host(&self, direction: Direction, sends: bool) -> Known<&'a EndReport> {
        let side = side(direction, sends);
        self.side(side).ok_or_else(|| missing_report(side))
    }

    /// Returns the sending or receiving ends of all bulk streams of `directions`, in the order of their numbers.
    pub fn ends(&self, directions: &[Direction], sends: bool) -> Known<Vec<(&'a Stream, &'a StreamEnd)>> {
        let in_question = |spec: &&StreamSpec| spec.client_job.is_bulk() && directions.contains(&spec.direction);
        let specs = self.specs.iter().filter(in_question);
        let end = |spec: &StreamSpec| {
            self.host(spec.direction, sends)?;
            let stream = self.streams.iter().find(|stream| stream.id == spec.id);
            let end = stream.and_then(|stream| {
                let end = if sends { stream.sender.as_ref() } else { stream.receiver.as_ref() };
                Some((stream, end?))
            });
            end.ok_or_else(|| format!("the {}'s report lacks stream {}", name(side(spec.direction, sends)), spec.id))
        };
        specs.map(end).collect()
    }

    /// Sums a count of all sending or receiving ends of `directions`.
    pub fn sum(
        &self,
        directions: &[Direction],
        sends: bool,
        count: impl Fn(&StreamEnd) -> Option<u64>,
    ) -> Known<u64> {
        let counted = |(stream, end): (&Stream, &StreamEnd)| count(end).ok_or_else(|| not_reported(stream, sends));
        self.ends(directions, sends)?.into_iter().map(counted).sum()
    }

    /// Sums a UDP count of all sending or receiving ends of the test.
    pub fn datagrams(&self, sends: bool, count: impl Fn(&UdpEnd) -> Option<u64>) -> Known<u64> {
        self.sum(self.directions(), sends, |end| count(end.udp.as_ref()?))
    }

    /// Returns the streams of a direction if the intervals of each are those of its receiver. A receiver that reports
    /// totals only is replaced by the ACKs that its sender got.
    pub fn delivered(&self, direction: Direction) -> Known<Vec<&'a Stream>> {
        let ends = self.ends(&[direction], false)?;
        let receiver = self.host(direction, false)?;
        let accepted = |(stream, _): (&'a Stream, &StreamEnd)| match stream.intervals_from.as_str() {
            "receiver" => Ok(stream),
            "sender" if !receiver.has_timeline() => Ok(stream),
            _ => Err(no_samples(receiver, side(direction, false))),
        };
        ends.into_iter().map(accepted).collect()
    }

    /// Whether a report has all streams of the test.
    pub fn is_whole(&self, report: &EndReport) -> bool {
        self.specs.iter().all(|spec| {
            if spec.client_job.is_bulk() {
                report.streams.iter().any(|stream| stream.id == spec.id)
            } else {
                report.rr_streams.iter().any(|stream| stream.id == spec.id)
            }
        })
    }

    /// Returns the reasons why the hosts' own counters (interfaces, queues) are not visible.
    pub fn invisible_hosts(&self) -> Vec<String> {
        [Side::Client, Side::Server]
            .into_iter()
            .filter_map(|side| match self.side(side) {
                None => Some(missing_report(side)),
                Some(report) if !report.has_timeline() || report.host.samples.is_empty() => {
                    Some(format!("the counters of the {}'s host are not visible", name(side)))
                }
                Some(_) => None,
            })
            .collect()
    }

    /// Returns the counters of dropped packets that a host could not read, each with the reason: those of the sending
    /// and of the receiving hosts.
    pub fn invisible_drops(&self) -> Vec<String> {
        let mut unread = Vec::new();
        for (key, of_senders, of_receivers, counters) in DROP_COUNTERS {
            for side in [Side::Client, Side::Server] {
                let part = |sends: bool| self.directions().iter().any(|way| self::side(*way, sends) == side);
                let counts = (of_senders && part(true)) || (of_receivers && part(false));
                let why = self.side(side).filter(|_| counts).and_then(|report| report.host.unavailable.get(key));
                unread.extend(why.map(|why| format!("{counters} of the {} are not visible ({why})", name(side))));
            }
        }
        unread
    }
}

/// Counters of dropped packets: the key under which `unavailable` has the reason if they could not be read, whether they
/// count drops of a sender's and of a receiver's host, and what they are.
const DROP_COUNTERS: [(&str, bool, bool, &str); 4] = [
    ("nic", true, true, "the interface counters"),
    ("qdiscs", true, false, "the qdisc counters"),
    ("qdiscs.replaced", true, false, "all qdisc counters"),
    ("softnet", false, true, "the softnet counters"),
];

/// Returns the side that sends or receives the data of a direction.
pub fn side(direction: Direction, sends: bool) -> Side {
    if (direction == Direction::Download) == sends { Side::Server } else { Side::Client }
}

/// Returns the name of a side in texts.
pub fn name(side: Side) -> &'static str {
    match side {
        Side::Client => "client",
        Side::Server => "server",
    }
}

/// Reason for figures of a side that did not report.
pub fn missing_report(side: Side) -> String {
    format!("the {}'s report is missing", name(side))
}

/// Reason for a count that the sender or receiver of a stream did not report.
pub fn not_reported(stream: &Stream, sends: bool) -> String {
    format!("the {} does not report it", name(side(stream.direction, sends)))
}

/// Reason for figures that need samples over time.
pub fn no_samples(report: &EndReport, side: Side) -> String {
    if report.has_timeline() {
        format!("samples of the {} are missing", name(side))
    } else {
        format!("the {} reports totals only", name(side))
    }
}
