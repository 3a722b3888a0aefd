//! How two ends agree on a test: a preface on every connection, then framed messages on the control connection.
//!
//! Everything uses one port. A TCP connection opens with a fixed-size [`preface`], which says whether it is a
//! control connection or the data connection of an accepted test. Control messages are JSON in length-prefixed
//! frames; with a pre-shared key the frames are Noise transport messages ([`channel`]).

pub mod channel;
pub mod hello;
pub mod message;
pub mod preface;
