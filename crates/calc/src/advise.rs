//! Combines all formulas for one path.

use landspeed_units::Bytes;

use crate::answers::{Advice, AdviceItem, Unit};
use crate::distance::{LIGHT_IN_FIBRE_M_PER_S, fibre_distance_m, fibre_rtt_s, land_speed_bit_m_per_s};
use crate::framing::transfer_time_s;
use crate::input::{InputError, PathInput};
use crate::response::{
    cubic_loss_budget, cubic_recovery_s, cubic_window_segments, mathis_rate_bps, reno_loss_budget, reno_recovery_s,
    reno_window_segments, window_rate_bps, window_segments,
};
use crate::text::value_text;
use crate::window::{
    MAX_WINDOW_BYTES, bdp_bytes, buffer_many_flows_bytes, flow_rate_ceiling_bps, flows_needed, socket_buffer_bytes,
    window_bytes,
};

/// Default maximum of `tcp_rmem` in Linux 6.18; a smaller buffer needs no change.
const DEFAULT_RMEM_MAX_BYTES: f64 = 33_554_432.0;
const DEFAULT_WMEM_MAX_BYTES: f64 = 4_194_304.0;

/// Above this loss ratio retransmission timeouts dominate, and the response functions overestimate (Padhye et
/// al., SIGCOMM 1998).
const TIMEOUTS_FROM_LOSS: f64 = 0.02;

const RFC_9438_TABLE_3: &str = "RFC 9438 section 5.2, table 3";

/// Returns every figure for a path.
///
/// # Errors
/// If the input is impossible.
pub fn advise(input: &PathInput) -> Result<Advice, InputError> {
    input.check()?;
    let path = Path::of(input);
    let mut lines = path.window();
    lines.extend(path.rates());
    lines.extend(path.loss_and_recovery());
    lines.extend(path.bottleneck_buffers());
    lines.extend(path.transfer());
    lines.extend(path.distance());
    Ok(Advice { lines })
}

/// The input as floats, with intermediate results that several answers share.
struct Path<'a> {
    input: &'a PathInput,
    rate_bps: f64,
    rtt_s: f64,
    flows: f64,
    mss_bytes: f64,
    /// Loss ratio; `None` without loss.
    loss: Option<f64>,
    goodput_bps: f64,
    expected_bps: f64,
}

impl<'a> Path<'a> {
    fn of(input: &'a PathInput) -> Self {
        let (rate_bps, rtt_s) = (input.rate.bps() as f64, input.rtt.as_secs_f64());
        let (framing, flows) = (input.framing(), f64::from(input.flows));
        let mss_bytes = f64::from(framing.mss_bytes());
        let goodput_bps = framing.goodput_bps(rate_bps);
        let loss = input.loss.map(landspeed_units::Ratio::get).filter(|&p| p > 0.0);
        let under_loss_bps =
            loss.map_or(f64::INFINITY, |p| window_rate_bps(cubic_window_segments(rtt_s, p), mss_bytes, rtt_s));
        let expected_bps = goodput_bps.min(flows * flow_rate_ceiling_bps(rtt_s).min(under_loss_bps));
        Self { input, rate_bps, rtt_s, flows, mss_bytes, loss, goodput_bps, expected_bps }
    }

    fn window(&self) -> Vec<AdviceItem> {
        let per_flow_bps = self.rate_bps / self.flows;
        let bdp = bdp_bytes(self.rate_bps, self.rtt_s);
        let needed = flows_needed(self.rate_bps, self.rtt_s);
        let buffer = socket_buffer_bytes(per_flow_bps, self.rtt_s);
        let window_note = match window_bytes(per_flow_bps, self.rtt_s) {
            Some(_) => None,
            None => Some(format!(
                "one flow would need {}, more than TCP can advertise (1 GiB): use {needed:.0} or more flows",
                Bytes::new(bdp_bytes(per_flow_bps, self.rtt_s) as u64)
            )),
        };
        vec![
            item("bdp", "bandwidth-delay product", bdp, Unit::Bytes, "rate × RTT / 8", "RFC 7323 section 1.1"),
            item(
                "window-per-flow",
                "window per flow",
                bdp_bytes(per_flow_bps, self.rtt_s).min(MAX_WINDOW_BYTES),
                Unit::Bytes,
                "min(BDP / flows, 65535 × 2^14)",
                "RFC 7323 section 2.3",
            )
            .with_note(window_note),
            item(
                "flow-rate-ceiling",
                "max rate of one TCP flow (1 GiB window)",
                flow_rate_ceiling_bps(self.rtt_s),
                Unit::BitsPerSecond,
                "65535 × 2^14 × 8 / RTT",
                "RFC 7323 section 2.3",
            ),
            item(
                "flows-needed",
                "min number of flows for the rate",
                needed,
                Unit::Count,
                "⌈BDP / (65535 × 2^14)⌉",
                "RFC 7323 section 2.3",
            )
            .with_note(
                (needed > self.flows)
                    .then(|| format!("{:.0} given: the 1 GiB TCP window limits the rate", self.flows)),
            ),
            item(
                "tcp-rmem-max",
                "tcp_rmem max (receiver)",
                buffer,
                Unit::Bytes,
                "min(2 × window per flow, 2 GiB − 64 MiB)",
                "ESnet fasterdata, host tuning; Linux ip-sysctl.rst, tcp_rmem",
            )
            .with_note(Some(default_note(buffer, DEFAULT_RMEM_MAX_BYTES, "32 MiB"))),
            item(
                "tcp-wmem-max",
                "tcp_wmem max (sender)",
                buffer,
                Unit::Bytes,
                "min(2 × window per flow, 2 GiB − 64 MiB)",
                "ESnet fasterdata, host tuning; Linux ip-sysctl.rst, tcp_wmem",
            )
            .with_note(Some(default_note(buffer, DEFAULT_WMEM_MAX_BYTES, "4 MiB"))),
        ]
    }

