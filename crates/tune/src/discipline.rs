//! Parses a qdisc in `tc` syntax (`fq maxrate 8gbit`) for netlink.

use landspeed_netlink::configure::{Codel, Delivery, Discipline, Fq, FqCodel, Tbf};
use landspeed_units::{BitRate, Bytes, Nanos};

/// A requested qdisc.
#[derive(Debug, Clone, PartialEq)]
pub enum QdiscRequest {
    /// The kernel's default: the root qdisc is deleted.
    Default,
    /// A kind with default options.
    DefaultOptions(&'static str),
    /// A kind with explicit options.
    ExplicitOptions(Discipline),
}

impl QdiscRequest {
    /// The kernel's name of the kind; `None` for the default.
    pub fn kind(&self) -> Option<&'static str> {
        match self {
            Self::Default => None,
            Self::DefaultOptions(kind) => Some(kind),
            Self::ExplicitOptions(discipline) => Some(discipline.kind()),
        }
    }

    /// Whether it must be the root even with several queues, because its classes cover the whole interface
    /// (htb).
    pub fn must_be_root(&self) -> bool {
        matches!(self, Self::ExplicitOptions(Discipline::Htb { .. }))
    }

    /// Parses `KIND [OPTION VALUE]…`. The error names the problem and the alternatives.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut words = OptionParser { rest: text.split_whitespace(), kind: "" };
        let kind = words.rest.next().ok_or("no queueing discipline is named; write `fq` or `fq maxrate 8gbit`")?;
        words.kind = kind;
        let wanted = match kind {
            "default" => Self::Default,
            "htb" => Self::ExplicitOptions(Discipline::Htb { default_class: 0 }),
            "pfifo_fast" => Self::DefaultOptions("pfifo_fast"),
            "fq" => Self::ExplicitOptions(Discipline::Fq(words.fq()?)),
            "fq_codel" => Self::ExplicitOptions(Discipline::FqCodel(words.fq_codel()?)),
            "tbf" => Self::ExplicitOptions(Discipline::Tbf(words.tbf()?)),
            "pfifo" | "bfifo" => match (words.limit()?, kind) {
                (None, "pfifo") => Self::DefaultOptions("pfifo"),
                (None, _) => Self::DefaultOptions("bfifo"),
                (Some(limit_packets), "pfifo") => Self::ExplicitOptions(Discipline::Pfifo { limit_packets }),
                (Some(limit_bytes), _) => Self::ExplicitOptions(Discipline::Bfifo { limit_bytes }),
            },
            other => {
                return Err(format!(
                    "`{other}` is not among the queueing disciplines that are set here: fq, fq_codel, pfifo, bfifo, \
                     pfifo_fast, tbf, htb (without classes), default"
                ));
            }
        };
        match words.rest.next() {
            None => Ok(wanted),
            Some(word) => Err(words.unknown(word)),
        }
    }
}

/// The words not parsed yet.
struct OptionParser<'a> {
    rest: std::str::SplitWhitespace<'a>,
    kind: &'a str,
}

impl<'a> OptionParser<'a> {
    fn unknown(&self, word: &str) -> String {
        format!("`{word}` is not a known option of {}", self.kind)
    }

