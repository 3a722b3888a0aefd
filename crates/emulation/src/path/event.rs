//! Events: changes of a path at a given time.

use landspeed_problems::{Rate, Share, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::judge::{Judgement, MAX_TIME, largest_frame, settings_problems};
use super::{Jitter, Link, LinkDirection, Loss, Path, Queue, RateSource};

/// Maximum number of events in a file.
pub const MAX_EVENTS: usize = 10_000;

/// Declares the event of a file format: its own keys, and the properties of a link that an event can change.
#[macro_export]
macro_rules! declare_event {
    ($(#[$attribute:meta])* pub struct $name:ident { $($own:tt)* }) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, PartialEq, ::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        pub struct $name {
            /// Time of the change, after the start.
            pub at: ::landspeed_problems::Time,
            $($own)*
            /// Direction of the link that changes; default: both.
            pub direction: Option<$crate::EventDirection>,
            /// New rate of the link.
            pub rate: Option<::landspeed_problems::Rate>,
            /// New one-way delay. Frames in flight keep their arrival times, and later frames do not overtake them.
            pub delay: Option<::landspeed_problems::Time>,
            /// New variation of the delay; a spread of 0 ends it.
            pub jitter: Option<$crate::Jitter>,
            /// New loss process; 0 ends it.
            pub loss: Option<$crate::Loss>,
            /// New share of frames that skip the delay.
            pub reorder: Option<::landspeed_problems::Share>,
            /// New share of frames that are duplicated.
            pub duplicate: Option<::landspeed_problems::Share>,
            /// Whether the link goes down (frames that are sent are lost) or up again.
            pub down: Option<bool>,
            /// New queue before the link. Waiting frames move to it in order; those for which it has no room are
            /// dropped.
            pub queue: Option<$crate::Queue>,
        }

        impl $name {
            /// Returns the change of the link.
            pub fn link_change(&self) -> $crate::LinkChange {
                $crate::LinkChange {
                    rate: self.rate,
                    delay: self.delay,
                    jitter: self.jitter.clone(),
                    loss: self.loss.clone(),
                    reorder: self.reorder,
                    duplicate: self.duplicate,
                    down: self.down,
                    queue: self.queue.clone(),
                }
            }
        }
    };
}

declare_event! {
    /// A change of a link of the path at a given time.
    pub struct Event {
        /// Position of the link in the path, from 0; may be absent if the path has one link.
        pub link: Option<usize>,
    }
}

/// A direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EventDirection {
    /// From the first end to the second.
    Forward,
    /// From the second end to the first.
    Reverse,
}

/// Properties of a link that an event changes; those that are `None` stay.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LinkChange {
    /// New rate of the link; holds for the next frame.
    pub rate: Option<Rate>,
    /// New one-way delay.
    pub delay: Option<Time>,
    /// New variation of the delay.
    pub jitter: Option<Jitter>,
    /// New loss process.
    pub loss: Option<Loss>,
    /// New share of reordered frames.
    pub reorder: Option<Share>,
    /// New share of duplicated frames.
    pub duplicate: Option<Share>,
    /// Whether the link is down from now on.
    pub down: Option<bool>,
    /// New queue before the link.
    pub queue: Option<Queue>,
}

impl LinkChange {
    /// Returns the keys that the change sets.
    pub fn keys(&self) -> Vec<&'static str> {
        let Self { rate, delay, jitter, loss, reorder, duplicate, down, queue } = self;
        [
            ("rate", rate.is_some()),
            ("delay", delay.is_some()),
            ("jitter", jitter.is_some()),
            ("loss", loss.is_some()),
            ("reorder", reorder.is_some()),
            ("duplicate", duplicate.is_some()),
            ("down", down.is_some()),
            ("queue", queue.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, is_set)| is_set.then_some(name))
        .collect()
    }

    /// Applies the change to settings of a direction, except `down`.
    pub fn apply(&self, settings: &mut LinkDirection) {
        if let Some(rate) = self.rate {
            settings.rate = Some(RateSource::Fixed(rate));
        }
        settings.delay = self.delay.or(settings.delay);
        settings.jitter = self.jitter.clone().or_else(|| settings.jitter.take());
        settings.loss = self.loss.clone().or_else(|| settings.loss.take());
        settings.reorder = self.reorder.or(settings.reorder);
        settings.duplicate = self.duplicate.or(settings.duplicate);
        settings.queue = self.queue.clone().or_else(|| settings.queue.take());
    }
}

