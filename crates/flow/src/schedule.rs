//! When the next bytes may leave: pure schedules that take the time as an argument.
