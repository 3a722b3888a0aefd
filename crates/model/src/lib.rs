//! Versioned result documents: the contract between the measuring programs and all readers.
//!
//! A document is plain data. Times are nanoseconds on the timeline of the test (0 is the agreed start) unless the
//! name of a field says otherwise, rates are bits per second, sizes are bytes; the name of every raw field ends
//! with its unit.
#![forbid(unsafe_code)]

mod archive;
mod audit;
mod cause;
mod comparison;
mod demo;
mod emulate;
mod facts;
pub mod figure_text;
mod figures;
mod host;
mod iperf3;
mod lab;
mod latency;
mod ledger;
mod mesh;
mod metric;
mod params;
mod qualify;
mod reference;
mod run;
mod stream;
mod suite;
mod sweep;
mod tap;
mod tcp;
mod trace;
mod trace_capture;
mod trace_direction;
mod trace_graph;
mod tune;
mod tuneup;
mod tuneup_kind;
mod verdict;
mod watch;
mod watch_series;

pub use archive::{
    ArchiveCheckDocument, ArchiveDamage, ArchiveListDocument, ArchiveUnreadable, ArchivedRecord, TrendChange,
    TrendDocument, TrendPoint, TrendSegment,
};
pub use audit::{Answer, Applicability, AuditDocument, Difference, Finding, Goal, Role, Severity};
pub use cause::{Cause, CausePlace, Viewpoint};
pub use comparison::{
    ComparedDifference, ComparedGroup, ComparedInterval, ComparedMetric, ComparisonCondition, ComparisonDesign,
    ComparisonDocument, ComparisonVerdict,
};
pub use demo::{DemoBar, DemoChart, DemoDocument, DemoPart, DemoResult, DemoScene};
pub use emulate::{
    DelayError, DelaySummary, EmulateAsked, EmulateCpu, EmulateDatapath, EmulateDelivered, EmulateDirections,
    EmulateDocument, EmulateEnd, EmulateHop, EmulatePlacement, EmulateSecond, EmulateSecondDirection, EmulateStore,
    EmulatedPath, EmulationSource, EmulationStatus, InvalidReason, InvalidSecond, InvalidSpan, RunEmulation,
};
pub use facts::{
    CgroupFacts, ChannelFacts, CoalescingFacts, CpuFacts, CpuPolicy, DriverFacts, Extent, Fact, Facts, FeatureFacts,
    IdleState, InterfaceFacts, Interrupt, KernelFacts, KernelOption, PauseFacts, PciFacts, QdiscFacts, QueueFacts,
    RingFacts, RssFacts, ServiceFacts, SoftnetFacts, SysctlAssignment, TimeFacts, VirtualizationFacts,
};
pub use figures::{
    Drawing, Figure, FigureAxis, FigureChart, FigureGap, FigureGrid, FigureLine, FigureMark, FigureNote, FigurePanel,
    FigureRow, FigureRows, FigureScale, FiguresDocument,
};
pub use host::{
    CoreTotals, CoreUse, CounterDelta, Governor, HostSample, HostSeries, HostSnapshot, IdleStateDelta,
    InterruptDelta, NicSnapshot, NumaDelta, NumaNode, PressureDeltas, QdiscDelta, QuotaUse, SoftnetDelta, TimeSpan,
};
pub use iperf3::Iperf3End;
pub use lab::{
    FlowSeries, KernelInfo, LabCapture, LabChart, LabChartAxis, LabCheck, LabCpu, LabDocument, LabEpoch, LabEvent,
    LabFigure, LabFile, LabFlow, LabHostCounters, LabHostDrops, LabLink, LabOutput, LabProgram, LabProgramEnd,
    LabQueue, LabReceivePath, LabStatus, QueueRole, QueueSeries, ScenarioInfo, Topology, TopologyLink, TopologyNode,
};
pub use latency::{Bucket, LatencyPoint, LatencyResult, LatencyUnderLoad, Responsiveness};
pub use ledger::{Conservation, Cost, EndCost, LossLocation, PlacedLoss, Term};
pub use mesh::{
    MeshCell, MeshChange, MeshDocument, MeshHost, MeshHostState, MeshLink, MeshResult, MeshTest, MeshUsage,
};
pub use metric::{Better, Metric};
pub use params::{
    Direction, Family, NumaPolicy, PaceScope, Parameters, Protocol, ReceiveMode, RrMode, RrParameters, RrSize,
    SendMode, UdpParameters,
};
pub use qualify::{
    QualifyCongestion, QualifyDerived, QualifyDocument, QualifyLines, QualifyOnset, QualifyOnsetStep, QualifyResult,
    QualifySection, QualifyTarget, QualifyTest, QualifyTokenBucket, QualifyWeight,
};
pub use reference::{
    CheckedCriterion, ComparedFigure, Criterion, FigureBasis, Reference, ReferenceFigure, ReferenceUnit, deviation,
};
pub use run::{
    BuildInfo, ClockAlignment, EndTotals, Ends, ErrorEntry, MtuProbe, PathInfo, Phase, PhaseName, RunDocument,
    Status, Summary, ThirdParty, UdpTotals, Warning,
};
pub use stream::{DepartureError, Interval, Sample, Stream, StreamEnd, UdpEnd, ZeroCopyUse};
pub use suite::{SuiteCase, SuiteDocument};
pub use sweep::{
    SweepCell, SweepControl, SweepDesign, SweepDigests, SweepDocument, SweepEffect, SweepEngine, SweepEnvironment,
    SweepFactor, SweepFlow, SweepMetric, SweepRun, SweepStatus,
};
pub use tap::{TapDocument, TapEnd, TapEvents, TapFile, TapHostUse, TapInterface, TapPerturbation, TapSlices};
pub use tcp::{CongestionDetail, TcpInfo};
pub use trace::{
    AckSpacing, BinRates, ClockStep, DelayOverTime, GapClass, LossPlace, Microburst, Microbursts, PathDirection,
    TraceBins, TraceDocument, TraceEndpoint, TraceEvent, TraceEventKind, TraceFlow, TraceHandshake, TraceIcmp,
    TraceLoss, TraceMultipath, TraceNumbered, TracePath, TraceReset, TraceStation, TraceSubflow, TraceTransport,
    Trains, UnlistedFlows,
};
pub use trace_capture::{TraceCapture, TraceChecksums, TraceNotAnalysed};
pub use trace_direction::{Retransmits, TraceDirection, TraceEcn, TraceLimits, TraceRto, TraceRtt, ZeroWindow};
pub use trace_graph::{
    PacketDirection, TraceBuckets, TraceComparison, TraceDetail, TraceDifference, TraceFigure, TraceGraphs,
    TraceRate, TraceSeries,
};
pub use tune::{Change, Side, Target};
pub use tuneup::{
    TuneupAgain, TuneupBaseline, TuneupBound, TuneupDocument, TuneupEnd, TuneupMap, TuneupMapCell, TuneupMapColumns,
    TuneupPlacement, TuneupPlan, TuneupResult, TuneupRules, TuneupRung, TuneupSanity,
};
pub use tuneup_kind::TuneupKind;
pub use verdict::{Confidence, Epoch, EpochState, Evidence, Verdict};
pub use watch::{
    BlockedThread, BufferLocks, ThreadUse, ThreadWaits, WatchDocument, WatchEvents, WatchFlow, WatchHost,
    WatchOverhead, WatchRole, WatchSockets,
};
pub use watch_series::{WatchChange, WatchRecent, WatchSeries};

