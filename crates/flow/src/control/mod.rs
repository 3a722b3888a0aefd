//! Control protocol: a preface on every connection, then framed messages on the control connection.
//!
//! Everything uses one port. A TCP connection opens with a fixed-size [`preface`] that distinguishes control
//! connections from data connections of an accepted test; with a key, each data socket also proves which stream
//! it belongs to ([`credentials`]). Control messages are JSON in length-prefixed frames; with a pre-shared key
//! the frames are Noise transport messages ([`channel`]).

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

/// Makes a peer's text printable: escapes control characters and truncates to `most` characters.
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
