//! Threads: affinity, memory policy, processor time.
