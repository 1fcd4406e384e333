//! Plots of the results, as SVG files.

use std::fs;
use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;

use crate::measure::{Row, count};
use crate::page::CREOLE;
use crate::summary::{Metric, Results};

const SIZE: (u32, u32) = (880, 460);
const FONT: (&str, u32) = ("sans-serif", 13);
const TITLE: (&str, u32) = ("sans-serif", 17);

/// Writes every plot into the folder.
pub(crate) fn all(results: &Results, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    bars(results, &folder.join("cpu.svg"))?;
    let first = |row: &Row| row.first_ms.last().copied().unwrap_or_default();
    let title = "First word, 99th percentile, ms";
    lines(results, &folder.join("first-word.svg"), title, first)?;
    let title = "Processor time of a chunk, µs";
    lines(results, &folder.join("chunks.svg"), title, Row::cpu_per_chunk)
}

/// Converts an error of the drawing library to text, because its type cannot be passed on.
fn drawn<T, E: std::fmt::Display>(result: std::result::Result<T, E>) -> Result<T> {
    result.map_err(|error| anyhow!("drawing: {error}"))
}

fn color(index: usize) -> PaletteColor<Palette99> {
    Palette99::pick(index)
}

/// Draws each proxy's processor time as a ratio, on a logarithmic scale.
fn bars(results: &Results, path: &Path) -> Result<()> {
    const METRICS: [(Metric, &str); 3] = [
        (Metric::CpuSmall, "short request"),
        (Metric::CpuAgent, "100 kB request"),
        (Metric::CpuChunk, "chunk"),
    ];
    let shown: Vec<&String> = results
        .targets
        .iter()
        .filter(|target| results.median(target, Metric::CpuSmall).is_some_and(|cpu| cpu > 0.0))
        .collect();
    let area = SVGBackend::new(path, SIZE).into_drawing_area();
    drawn(area.fill(&WHITE))?;
    let most = count(shown.len());
    let mut chart = drawn(
        ChartBuilder::on(&area)
            .caption("Processor time, to Envoy with Creole", TITLE)
            .margin(12)
            .x_label_area_size(36)
            .y_label_area_size(160)
            .build_cartesian_2d((0.01..1000.0_f64).log_scale(), -most..0.0),
    )?;
    let label = |at: &f64| ratio_label(*at);
    let name = |at: &f64| {
        let place =
            shown.iter().enumerate().find(|(index, _)| (-count(*index) - 0.5 - at).abs() < 0.01);
        place.map_or_else(String::new, |(_, name)| (*name).clone())
    };
    drawn(
        chart
            .configure_mesh()
            .disable_y_mesh()
            .x_label_formatter(&label)
            .y_label_formatter(&|_| String::new())
            .label_style(FONT)
            .draw(),
    )?;
    let plane = chart.plotting_area();
    for (index, target) in shown.iter().enumerate() {
        let top = -count(index);
        let at = plane.map_coordinate(&(0.01, top - 0.5));
        let style = FONT.into_font().into_text_style(&area);
        drawn(area.draw_text(&name(&(top - 0.5)), &style, (14, at.1.saturating_sub(6))))?;
        for (number, (metric, _)) in METRICS.iter().enumerate() {
            let Some(ratio) = results.ratio(target, CREOLE, *metric) else { continue };
            let upper = top - 0.15 - 0.25 * count(number);
            let bar = [(0.01, upper), (ratio.max(0.01), upper - 0.2)];
            drawn(plane.draw(&Rectangle::new(bar, color(number).filled())))?;
        }
    }
    for (number, (_, name)) in METRICS.iter().enumerate() {
        let series = std::iter::empty::<Rectangle<(f64, f64)>>();
        drawn(chart.draw_series(series))?.label(*name).legend(move |at| patch(at, number));
    }
    legend(&mut chart)?;
    drawn(area.present())
}

/// Draws the coloured mark beside a name in the legend.
fn patch((x, y): (i32, i32), index: usize) -> Rectangle<(i32, i32)> {
    let corners = [(x, y.saturating_sub(5)), (x.saturating_add(12), y.saturating_add(5))];
    Rectangle::new(corners, color(index).filled())
}

fn ratio_label(ratio: f64) -> String {
    format!("{ratio}x")
}

/// Draws a figure of each proxy by the number of streams, both on logarithmic scales.
fn lines(results: &Results, path: &Path, title: &str, figure: fn(&Row) -> f64) -> Result<()> {
    let area = SVGBackend::new(path, SIZE).into_drawing_area();
    drawn(area.fill(&WHITE))?;
    let values = || results.targets.iter().flat_map(|target| results.sweep(target));
    let positive = || values().map(figure).filter(|value| *value > 0.0);
    let lowest = positive().fold(f64::INFINITY, f64::min);
    let highest = positive().fold(lowest, f64::max);
    let most = values().map(|row| row.clients).max().unwrap_or(1);
    draw_lines(&area, results, title, figure, (lowest / 1.5, highest * 1.5), count(most))?;
    drawn(area.present())
}

fn draw_lines(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    results: &Results,
    title: &str,
    figure: fn(&Row) -> f64,
    (lowest, highest): (f64, f64),
    most: f64,
) -> Result<()> {
    let mut chart = drawn(
        ChartBuilder::on(area)
            .caption(title, TITLE)
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(60)
            .build_cartesian_2d(
                (0.9..most * 1.2).log_scale(),
                (lowest..highest.max(lowest * 10.0)).log_scale(),
            ),
    )?;
    drawn(
        chart
            .configure_mesh()
            .x_desc("streams at once")
            .light_line_style(WHITE)
            .label_style(FONT)
            .draw(),
    )?;
    for (index, target) in results.targets.iter().enumerate() {
        let points: Vec<(f64, f64)> = results
            .sweep(target)
            .map(|row| (count(row.clients), figure(row)))
            .filter(|(_, value)| *value > 0.0)
            .collect();
        if points.is_empty() {
            continue;
        }
        let style = color(index).stroke_width(2);
        drawn(chart.draw_series(LineSeries::new(points, style).point_size(3)))?
            .label(target)
            .legend(move |at| patch(at, index));
    }
    legend(&mut chart)
}

fn legend<'a, X, Y>(chart: &mut ChartContext<'a, SVGBackend<'a>, Cartesian2d<X, Y>>) -> Result<()>
where
    X: Ranged<ValueType = f64>,
    Y: Ranged<ValueType = f64>,
{
    drawn(
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.3))
            .label_font(FONT)
            .draw(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plot_is_written_and_names_the_proxies() {
        let mut results = crate::summary::tests::results();
        for row in &mut results.rows {
            row.target = if row.target == "a" { CREOLE } else { "other" }.to_owned();
        }
        results.targets = vec![CREOLE.to_owned(), "other".to_owned()];
        let folder = std::env::temp_dir().join(format!("creole-load-{}", std::process::id()));
        all(&results, &folder).unwrap();
        for name in ["cpu.svg", "first-word.svg", "chunks.svg"] {
            let text = fs::read_to_string(folder.join(name)).unwrap();
            assert!(text.contains("<svg") && text.contains("other"), "{name}");
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
