//! Kernels for the lab: where their source comes from, how they are built, where they are kept.
