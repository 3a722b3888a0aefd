use crate::buffers::window_bytes;
use crate::prelude::*;

/// Maxima of `tcp_rmem` and `tcp_wmem` in tuned's network-throughput profile, bytes.
const NETWORK_THROUGHPUT: f64 = 16_777_216.0;

declare_check! {
    /// Whether the tuned profile limits the goal.
    ///
    /// **Reads** tuned's active profile.
    ///
    /// **Matters** because tuned sets its values again at every boot and change of profile, over what sysctl.d
    /// has set. network-throughput, despite its name, limits buffers to 16 MiB: 1.34 Gb/s over 100 ms. balanced
    /// and powersave lower the CPU frequency.
    ///
    /// **Leave it alone** on laptops and desktops.
    code: "ENV-014",
    title: "tuned profile",
    severity: Minor,
    sources: [
        esnet_2016!("CPU governor"),
        "tuned-profiles(7)",
        "tuned, profiles/network-throughput/tuned.conf: tcp_rmem and tcp_wmem end at 16777216",
    ],
    good: |facts, _| example::service(facts, "tuned", Some("throughput-performance")),
    bad: |facts, _| example::service(facts, "tuned", Some("network-throughput")),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let service = match view.facts.services.get("tuned") {
        Some(fact) => known!(fact),
        None => return Outcome::unknown("whether tuned runs was not read"),
    };
    if !service.running {
        return Outcome::not_applicable("tuned does not run");
    }
    let Some(profile) = service.detail.as_deref() else { return Outcome::unknown("tuned's profile is not known") };
    let bulk = matches!(view.role(), Role::Dtn | Role::Benchmark | Role::Guest);
    let governor =
        || Effect::measured("On a LAN 57 Gb/s with powersave, 79 Gb/s with performance", &[&source::GOVERNOR]);
    let (severity, recommended, why, effect) = match profile {
        "network-throughput" if bulk => match window_bytes(view) {
            Fact::Known(needed) if needed > NETWORK_THROUGHPUT => (
                Severity::Major,
                "throughput-performance, and buffers in sysctl.d",
                format!("It limits buffers to 16 MiB; {} needs {}.", view.path_text(), bytes_text(needed as u64)),
                Effect::arithmetic(format!(
                    "One flow carries at most {}.",
                    rate_text((NETWORK_THROUGHPUT * 8.0 / view.rtt_s().0.max(1e-9)) as u64)
                )),
            ),
            Fact::Known(_) | Fact::Absent(_) | Fact::Unknown(_) => return Outcome::pass(profile),
        },
        "network-latency" if bulk => (
            Severity::Note,
            "throughput-performance",
            "It polls sockets and holds CPUs awake for small messages; bulk transfers gain nothing from it."
                .to_owned(),
            Effect::NotMeasured,
        ),
        "powersave"
        | "server-powersave"
        | "laptop-battery-powersave"
        | "laptop-ac-powersave"
        | "desktop-powersave"
        | "balanced-battery" => {
            (Severity::Major, "throughput-performance", "It holds CPUs at low frequency.".to_owned(), governor())
        }
        "balanced" | "desktop" | "default" => (
            Severity::Minor,
            "throughput-performance",
            "It lets CPUs slow down between bursts; a transfer begins each at low frequency.".to_owned(),
            governor(),
        ),
        "virtual-guest" if !view.is_guest() => (
            Severity::Note,
            "throughput-performance",
            "It is made for virtual machines, and this host is not one.".to_owned(),
            Effect::NotMeasured,
        ),
        other => return Outcome::pass(other),
    };
    Outcome::found(Problem {
        severity: Some(severity),
        effect,
        ..advice::manual_problem(format!("tuned runs with {profile}"), recommended, why, "tuned-adm active")
    })
}
