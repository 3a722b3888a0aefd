//! Parsers for `/proc` and `/sys`. Pure and total: invalid text yields no value, never a panic.
//!
//! The `procfs` crate is not used: it numbers cores by the order of `/proc/stat`'s rows (wrong once a core is
//! offline), keeps only the SNMP counters it has a field for, lacks softnet and netstat, and fails a whole file
//! for one line.

mod cores;
mod counters;
mod interrupts;
mod pci;
mod per_core;
mod softnet;
mod sysctl_file;
mod text;

pub(crate) use cores::{CoreTicks, core_ticks};
pub(crate) use counters::{Counters, named_values, paired_lines, pressure_total_us, tcp_memory_pages};
pub(crate) use interrupts::{InterruptRow, interrupt_rows};
pub(crate) use pci::{ControlError, DeviceControl, device_control};
pub(crate) use per_core::{CoreRow, CoreTable, core_table};
pub(crate) use softnet::{SoftnetRow, softnet_rows};
pub(crate) use sysctl_file::sysctl_assignments;
pub(crate) use text::{
    CpuInfo, collapse_whitespace, cpu_list, default_route_interface, field, field_of_words, list_numbers,
    quoted_value,
};

#[cfg(test)]
mod properties;
