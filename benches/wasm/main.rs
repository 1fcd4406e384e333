//! The cases of `ratios` as a WebAssembly module, for hosts that measure how long its functions
//! take. `v8.mjs` is one for V8.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a benchmark fails by panicking"
)]

#[path = "../bodies/mod.rs"]
mod bodies;
#[path = "../cases/mod.rs"]
#[allow(dead_code, reason = "the other side of the native benchmark")]
mod cases;

use std::cell::RefCell;
use std::sync::Arc;

use cases::{CASES, Case, Side};
use creole::{Config, Exchange};

/// A case that is to be measured, and what was prepared for it.
struct Prepared {
    case: Case,
    side: Side,
    exchanges: Vec<Exchange>,
    out: Vec<u8>,
}

thread_local! {
    static PREPARED: RefCell<Option<Prepared>> = const { RefCell::new(None) };
}

/// Prepares a case: its number in the list, its side (0 is the floor, 1 Creole), how many times it
/// will run. Gives the number of its texts, or 0 where there is no such case.
#[unsafe(no_mangle)]
pub extern "C" fn prepare(number: u32, side: u32, times: u32) -> u32 {
    let Some((name, make)) = CASES.get(number as usize) else { return 0 };
    let config = Arc::new(Config::from_json("{}", |_| None).expect("a configuration"));
    let case = make(name);
    case.check(&config);
    let side = if side == 0 { Side::Floor } else { Side::Creole };
    let exchanges = case.prepare(side, &config, times as usize);
    let texts = case.texts.len() as u32;
    PREPARED.set(Some(Prepared { case, side, exchanges, out: Vec::new() }));
    texts
}

/// Runs what was prepared once.
#[unsafe(no_mangle)]
pub extern "C" fn run() {
    PREPARED.with_borrow_mut(|prepared| {
        let Some(Prepared { case, side, exchanges, out }) = prepared else { return };
        match side {
            Side::Creole => {
                let mut exchange = exchanges.pop().expect("prepared too few times");
                case.translate(&mut exchange, out);
            }
            _ => case.floor(out),
        }
    });
}

/// One letter of the name of a case, 0 at its end.
#[unsafe(no_mangle)]
pub extern "C" fn letter(number: u32, at: u32) -> u32 {
    let name = CASES.get(number as usize).map_or("", |(name, _)| name);
    name.as_bytes().get(at as usize).map_or(0, |byte| u32::from(*byte))
}
