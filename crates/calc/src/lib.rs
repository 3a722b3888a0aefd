//! Arithmetic of long fat networks: window, buffer, loss rate and time needed for a rate over an RTT.
//!
//! The formulas are free functions over plain numbers with units in their names; each cites its source. They take
//! positive finite numbers and do not check them. [`advise`] combines the formulas for one path, rejects impossible
//! input with a message, and never returns NaN or infinity.
//!
//! ```
//! use landspeed_calc::{PathInput, advise};
//!
//! let path = PathInput::new("10G".parse().unwrap(), "92ms".parse().unwrap());
//! let advice = advise(&path).unwrap();
//! assert_eq!(advice.get("bdp").unwrap().value, 115e6);
//! ```
#![forbid(unsafe_code)]

mod advise;
mod answers;
mod distance;
mod framing;
mod input;
mod response;
mod responsiveness;
mod text;
mod window;

pub use advise::advise;
pub use answers::{Advice, AdviceItem, Unit};
pub use distance::{
    LIGHT_IN_FIBRE_M_PER_S, LIGHT_IN_VACUUM_M_PER_S, fibre_distance_m, fibre_rtt_s, land_speed_bit_m_per_s,
    vacuum_rtt_s,
};
pub use framing::{ETHERNET_OVERHEAD_BYTES, Framing, IpVersion, transfer_time_s};
pub use input::{InputError, PathInput};
pub use response::{
    CUBIC_BETA, CUBIC_C, MATHIS_CONSTANT, RENO_CONSTANT, cubic_loss_budget, cubic_recovery_s, cubic_window_segments,
    mathis_rate_bps, reno_loss_budget, reno_recovery_s, reno_window_segments, window_rate_bps, window_segments,
};
pub use responsiveness::round_trips_per_minute;
pub use window::{
    MAX_BUFFER_BYTES, MAX_SYSCTL_BYTES, MAX_WINDOW_BYTES, bdp_bytes, buffer_many_flows_bytes, flow_rate_ceiling_bps,
    flows_needed, socket_buffer_bytes, window_bytes,
};
