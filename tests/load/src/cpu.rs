//! Processor time of another process, as Linux counts it: by nanoseconds, user and system, with threads that ended.
//! `/proc` has it in hundredths of a second, which is a tenth of what four thousand chunks take.

use std::time::Duration;

use anyhow::{Context as _, Result};
use nix::time::ClockId;
use nix::unistd::Pid;

/// What a process has used so far.
pub(crate) fn used(pid: u32) -> Result<Duration> {
    let told = || -> Result<Duration> {
        Ok(ClockId::pid_cpu_clock_id(Pid::from_raw(pid.try_into()?))?.now()?.into())
    };
    told().with_context(|| format!("the processor time of process {pid}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps a thread of this process busy.
    fn work(time: Duration) {
        let since = std::time::Instant::now();
        let mut sum = 0_u64;
        while since.elapsed() < time {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
    }

    #[test]
    fn work_of_threads_that_ended_is_counted_to_the_microsecond() {
        let own = std::process::id();
        let before = used(own).unwrap();
        std::thread::spawn(|| work(Duration::from_millis(50))).join().unwrap();
        let after = used(own).unwrap();
        // Others may have had the processor for some of the time.
        assert!(after > before + Duration::from_millis(5), "{before:?} {after:?}");
        work(Duration::from_micros(200));
        assert!(used(own).unwrap() > after);
    }

    #[test]
    fn a_process_that_is_gone_is_an_error() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(used(child.id()).is_err());
    }
}
