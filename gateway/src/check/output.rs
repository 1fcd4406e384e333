//! Output of the results of `creole check`: a table for people, JSON for machines.

use std::io::{self, Write as _};

use creole::json::Writer;
use creole::text::harmless;

use super::{Check, CheckResults, CheckRow, Checked};
use crate::CommandFailed;
use crate::hints::Hints;
use crate::probe::look::PLACEHOLDER;

/// Address at which `creole serve` listens by default.
const USUAL_URL: &str = "http://127.0.0.1:8787";

/// Warnings that are not printed, because the rows of the table explain them.
const EXPLAINED: [&str; 3] = ["images_refused", "dropped:image", "count_estimated"];

pub(super) fn print(checked: &CheckResults, as_json: bool) -> Result<(), CommandFailed> {
    let text = harmless::lines(&if as_json { json(checked) } else { table(checked) });
    let mut stdout = io::stdout();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    written.map_err(|error| CommandFailed::Run(format!("standard output: {error}")))
}

fn table(checked: &CheckResults) -> String {
    let mut text = String::new();
    if !checked.services.is_empty() {
        text.push_str("server tools\n\n");
        write_rows(&checked.services, &mut text);
        text.push('\n');
    }
    for (at, upstream) in checked.upstreams.iter().enumerate() {
        if at > 0 {
            text.push('\n');
        }
        write_head(upstream, &mut text);
        write_rows(&upstream.rows, &mut text);
        write_end(upstream, &mut text);
    }
    text
}

fn write_rows(rows: &[CheckRow], text: &mut String) {
    for CheckRow { step, level, text: said, .. } in rows {
        let line = format!("{step:<10} {:<8} {}", level.word(), harmless::line(said));
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

fn write_head(upstream: &Checked, text: &mut String) {
    let told_by = upstream.told_by.map_or_else(String::new, |by| format!(", by {by}"));
    let (name, url, profile) = (&upstream.name, &upstream.url, upstream.profile);
    text.push_str(&format!("upstream   {name}: {url}, profile {profile}{told_by}\n"));
    if !upstream.model.is_empty() {
        let others = match upstream.others {
            0 => String::new(),
            others => format!(" (one of {}; --model NAME takes another)", others.saturating_add(1)),
        };
        text.push_str(&format!("model      {}{others}\n", harmless::line(&upstream.model)));
    }
    text.push('\n');
}

fn write_end(upstream: &Checked, text: &mut String) {
    let mut warnings: Vec<&str> = Vec::new();
    for code in upstream.rows.iter().flat_map(|row| &row.warnings) {
        if !EXPLAINED.contains(&code.as_str()) && !warnings.contains(&code.as_str()) {
            warnings.push(code);
        }
    }
    if !warnings.is_empty() {
        let codes = warnings.join(", ");
        text.push_str(&format!(
            "warnings   {codes}\n                    docs/troubleshooting.md says what each one changes\n"
        ));
    }
    text.push('\n');
    if !upstream.is_good() {
        text.push_str("An agent cannot work with it: mend what fails, and check again.\n");
        return;
    }
    text.push_str("An agent can work with it:\n\n");
    for command in &upstream.commands {
        text.push_str(command);
        text.push('\n');
    }
}

fn json(checked: &CheckResults) -> String {
    let mut out = Vec::new();
    let mut json = Writer::new(&mut out);
    json.begin_object();
    json.key("ok").bool(checked.is_good());
    json.key("services").begin_array();
    for row in &checked.services {
        write_row(row, &mut json);
    }
    json.end_array().key("upstreams").begin_array();
    for upstream in &checked.upstreams {
        json.begin_object();
        json.key("name").text(&upstream.name).key("url").text(&upstream.url);
        json.key("profile").text(upstream.profile).key("model").text(&upstream.model);
        json.key("ok").bool(upstream.is_good());
        json.key("steps").begin_array();
        for row in &upstream.rows {
            write_row(row, &mut json);
        }
        json.end_array();
        json.key("commands").begin_array();
        for command in &upstream.commands {
            json.text(&command.trim().replace("\\\n    ", ""));
        }
        json.end_array().end_object();
    }
    json.end_array().end_object();
    out.push(b'\n');
    String::from_utf8(out).unwrap_or_default()
}

fn write_row(row: &CheckRow, json: &mut Writer<'_>) {
    json.begin_object();
    json.key("step").text(row.step).key("result").text(row.level.word());
    json.key("text").text(&row.text);
    if !row.code.is_empty() {
        json.key("code").text(row.code);
    }
    if let Some(duration) = row.duration_ms {
        json.key("duration_ms").u64(duration);
    }
    if !row.warnings.is_empty() {
        json.key("warnings").begin_array();
        for code in &row.warnings {
            json.text(code);
        }
        json.end_array();
    }
    json.end_object();
}

/// Returns the commands to start with. `preset` is the profile that the list of models showed.
/// `creole launch` is left out for a model that the server does not list.
pub(super) fn commands(
    options: &Check,
    preset: Option<&str>,
    model: &str,
    is_listed: bool,
    window: Option<u64>,
) -> Vec<String> {
    let mut flags = String::new();
    let config = options.chosen.config.as_ref().map(|file| file.display().to_string());
    let profile = options.chosen.profile.as_deref().or(preset);
    // If there is a configuration, the model's name may be defined in the configuration.
    let all = config.is_none().then_some(model);
    for (flag, value) in [
        ("--config", config.as_deref()),
        ("--upstream", options.upstream.as_deref()),
        ("--profile", profile),
        ("--key-env", options.key_env.as_deref()),
        ("--model", all),
    ] {
        if let Some(value) = value {
            flags.push_str(&format!(" {flag} {}", shell(value)));
        }
    }
    let search = options.services.search.iter().map(|url| ("--search", url));
    for (flag, value) in search.chain(options.services.mcp.iter().map(|given| ("--mcp", given))) {
        // A key in the query is not printed.
        let shown = value.split('?').next().unwrap_or_default();
        let more = if shown.len() < value.len() { "?…" } else { "" };
        flags.push_str(&format!(" {flag} {}{more}", shell(shown)));
    }
    let model = shell(model);
    let key = PLACEHOLDER.to_owned();
    let hints = Hints { key, small: model.clone(), model, window, prompt: "" };
    let mut commands = vec![format!("  creole serve{flags}"), hints.claude_code(USUAL_URL)];
    if config.is_none() && is_listed {
        // `creole launch` takes no configuration.
        commands.insert(0, format!("  creole launch claude{flags}"));
    }
    commands
}

/// Returns a word of a command line, in quotes if a shell requires them.
fn shell(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:@=,+%".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_a_shell_are_quoted_where_they_must_be() {
        assert_eq!(shell("qwen3-coder:30b"), "qwen3-coder:30b");
        assert_eq!(shell("it's"), r"'it'\''s'");
        assert_eq!(shell("$(rm x)"), "'$(rm x)'");
        assert_eq!(shell(""), "''");
    }
}