/// `.schema` of a run document.
pub const RUN_SCHEMA: &str = "landspeed.run/1";
/// Code of the warning in a run document whose phases, totals or times contradict each other. Its status is not
/// [`Status::Complete`].
pub const CONTRADICTION: &str = "contradiction";

/// `.schema` of a lab document.
pub const LAB_SCHEMA: &str = "landspeed.lab/2";

/// Previous version of [`LAB_SCHEMA`], still readable.
pub const LAB_SCHEMA_1: &str = "landspeed.lab/1";

/// `.schema` of an analysed capture.
pub const TRACE_SCHEMA: &str = "landspeed.trace/2";

/// Previous version of [`TRACE_SCHEMA`], still readable.
pub const TRACE_SCHEMA_1: &str = "landspeed.trace/1";

/// `.schema` of [`TraceComparison`].
pub const TRACE_COMPARISON_SCHEMA: &str = "landspeed.tracecomparison/1";

/// `.schema` of a tap's capture statistics.
pub const TAP_SCHEMA: &str = "landspeed.tap/1";

/// `.schema` of a host's facts.
pub const FACTS_SCHEMA: &str = "landspeed.facts/1";

/// `.schema` of an audit.
pub const AUDIT_SCHEMA: &str = "landspeed.audit/1";

/// `.schema` of the demo's claims and results.
pub const DEMO_SCHEMA: &str = "landspeed.demo/1";

