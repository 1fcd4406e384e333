//! Small bar charts of the last exchanges, as SVG. The title of each bar has its values in full.

use std::fmt::Write as _;

use super::escape::escaped;
use super::row::FinishedRow;
use crate::log::figures;

/// Maximum number of bars in one plot.
const BARS_MAX: usize = 50;

const WIDTH: f64 = 320.0;
const HEIGHT: f64 = 72.0;

/// A bar of a plot: its value, the part of it that is drawn darker, and its title.
struct Bar {
    whole: f64,
    part: f64,
    is_failed: bool,
    title: String,
}

/// Returns all plots, as SVG, of the newest exchanges that went to an upstream.
pub(super) fn plots<'r>(rows: impl DoubleEndedIterator<Item = &'r FinishedRow>) -> String {
    let mut rows: Vec<&FinishedRow> =
        rows.rev().filter(|row| !row.upstream.is_empty()).take(BARS_MAX).collect();
    rows.reverse();
    if rows.is_empty() {
        return String::new();
    }
    let mut out = String::new();
    let time = |ms: f64| figures::time(ms as u64);
    let tokens = |count: f64| figures::count(count as u64);
    plot(&mut out, "Time", "to the first content, and to the end", time, &rows, |row| {
        (row.figures.duration_ms as f64, row.figures.first_ms.unwrap_or_default() as f64)
    });
    plot(&mut out, "Speed", "tokens of the answer in a second", figures::speed, &rows, |row| {
        (row.figures.speed.unwrap_or_default(), 0.0)
    });
    plot(&mut out, "Tokens in", "from the cache, and all", tokens, &rows, |row| {
        (row.figures.input_tokens as f64, row.cached_tokens as f64)
    });
    plot(&mut out, "Tokens out", "of the answer", tokens, &rows, |row| {
        (row.output_tokens as f64, 0.0)
    });
    out
}

fn plot(
    out: &mut String,
    name: &str,
    meaning: &str,
    shown: impl Fn(f64) -> String,
    rows: &[&FinishedRow],
    values: impl Fn(&FinishedRow) -> (f64, f64),
) {
    let bars: Vec<Bar> = rows
        .iter()
        .map(|row| {
            let (whole, part) = values(row);
            let part_shown =
                if part > 0.0 { format!("{} of ", shown(part)) } else { String::new() };
            let title = format!("{}: {part_shown}{}", row.model, shown(whole));
            Bar { whole, part, is_failed: row.is_failed(), title }
        })
        .collect();
    let most = bars.iter().map(|bar| bar.whole).fold(0.0, f64::max);
    let last = bars.last().map_or(0.0, |bar| bar.whole);
    let label =
        if most > 0.0 { format!("up to {}", shown(most)) } else { "nothing yet".to_owned() };
    let now = if last > 0.0 { shown(last) } else { "–".to_owned() };
    // Writing to a String cannot fail.
    let _ = write!(
        out,
        "<figure class=\"plot\"><figcaption><b>{name}</b><span>{meaning}</span>\
         <strong>{now}</strong></figcaption><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-label=\"{name}, {meaning}\" preserveAspectRatio=\"none\">"
    );
    for line in [0.0, 0.5, 1.0] {
        let y = 0.5 + (HEIGHT - 1.0) * line;
        let _ = write!(out, "<line x1=\"0\" x2=\"{WIDTH}\" y1=\"{y}\" y2=\"{y}\"/>");
    }
    draw(out, &bars, most);
    let _ = write!(out, "</svg><small>{label}</small></figure>");
}

fn draw(out: &mut String, bars: &[Bar], most: f64) {
    let step = WIDTH / BARS_MAX as f64;
    // The bar of the newest exchange is at the right edge.
    let first = BARS_MAX.saturating_sub(bars.len());
    for (at, bar) in bars.iter().enumerate() {
        let x = first.saturating_add(at) as f64 * step + 0.8;
        let tall = |value: f64| if most > 0.0 { value / most * (HEIGHT - 4.0) } else { 0.0 };
        let whole = tall(bar.whole).max(1.0);
        let class = if bar.is_failed { "bar failed" } else { "bar" };
        let _ = write!(out, "<g class=\"{class}\"><title>{}</title>", escaped(&bar.title));
        for (class, height) in [("whole", whole), ("part", tall(bar.part.min(bar.whole)))] {
            if height > 0.0 {
                let _ = write!(
                    out,
                    "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\"/>",
                    HEIGHT - height - 0.5,
                    step - 1.6
                );
            }
        }
        out.push_str("</g>");
    }
}
