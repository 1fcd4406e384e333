//! Figures of the process, under the names that Prometheus's own libraries use.

use std::fs;
use std::time::SystemTime;

use super::Metrics;

/// Adds the gauges of the process. Linux alone has files with these figures.
pub(super) fn add(metrics: &Metrics) {
    let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let started = started.as_secs();
    metrics.gauge(
        "process_start_time_seconds",
        "Start of the process, in Unix seconds",
        move || Some(started),
    );
    metrics.gauge("process_open_fds", "Open file descriptors", || {
        u64::try_from(fs::read_dir("/proc/self/fd").ok()?.count()).ok()
    });
    metrics.gauge("process_max_fds", "Most file descriptors that may be open", || {
        let limits = fs::read_to_string("/proc/self/limits").ok()?;
        let limit = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
        limit.split_whitespace().next()?.parse().ok()
    });
    metrics.gauge("process_resident_memory_bytes", "Resident memory", || {
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kib: u64 = kib.split_whitespace().next()?.parse().ok()?;
        kib.checked_mul(1024)
    });
}
