//! `cargo xtask site`: the pages of `docs/` as a site in `dist/site`, by mdBook.
//!
//! mdBook is installed into `.creole/` when it is first needed, because it takes minutes to build
//! and nothing else uses it. Links to files that are not pages are removed, and their text stays.
//! Every other link and anchor of the finished site is checked.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};
use walkdir::{DirEntry, WalkDir};

use crate::setup;
use crate::workspace::{self, step};

const VERSION: &str = "0.5.4";

/// Builds and checks the site.
pub(crate) fn build() -> Result<()> {
    let mdbook = mdbook()?;
    let root = workspace::root();
    let staged = root.join("target/site");
    workspace::emptied(&staged)?;
    let pages = copy(&root.join("docs"), &staged.join("docs"))?;
    fs::copy(root.join("book.toml"), staged.join("book.toml"))?;
    let site = root.join("dist/site");
    workspace::emptied(&site)?;
    step("building dist/site", || {
        let mut command = Command::new(&mdbook);
        command.arg("build").arg(&staged).arg("--dest-dir").arg(&site);
        setup::run(&mut command)
    })?;
    let links = check(&site)?;
    println!("{pages} pages, {links} links within the site, all of which lead somewhere");
    Ok(())
}

fn mdbook() -> Result<PathBuf> {
    let tools = workspace::root().join(".creole/tools");
    let binary = tools.join("bin/mdbook");
    let known = Command::new(&binary).arg("--version").output();
    if known.is_ok_and(|known| String::from_utf8_lossy(&known.stdout).contains(VERSION)) {
        return Ok(binary);
    }
    step("installing mdbook", || {
        let mut command = Command::new("cargo");
        command.args(["install", "mdbook", "--locked", "--force", "--version", VERSION]);
        command.args(["--no-default-features", "--features", "search", "--root"]).arg(&tools);
        setup::run(&mut command)
    })?;
    Ok(binary)
}

/// Copies a folder of pages, without links to files outside of `docs/`. Returns the number of
/// pages.
fn copy(from: &Path, to: &Path) -> Result<usize> {
    let mut pages = 0_usize;
    for entry in WalkDir::new(from) {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.path().strip_prefix(from)?));
        if from.is_dir() {
            fs::create_dir_all(to)?;
        } else if from.extension().is_some_and(|extension| extension == "md") {
            pages = pages.saturating_add(1);
            fs::write(to, within(&fs::read_to_string(from)?, from))?;
        } else {
            fs::copy(from, to)?;
        }
    }
    Ok(pages)
}

/// Returns a page without its links to files outside of `docs/`. The texts of the links stay.
fn within(page: &str, path: &Path) -> String {
    let docs = workspace::root().join("docs");
    let docs = docs.canonicalize().unwrap_or(docs);
    let mut out = String::with_capacity(page.len());
    let mut rest = page;
    while let Some((before, after)) = rest.split_once("](") {
        let Some((target, behind)) = after.split_once(')') else { break };
        let file = target.split('#').next().unwrap_or_default();
        let leaves = !file.is_empty() && !file.contains("://") && {
            let whole = path.parent().map(|folder| folder.join(file));
            let whole = whole.and_then(|whole| whole.canonicalize().ok());
            !whole.is_some_and(|whole| whole.starts_with(&docs) && whole.is_file())
        };
        match before.rfind('[').filter(|_| leaves) {
            Some(at) => {
                out.push_str(before.get(..at).unwrap_or_default());
                out.push_str(before.get(at.saturating_add(1)..).unwrap_or_default());
            }
            None => {
                for part in [before, "](", target, ")"] {
                    out.push_str(part);
                }
            }
        }
        rest = behind;
    }
    out.push_str(rest);
    out
}

/// Counts the links within a site. Fails for a link without a target.
fn check(site: &Path) -> Result<usize> {
    let files = WalkDir::new(site).into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut pages: Vec<PathBuf> = files.into_iter().map(DirEntry::into_path).collect();
    // A server shows the page 404.html at any path, so its links begin at the root of the server.
    let is_page = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "html");
    pages.retain(|path| is_page(path) && !path.ends_with("404.html"));
    let mut links = 0_usize;
    let mut dead = BTreeSet::new();
    for page in &pages {
        let html = fs::read_to_string(page)?;
        let folder = page.parent().unwrap_or(site);
        for link in html.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            if link.contains(':') || link.is_empty() {
                continue;
            }
            links = links.saturating_add(1);
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { folder.join(file) };
            let target = if target.is_dir() { target.join("index.html") } else { target };
            let found = match fs::read_to_string(&target) {
                Ok(text) => anchor.is_empty() || text.contains(&format!("id=\"{anchor}\"")),
                Err(_) => anchor.is_empty() && target.is_file(),
            };
            if !found {
                dead.insert(format!("{}: {link}", page.display()));
            }
        }
    }
    if pages.is_empty() || links == 0 {
        bail!("{} has no pages", site.display());
    }
    if !dead.is_empty() {
        let dead: Vec<String> = dead.into_iter().collect();
        bail!("links that lead nowhere:\n  {}", dead.join("\n  "));
    }
    Ok(links)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_out_of_the_pages_lose_their_target_and_keep_their_text() {
        let path = workspace::root().join("docs/envoy.md");
        let page = "See [`a`](../envoy/envoy.yaml), [keys](configuration.md#settings), [x](https://x) [y](#z).";
        let kept = "See `a`, [keys](configuration.md#settings), [x](https://x) [y](#z).";
        assert_eq!(within(page, &path), kept);
    }

    #[test]
    fn a_dead_link_in_a_site_is_found() {
        let folder = std::env::temp_dir().join(format!("creole-site-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("a.html"), "<a href=\"b.html#x\">").unwrap();
        fs::write(folder.join("b.html"), "<h1 id=\"x\">").unwrap();
        assert_eq!(check(&folder).unwrap(), 1);
        fs::write(folder.join("b.html"), "<h1 id=\"y\">").unwrap();
        assert!(check(&folder).unwrap_err().to_string().contains("a.html: b.html#x"));
        fs::remove_dir_all(folder).unwrap();
    }
}
