//! Every cause, provoked on real traffic, is named: on loopback, and over a path made in namespaces (root).
//!
//! `LANDSPEED_KEEP=DIR` keeps each run's document; `LANDSPEED_BINARY=FILE` measures with another build.

mod buffers;
mod network;
mod path;
mod processors;
mod rates;
mod short;
mod udp;
