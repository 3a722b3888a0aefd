//! Validation of a parsed path: ranges, and combinations of settings.

use landspeed_problems::{Problem, Share, Time, Written};
use landspeed_units::{BitRate, Bytes, Nanos};

use super::link::{DEFAULT_MTU, DEFAULT_QUEUE_BYTES};
use super::{
    Distribution, Emulator, Feature, Link, LinkDirection, Path, Policer, QueueKind, QueueSettings, RateSource,
    RateSteps,
};
use crate::frame::ETHERNET_HEADER;

/// Range of link rates, bits/s.
const RATES: std::ops::RangeInclusive<u64> = 1_000..=1_000_000_000_000;
/// Maximum one-way delay of a link, nanoseconds.
const MAX_DELAY: u64 = 60_000_000_000;
/// Maximum time of an outage and duration of a rate step, nanoseconds (30 days).
pub(super) const MAX_TIME: u64 = 30 * 86_400 * 1_000_000_000;
/// Maximum number of links in a path.
const MAX_LINKS: usize = 16;

/// Result of the validation.
#[derive(Debug, Default)]
pub(super) struct Judgement {
    /// Errors, which prevent a run.
    pub problems: Vec<Problem>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// Returns the size of the largest frame of a path, bytes.
pub(super) fn largest_frame(path: &Path) -> u64 {
    u64::from(path.mtu.unwrap_or(DEFAULT_MTU).min(65_521) + ETHERNET_HEADER)
}

/// Validates a path without its events.
pub(super) fn judge(path: &Path) -> Judgement {
    let mut judgement = Judgement::default();
    if path.name.trim().is_empty() || path.name.chars().count() > 200 {
        judgement.refuse("name", "the name is empty or too long", "use 1 to 200 characters");
    }
    if let Some(mtu) = path.mtu
        && !(68..=65_521).contains(&mtu)
    {
        judgement.refuse("mtu", format!("MTU {mtu} is out of range"), "use 68 to 65521; 1500 and 9000 are usual");
    }
    if path.link.is_empty() {
        judgement.refuse("link", "the path has no link", "add a [[link]] with a `rate`");
    } else if path.link.len() > MAX_LINKS {
        judgement.refuse("link", format!("the path has {} links", path.link.len()), "use at most 16");
    }
    let frame = largest_frame(path);
    for (i, link) in path.link.iter().enumerate() {
        direction(i, link, "forward", &link.forward, frame, &mut judgement);
        direction(i, link, "reverse", &link.reverse, frame, &mut judgement);
    }
    judgement
}

impl Judgement {
    pub(super) fn refuse(&mut self, key: impl Into<String>, message: impl Into<String>, hint: impl Into<String>) {
        self.add(Some(Problem::new(key, message).hint(hint)));
    }

    pub(super) fn add(&mut self, problem: Option<Problem>) {
        self.problems.extend(problem.filter(|problem| !self.problems.contains(problem)));
    }

    fn warn(&mut self, warning: String) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    pub(super) fn time(&mut self, key: String, time: Option<Time>, range: std::ops::RangeInclusive<u64>, hint: &str) {
        if let Some(time) = time
            && !range.contains(&time.0.get())
        {
            self.refuse(key, format!("{time} is out of range"), hint);
        }
    }

