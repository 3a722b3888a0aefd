//! Every unsafe block of landspeed lives in this crate.
pub mod clock;
pub mod ethtool;
pub mod netlink;
pub mod netns;
pub mod rrsock;
pub mod socket;
pub mod thread;
pub mod udp;