impl EventDirection {
    /// Both directions, forward first.
    pub const BOTH: [Self; 2] = [Self::Forward, Self::Reverse];

    /// Returns its key in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Reverse => "reverse",
        }
    }

    /// Returns the settings of this direction of a link.
    pub(super) fn own(self, link: &Link) -> &LinkDirection {
        match self {
            Self::Forward => &link.forward,
            Self::Reverse => &link.reverse,
        }
    }
}

impl Path {
    /// Returns the events that change a direction of a link, each with its position in the file, by time.
    pub(super) fn events_of(&self, link: usize, direction: EventDirection) -> Vec<(usize, &Event)> {
        let concerns =
            |event: &Event| event.link.unwrap_or(0) == link && event.direction.is_none_or(|only| only == direction);
        let mut events: Vec<_> = self.event.iter().enumerate().filter(|(_, event)| concerns(event)).collect();
        events.sort_by_key(|(_, event)| event.at.0.get());
        events
    }
}

/// Validates the events of a path whose links are valid.
pub(super) fn judge(path: &Path, judgement: &mut Judgement) {
    let frame = largest_frame(path);
    if path.event.len() > MAX_EVENTS {
        judgement.refuse("event", format!("the path has {} events", path.event.len()), "use at most 10000");
        return;
    }
    for (i, event) in path.event.iter().enumerate() {
        let key = |name: &str| format!("event.{i}.{name}");
        judgement.time(key("at"), Some(event.at), 0..=MAX_TIME, "use at most 30 days");
        match event.link {
            None if path.link.len() > 1 => {
                judgement.refuse(key("at"), "the event names no link", "add its position, such as link = 0");
            }
            Some(link) if link >= path.link.len() => {
                let hint = format!("use 0 to {}", path.link.len().saturating_sub(1));
                judgement.refuse(key("link"), format!("the path has no link {link}"), hint);
            }
            _ => {}
        }
        if event.link_change().keys().is_empty() {
            judgement.refuse(key("at"), "the event changes nothing", "add a change, such as rate = \"10M\"");
        }
        if event.rate.is_some_and(|rate| rate.0.bps() == 0) {
            judgement.refuse(key("rate"), "a link with rate 0 carries nothing", "use down = true");
        }
    }
    if !judgement.problems.is_empty() {
        return;
    }
    for (l, link) in path.link.iter().enumerate() {
        for direction in EventDirection::BOTH {
            follow(path, l, link, direction, frame, judgement);
        }
    }
}

/// Validates the settings of one direction of a link after each event, and finds contradictions between events.
fn follow(path: &Path, l: usize, link: &Link, direction: EventDirection, frame: u64, judgement: &mut Judgement) {
    let mut settings = link.effective(direction.own(link));
    let mut down = false;
    let mut before: Option<(usize, &Event)> = None;
    let mut set_at_once: Vec<&'static str> = Vec::new();
    for (i, event) in path.events_of(l, direction) {
        let change = event.link_change();
        if before.is_none_or(|(_, other)| other.at != event.at) {
            set_at_once.clear();
        }
        for key in change.keys() {
            if set_at_once.contains(&key) {
                let message = format!("another event sets `{key}` of this direction at {} too", event.at);
                judgement.refuse(format!("event.{i}.{key}"), message, "remove one, or change its time");
            }
            set_at_once.push(key);
        }
        if let Some(is_down) = change.down {
            let key = format!("event.{i}.down");
            if settings.down.as_ref().is_some_and(|outages| !outages.is_empty()) {
                judgement.refuse(key, "the link has outages in `down` already", "use one of them");
            } else if is_down == down {
                let state = if down { "down" } else { "up" };
                judgement.refuse(key, format!("the link is {state} already at {}", event.at), "remove the event");
            }
            down = is_down;
        }
        change.apply(&mut settings);
        if change.loss.as_ref().is_some_and(Loss::loses_nothing) {
            settings.loss = None;
        }
        let mut found = Judgement::default();
        let key = |name: &str| {
            let top = name.split('.').next().unwrap_or(name);
            let changed = change.keys();
            // A combination with a setting that stays is a problem of what changes.
            if changed.contains(&top) { format!("event.{i}.{name}") } else { format!("event.{i}.{}", changed[0]) }
        };
        settings_problems(&settings, &key, frame, &mut found);
        found.problems.into_iter().for_each(|problem| judgement.add(Some(problem)));
        before = Some((i, event));
    }
}