    fn share(&mut self, key: String, share: Option<Share>, why: &str) {
        if share.is_some_and(|share| share.0.get() >= 1.0) {
            self.refuse(key, why, "use less than 100%");
        }
    }
}

fn direction(i: usize, link: &Link, name: &str, own: &LinkDirection, frame: u64, judgement: &mut Judgement) {
    let key = |what: &str, is_own: bool| {
        if is_own { format!("link.{i}.{name}.{what}") } else { format!("link.{i}.{what}") }
    };
    let settings = link.effective(own);
    let is_own = |what: &str| match what.split('.').next() {
        Some("rate") => own.rate.is_some(),
        Some("delay") => own.delay.is_some(),
        Some("jitter") => own.jitter.is_some(),
        Some("slot") => own.slot.is_some(),
        Some("frame-clock") => own.frame_clock.is_some(),
        Some("loss") => own.loss.is_some(),
        Some("reorder") => own.reorder.is_some(),
        Some("duplicate") => own.duplicate.is_some(),
        Some("queue") => own.queue.is_some(),
        Some("policer") => own.policer.is_some(),
        _ => own.down.is_some(),
    };
    settings_problems(&settings, &|what| key(what, is_own(what)), frame, judgement);
}

/// Validates the settings of one direction of a link; `key` returns the dotted path of a setting.
pub(super) fn settings_problems(
    settings: &LinkDirection,
    key: &dyn Fn(&str) -> String,
    frame: u64,
    judgement: &mut Judgement,
) {
    for feature in settings.features() {
        judgement.add(feature.problem(key(feature.key()), Emulator::Userspace));
    }
    if let Some(source) = &settings.rate {
        rate(&key("rate"), source, judgement);
    }
    let delay = settings.delay;
    judgement.time(key("delay"), delay, 0..=MAX_DELAY, "use at most 60s one way");
    let delay_ns = delay.map_or(0, |time| time.0.get());
    if let Some(jitter) = settings.jitter.as_ref().filter(|jitter| jitter.spread.0.get() > 0) {
        let key = key("jitter");
        if jitter.spread.0.get() > delay_ns {
            let delay = Written(Nanos::new(delay_ns));
            let message = format!("jitter of {} exceeds the delay of {delay}", jitter.spread);
            judgement.refuse(key, message, "raise `delay`: negative delays would be cut to zero");
        } else {
            if jitter.distribution == Distribution::Normal && jitter.spread.0.get().saturating_mul(4) > delay_ns {
                judgement.warn(format!("{key}: the distribution reaches below zero and is cut there"));
            }
            judgement.warn(format!(
                "{key}: frames keep their order, so the delay is above `delay` on average while they follow each other closely"
            ));
        }
    }
    if let Some(loss) = &settings.loss {
        judgement.problems.extend(loss.problems(&key("loss")));
    }
    let reorder = settings.reorder;
    if reorder.is_some_and(|share| share.0.get() > 0.0) && delay_ns == 0 {
        judgement.refuse(key("reorder"), "reordering needs a delay", "set a `delay`: reordered frames skip it");
    }
    judgement.share(key("reorder"), reorder, "if every frame skips the delay, none is reordered");
    if let Some(written) = &settings.queue
        && Feature::Queue(written.kind()).unsupported_by(Emulator::Userspace).is_none()
    {
        queue(&key("queue"), &written.settings(), frame, judgement);
    }
    if let Some(policer) = &settings.policer {
        self::policer(&key("policer"), policer, frame, judgement);
    }
    let down_key = key("down");
    let mut last_end = 0;
    for (n, outage) in settings.down.iter().flatten().enumerate() {
        let (at, duration) = (outage.at.0.get(), outage.duration.0.get());
        judgement.time(format!("{down_key}.{n}.at"), Some(outage.at), 0..=MAX_TIME, "use at most 30 days");
        judgement.time(format!("{down_key}.{n}.for"), Some(outage.duration), 1..=MAX_TIME, "use 1ns to 30 days");
        if at < last_end {
            let hint = "list them in order, without overlap";
            judgement.refuse(format!("{down_key}.{n}.at"), "the link is down already, or was later", hint);
        }
        last_end = at.saturating_add(duration);
    }
}

fn rate(key: &str, rate: &RateSource, judgement: &mut Judgement) {
    let in_range = |judgement: &mut Judgement, key: &str, bps: u64| match bps {
        0 => judgement.refuse(key, "a link with rate 0 carries nothing", "use a rate such as \"10G\""),
        _ if !RATES.contains(&bps) => {
            judgement.refuse(key, format!("{} is out of range", BitRate::from_bps(bps)), "use 1k to 1T");
        }
        _ => {}
    };
    match rate {
        RateSource::Fixed(rate) => in_range(judgement, key, rate.0.bps()),
        // Their plan is made from the times, or from the file.
        RateSource::Mahimahi(_) | RateSource::Rattan(_) | RateSource::Opportunities(_) => {}
        RateSource::Steps(RateSteps { steps, repeat }) => {
            if steps.is_empty() {
                judgement.refuse(format!("{key}.steps"), "the list is empty", "add { for = \"5s\", rate = \"1G\" }");
            }
            if *repeat && !steps.is_empty() && steps.iter().all(|step| step.rate.0.bps() == 0) {
                judgement.refuse(format!("{key}.steps"), "every rate is 0: the link carries nothing", "raise one");
            }
            for (n, step) in steps.iter().enumerate() {
                let key = format!("{key}.steps.{n}");
                judgement.time(format!("{key}.for"), Some(step.duration), 1..=MAX_TIME, "use 1ns to 30 days");
                let last = n + 1 == steps.len() && !repeat;
                if last || step.rate.0.bps() != 0 {
                    in_range(judgement, &format!("{key}.rate"), step.rate.0.bps());
                }
            }
        }
    }
}

fn policer(key: &str, policer: &Policer, frame: u64, judgement: &mut Judgement) {
    if !RATES.contains(&policer.rate.0.bps()) {
        judgement.refuse(format!("{key}.rate"), format!("{} is out of range", policer.rate), "use 1k to 1T");
    }
    if policer.burst.0.get() < frame {
        let hint = format!("use at least {frame} bytes: a full frame with its Ethernet header");
        judgement.refuse(format!("{key}.burst"), format!("{} is less than one frame", policer.burst), hint);
    }
}

fn queue(key: &str, settings: &QueueSettings, frame: u64, judgement: &mut Judgement) {
    let name = settings.kind.name();
    for setting in settings.inapplicable() {
        let hint = format!("use one of {}", settings.kind.settings().join(", "));
        judgement.refuse(format!("{key}.{setting}"), format!("`{setting}` does not apply to {name}"), hint);
    }
    if let Some(limit) = settings.limit
        && !(frame..=u64::from(u32::MAX)).contains(&limit.0.get())
    {
        let hint = format!("use {frame} bytes (a full frame with its Ethernet header) to 4GiB");
        judgement.refuse(format!("{key}.limit"), format!("{limit} is out of range"), hint);
    }
    if settings.packets.is_some_and(|packets| !(1..=10_000_000).contains(&packets)) {
        judgement.refuse(format!("{key}.packets"), "the limit is out of range", "use 1 to 10000000");
    }
    if settings.kind == QueueKind::Red {
        red(key, settings, judgement);
    }
    let times = 1_000..=60_000_000_000;
    judgement.time(format!("{key}.target"), settings.target, times.clone(), "use 1us to 60s");
    judgement.time(format!("{key}.interval"), settings.interval, times, "use 1us to 60s");
    let nanos = |time: Option<Time>, default| time.map_or(default, |time| time.0.get());
    if matches!(settings.kind, QueueKind::Codel | QueueKind::FqCodel)
        && nanos(settings.target, 5_000_000) >= nanos(settings.interval, 100_000_000)
    {
        let hint = "interval is about one RTT, and target 1/20 of that";
        judgement.refuse(format!("{key}.target"), "target is not below interval", hint);
    }
}

fn red(key: &str, settings: &QueueSettings, judgement: &mut Judgement) {
    let limit = settings.limit.map_or(u64::from(DEFAULT_QUEUE_BYTES), |size| size.0.get());
    let min = settings.min.map_or(limit / 12, |size| size.0.get());
    let max = settings.max.map_or(limit / 4, |size| size.0.get());
    if min == 0 || min >= max || max > limit {
        let text = |bytes| Written(Bytes::new(bytes));
        judgement.refuse(
            format!("{key}.{}", if settings.min.is_some() { "min" } else { "max" }),
            format!("min {}, max {} and limit {} do not follow each other", text(min), text(max), text(limit)),
            "use 0 < min < max <= limit (defaults: 1/12 and 1/4 of the limit)",
        );
    }
    if settings.probability.is_some_and(|share| share.0.get() <= 0.0 || share.0.get() >= 1.0) {
        let hint = "use more than 0 and less than 100%";
        judgement.refuse(format!("{key}.probability"), "the probability is out of range", hint);
    }
}
