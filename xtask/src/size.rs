//! Sizes of the artefacts, compared with their budgets.

use std::fs;
use std::io::Write as _;

use anyhow::Result;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::workspace::Manner;
use crate::{build, worker};

/// Maximum size of the Worker in gzipped bytes, which is what Cloudflare limits.
const WORKER_GZIPPED_MAX: usize = 1_350_000;

/// Builds the artefacts and prints their sizes.
pub(crate) fn print() -> Result<()> {
    build::all()?;
    over_budget().map(drop)
}

/// Prints the sizes of the artefacts in `dist/`. Returns the number of artefacts compared, and a
/// list of the artefacts above their budgets.
pub(crate) fn over_budget() -> Result<(u64, Vec<String>)> {
    let mut sizes = Vec::new();
    for artefact in build::ARTEFACTS {
        let bytes = fs::read(build::path(artefact))?;
        println!("  {:>9} bytes gzipped: {}", gzipped(&bytes)?, artefact.name);
        sizes.push((artefact.name, bytes.len(), artefact.bytes_max));
    }
    let mut worker_gzipped = 0_usize;
    for (name, bytes) in worker::modules(&worker::folder(Manner::Shipped))? {
        let small = gzipped(&bytes)?;
        println!("  {small:>9} bytes gzipped: dist/worker, {name}");
        worker_gzipped = worker_gzipped.saturating_add(small);
    }
    sizes.push(("dist/worker, gzipped", worker_gzipped, WORKER_GZIPPED_MAX));
    let found = sizes.iter().filter_map(|(name, bytes, most)| excess(name, *bytes, *most));
    Ok((u64::try_from(sizes.len())?, found.collect()))
}

fn excess(name: &str, bytes: usize, most: usize) -> Option<String> {
    println!("  {bytes:>9} of {most:>9} bytes: {name}");
    (bytes > most).then(|| format!("{name} has {bytes} bytes, and may have {most}"))
}

fn gzipped(bytes: &[u8]) -> Result<usize> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_artefact_above_its_budget_is_named() {
        assert_eq!(excess("a", 10, 10), None);
        assert!(excess("a", 11, 10).is_some_and(|text| text.contains("11 bytes")));
    }
}
