//! Settings of links.

use landspeed_units::{BitRate, Nanos};

use crate::scenario::judgement::Judgement;
use crate::scenario::{
    DEFAULT_MTU, Distribution, ETHERNET_HEADER, Emulator, Link, LinkDirection, Loss, LossPattern, RateSource,
    Scenario, Written,
};

/// Maximum rate of a link, bits/s.
const MAX_RATE: u64 = 10_000_000_000_000;
/// Minimum rate of a link, bits/s: a frame must not take longer than a run.
const MIN_RATE: u64 = 1_000;
/// Maximum one-way delay, nanoseconds.
const MAX_DELAY: u64 = 60_000_000_000;
/// Maximum period of a link's frame clock, nanoseconds.
const MAX_FRAME: u64 = 1_000_000_000;

pub(super) fn judge(scenario: &Scenario, judgement: &mut Judgement) {
    for (i, link) in scenario.link.iter().enumerate() {
        if let Some(mtu) = link.mtu
            && !(68..=65_535).contains(&mtu)
        {
            judgement.refuse_with(
                format!("link.{i}.mtu"),
                format!("MTU {mtu} is out of range"),
                "use 68 to 65535; 1500 and 9000 are usual",
            );
        }
        direction(i, link, "forward", &link.forward, judgement);
        direction(i, link, "reverse", &link.reverse, judgement);
    }
}

fn direction(i: usize, link: &Link, way: &str, own: &LinkDirection, judgement: &mut Judgement) {
    let key =
        |name: &str, is_own: bool| if is_own { format!("link.{i}.{way}.{name}") } else { format!("link.{i}.{name}") };
    let settings = link.effective(own);
    let own_features = own.features();
    for feature in settings.features() {
        let problem = feature.problem(key(feature.key(), own_features.contains(&feature)), Emulator::Lab);
        problem.into_iter().for_each(|problem| judgement.add(problem));
    }
    // The model of a link that changes validates a rate over time.
    let Some(bps) = settings.rate.as_ref().and_then(RateSource::fixed_bps) else { return };
    let rate = BitRate::from_bps(bps);
    let rate_key = key("rate", own.rate.is_some());
    match bps {
        0 => judgement.refuse_with(&rate_key, "a link with rate 0 carries nothing", "use a rate such as \"10G\""),
        1..MIN_RATE => {
            judgement.refuse_with(
                &rate_key,
                format!("{rate} is too slow: a frame would take seconds"),
                "use 1k to 10T",
            );
        }
        _ if bps > MAX_RATE => judgement.refuse_with(
            &rate_key,
            format!("{rate} is too fast: virtual time has a resolution of one nanosecond"),
            "use 1k to 10T",
        ),
        _ => {}
    }
    let delay = settings.delay;
    judgement.time(key("delay", own.delay.is_some()), delay, 0, MAX_DELAY, "use at most 60s one way");
    let delay_ns = delay.map_or(0, |t| t.0.get());

    if let Some(jitter) = &settings.jitter {
        let key = key("jitter", own.jitter.is_some());
        let spread = jitter.spread.0.get();
        let frame = u64::from(link.mtu.unwrap_or(DEFAULT_MTU)) + u64::from(ETHERNET_HEADER) + link.framing_bytes();
        let gap = frame.saturating_mul(8_000_000_000) / bps.max(1);
        if spread > delay_ns {
            let reason = "raise `delay`: negative delays are cut to zero, which changes the mean";
            judgement.refuse_with(
                &key,
                format!("jitter of {} exceeds the delay of {}", jitter.spread, Written(Nanos::new(delay_ns))),
                reason,
            );
        } else if spread > gap {
            let gap = Written(Nanos::new(gap));
            judgement.warn(
                "jitter-reorders",
                &key,
                format!(
                    "jitter of {} with full frames every {gap} reorders packets, which most networks do not",
                    jitter.spread
                ),
            );
        }
        if jitter.distribution == Distribution::Normal && spread <= delay_ns && spread.saturating_mul(4) > delay_ns {
            judgement.warn(
                "jitter-cut",
                &key,
                "the distribution reaches below zero and is cut there, so the mean is above `delay`",
            );
        }
    }
    judgement.time(
        key("frame-clock", own.frame_clock.is_some()),
        settings.frame_clock,
        0,
        MAX_FRAME,
        "use at most 1s",
    );
    if let Some(loss) = &settings.loss {
        loss.problems(&key("loss", own.loss.is_some())).into_iter().for_each(|problem| judgement.add(problem));
    }
    if let Some(share) = settings.reorder {
        let key = key("reorder", own.reorder.is_some());
        if delay_ns == 0 {
            judgement.refuse_with(
                &key,
                "reordering needs a delay",
                "set a `delay` for the link: reordered frames skip it",
            );
        } else if share.0.get() >= 1.0 {
            judgement.refuse_with(&key, "if every frame skips the delay, none is reordered", "use less than 100%");
        }
    }
}

/// Validates the frames that a host drops on receipt.
pub(super) fn drops(key: &str, loss: &Loss, judgement: &mut Judgement) {
    match loss {
        Loss::Pattern(LossPattern::Every(_) | LossPattern::Packets(_) | LossPattern::LongerThan(_)) => {
            loss.problems(key).into_iter().for_each(|problem| judgement.add(problem));
        }
        Loss::Random(_) | Loss::Pattern(LossPattern::Random(_) | LossPattern::GilbertElliott(_)) => judgement
            .refuse_with(
                key,
                "host drops cannot be random",
                "use { every = 700 }, { packets = [100] } or { longer-than = 1000 }",
            ),
    }
}

/// Formats a rate for messages.
pub(super) fn gigabits(bps: f64) -> String {
    BitRate::from_bps(bps.clamp(0.0, 1e18) as u64).to_string()
}