    fn value(&mut self, option: &str) -> Result<&'a str, String> {
        self.rest.next().ok_or_else(|| format!("{} {option} needs a value", self.kind))
    }

    fn number(&mut self, option: &str) -> Result<u32, String> {
        let text = self.value(option)?;
        text.trim_end_matches(['p', 'b']).parse().map_err(|_| format!("`{text}` is not a number for {option}"))
    }

    fn microseconds(&mut self, option: &str) -> Result<u32, String> {
        let text = self.value(option)?;
        // A number without unit is in microseconds, as in tc.
        let ns = text
            .parse::<u64>()
            .map(|us| us.saturating_mul(1000))
            .or_else(|_| text.parse::<Nanos>().map(Nanos::get))
            .map_err(|_| format!("`{text}` is not a time for {option}; write 10ms"))?;
        u32::try_from(ns / 1000).map_err(|_| format!("`{text}` is too long for {option}"))
    }

    fn limit(&mut self) -> Result<Option<u32>, String> {
        match self.rest.next() {
            None => Ok(None),
            Some("limit") => self.number("limit").map(Some),
            Some(word) => Err(self.unknown(word)),
        }
    }

    fn fq(&mut self) -> Result<Fq, String> {
        let mut fq = Fq::default();
        while let Some(option) = self.rest.next() {
            match option {
                "limit" => fq.limit_packets = Some(self.number(option)?),
                "flow_limit" => fq.flow_limit_packets = Some(self.number(option)?),
                "quantum" => fq.quantum_bytes = Some(self.number(option)?),
                "initial_quantum" => fq.initial_quantum_bytes = Some(self.number(option)?),
                "maxrate" => fq.flow_max_rate_bytes_per_s = Some(bytes_per_s(self.value(option)?)?),
                "pacing" => fq.pacing = Some(true),
                "nopacing" => fq.pacing = Some(false),
                "refill_delay" => fq.refill_delay_us = Some(self.microseconds(option)?),
                "ce_threshold" => fq.ce_threshold_us = Some(self.microseconds(option)?),
                "horizon" => fq.horizon_us = Some(self.microseconds(option)?),
                "horizon_drop" => fq.beyond_horizon = Some(Delivery::Drop),
                "horizon_cap" => fq.beyond_horizon = Some(Delivery::Cap),
                other => return Err(self.unknown(other)),
            }
        }
        if fq.flow_max_rate_bytes_per_s.is_some_and(|rate| rate >= u64::from(u32::MAX)) {
            return Err("fq maxrate ends at 34.36 Gb/s: the kernel's field has 32 bits of bytes/s".into());
        }
        Ok(fq)
    }

    fn fq_codel(&mut self) -> Result<FqCodel, String> {
        let mut fq_codel = FqCodel { codel: Codel::default(), ..FqCodel::default() };
        while let Some(option) = self.rest.next() {
            match option {
                "limit" => fq_codel.codel.limit_packets = Some(self.number(option)?),
                "flows" => fq_codel.flows = Some(self.number(option)?),
                "target" => fq_codel.codel.target_us = Some(self.microseconds(option)?),
                "interval" => fq_codel.codel.interval_us = Some(self.microseconds(option)?),
                "quantum" => fq_codel.quantum_bytes = Some(self.number(option)?),
                "ce_threshold" => fq_codel.codel.ce_threshold_us = Some(self.microseconds(option)?),
                "ecn" => fq_codel.codel.ecn = Some(true),
                "noecn" => fq_codel.codel.ecn = Some(false),
                other => return Err(self.unknown(other)),
            }
        }
        Ok(fq_codel)
    }

    fn tbf(&mut self) -> Result<Tbf, String> {
        let mut tbf = Tbf::default();
        let size = |text: &str| {
            let bytes = text.parse::<Bytes>().map_err(|why| why.to_string())?.get();
            u32::try_from(bytes).map_err(|_| format!("`{text}` is too many bytes"))
        };
        while let Some(option) = self.rest.next() {
            match option {
                "rate" => tbf.rate_bytes_per_s = bytes_per_s(self.value(option)?)?,
                "burst" => tbf.burst_bytes = size(self.value(option)?)?,
                "limit" => tbf.limit_bytes = size(self.value(option)?)?,
                other => return Err(self.unknown(other)),
            }
        }
        if tbf.rate_bytes_per_s == 0 || tbf.burst_bytes == 0 || tbf.limit_bytes == 0 {
            return Err("tbf needs a rate, a burst and a limit: `tbf rate 8gbit burst 1MiB limit 16MiB`".into());
        }
        Ok(tbf)
    }
}

/// Parses a rate in tc syntax (`8gbit`, `500mbit`) or landspeed syntax (`8G`); returns bytes/s.
pub(crate) fn bytes_per_s(text: &str) -> Result<u64, String> {
    let lower = text.to_ascii_lowercase();
    let plain = lower.strip_suffix("bit").unwrap_or(&lower);
    let rate: BitRate = plain.parse().map_err(|_| format!("`{text}` is not a rate; write 8gbit"))?;
    Ok(rate.bps() / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fq_maxrate_is_parsed_as_in_tc() {
        let fq = |rate| {
            Ok(QdiscRequest::ExplicitOptions(Discipline::Fq(Fq {
                flow_max_rate_bytes_per_s: Some(rate),
                ..Fq::default()
            })))
        };
        assert_eq!(QdiscRequest::parse("fq maxrate 8gbit"), fq(1_000_000_000));
        assert_eq!(QdiscRequest::parse("fq maxrate 8G"), fq(1_000_000_000));
        assert_eq!(QdiscRequest::parse("fq maxrate 500mbit"), fq(62_500_000));
        assert!(QdiscRequest::parse("fq maxrate 40gbit").is_err_and(|why| why.contains("34.36")));
    }

    #[test]
    fn unknown_options_are_refused_by_name() {
        for (text, word) in [
            ("", "named"),
            ("htb default 10", "htb"),
            ("fq speed 3", "speed"),
            ("fq limit", "value"),
            ("pfifo limit many", "many"),
            ("default fq", "fq"),
            ("tbf rate 1gbit", "burst"),
        ] {
            let why = QdiscRequest::parse(text).expect_err(text);
            assert!(why.contains(word), "{text}: {why}");
        }
    }
}
