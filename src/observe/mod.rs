//! The report of an exchange and its warnings, shown as a line in the log and as metrics.

pub mod log;
pub mod meanings;
pub mod metrics;
pub mod report;
pub mod warning;
