//! Metrics in the text format of Prometheus, for collectors that do not ask for OpenMetrics.

/// Returns metrics in the text format 0.0.4 of Prometheus. `metrics` has the OpenMetrics format, in
/// which the descriptions of counters lack the suffix of their samples.
pub(super) fn of_open_metrics(metrics: &str) -> String {
    let (mut text, mut help) = (String::with_capacity(metrics.len()), "");
    for line in metrics.lines() {
        if let Some(found) = line.strip_prefix("# HELP ") {
            help = found;
        } else if let Some((name, kind)) =
            line.strip_prefix("# TYPE ").and_then(|found| found.split_once(' '))
        {
            let (suffix, kind) = match kind {
                "counter" => ("_total", kind),
                "info" => ("_info", "gauge"),
                _ => ("", kind),
            };
            let help = help.strip_prefix(name).unwrap_or_default();
            text.push_str(&format!("# HELP {name}{suffix}{help}\n# TYPE {name}{suffix} {kind}\n"));
        } else if !line.starts_with('#') {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}
