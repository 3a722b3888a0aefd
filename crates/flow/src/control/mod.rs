//! How two ends agree on a test: a preface on every connection, then framed messages on the control connection.
//!
//! Everything uses one port. A TCP connection opens with a fixed-size [`preface`], which says whether it is a
//! control connection or the data connection of an accepted test; with a key, data sockets prove which stream they are
//! ([`credentials`]). Control messages are JSON in length-prefixed
//! frames; with a pre-shared key the frames are Noise transport messages ([`channel`]).

pub mod changes;
pub mod channel;
pub mod credentials;
pub mod deadline;
pub(crate) mod entry;
pub mod frames;
pub mod hello;
pub mod keyed_hello;
pub mod message;
pub mod patient;
pub(crate) mod plausible;
pub mod preface;
pub mod third_party;

/// Text of a peer as it may be shown: no control characters, at most `most` characters.
pub fn printable(text: &str, most: usize) -> String {
    let mut shown = String::with_capacity(text.len().min(most));
    for (i, c) in text.chars().enumerate() {
        if i == most {
            shown.push('…');
            break;
        }
        if c.is_control() { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}