    fn rates(&self) -> Vec<AdviceItem> {
        let mut lines = vec![
            item(
                "efficiency",
                "efficiency (payload / line rate)",
                self.input.framing().efficiency(),
                Unit::Ratio,
                "(MTU − IP header − 20 − 12) / (MTU + 38)",
                "IEEE 802.3; RFC 791 or 8200; RFC 9293; RFC 7323 (timestamps on)",
            ),
            item(
                "goodput-max",
                "max goodput of the link",
                self.goodput_bps,
                Unit::BitsPerSecond,
                "rate × efficiency",
                "IEEE 802.3; RFC 9293",
            ),
        ];
        if let Some(p) = self.loss {
            lines.extend(self.rates_under_loss(p));
        }
        let bound = if self.expected_bps >= self.goodput_bps {
            "limited by the link"
        } else if self.expected_bps >= self.flows * flow_rate_ceiling_bps(self.rtt_s) {
            "limited by the 1 GiB TCP window"
        } else {
            "limited by loss (CUBIC)"
        };
        let source = "minimum of the limits above; hosts and cross traffic can only lower it";
        lines.push(
            item(
                "expected-rate",
                "expected goodput, all flows",
                self.expected_bps,
                Unit::BitsPerSecond,
                "min(goodput, flows × ceiling, flows × CUBIC under loss)",
                source,
            )
            .with_note(Some(bound.to_owned())),
        );
        lines
    }

    fn rates_under_loss(&self, p: f64) -> [AdviceItem; 3] {
        let rate_bps = |window| self.flows * window_rate_bps(window, self.mss_bytes, self.rtt_s);
        let note = (p > TIMEOUTS_FROM_LOSS)
            .then(|| "at this loss timeouts occur, which the formula omits: expect less".to_owned());
        [
            item(
                "mathis-rate",
                "Mathis limit at this loss, all flows",
                self.flows * mathis_rate_bps(self.mss_bytes, self.rtt_s, p),
                Unit::BitsPerSecond,
                "flows × MSS × 8 / RTT × √(3/2) / √p",
                "Mathis, Semke, Mahdavi, Ott, CCR 1997 (periodic loss, an ACK per segment)",
            )
            .with_note(note.clone()),
            item(
                "reno-rate",
                "Reno at this loss, all flows",
                rate_bps(reno_window_segments(p)),
                Unit::BitsPerSecond,
                "flows × MSS × 8 / RTT × 1.2 / √p",
                "RFC 5681; RFC 9438 section 5.1, table 1",
            )
            .with_note(note.clone()),
            item(
                "cubic-rate",
                "CUBIC at this loss, all flows",
                rate_bps(cubic_window_segments(self.rtt_s, p)),
                Unit::BitsPerSecond,
                "flows × MSS × 8 / RTT × max(1.054 × (RTT / p)^¾, 1.2 / √p)",
                "RFC 9438 section 5, figure 6 (periodic loss)",
            )
            .with_note(note),
        ]
    }

