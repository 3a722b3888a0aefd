//! Datagram sockets: batches, segmentation offload, receive metadata.
