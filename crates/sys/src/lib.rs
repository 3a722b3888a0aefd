//! Every unsafe block of landspeed lives in this crate.
pub mod bpf;
pub mod clock;
pub mod disk;
pub mod ethtool;
pub mod guest;
pub mod mtu;
pub mod netlink;
pub mod netns;
pub mod packet;
pub mod process;
pub mod random;
pub mod rrsock;
pub mod socket;
pub mod thread;
pub mod tun;
pub mod udp;
