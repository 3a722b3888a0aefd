//! Cited documents, and their passages with figures, word for word.
//!
//! A check cites a passage, never a document as a whole. Tests verify that every figure of an effect is in its
//! passage and, where the decks' texts are available, that every passage is on its slide.

/// A document with measurements.
#[derive(Debug, PartialEq, Eq)]
pub struct Document {
    /// Name in findings.
    pub short: &'static str,
    /// Name in the list of sources; a check's source appends the slide or section.
    pub citation: &'static str,
    /// Text that identifies the document; `None` for a document whose text is not available.
    pub identifying_text: Option<&'static str>,
}

/// A passage of a document.
#[derive(Debug, PartialEq, Eq)]
pub struct Passage {
    /// Document that contains it.
    pub document: &'static Document,
    /// Slide or section.
    pub place: &'static str,
    /// Its text, with white space collapsed and without emphasis and list marks.
    pub text: &'static str,
}

pub(crate) static ESNET_2016: Document = Document {
    short: "ESnet 2016",
    citation: "Hanford and Tierney (ESnet), Recent Linux TCP Updates, and how to tune your 100G host, 2016",
    identifying_text: Some("how to tune your 100G host"),
};

pub(crate) static LBNL_2015: Document = Document {
    short: "LBNL and ESnet 2015",
    citation: "Smitasin and Tierney (LBNL, ESnet), Evaluating Network Buffer Size Requirements, 2015",
    identifying_text: Some("EVALUATING NETWORK BUFFER SIZE REQUIREMENTS"),
};

pub(crate) static ESNET_2014: Document = Document {
    short: "ESnet 2014",
    citation: "Tierney, Pouyoul and Hanford (ESnet), Experiences with 40G Hosts, 2014",
    identifying_text: Some("Experiences with 40G Hosts"),
};

pub(crate) static RED_HAT_2012: Document = Document {
    short: "Red Hat 2012",
    citation: "Wagner (Red Hat), Achieving Top Network Performance, 2012",
    identifying_text: Some("Achieving Top Network Performance"),
};

pub(crate) static TOKYO_2006: Document = Document {
    short: "Tokyo 2006",
    citation: "Tamatsukuri et al. (University of Tokyo), Linux TCP/IP Performance on Long Fat-pipe Network toward Internet2 Land Speed Record, 2006",
    identifying_text: Some("Long Fat-pipe Network toward Internet2 Land Speed Record"),
};

pub(crate) static FASTERDATA_100G: Document = Document {
    short: "ESnet fasterdata, 100G Network Tuning",
    citation: "ESnet fasterdata, 100G Network Tuning: https://fasterdata.es.net/host-tuning/linux/100g-tuning/",
    identifying_text: None,
};

pub(crate) static FASTERDATA_INTERRUPTS: Document = Document {
    short: "ESnet fasterdata, Interrupt Binding",
    citation: "ESnet fasterdata, Interrupt Binding: https://fasterdata.es.net/host-tuning/linux/100g-tuning/interrupt-binding/",
    identifying_text: None,
};

pub(crate) static INDIS_2024: Document = Document {
    short: "INDIS 2024",
    citation: "Recent Linux Improvements that Impact TCP Throughput: Insights from R&E Networks (AmLight, ESnet), INDIS workshop at SC24",
    identifying_text: None,
};

const fn passage(document: &'static Document, place: &'static str, text: &'static str) -> Passage {
    Passage { document, place, text }
}

pub(crate) static GOVERNOR: Passage = passage(
    &ESNET_2016,
    "CPU governor",
    "57Gbps default settings (powersave) vs. 79Gbps 'performance' mode on the LAN",
);
pub(crate) static FREQUENCY: Passage = passage(
    &ESNET_2016,
    "CPU frequency",
    "P-States Performance ACPI-CPUfreq Performance ACPI-CPUfreq Userspace LAN 79G 72G 67G WAN 36G 36G 27G",
);
pub(crate) static TURBO: Passage =
    passage(&ESNET_2016, "CPU frequency", "Only the Intel P-States Driver can make use of Turbo Boost");
pub(crate) static LAN_BUFFERS: Passage = passage(
    &ESNET_2016,
    "TCP Buffers",
    "(autotuning set this to 2-9MB) Manual buffer tuning made a big difference on the LAN: 50-60 Gbps vs 79 Gbps",
);
pub(crate) static LAN_COMMAND: Passage =
    passage(&ESNET_2016, "Our Current Best Single Flow Results", "LAN: nuttcp -i1 -xc 7/7 -w1m -T30 hostname");
pub(crate) static CORE_CHOICE_EFFECT: Passage = passage(
    &ESNET_2016,
    "Don't Forget about NUMA Issues",
    "Up to 2x performance difference if you use the wrong core.",
);
pub(crate) static READ_REQUEST: Passage = passage(
    &ESNET_2016,
    "BIOS Setting",
    "PCIe Max Read Request: Turn it up to 4096, but our results suggest it doesn't seem to hurt or help",
);
pub(crate) static HYPERTHREADING: Passage = passage(
    &ESNET_2016,
    "BIOS Setting",
    "Hyperthreading: OFF Added excessive variability in LAN performance (51G to 77G)",
);
pub(crate) static COALESCING: Passage =
    passage(&ESNET_2016, "Coalescing Parameters", "Default settings seem best for most cases");
