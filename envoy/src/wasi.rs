//! WASI imports of the filter, only three functions: for randomness and the environment.
//!
//! The standard library has no host interface on this target (`wasm32-unknown-unknown`). Built for
//! WASI, the standard library would link 17 kB more, most of it for panic messages.
#![allow(unsafe_code)]

mod host {
    #[link(wasm_import_module = "wasi_snapshot_preview1")]
    unsafe extern "C" {
        pub(super) fn random_get(bytes: *mut u8, size: usize) -> u32;
        pub(super) fn environ_sizes_get(count: *mut usize, size: *mut usize) -> u32;
        pub(super) fn environ_get(pointers: *mut *const u8, texts: *mut u8) -> u32;
    }
}

/// Returns a random number; `None` if the host has no randomness.
pub(crate) fn random() -> Option<u128> {
    let mut bytes = [0; 16];
    // SAFETY: the host writes to a local variable of the given size.
    let status = unsafe { host::random_get(bytes.as_mut_ptr(), bytes.len()) };
    (status == 0).then(|| u128::from_le_bytes(bytes))
}

/// Returns the environment of this VM: entries `NAME=VALUE`, each followed by a zero byte.
pub(crate) fn environment() -> Option<Vec<u8>> {
    let (mut count, mut size) = (0, 0);
    // SAFETY: the host writes to two local variables.
    let status = unsafe { host::environ_sizes_get(&raw mut count, &raw mut size) };
    if status != 0 {
        return None;
    }
    let mut pointers = vec![std::ptr::null(); count];
    let mut texts = vec![0; size];
    // SAFETY: the host writes the numbers of entries and bytes that it reported. The pointers into
    // `texts` are not followed.
    let status = unsafe { host::environ_get(pointers.as_mut_ptr(), texts.as_mut_ptr()) };
    (status == 0).then_some(texts)
}

/// Returns the value of a variable in `environment`.
pub(crate) fn variable(environment: &[u8], name: &str) -> Option<String> {
    let value = environment.split(|byte| *byte == 0).find_map(|variable| {
        let end = variable.iter().position(|byte| *byte == b'=')?;
        let (known, value) = variable.split_at_checked(end)?;
        (known == name.as_bytes()).then_some(value.get(1..)?)
    })?;
    String::from_utf8(value.to_vec()).ok()
}