    fn loss_and_recovery(&self) -> [AdviceItem; 4] {
        // The window field caps the target: no loss budget allows a higher rate.
        let target_bps = self.goodput_bps.min(self.flows * flow_rate_ceiling_bps(self.rtt_s));
        let window = window_segments(target_bps / self.flows, self.rtt_s, self.mss_bytes);
        let (reno, cubic) = (reno_loss_budget(window), cubic_loss_budget(window, self.rtt_s));
        [
            item(
                "loss-budget-reno",
                "max loss for full goodput, Reno",
                reno,
                Unit::Ratio,
                "(1.2 / W)², W = min(goodput / flows, ceiling) × RTT / (8 × MSS)",
                RFC_9438_TABLE_3,
            )
            .with_note(format_one_in(reno)),
            item(
                "loss-budget-cubic",
                "max loss for full goodput, CUBIC",
                cubic,
                Unit::Ratio,
                "max(RTT / (W / 1.054)^(4/3), Reno's)",
                RFC_9438_TABLE_3,
            )
            .with_note(format_one_in(cubic)),
            item(
                "recovery-reno",
                "recovery time after one loss, Reno",
                reno_recovery_s(window, self.rtt_s),
                Unit::Seconds,
                "W / 2 × RTT",
                "RFC 5681 section 3.1",
            ),
            item(
                "recovery-cubic",
                "recovery time after one loss, CUBIC",
                cubic_recovery_s(window, self.rtt_s),
                Unit::Seconds,
                "min(∛(W × 0.3 / 0.4), W × 1.7 / 3 × RTT)",
                "RFC 9438 sections 4.2 and 4.3",
            ),
        ]
    }

    fn bottleneck_buffers(&self) -> [AdviceItem; 2] {
        [
            item(
                "buffer-rule-of-thumb",
                "bottleneck buffer, one flow (BDP)",
                buffer_many_flows_bytes(self.rate_bps, self.rtt_s, 1.0),
                Unit::Bytes,
                "RTT × C",
                "Villamizar, Song, CCR 1994",
            ),
            item(
                "buffer-many-flows",
                "bottleneck buffer, BDP / √flows",
                buffer_many_flows_bytes(self.rate_bps, self.rtt_s, self.flows),
                Unit::Bytes,
                "RTT × C / √flows",
                "Appenzeller, Keslassy, McKeown, SIGCOMM 2004",
            )
            .with_note((self.input.flows > 1).then(|| "holds for many unsynchronised flows".to_owned())),
        ]
    }

    fn transfer(&self) -> Option<AdviceItem> {
        let bytes = self.input.bytes?;
        let time = item(
            "transfer-time",
            "transfer time",
            transfer_time_s(bytes.get() as f64, self.expected_bps),
            Unit::Seconds,
            "bytes × 8 / expected rate",
            "definition; slow start adds to it",
        );
        Some(time.with_note(Some(format!("for {bytes}"))))
    }

    fn distance(&self) -> Vec<AdviceItem> {
        let farthest_m = fibre_distance_m(self.rtt_s);
        let mut lines = vec![item(
            "fibre-distance-max",
            "max fibre distance at this RTT, one way",
            farthest_m,
            Unit::Metres,
            "RTT / 2 × ⅔ c",
            "light in fibre, group index about 1.5 (ITU-T G.652: 1.47)",
        )];
        if let Some(distance_m) = self.input.distance_m {
            let faster = distance_m / self.rtt_s * 2.0 > LIGHT_IN_FIBRE_M_PER_S;
            lines.push(
                item(
                    "rtt-floor",
                    "min RTT over this distance in fibre",
                    fibre_rtt_s(distance_m),
                    Unit::Seconds,
                    "2 × distance / (⅔ c)",
                    "light in fibre, group index about 1.5 (ITU-T G.652: 1.47)",
                )
                .with_note(faster.then(|| "longer than the given RTT: check both figures".to_owned())),
            );
        }
        let note = match self.input.distance_m {
            Some(_) => "the last record: 272400 Tb·m/s",
            None => "upper bound, with the max fibre distance; the last record: 272400 Tb·m/s",
        };
        lines.push(
            item(
                "land-speed",
                "land speed (goodput × distance)",
                land_speed_bit_m_per_s(self.expected_bps, self.input.distance_m.unwrap_or(farthest_m)),
                Unit::BitMetresPerSecond,
                "expected rate × distance",
                "Internet2 Land Speed Record, http://www.internet2.edu/lsr/",
            )
            .with_note(Some(note.to_owned())),
        );
        lines
    }
}

fn item(
    key: &'static str,
    label: &'static str,
    value: f64,
    unit: Unit,
    formula: &'static str,
    source: &'static str,
) -> AdviceItem {
    debug_assert!(value.is_finite() && value >= 0.0, "{key} is {value}");
    AdviceItem { key, label, value_text: value_text(value, unit), value, unit, formula, source, note: None }
}

impl AdviceItem {
    fn with_note(self, note: Option<String>) -> Self {
        Self { note, ..self }
    }
}

fn default_note(needed: f64, default: f64, shown: &str) -> String {
    if needed <= default {
        format!("within the Linux 6.18 default ({shown}): no change needed")
    } else {
        format!("Linux 6.18 default: {shown}")
    }
}

/// Formats a small loss ratio as "1 in N".
fn format_one_in(loss: f64) -> Option<String> {
    (loss < 0.1).then(|| match (1.0 / loss).round() {
        packets if packets < 1e7 => format!("one packet in {packets:.0}"),
        packets => format!("one packet in {packets:.2e}"),
    })
}
