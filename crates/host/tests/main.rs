//! Hosts: live, recorded and hostile.

mod hostile;
mod hosts;
mod live;
mod recorded;
