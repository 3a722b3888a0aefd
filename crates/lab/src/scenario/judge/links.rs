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
                format!("{mtu} bytes are no MTU of IP"),
                "68 to 65535; 1500 and 9000 are usual",
            );
        }
        direction(i, link, "forward", &link.forward, judgement);
        direction(i, link, "back", &link.back, judgement);
    }
}

fn direction(i: usize, link: &Link, way: &str, own: &LinkDirection, judgement: &mut Judgement) {
    let key =
        |name: &str, is_own: bool| if is_own { format!("link.{i}.{way}.{name}") } else { format!("link.{i}.{name}") };
    let rate = own.rate.unwrap_or(link.rate).0;
    let rate_key = key("rate", own.rate.is_some());
    match rate.bps() {
        0 => judgement.refuse_with(&rate_key, "a link without a rate carries nothing", "give one such as \"10G\""),
        1..MIN_RATE => {
            judgement.refuse_with(&rate_key, format!("{rate} is too slow: a frame would take seconds"), "1k to 10T");
        }
        _ if rate.bps() > MAX_RATE => judgement.refuse_with(
            &rate_key,
            format!("{rate} is too fast: nothing is timed finer than a nanosecond"),
            "1k to 10T",
        ),
        _ => {}
    }
    let delay = own.delay.or(link.delay);
    judgement.time(key("delay", own.delay.is_some()), delay, 0, MAX_DELAY, "at most 60s one way");
    let delay_ns = delay.map_or(0, |t| t.0.get());

    if let Some(jitter) = own.jitter.as_ref().or(link.jitter.as_ref()) {
        let key = key("jitter", own.jitter.is_some());
        let spread = jitter.spread.0.get();
        let frame = u64::from(link.mtu.unwrap_or(DEFAULT_MTU)) + u64::from(ETHERNET_HEADER) + framing(link);
        let gap = frame.saturating_mul(8_000_000_000) / rate.bps().max(1);
        if spread > delay_ns {
            let reason = "no frame arrives before it was sent: the delay would be cut at zero and its mean be another; raise `delay`";
            judgement.refuse_with(
                &key,
                format!("spreads by {}, more than the delay of {}", jitter.spread, Written(Nanos::new(delay_ns))),
                reason,
            );
        } else if spread > gap {
            let gap = Written(Nanos::new(gap));
            judgement.warn("jitter-reorders", &key, format!(
                "spreads by {}, and full frames follow each other every {gap}: they will overtake each other, as netem's jitter does and most networks' does not",
                jitter.spread
            ));
        }
        if jitter.distribution == Distribution::Normal && spread <= delay_ns && spread.saturating_mul(4) > delay_ns {
            judgement.warn(
                "jitter-cut",
                &key,
                "the tail of the distribution reaches below zero, and is cut there: the mean is above `delay`",
            );
        }
    }
    judgement.time(
        key("frame-clock", own.frame_clock.is_some()),
        own.frame_clock.or(link.frame_clock),
        0,
        MAX_FRAME,
        "at most 1s",
    );
    if let Some(loss) = own.loss.as_ref().or(link.loss.as_ref()) {
        judge_loss(&key("loss", own.loss.is_some()), loss, judgement);
    }
    if let Some(share) = own.reorder.or(link.reorder) {
        let key = key("reorder", own.reorder.is_some());
        if delay_ns == 0 {
            judgement.refuse_with(
                &key,
                "nothing can overtake on a link without delay",
                "frames overtake by the whole delay; give the link a `delay`",
            );
        } else if share.0.get() >= 1.0 {
            judgement.refuse_with(
                &key,
                "when every frame overtakes, none does, and the delay is gone",
                "less than 100%",
            );
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
                "a host drops given frames, none at random",
                "{ every = 700 }, { packets = [100] } or { longer-than = 1000 }",
            ),
    }
}

fn judge_loss(key: &str, loss: &Loss, judgement: &mut Judgement) {
    let all = |share: &Share| share.0.get() >= 1.0;
    match loss {
        Loss::Random(share) | Loss::Pattern(LossPattern::Random(share)) if all(share) => {
            judgement.refuse_with(key, "everything is lost, so nothing can be measured", "less than 100%");
        }
        Loss::Random(_) | Loss::Pattern(LossPattern::Random(_)) => {}
        Loss::Pattern(LossPattern::Every(n)) => {
            if *n < 2 {
                judgement.refuse_with(
                    format!("{key}.every"),
                    format!("one frame in {n} leaves nothing to measure"),
                    "at least 2",
                );
            } else if *n > u64::from(u32::MAX) {
                judgement.refuse_with(
                    format!("{key}.every"),
                    format!("one frame in {n} is never"),
                    "at most 4294967295",
                );
            }
        }
        Loss::Pattern(LossPattern::Packets(numbers)) => {
            if numbers.is_empty() {
                judgement.refuse_with(
                    format!("{key}.packets"),
                    "the list is empty",
                    "leave `loss` out to lose nothing",
                );
            } else if numbers.contains(&0) {
                judgement.refuse_with(
                    format!("{key}.packets"),
                    "there is no frame 0",
                    "frames are counted from 1 on",
                );
            }
        }
        Loss::Pattern(LossPattern::LongerThan(bytes)) => {
            if !(68..=65_535).contains(bytes) {
                judgement.refuse_with(
                    format!("{key}.longer-than"),
                    format!("{bytes} bytes are no MTU of IP"),
                    "68 to 65535; 1500 is usual",
                );
            }
        }
        Loss::Pattern(LossPattern::GilbertElliott(GilbertElliott { p, r, bad, good })) => {
            let key = format!("{key}.gilbert-elliott");
            let (bad, good) = (bad.map_or(1.0, |s| s.0.get()), good.map_or(0.0, |s| s.0.get()));
            if p.0.get() == 0.0 && good == 0.0 {
                judgement.refuse_with(
                    format!("{key}.p"),
                    "the link never gets bad, and loses nothing",
                    "leave `loss` out, or raise p",
                );
            }
            if r.0.get() == 0.0 && bad >= 1.0 {
                judgement.refuse_with(
                    format!("{key}.r"),
                    "the link never gets good again, and loses everything from some moment on",
                    "raise r",
                );
            }
            if bad < good {
                judgement.refuse_with(
                    format!("{key}.bad"),
                    "less is lost while bad than while good",
                    "swap `bad` and `good`",
                );
            }
            if good >= 1.0 {
                judgement.refuse_with(format!("{key}.good"), "everything is lost even while good", "less than 100%");
            }
        }
    }
}

/// For messages of the other parts.
pub(super) fn gigabits(bps: f64) -> String {
    BitRate::from_bps(bps.clamp(0.0, 1e18) as u64).to_string()
}
