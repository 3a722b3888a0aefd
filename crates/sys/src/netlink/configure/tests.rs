//! Tests of what is built, in namespaces of their own.
