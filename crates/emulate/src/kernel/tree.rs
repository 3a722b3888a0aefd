//! Conversion of a path's plan to queueing disciplines.

use landspeed_emulation::{
    DirectionPlan, Distribution, Emulator, EventDirection, Feature, HopPlan, Link, LinkDirection, LoadedPath, Loss,
    LossPattern, QueuePlan, Unsupported,
};
use landspeed_netlink::configure::{
    Codel, Discipline, FqCodel, Loss as NetemLoss, Netem, NetemRate, Pie, Probability, Red, Tbf,
};
use landspeed_stats::SplitMix64;

use crate::error::EmulateError;

/// Bucket of a token bucket filter as a time at its rate, nanoseconds: the lateness of a timer that costs no
/// throughput.
const BURST_NS: u64 = 500_000;
/// Queue limit of a token bucket, bytes: its child queue enforces the real one.
const NO_LIMIT: u32 = u32::MAX / 2;
/// Minimum frame size, bytes.
const MIN_FRAME_BYTES: u64 = 42;
/// Margin for frames in flight beyond rate × delay.
const MARGIN_FRAMES: u64 = 10_000;

/// Queueing disciplines of one link.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HopTree {
    /// Token bucket: the root qdisc of one veth link.
    pub shaper: Tbf,
    /// Child of the token bucket.
    pub queue: Discipline,
    /// Delay, loss and other impairments: the root qdisc of the next veth link.
    pub wire: Option<Netem>,
    /// Framing overhead, bytes per frame.
    pub framing_bytes: u64,
}

impl HopTree {
    /// Maximum time by which a frame may leave early, nanoseconds: netem serialises exactly; without it, a burst
    /// leaves the token bucket at once.
    pub(crate) fn resolution_ns(&self) -> u64 {
        if self.wire.is_some() {
            return 0;
        }
        let bytes = u64::from(self.shaper.burst_bytes) + self.framing_bytes;
        bytes.saturating_mul(1_000_000_000) / self.shaper.rate_bytes_per_s.max(1)
    }

    /// Whether netem duplicates frames.
    pub(crate) fn duplicates(&self) -> bool {
        self.wire.is_some_and(|wire| wire.duplicate != Probability::ZERO)
    }

    /// Whether netem's drops are losses that the path file asks for.
    pub(crate) fn loses(&self) -> bool {
        self.wire.is_some_and(|wire| wire.loss != NetemLoss::None)
    }
}

/// Returns the queueing disciplines of both directions.
///
/// # Errors
/// For the first key of the path that they cannot express.
pub(crate) fn trees(path: &LoadedPath) -> Result<[Vec<HopTree>; 2], EmulateError> {
    check_features(path)?;
    let mut seeds = SplitMix64::new(path.path.seed);
    let mut direction = |plan: &DirectionPlan, name: &'static str| {
        let hop = |(number, hop): (usize, &HopPlan)| {
            tree(hop, plan.frame_bytes(), seeds.bits()).map_err(|(key, why, advice)| EmulateError::NotExpressible {
                key: format!("link.{number}.{key}"),
                direction: name,
                why: why.to_owned(),
                advice: advice.to_owned(),
            })
        };
        plan.hops().iter().enumerate().map(hop).collect::<Result<Vec<_>, _>>()
    };
    Ok([direction(&path.forward, "forward")?, direction(&path.reverse, "reverse")?])
}

/// Whether the departures of a direction depend on nothing but the arrivals.
pub(crate) fn is_deterministic(plan: &DirectionPlan) -> bool {
    plan.hops().iter().all(|hop| {
        let wire = &hop.wire;
        matches!(hop.queue, QueuePlan::Bytes(_) | QueuePlan::Packets(_))
            && wire.loss.is_none()
            && wire.jitter.is_none()
            && wire.reorder == 0.0
            && wire.duplicate == 0.0
    })
}

/// Whether frames of a direction may be reordered.
pub(crate) fn may_reorder(plan: &DirectionPlan) -> bool {
    plan.hops().iter().any(|hop| hop.wire.reorder > 0.0 || matches!(hop.queue, QueuePlan::FqCodel { .. }))
}

