//! Processor time of another process, as Linux counts it.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};

/// What `getconf CLK_TCK` says on every Linux that Rust runs on.
const TICKS_PER_SECOND: u64 = 100;

/// User and system time of a process and its threads so far.
pub(crate) fn used(pid: u32) -> Result<Duration> {
    let path = format!("/proc/{pid}/stat");
    let stat = fs::read_to_string(&path).with_context(|| path.clone())?;
    let ticks = ticks(&stat).with_context(|| format!("{path}: {stat}"))?;
    Ok(Duration::from_millis(ticks.saturating_mul(1000 / TICKS_PER_SECOND)))
}

/// The fields `utime` and `stime`.
fn ticks(stat: &str) -> Option<u64> {
    // The name is in parentheses, and may have spaces and parentheses itself.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut times = fields.split(' ').skip(11);
    let user: u64 = times.next()?.parse().ok()?;
    let system: u64 = times.next()?.parse().ok()?;
    user.checked_add(system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_system_time_are_read_behind_any_name() {
        let stat = "7 (a) (b c) S 1 7 7 0 -1 4194560 900 0 3 0 120 34 5 6 20 0 9 0 77 1000 200 1";
        assert_eq!(ticks(stat), Some(154));
        assert_eq!(ticks("7 a"), None);
    }

    #[test]
    fn work_of_this_process_is_counted() {
        let before = used(std::process::id()).unwrap();
        let since = std::time::Instant::now();
        let mut sum = 0_u64;
        while since.elapsed() < Duration::from_millis(300) {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(used(std::process::id()).unwrap() > before);
    }
}
