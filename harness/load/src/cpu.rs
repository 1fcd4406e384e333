//! Processor time of another process, as Linux counts it in nanoseconds: user and system time,
//! including ended threads. `/proc` counts in hundredths of a second, a tenth of the time of four
//! thousand chunks.

use std::time::Duration;

use anyhow::{Context as _, Result};
use nix::time::ClockId;
use nix::unistd::Pid;

/// Returns the processor time that a process has used so far.
pub(crate) fn used(pid: u32) -> Result<Duration> {
    let told = || -> Result<Duration> {
        Ok(ClockId::pid_cpu_clock_id(Pid::from_raw(pid.try_into()?))?.now()?.into())
    };
    told().with_context(|| format!("the processor time of process {pid}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses this much processor time in the current thread, however long that takes.
    fn work(time: Duration) {
        let used = || Duration::from(ClockId::CLOCK_THREAD_CPUTIME_ID.now().unwrap());
        let enough = used().saturating_add(time);
        while used() < enough {}
    }

    #[test]
    fn work_of_threads_that_ended_is_counted_to_the_microsecond() {
        let own = std::process::id();
        let before = used(own).unwrap();
        std::thread::spawn(|| work(Duration::from_millis(5))).join().unwrap();
        let after = used(own).unwrap();
        assert!(after >= before + Duration::from_millis(5), "{before:?} {after:?}");
        work(Duration::from_micros(200));
        assert!(used(own).unwrap() >= after + Duration::from_micros(200));
    }

    #[test]
    fn a_process_that_is_gone_is_an_error() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(used(child.id()).is_err());
    }
}