/// Refuses the first property of a link that this datapath does not have.
fn check_features(path: &LoadedPath) -> Result<(), EmulateError> {
    let of_path = |own: fn(&Link) -> &LinkDirection, direction: &'static str| {
        let links = path.path.link.iter().enumerate();
        links.flat_map(move |(number, link)| {
            let features = link.effective(own(link)).features();
            features.into_iter().map(move |feature| (number, direction, feature))
        })
    };
    let all = of_path(|link| &link.forward, "forward").chain(of_path(|link| &link.reverse, "reverse"));
    let event = path.path.event.first().map(|event| {
        let direction = event.direction.unwrap_or(EventDirection::Forward).name();
        (event.link.unwrap_or(0), direction, Feature::Event)
    });
    for (number, direction, feature) in all.chain(event) {
        if let Some(Unsupported { why, advice }) = feature.unsupported_by(Emulator::Kernel) {
            let key = format!("link.{number}.{}", feature.key());
            let advice = advice[..1].to_uppercase() + &advice[1..];
            return Err(EmulateError::NotExpressible { key, direction, why: why.to_owned(), advice });
        }
    }
    Ok(())
}

/// A key that cannot be expressed, the reason, and advice.
type Refusal = (&'static str, &'static str, &'static str);

fn tree(hop: &HopPlan, frame_bytes: u32, seed: u64) -> Result<HopTree, Refusal> {
    let rate_bytes_per_s = (hop.schedule.mean_bps() / 8).max(1);
    let loss = loss(hop.wire.loss.as_ref());
    let (jitter_ns, normal_jitter) =
        hop.wire.jitter.map_or((0, false), |(spread_ns, shape)| (spread_ns, shape == Distribution::Normal));
    if jitter_ns > i32::MAX as u64 {
        return Err(("jitter", "netem's jitter is at most 2.1 s", "Lower it"));
    }
    let framing_bytes = hop.framing.bytes();
    let wire = &hop.wire;
    let needs_netem =
        wire.delay_ns > 0 || jitter_ns > 0 || loss != NetemLoss::None || wire.reorder > 0.0 || wire.duplicate > 0.0;
    let burst_bytes = burst(hop, rate_bytes_per_s, frame_bytes);
    // netem serialises again, so frames that leave the token bucket early wait there: both queues together are the
    // buffer.
    let early_bytes = if needs_netem { burst_bytes - frame_bytes } else { 0 };
    Ok(HopTree {
        shaper: Tbf { rate_bytes_per_s, burst_bytes, limit_bytes: NO_LIMIT, overhead_bytes: framing_bytes as u16 },
        queue: queue(&hop.queue, rate_bytes_per_s, frame_bytes, early_bytes)?,
        wire: needs_netem.then(|| Netem {
            limit_packets: flight_packets(hop, rate_bytes_per_s, burst_bytes),
            delay_ns: wire.delay_ns,
            jitter_ns,
            normal_jitter,
            loss,
            duplicate: Probability::new(wire.duplicate),
            reorder: Probability::new(wire.reorder),
            // netem's own rate serialises the bursts of the token bucket, and keeps frames with jitter in order.
            rate: Some(NetemRate { bytes_per_s: rate_bytes_per_s, packet_overhead_bytes: framing_bytes as i32 }),
            slot_ns: 0,
            seed: Some(seed),
        }),
        framing_bytes,
    })
}

/// Bucket size of a link, bytes: at least one maximum-size frame, and at most a frame plus a quarter of the
/// buffer.
fn burst(hop: &HopPlan, rate_bytes_per_s: u64, frame_bytes: u32) -> u32 {
    let limit = match hop.queue {
        QueuePlan::Bytes(limit) => limit,
        QueuePlan::Packets(packets) => packets as u64 * u64::from(frame_bytes),
        _ => u64::MAX,
    };
    let wanted = (u128::from(rate_bytes_per_s) * u128::from(BURST_NS) / 1_000_000_000) as u64;
    let most = u64::from(frame_bytes).saturating_add(limit / 4);
    wanted.min(most).clamp(u64::from(frame_bytes), u64::from(NO_LIMIT)) as u32
}

/// Queue limit of netem, packets, larger than what can be in flight.
fn flight_packets(hop: &HopPlan, rate_bytes_per_s: u64, burst_bytes: u32) -> u32 {
    // Four standard deviations of a normal jitter; the kernel's table is truncated there.
    let ns =
        hop.wire.delay_ns.saturating_add(hop.wire.jitter.map_or(0, |(spread_ns, _)| spread_ns.saturating_mul(4)));
    let bytes = u128::from(rate_bytes_per_s) * u128::from(ns) / 1_000_000_000 + u128::from(burst_bytes);
    // Twice, because every frame may be duplicated.
    let frames = 2 * bytes / u128::from(MIN_FRAME_BYTES + hop.framing.bytes()) + u128::from(MARGIN_FRAMES);
    i32::try_from(frames).unwrap_or(i32::MAX) as u32
}

fn loss(loss: Option<&Loss>) -> NetemLoss {
    match loss {
        Some(Loss::Random(share) | Loss::Pattern(LossPattern::Random(share))) if share.0.get() > 0.0 => {
            NetemLoss::Random(Probability::new(share.0.get()))
        }
        None | Some(Loss::Random(_) | Loss::Pattern(LossPattern::Random(_))) => NetemLoss::None,
        Some(Loss::Pattern(LossPattern::Every(_) | LossPattern::Packets(_) | LossPattern::LongerThan(_))) => {
            unreachable!("check_features refuses it")
        }
        Some(Loss::Pattern(LossPattern::GilbertElliott(model))) => {
            let [failure, recovery, loss_in_bad, loss_in_good] = model.probabilities().map(Probability::new);
            NetemLoss::GilbertElliott { failure, recovery, loss_in_bad, loss_in_good }
        }
    }
}

fn queue(
    queue: &QueuePlan,
    rate_bytes_per_s: u64,
    frame_bytes: u32,
    early_bytes: u32,
) -> Result<Discipline, Refusal> {
    let bytes = |limit: u64, key: &'static str| {
        u32::try_from(limit).map_err(|_| (key, "the kernel's limits are below 4 GiB", "Lower it"))
    };
    let micros = |ns: u64| Some(u32::try_from(ns / 1000).unwrap_or(u32::MAX));
    let count = |packets: usize| u32::try_from(packets).unwrap_or(u32::MAX);
    let codel = |settings: &landspeed_emulation::CodelSettings, packets| Codel {
        limit_packets: Some(count(packets)),
        target_us: micros(settings.target_ns),
        interval_us: micros(settings.interval_ns),
        ecn: Some(settings.ecn),
        ce_threshold_us: None,
    };
    Ok(match queue {
        QueuePlan::Bytes(limit) => {
            Discipline::Bfifo { limit_bytes: bytes(*limit, "queue.limit")?.saturating_sub(early_bytes) }
        }
        QueuePlan::Packets(packets) => Discipline::Pfifo {
            // A limit of 0 would drop every frame.
            limit_packets: count(*packets).saturating_sub(early_bytes / frame_bytes).max(1),
        },
        QueuePlan::Red(settings) => {
            let min_bytes = bytes(settings.min_bytes, "queue.min")?;
            let max_bytes = bytes(settings.max_bytes, "queue.max")?;
            Discipline::Red(Red {
                limit_bytes: bytes(settings.limit_bytes, "queue.limit")?,
                min_bytes,
                max_bytes,
                probability: Probability::new(settings.probability),
                // Burst as recommended by tc-red(8).
                average_packet_bytes: frame_bytes,
                burst_packets: (2 * u64::from(min_bytes) + u64::from(max_bytes)).div_ceil(3 * u64::from(frame_bytes))
                    as u32,
                bandwidth_bytes_per_s: rate_bytes_per_s,
                ecn: settings.ecn,
            })
        }
        QueuePlan::Codel { settings, packets } => Discipline::Codel(codel(settings, *packets)),
        QueuePlan::FqCodel { settings, packets, quantum } => Discipline::FqCodel(FqCodel {
            codel: codel(settings, *packets),
            flows: None,
            quantum_bytes: u32::try_from(*quantum).ok(),
        }),
        QueuePlan::Pie { packets, target_ns, ecn, .. } => Discipline::Pie(Pie {
            limit_packets: Some(count(*packets)),
            target_us: micros(*target_ns),
            ecn: Some(*ecn),
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(link: &str) -> LoadedPath {
        let text = format!("name = \"a path\"\n[[link]]\n{link}\n");
        landspeed_emulation::load(&text, &mut |_| Ok("0\n5\n".to_owned())).unwrap_or_else(|e| panic!("{e}"))
    }

    fn forward(link: &str) -> HopTree {
        let [forward, _] = trees(&load(link)).unwrap_or_else(|why| panic!("{why}"));
        forward[0].clone()
    }

    #[test]
    fn rate_without_impairments_needs_no_netem() {
        let hop = forward("rate = \"1G\"\nqueue = { kind = \"bfifo\", limit = \"1MB\" }");
        assert_eq!(hop.wire, None);
        assert_eq!(hop.queue, Discipline::Bfifo { limit_bytes: 1_000_000 });
        // 500 µs at 125 MB/s.
        assert_eq!(
            hop.shaper,
            Tbf { rate_bytes_per_s: 125_000_000, burst_bytes: 62_500, limit_bytes: NO_LIMIT, overhead_bytes: 24 }
        );
        assert_eq!(hop.resolution_ns(), 500_192);
    }

    #[test]
    fn slow_links_have_a_bucket_of_one_frame() {
        let hop = forward("rate = \"1M\"\nframing = \"none\"\nqueue = { kind = \"pfifo\", packets = 10 }");
        assert_eq!((hop.shaper.burst_bytes, hop.shaper.overhead_bytes), (1514, 0));
        assert_eq!(hop.queue, Discipline::Pfifo { limit_packets: 10 });
        // The token bucket sends a frame at the time of its first bit, not its last.
        assert_eq!(hop.resolution_ns(), 12_112_000);
    }

    #[test]
    fn netem_limit_exceeds_the_frames_in_flight() {
        let hop = forward("rate = \"1G\"\ndelay = \"100ms\"\nloss = \"1%\"\nduplicate = \"2%\"\nreorder = \"3%\"");
        let wire = hop.wire.expect("a delay");
        assert_eq!((wire.delay_ns, wire.jitter_ns), (100_000_000, 0));
        assert_eq!(wire.loss, NetemLoss::Random(Probability::new(0.01)));
        assert_eq!((wire.duplicate, wire.reorder), (Probability::new(0.02), Probability::new(0.03)));
        assert_eq!(wire.rate, Some(NetemRate { bytes_per_s: 125_000_000, packet_overhead_bytes: 24 }));
        // 12.5 MB in frames of 42 bytes with 24 bytes of framing, all duplicated.
        assert!(u64::from(wire.limit_packets) > 2 * 12_500_000 / 66, "{}", wire.limit_packets);
        // The buffer is the queue and netem together.
        assert_eq!(hop.queue, Discipline::Bfifo { limit_bytes: 1_000_000 - (62_500 - 1514) });
        assert_eq!(hop.resolution_ns(), 0);
    }

    #[test]
    fn small_packet_limits_stay_above_zero() {
        let hop = forward("rate = \"10G\"\ndelay = \"1ms\"\nqueue = { kind = \"bfifo\", limit = \"20KB\" }");
        assert_eq!(hop.shaper.burst_bytes, 1514 + 5000);
        assert_eq!(hop.queue, Discipline::Bfifo { limit_bytes: 15_000 });
    }

    #[test]
    fn jitter_and_burst_loss_are_emulated_by_netem() {
        let hop = forward(
            "rate = \"1G\"\ndelay = \"5ms\"\njitter = { spread = \"1ms\", distribution = \"normal\" }\n\
             loss = { gilbert-elliott = { p = 0.0001, r = 0.2 } }",
        );
        let wire = hop.wire.expect("jitter");
        assert!(wire.normal_jitter && wire.jitter_ns == 1_000_000);
        let expected = NetemLoss::GilbertElliott {
            failure: Probability::new(0.0001),
            recovery: Probability::new(0.2),
            loss_in_bad: Probability::new(1.0),
            loss_in_good: Probability::ZERO,
        };
        assert_eq!(wire.loss, expected);
    }

    #[test]
    fn every_queue_kind_maps_to_a_qdisc() {
        let kind = |queue: &str| forward(&format!("rate = \"1G\"\nqueue = {queue}")).queue;
        let codel = Codel {
            limit_packets: Some(1000),
            target_us: Some(5000),
            interval_us: Some(100_000),
            ecn: Some(true),
            ce_threshold_us: None,
        };
        assert_eq!(kind("{ kind = \"codel\", ecn = true }"), Discipline::Codel(codel));
        assert_eq!(kind("{ kind = \"pie\" }"), {
            Discipline::Pie(Pie { limit_packets: Some(1000), target_us: Some(15_000), ecn: Some(false) })
        });
        let Discipline::FqCodel(fq_codel) = kind("{ kind = \"fq_codel\" }") else { panic!("another kind") };
        assert_eq!((fq_codel.codel.limit_packets, fq_codel.quantum_bytes), (Some(10_240), Some(1514)));
        let Discipline::Red(red) = kind("{ kind = \"red\", limit = \"1200KB\" }") else { panic!("another kind") };
        assert_eq!((red.limit_bytes, red.min_bytes, red.max_bytes), (1_200_000, 100_000, 300_000));
        assert_eq!(red.burst_packets, 111);
    }

    #[test]
    fn keys_the_kernel_cannot_express_are_refused_by_name() {
        for (link, key) in [
            ("rate = { steps = [{ for = \"1s\", rate = \"1G\" }] }", "link.0.rate (forward)"),
            ("rate = { mahimahi = \"a file\" }", "link.0.rate (forward)"),
            ("rate = \"1G\"\nloss = { every = 100 }", "link.0.loss.every (forward)"),
            ("rate = \"1G\"\nloss = { packets = [1, 2] }", "link.0.loss.packets (forward)"),
            ("rate = \"1G\"\n[link.reverse]\nloss = { longer-than = 1400 }", "link.0.loss.longer-than (reverse)"),
            ("rate = \"1G\"\ndown = [{ at = \"1s\", for = \"1s\" }]", "link.0.down (forward)"),
            ("rate = \"1G\"\npolicer = { rate = \"5M\", burst = \"10KB\" }", "link.0.policer (forward)"),
            ("rate = \"1G\"\ndelay = \"3s\"\njitter = { spread = \"3s\" }", "link.0.jitter (forward)"),
            ("rate = \"1G\"\n[[link]]\nrate = \"1G\"\nloss = { every = 9 }", "link.1.loss.every (forward)"),
        ] {
            let message = trees(&load(link)).expect_err(link).to_string();
            let expected = format!("the kernel datapath cannot emulate {key}: ");
            assert!(message.starts_with(&expected), "{message}");
            assert!(message.ends_with("leave out --datapath kernel."), "{message}");
        }
    }

    #[test]
    fn only_deterministic_fifos_are_predicted() {
        let deterministic = |link: &str| is_deterministic(&load(link).forward);
        assert!(deterministic("rate = \"1G\"\ndelay = \"5ms\""));
        for more in [
            "loss = \"1%\"",
            "delay = \"1ms\"\njitter = { spread = \"1ms\" }",
            "queue = { kind = \"codel\" }",
            "duplicate = \"1%\"",
        ] {
            assert!(!deterministic(&format!("rate = \"1G\"\n{more}")), "{more}");
        }
        assert!(may_reorder(&load("rate = \"1G\"\nqueue = { kind = \"fq_codel\" }").forward));
        assert!(!may_reorder(&load("rate = \"1G\"\ndelay = \"5ms\"").forward));
    }
}
