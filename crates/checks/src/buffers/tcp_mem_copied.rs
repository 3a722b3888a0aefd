use super::{default_tcp_mem, page_bytes, triple};
use crate::prelude::*;

const NAME: &str = "net.ipv4.tcp_mem";

declare_check! {
    /// Whether TCP's share of memory was copied from a guide.
    ///
    /// **Reads** `net.ipv4.tcp_mem` and the memory of the machine.
    ///
    /// **Matters** because it counts pages, not bytes, and the kernel derives it from the memory at boot. A
    /// deck of 2012 sets 16777216 three times: 64 GiB on every machine. Equal numbers also leave no range
    /// between memory pressure and the hard limit, and a limit above the memory lets TCP drive the host out of
    /// memory.
    ///
    /// **Leave it alone** where it was calculated for this machine: three rising numbers below its memory.
    code: "BUF-005",
    title: "tcp_mem copied from a guide",
    severity: Major,
    sources: [
        "Linux Documentation/networking/ip-sysctl.rst, tcp_mem: pages, derived from the memory at boot",
        "Linux net/ipv4/tcp.c, tcp_init_mem: 4.68, 6.25 and 9.37 % of memory",
    ],
    bad: |facts, _| example::sysctl(facts, NAME, "16777216 16777216 16777216"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let pages = known!(view.sysctl_triple(NAME));
    let page = known!(page_bytes(view));
    let memory = *known!(&view.facts.memory_bytes);
    let limit = pages[2].saturating_mul(page);
    let text = format!("{} pages, at most {} of {}", triple(pages), bytes_text(limit), bytes_text(memory));
    let equal = pages[0] == pages[2];
    if !equal && limit <= memory && pages.is_sorted() {
        return Outcome::pass(text);
    }
    let why = if limit > memory {
        "TCP may take more memory than the machine has before the limit applies."
    } else if equal {
        "Between moderation and refusal there is nothing: sockets run into the limit at full speed."
    } else {
        "The three must rise: when to relax, when to moderate, when to refuse."
    };
    let desired = triple(default_tcp_mem(memory, page));
    Outcome::found(Problem {
        observed: format!("{NAME} = {text}"),
        applicability: Applicability::NeedsCare,
        effect: Effect::arithmetic(format!(
            "TCP may take {:.0} % of the memory; the kernel default limit is 9.37 %.",
            100.0 * limit as f64 / memory.max(1) as f64
        )),
        ..advice::sysctl(NAME, "", desired, why)
    })
}
