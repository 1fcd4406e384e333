//! Report of an exchange and its warnings, and the log line and metrics made from them.

pub mod log;
pub mod meanings;
pub mod metrics;
pub mod report;
pub mod warning;
