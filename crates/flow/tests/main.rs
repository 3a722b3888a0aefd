//! Tests between client and server, over loopback and between namespaces.

mod damage;
mod host_changes;
mod hostile_bytes;
mod missing_reports;
mod mtu_loopback;
mod mtu_paths;
mod mtu_relay;
mod mtu_run;
mod phases_accounting;
mod placed_losses;
mod recorded_runs;
mod udp_accounting;