pub(crate) static FQ_SMALL_BUFFER: Passage = passage(
    &LBNL_2015,
    "Fair Queuing and Pacing in Kernel 4.1.4",
    "Pacing side effect of Fair Queuing yields ~1.25Gbps increase in throughput @ 10Gbps on our hosts",
);
pub(crate) static PACED_STREAMS: Passage = passage(
    &ESNET_2016,
    "Parallel Stream Test 1",
    "sum of 4 streams Right side: tput of each stream Streams appear to be much better balanced with FQ, pacing to 2.4 \
     performed best",
);
pub(crate) static BBR: Passage = passage(
    &ESNET_2016,
    "Initial BBR TCP results (bwctl, 3 streams, 40 sec test)",
    "perfsonar.nssl.noaa.gov htcp: 183 bbr: 803 htcp: 1070 bbr: 240340 kstar-ps.nfri.re.kr htcp: 4301 bbr: 4430 \
     htcp:1641 bbr: 98329 ps1.jpl.net htcp: 940 bbr: 935 htcp: 1247 bbr: 399110 uhmanoa-tp.ps.uhnet.net htcp: 5051 bbr: \
     3095 htcp: 5364 bbr: 412348",
);

pub(crate) static TSO_OFF: Passage = passage(
    &LBNL_2015,
    "Effects of TCP Segmentation Offload",
    "TSO Off was negligible on our hosts with Intel X520 @ 10Gbps (~100-200Mbps)",
);
pub(crate) static LOSS_AT_A_DISTANCE: Passage = passage(
    &LBNL_2015,
    "Impact of packet loss at different distances",
    "Throughput vs. increasing latency on a 10Gb/s link with 0.0046% packet loss",
);

pub(crate) static CORE_SELECTION: Passage =
    passage(&ESNET_2014, "Intel Sandy/Ivy Bridge", "TCP Mellanox 37 Gbps 26 Gbps Chelsio 39.5 Gbps 5 Gbps");
pub(crate) static LOSS_2014: Passage = passage(
    &ESNET_2014,
    "A small amount of packet loss makes a huge difference in TCP performance",
    "Throughput vs. Increasing Latency with .0046% Packet Loss",
);

pub(crate) static JUMBO: Passage =
    passage(&RED_HAT_2012, "Why Bother – A quick teaser", "Changing MTU 9 Gb/sec -> 24 Gbit /sec");
pub(crate) static CROSS_NODE: Passage =
    passage(&RED_HAT_2012, "Tuning – sanity check", "37 Gb -> 13 Gb due to crossing NUMA boundary");
pub(crate) static AWAKE: Passage =
    passage(&RED_HAT_2012, "CSTATE disabled – Note speed", "100.00 2.69 2.19 0.00 0.00 0.00 0.00");

pub(crate) static CHECKSUM_PROFILE: Passage = passage(
    &TOKYO_2006,
    "Linux 2.6.12 IPv6 Xeon Performance",
    "23.6659 csum_partial_copy_generic 22.9821 copy_user_generic_c 12.8658 csum_partial",
);
pub(crate) static TSO_ON_2006: Passage =
    passage(&TOKYO_2006, "Linux 2.6.18-rc5 IPv4 TSO on", "Only 5.8Gbps on Xeon system");
pub(crate) static TSO_OFF_2006: Passage =
    passage(&TOKYO_2006, "Linux 2.6.18-rc5 IPv4 TSO off", "Only 5.6Gbps on Xeon system");

pub(crate) static FLOW_AND_CLOCK: Passage = passage(
    &FASTERDATA_100G,
    "CPU clock rate",
    "In general, you need a CPU clock rate of at least 3GHz to achieve 30Gbps per flow.",
);
pub(crate) static EIGHT_STREAMS: Passage = passage(
    &FASTERDATA_100G,
    "CPU clock rate",
    "On the ESnet 100G perfSONAR nodes we typically see around 30 Gbps single stream, and can easily get over 95Gbps using \
     8 streams",
);
pub(crate) static SOCKET_CHOICE_EFFECT: Passage = passage(
    &FASTERDATA_INTERRUPTS,
    "opening paragraphs",
    "On a 40G/100G PCI gen-3 host, TCP and UDP performance can be up to 2x slower if you are using cores on the wrong CPU \
     socket.",
);
pub(crate) static ZERO_COPY: Passage = passage(
    &INDIS_2024,
    "abstract",
    "MSG ZEROCOPY, in conjunction with packet pacing, provides up to 35% improvement in throughput",
);
pub(crate) static NEWER_KERNEL: Passage = passage(
    &INDIS_2024,
    "abstract",
    "Linux 6.8 provides an increase in throughput of up to 38% on WAN and 30% on LAN compared to the 5.15 kernel",
);
pub(crate) static PACED_100G: Passage =
    passage(&ESNET_2016, "FQ on 100G Hosts", "TCP performance: 4 streams, 20G pacing, 100G, rtt = 92ms");
pub(crate) static FQ_PACING_LIMIT: Passage = passage(
    &ESNET_2016,
    "TCP option: Fair Queuing Scheduler (FQ)",
    "Can reliably pace up to a maxrate of 32Gbps on a fast processors",
);
