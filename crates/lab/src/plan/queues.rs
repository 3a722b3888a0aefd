//! Queueing disciplines: from the scenario to all settings.

use crate::plan::{Discipline, PlanError};
use crate::scenario::{DEFAULT_QUEUE_BYTES, Queue, QueueKind, QueueSettings};

/// Returns the qdisc of a switch port.
pub fn of_switch(queue: Option<&Queue>) -> Result<Discipline, PlanError> {
    let mut discipline = match queue {
        None => default_discipline(QueueKind::Bfifo),
        Some(queue) => resolve(queue)?,
    };
    if discipline.kind == QueueKind::Netem {
        return Err(PlanError("netem is not a queue of a switch; set the delay on the link".to_owned()));
    }
    if discipline.kind == QueueKind::Bfifo && discipline.limit_bytes.is_none() {
        discipline.limit_bytes = Some(DEFAULT_QUEUE_BYTES);
    }
    Ok(discipline)
}

/// Returns the qdisc of a host's interface.
pub fn of_host(queue: Option<&Queue>) -> Result<Discipline, PlanError> {
    let mut discipline = queue.map_or_else(|| Ok(default_discipline(QueueKind::Fq)), resolve)?;
    match discipline.kind {
        // The kernel's default flow limit of 100 packets is for hosts with many flows. A bulk sender on a long path
        // is limited by TSQ, and must not be limited by this.
        QueueKind::Fq => {
            discipline.limit_packets.get_or_insert(100_000);
            discipline.flow_packets.get_or_insert(100_000);
        }
        QueueKind::Bfifo => {
            discipline.limit_bytes.get_or_insert(16_000_000);
        }
        _ => {}
    }
    Ok(discipline)
}

fn default_discipline(kind: QueueKind) -> Discipline {
    Discipline {
        kind,
        limit_bytes: None,
        limit_packets: None,
        thresholds: None,
        probability: None,
        target_ns: None,
        interval_ns: None,
        ecn: None,
        flow_packets: None,
        max_rate_bps: None,
        pacing: None,
        delay_ns: None,
        loss: None,
        seed: 0,
    }
}

fn resolve(queue: &Queue) -> Result<Discipline, PlanError> {
    let settings = match queue {
        Queue::Kind(kind) => return Ok(default_discipline(*kind)),
        Queue::Settings(settings) => settings,
    };
    let QueueSettings { kind, .. } = *settings;
    let bytes = |size: Option<crate::scenario::Size>| {
        size.map(|size| {
            u32::try_from(size.0.get()).map_err(|_| PlanError("a queue is limited to less than 4 GiB".to_owned()))
        })
        .transpose()
    };
    let limit_bytes = bytes(settings.limit)?;
    let thresholds = match (bytes(settings.min)?, bytes(settings.max)?) {
        (Some(min), Some(max)) => Some((min, max)),
        _ if kind == QueueKind::Red => {
            // The defaults of tc-red(8): max is 1/4 of the limit, min is 1/3 of max.
            let limit = limit_bytes.unwrap_or(DEFAULT_QUEUE_BYTES);
            Some((limit / 12, limit / 4))
        }
        _ => None,
    };
    Ok(Discipline {
        kind,
        limit_bytes: limit_bytes.or((kind == QueueKind::Red).then_some(DEFAULT_QUEUE_BYTES)),
        limit_packets: settings.packets,
        thresholds,
        probability: settings.probability.map(|p| p.0.get()),
        target_ns: settings.target.map(|t| t.0.get()),
        interval_ns: settings.interval.map(|t| t.0.get()),
        ecn: settings.ecn,
        flow_packets: settings.flow_packets,
        max_rate_bps: settings.max_rate.map(|r| r.0.bps()),
        pacing: settings.pacing,
        delay_ns: settings.delay.map(|t| t.0.get()),
        loss: settings.loss.map(|s| s.0.get()),
        seed: 0,
    })
}

/// Returns the configuration symbol that a kind needs.
pub fn symbol(kind: QueueKind) -> &'static str {
    match kind {
        QueueKind::Bfifo | QueueKind::Pfifo | QueueKind::PfifoFast => "CONFIG_NET_SCH_FIFO",
        QueueKind::Red => "CONFIG_NET_SCH_RED",
        QueueKind::Codel => "CONFIG_NET_SCH_CODEL",
        QueueKind::FqCodel => "CONFIG_NET_SCH_FQ_CODEL",
        QueueKind::Cake => "CONFIG_NET_SCH_CAKE",
        QueueKind::Pie => "CONFIG_NET_SCH_PIE",
        QueueKind::Fq => "CONFIG_NET_SCH_FQ",
        QueueKind::Sfq => "CONFIG_NET_SCH_SFQ",
        QueueKind::Netem => "CONFIG_NET_SCH_NETEM",
    }
}
