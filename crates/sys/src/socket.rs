//! Stream sockets: options, tcp_info, queues.
