//! The five functions of WASI that a filter of Rust's standard library needs.

use wasmtime::{Caller, Linker};

use super::vm::{Trap, World, entropy, read, write};

const SUCCESS: i32 = 0;
const BAD_DESCRIPTOR: i32 = 8;

pub(super) fn link(linker: &mut Linker<World>) -> Result<(), Trap> {
    let wasi = "wasi_snapshot_preview1";
    linker.func_wrap(
        wasi,
        "fd_write",
        |mut c: Caller<'_, World>, fd: u32, list: u32, count: u32, written: u32| {
            if fd != 1 && fd != 2 {
                return BAD_DESCRIPTOR;
            }
            let mut text = Vec::new();
            for index in 0..count {
                let entry = read(&mut c, list + index * 8, 8);
                let number = |at: usize| u32::from_le_bytes(entry[at..at + 4].try_into().unwrap());
                text.extend(read(&mut c, number(0), number(4)));
            }
            write(&mut c, written, &(text.len() as u32).to_le_bytes());
            c.data_mut().log.push(String::from_utf8_lossy(&text).into_owned());
            SUCCESS
        },
    )?;
    linker.func_wrap(wasi, "environ_get", |_: Caller<'_, World>, _: u32, _: u32| SUCCESS)?;
    linker.func_wrap(
        wasi,
        "environ_sizes_get",
        |mut c: Caller<'_, World>, count: u32, size: u32| {
            write(&mut c, count, &[0; 4]);
            write(&mut c, size, &[0; 4]);
            SUCCESS
        },
    )?;
    linker.func_wrap(wasi, "random_get", |mut c: Caller<'_, World>, at: u32, size: u32| {
        let bytes: Vec<u8> = (0..size).map(|_| (entropy(c.data_mut()) >> 56) as u8).collect();
        write(&mut c, at, &bytes);
        SUCCESS
    })?;
    linker.func_wrap(wasi, "proc_exit", |_: Caller<'_, World>, code: u32| -> Result<(), Trap> {
        Err(Trap::msg(format!("the filter exited with {code}")))
    })?;
    Ok(())
}
