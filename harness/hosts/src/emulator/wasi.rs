//! WASI functions that the filter imports.

use wasmtime::{Caller, Linker};

use super::abi::write;
use super::world::{Trap, World, entropy};

const SUCCESS: i32 = 0;

/// Environment variables of the VM.
const ENVIRONMENT: [&str; 2] = ["OTHER_KEY=sk-other\0", "UPSTREAM_KEY=sk=emulated\0"];

pub(super) fn link(linker: &mut Linker<World>) -> Result<(), Trap> {
    let wasi = "wasi_snapshot_preview1";
    linker.func_wrap(
        wasi,
        "environ_get",
        |mut c: Caller<'_, World>, mut pointers: u32, mut texts: u32| {
            for variable in ENVIRONMENT {
                write(&mut c, pointers, &texts.to_le_bytes());
                write(&mut c, texts, variable.as_bytes());
                pointers += 4;
                texts += variable.len() as u32;
            }
            SUCCESS
        },
    )?;
    linker.func_wrap(
        wasi,
        "environ_sizes_get",
        |mut c: Caller<'_, World>, count: u32, size: u32| {
            let bytes: usize = ENVIRONMENT.iter().map(|variable| variable.len()).sum();
            write(&mut c, count, &(ENVIRONMENT.len() as u32).to_le_bytes());
            write(&mut c, size, &(bytes as u32).to_le_bytes());
            SUCCESS
        },
    )?;
    linker.func_wrap(wasi, "random_get", |mut c: Caller<'_, World>, at: u32, size: u32| {
        let bytes: Vec<u8> = (0..size).map(|_| (entropy(c.data_mut()) >> 56) as u8).collect();
        write(&mut c, at, &bytes);
        SUCCESS
    })?;
    Ok(())
}
