use super::{default_tcp_mem, page_bytes, triple};
use crate::prelude::*;

const NAME: &str = "net.ipv4.udp_mem";

declare_check! {
    /// Whether UDP's share of memory was copied from a guide.
    ///
    /// **Reads** `net.ipv4.udp_mem` and the memory of the machine.
    ///
    /// **Matters** because it counts pages and is derived from the memory at boot: a number meant as bytes is 4096
    /// times too much, and lets UDP receivers that do not read drive the host out of memory.
    ///
    /// **Leave it alone** where it was calculated for this machine.
    code: "BUF-014",
    title: "udp_mem copied from a guide",
    severity: Minor,
    sources: ["Linux Documentation/networking/ip-sysctl.rst, udp_mem: pages, derived from the memory at boot"],
    bad: |facts, _| example::sysctl(facts, NAME, "67108864 134217728 268435456"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let pages = known!(view.sysctl_triple(NAME));
    let page = known!(page_bytes(view));
    let memory = *known!(&view.facts.memory_bytes);
    let limit = pages[2].saturating_mul(page);
    let text = format!("{} pages, at most {} of {}", triple(pages), bytes_text(limit), bytes_text(memory));
    if limit <= memory && pages.is_sorted() {
        return Outcome::pass(text);
    }
    // The kernel gives UDP twice what it gives TCP (observed on Linux 6.18).
    let desired = triple(default_tcp_mem(memory.saturating_mul(2), page));
    Outcome::found(Problem {
        observed: format!("{NAME} = {text}"),
        applicability: Applicability::NeedsCare,
        effect: Effect::arithmetic(format!(
            "UDP may take {:.0} % of the memory.",
            100.0 * limit as f64 / memory.max(1) as f64
        )),
        ..advice::sysctl(NAME, "", desired, "It counts pages: receivers that do not read may take all memory.")
    })
}
