//! Counters of bytes and processor time, for the current thread alone.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Clock of the processor time of a thread: other tests and other people use this machine.
/// WebAssembly can only ask for the time of day.
#[cfg(not(target_family = "wasm"))]
use cpu_time::ThreadTime as Clock;
#[cfg(target_family = "wasm")]
use std::time::Instant as Clock;

/// Counts the bytes that the current thread holds, and the most that it held.
struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    // Threads allocate while they end, when the counters are already gone.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        let _ = MOST.try_with(|most| most.set(most.get().max(held.get())));
    });
}

// SAFETY: every call goes to the system's allocator with the arguments that came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        unsafe { System.dealloc(pointer, layout) }
    }

    // Without this method, a buffer that grows would be copied, where the system moves pages.
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the maximum number of bytes that `work` held at one time, besides bytes held before.
pub(crate) fn most_held_by(work: impl FnOnce()) -> usize {
    let before = HELD.get();
    MOST.set(before);
    work();
    usize::try_from(MOST.get() - before).unwrap()
}

/// Returns the number of bytes that the current thread holds.
pub(crate) fn held_now() -> usize {
    usize::try_from(HELD.get()).unwrap_or_default()
}

/// Number of bytes whose translation takes long enough to be measured.
pub(crate) const BYTES_MIN: usize = if cfg!(debug_assertions) { 512 << 10 } else { 8 << 20 };

/// Maximum number of comparisons before times count as different. WebAssembly reads the time of
/// day, which also holds what other processes took.
const RUNS_MAX: usize = if cfg!(target_family = "wasm") { 60 } else { 12 };

/// Returns the processor time of `work` in nanoseconds.
pub(crate) fn processor_time_of(work: impl FnOnce()) -> u64 {
    let start = Clock::now();
    work();
    start.elapsed().as_nanos() as u64
}

/// Compares the best of several runs of `small` and `large`, made in turns, because a disturbance
/// can only make a run slower. Both return nanoseconds for each byte.
#[track_caller]
pub(crate) fn assert_ratio(
    what: &str,
    ratio_max: f64,
    mut small: impl FnMut() -> f64,
    mut large: impl FnMut() -> f64,
) {
    let (mut best_small, mut best_large) = (f64::MAX, f64::MAX);
    for _ in 0..RUNS_MAX {
        // A time of 0 is less than a step of the clock, and no measurement.
        best_small =
            Some(small()).filter(|it| *it > 0.0).map_or(best_small, |it| it.min(best_small));
        best_large =
            Some(large()).filter(|it| *it > 0.0).map_or(best_large, |it| it.min(best_large));
        if best_large.max(best_small) < f64::MAX && best_large <= best_small * ratio_max {
            println!("{what}: {best_large:.2} ns a byte, {:.2} times", best_large / best_small);
            return;
        }
    }
    panic!("{what}: {best_large} ns a byte, where it is {best_small} in small ones");
}
