//! Compiles the filter compiler of libpcap (`libpcap/README.md`).

fn main() {
    println!("cargo:rerun-if-changed=libpcap");
    let sources = [
        "bpf_filter",
        "etherent",
        "fmtutils",
        "gencode",
        "grammar",
        "landspeed",
        "nametoaddr",
        "optimize",
        "scanner",
        "strlcpy",
    ];
    cc::Build::new()
        .files(sources.map(|name| format!("libpcap/{name}.c")))
        .include("libpcap")
        .define("HAVE_CONFIG_H", None)
        .opt_level(2)
        .warnings(false)
        .compile("landspeed_pcap_filter");
}
