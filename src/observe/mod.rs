//! What happened, and how it is shown: report, warnings, the line in the log, metrics.

pub mod log;
pub mod metrics;
pub mod report;
pub mod warning;
