//! Names by which Claude Code recognizes a model. It derives assumptions from such a name, which
//! are wrong if the name is mapped to another model.

use super::Config;

/// Prefixes of model names that Claude Code recognizes, with the context window, in tokens, that it
/// assumes.
const KNOWN: [(&str, u64); 7] = [
    ("claude-3", 200_000),
    ("claude-haiku-4", 200_000),
    ("claude-sonnet-4", 200_000),
    ("claude-opus-4", 200_000),
    ("claude-haiku-5", 1_000_000),
    ("claude-sonnet-5", 1_000_000),
    ("claude-opus-5", 1_000_000),
];

/// Returns the context window, in tokens, that Claude Code assumes for a model of this name.
fn window_of(name: &str) -> Option<u64> {
    let is_it = |known: &str| {
        let rest = name.strip_prefix(known)?;
        (rest.is_empty() || rest.starts_with(['-', '.'])).then_some(())
    };
    KNOWN.iter().find(|(known, _)| is_it(known).is_some()).map(|(_, window)| *window)
}

impl Config {
    /// Returns notes for the operator about a valid configuration: names of Claude models that
    /// `models` maps to other models, and an image model that is never called.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for name in self.models.names() {
            let Some(window) = window_of(name) else { continue };
            let Some((_, model)) = self.route(name).filter(|(_, model)| !model.contains("claude"))
            else {
                continue;
            };
            notes.push(format!(
                "models.{name}: Claude Code knows this name, and takes {model} for a model with a window of {window} \
                 tokens and that model's thinking and tools; prefer a name that it does not know, such as \
                 claude-creole/{model}"
            ));
        }
        notes.extend(self.vision_note());
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(models: &str) -> Vec<String> {
        Config::from_json(&format!("{{\"models\":{models}}}"), |_| None).unwrap().notes()
    }

    #[test]
    fn a_name_of_claude_for_another_model_is_noted() {
        for (name, window) in [
            ("claude-sonnet-4-5", "200000"),
            ("claude-sonnet-4-5-20250929", "200000"),
            ("claude-3-5-haiku-latest", "200000"),
            ("claude-opus-5-5", "1000000"),
            ("claude-sonnet-5", "1000000"),
        ] {
            let notes = notes(&format!("{{\"{name}\":{{\"model\":\"qwen3\"}}}}"));
            assert_eq!(notes.len(), 1, "{name}");
            assert!(
                notes[0].starts_with(&format!("models.{name}: Claude Code knows")),
                "{notes:?}"
            );
            assert!(
                notes[0].contains(window) && notes[0].ends_with("claude-creole/qwen3"),
                "{notes:?}"
            );
        }
    }

    #[test]
    fn names_that_are_true_or_unknown_are_not_noted() {
        for models in [
            r#"{"claude-sonnet-4-5":{"model":"anthropic.claude-sonnet-4-5-v1"}}"#,
            r#"{"claude-sonnet-4-5":{}}"#,
            r#"{"claude-qwen3-coder":{"model":"qwen3"},"claude-sonnet-55":{"model":"q"},"gpt":{"model":"q"}}"#,
            r#"{"claude-*":{"model":"qwen3"},"*":{"model":"qwen3"}}"#,
            "{}",
        ] {
            assert_eq!(notes(models), Vec::<String>::new(), "{models}");
        }
    }
}
