//! Netlink: queueing disciplines, links.