/// `.schema` of watched TCP flows.
pub const WATCH_SCHEMA: &str = "landspeed.watch/1";

/// `.schema` of a search for better settings (tune-up).
pub const TUNEUP_SCHEMA: &str = "landspeed.tuneup/1";

/// `.schema` of tests of a section against a target for the whole path.
pub const QUALIFY_SCHEMA: &str = "landspeed.qualify/1";

/// `.schema` of the results of a suite of scenarios.
pub const SUITE_SCHEMA: &str = "landspeed.suite/1";
/// `.schema` of scheduled tests among many hosts.
pub const MESH_SCHEMA: &str = "landspeed.mesh/1";

/// `.schema` of an experiment (sweep).
pub const SWEEP_SCHEMA: &str = "landspeed.sweep/1";

/// `.schema` of a comparison.
pub const COMPARISON_SCHEMA: &str = "landspeed.comparison/1";

/// `.schema` of a list of archived records.
pub const ARCHIVE_LIST_SCHEMA: &str = "landspeed.archivelist/1";

/// `.schema` of the trend of a metric.
pub const TREND_SCHEMA: &str = "landspeed.trend/1";

/// `.schema` of a verification of the archive.
pub const ARCHIVE_CHECK_SCHEMA: &str = "landspeed.archivecheck/1";

/// `.schema` of figures.
pub const FIGURES_SCHEMA: &str = "landspeed.figures/1";
/// `.schema` of the certificate of an emulated path.
pub const EMULATE_SCHEMA: &str = "landspeed.emulate/1";

/// Returns the JSON Schema of a document by its short name; `None` for an unknown name.
pub fn schema(name: &str) -> Option<serde_json::Value> {
    match name {
        "run" => Some(schemars::schema_for!(RunDocument).to_value()),
        "lab" => Some(schemars::schema_for!(LabDocument).to_value()),
        "facts" => Some(schemars::schema_for!(Facts).to_value()),
        "audit" => Some(schemars::schema_for!(AuditDocument).to_value()),
        "trace" => Some(schemars::schema_for!(TraceDocument).to_value()),
        "tracecomparison" => Some(schemars::schema_for!(TraceComparison).to_value()),
        "tap" => Some(schemars::schema_for!(TapDocument).to_value()),
        "demo" => Some(schemars::schema_for!(DemoDocument).to_value()),
        "watch" => Some(schemars::schema_for!(WatchDocument).to_value()),
        "tuneup" => Some(schemars::schema_for!(TuneupDocument).to_value()),
        "qualify" => Some(schemars::schema_for!(QualifyDocument).to_value()),
        "suite" => Some(schemars::schema_for!(SuiteDocument).to_value()),
        "mesh" => Some(schemars::schema_for!(MeshDocument).to_value()),
        "sweep" => Some(schemars::schema_for!(SweepDocument).to_value()),
        "emulate" => Some(schemars::schema_for!(EmulateDocument).to_value()),
        "comparison" => Some(schemars::schema_for!(ComparisonDocument).to_value()),
        "archivelist" => Some(schemars::schema_for!(ArchiveListDocument).to_value()),
        "trend" => Some(schemars::schema_for!(TrendDocument).to_value()),
        "archivecheck" => Some(schemars::schema_for!(ArchiveCheckDocument).to_value()),
        "figures" => Some(schemars::schema_for!(FiguresDocument).to_value()),
        _ => None,
    }
}

/// Short names that [`schema`] accepts.
pub const SCHEMA_NAMES: &[&str] = &[
    "run",
    "lab",
    "facts",
    "audit",
    "trace",
    "tracecomparison",
    "tap",
    "demo",
    "watch",
    "tuneup",
    "qualify",
    "suite",
    "mesh",
    "sweep",
    "comparison",
    "archivelist",
    "trend",
    "archivecheck",
    "figures",
    "emulate",
];
