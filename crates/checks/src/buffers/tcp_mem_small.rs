use super::{page_bytes, rate_of_window, triple, usable, window_bytes};
use crate::prelude::*;

const NAME: &str = "net.ipv4.tcp_mem";

declare_check! {
    /// Whether `tcp_mem` covers the BDP of the goal for all flows together.
    ///
    /// **Reads** `net.ipv4.tcp_mem`, the memory, the goal's rate and RTT.
    ///
    /// **Matters** because the limits of single sockets have no effect when TCP as a whole comes under memory
    /// pressure: the kernel then shrinks windows and drops received segments. The default is 6 % of memory.
    ///
    /// **Leave it alone** on a local network. Where a quarter of the memory does not suffice, the machine needs more of
    /// it (ENV-022).
    code: "BUF-006",
    title: "tcp_mem for the goal",
    severity: Major,
    sources: ["Linux Documentation/networking/ip-sysctl.rst, tcp_mem"],
    bad: |facts, _| example::sysctl(facts, NAME, "38000 51000 76000"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let pages = known!(view.sysctl_triple(NAME));
    let page = known!(page_bytes(view));
    if pages[0] == pages[2] || !pages.is_sorted() {
        return Outcome::not_applicable("the numbers make no sense yet (BUF-005)");
    }
    known!(window_bytes(view));
    let needed = known!(view.bdp_bytes()) / usable(view);
    let pressure = pages[1].saturating_mul(page);
    let text = format!(
        "pressure from {}; the path {} needs {}",
        bytes_text(pressure),
        view.path_text(),
        bytes_text(needed as u64)
    );
    if pressure as f64 >= needed {
        return Outcome::pass(text);
    }
    let memory = *known!(&view.facts.memory_bytes);
    if needed > memory as f64 / 4.0 {
        return Outcome::not_applicable(format!("{text}, more than a quarter of the memory (ENV-022)"));
    }
    let reached = rate_of_window(pressure as f64 * usable(view), view.rtt_s().0);
    // The kernel's own proportions: 3/4, 1 and 3/2 of the pressure threshold.
    let pressure = (needed as u64).div_ceil(page);
    let desired = triple([pressure / 4 * 3, pressure, pressure / 2 * 3]);
    Outcome::found(Problem {
        observed: format!("{NAME} = {} pages: {text}", triple(pages)),
        applicability: Applicability::NeedsCare,
        effect: Effect::arithmetic(format!("All flows together carry at most {reached} before the pressure starts.")),
        ..advice::sysctl(
            NAME,
            "",
            desired,
            "Under pressure the kernel shrinks windows and drops what it had received.",
        )
    })
}
