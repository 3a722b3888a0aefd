//! What links do to frames.

use landspeed_units::{BitRate, Nanos};

use super::Judgement;
use crate::scenario::paths::{DEFAULT_MTU, ETHERNET_HEADER, framing};
use crate::scenario::{
    Distribution, GilbertElliott, Link, LinkDirection, Loss, LossPattern, Scenario, Share, Written,
};

/// Fastest link, bits/s.
const MAX_RATE: u64 = 10_000_000_000_000;
/// Slowest link, bits/s: a frame must not take longer than a run.
const MIN_RATE: u64 = 1_000;
/// Longest one-way delay, nanoseconds.
const MAX_DELAY: u64 = 60_000_000_000;
/// Longest period of a link's framing, nanoseconds.
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
    let rate = own.rate.unwrap_or(link.rate).0;
    let rate_key = key("rate", own.rate.is_some());
    match rate.bps() {
        0 => judgement.refuse_with(&rate_key, "a link with rate 0 carries nothing", "use a rate such as \"10G\""),
        1..MIN_RATE => {
            judgement.refuse_with(
                &rate_key,
                format!("{rate} is too slow: a frame would take seconds"),
                "use 1k to 10T",
            );
        }
        _ if rate.bps() > MAX_RATE => judgement.refuse_with(
            &rate_key,
            format!("{rate} is too fast: virtual time has a resolution of one nanosecond"),
            "use 1k to 10T",
        ),
        _ => {}
    }
    let delay = own.delay.or(link.delay);
    judgement.time(key("delay", own.delay.is_some()), delay, 0, MAX_DELAY, "use at most 60s one way");
    let delay_ns = delay.map_or(0, |t| t.0.get());

    if let Some(jitter) = own.jitter.as_ref().or(link.jitter.as_ref()) {
        let key = key("jitter", own.jitter.is_some());
        let spread = jitter.spread.0.get();
        let frame = u64::from(link.mtu.unwrap_or(DEFAULT_MTU)) + u64::from(ETHERNET_HEADER) + framing(link);
        let gap = frame.saturating_mul(8_000_000_000) / rate.bps().max(1);
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
        own.frame_clock.or(link.frame_clock),
        0,
        MAX_FRAME,
        "use at most 1s",
    );
    if let Some(loss) = own.loss.as_ref().or(link.loss.as_ref()) {
        judge_loss(&key("loss", own.loss.is_some()), loss, judgement);
    }
    if let Some(share) = own.reorder.or(link.reorder) {
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

/// What a host drops after it came in.
pub(super) fn drops(key: &str, loss: &Loss, judgement: &mut Judgement) {
    match loss {
        Loss::Pattern(LossPattern::Every(_) | LossPattern::Packets(_) | LossPattern::LongerThan(_)) => {
            judge_loss(key, loss, judgement);
        }
        Loss::Random(_) | Loss::Pattern(LossPattern::Random(_) | LossPattern::GilbertElliott(_)) => judgement
            .refuse_with(
                key,
                "host drops cannot be random",
                "use { every = 700 }, { packets = [100] } or { longer-than = 1000 }",
            ),
    }
}

fn judge_loss(key: &str, loss: &Loss, judgement: &mut Judgement) {
    let all = |share: &Share| share.0.get() >= 1.0;
    match loss {
        Loss::Random(share) | Loss::Pattern(LossPattern::Random(share)) if all(share) => {
            judgement.refuse_with(key, "the link loses everything", "use less than 100%");
        }
        Loss::Random(_) | Loss::Pattern(LossPattern::Random(_)) => {}
        Loss::Pattern(LossPattern::Every(n)) => {
            if *n < 2 {
                judgement.refuse_with(
                    format!("{key}.every"),
                    format!("one frame in {n} loses everything"),
                    "use at least 2",
                );
            } else if *n > u64::from(u32::MAX) {
                judgement.refuse_with(
                    format!("{key}.every"),
                    format!("{n} is out of range"),
                    "use at most 4294967295",
                );
            }
        }
        Loss::Pattern(LossPattern::Packets(numbers)) => {
            if numbers.is_empty() {
                judgement.refuse_with(
                    format!("{key}.packets"),
                    "the list is empty",
                    "add frame numbers, or remove `loss`",
                );
            } else if numbers.contains(&0) {
                judgement.refuse_with(format!("{key}.packets"), "frame numbers start at 1", "remove frame 0");
            }
        }
        Loss::Pattern(LossPattern::LongerThan(bytes)) => {
            if !(68..=65_535).contains(bytes) {
                judgement.refuse_with(
                    format!("{key}.longer-than"),
                    format!("{bytes} bytes is out of range"),
                    "use 68 to 65535; 1500 is usual",
                );
            }
        }
        Loss::Pattern(LossPattern::GilbertElliott(GilbertElliott { p, r, bad, good })) => {
            let key = format!("{key}.gilbert-elliott");
            let (bad, good) = (bad.map_or(1.0, |s| s.0.get()), good.map_or(0.0, |s| s.0.get()));
            if p.0.get() == 0.0 && good == 0.0 {
                judgement.refuse_with(
                    format!("{key}.p"),
                    "the link never enters the bad state, and loses nothing",
                    "raise p, or remove `loss`",
                );
            }
            if r.0.get() == 0.0 && bad >= 1.0 {
                judgement.refuse_with(
                    format!("{key}.r"),
                    "the link never leaves the bad state, and then loses everything",
                    "raise r",
                );
            }
            if bad < good {
                judgement.refuse_with(
                    format!("{key}.bad"),
                    "the bad state loses less than the good state",
                    "swap `bad` and `good`",
                );
            }
            if good >= 1.0 {
                judgement.refuse_with(format!("{key}.good"), "the good state loses everything", "use less than 100%");
            }
        }
    }
}

/// For messages of the other parts.
pub(super) fn gigabits(bps: f64) -> String {
    BitRate::from_bps(bps.clamp(0.0, 1e18) as u64).to_string()
}
