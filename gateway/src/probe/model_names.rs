//! Comparison of model names: the wanted name in a server's list, and the names that a misspelled
//! name may mean.

/// Minimum similarity, from 0 to 1, for a name that is suggested instead of a wrong name.
const ALIKE: f64 = 0.7;

/// Maximum number of names that are suggested instead of a wrong name.
const NAMES_MAX: usize = 3;

/// Returns true if a listed model is the wanted one. Ollama also calls `qwen3` `qwen3:latest`.
pub(crate) fn is_same(listed: &str, wanted: &str) -> bool {
    listed == wanted || listed.strip_suffix(":latest") == Some(wanted)
}

/// Returns the names most similar to `wrong`, the most similar first. If no name is similar,
/// returns the first name.
pub(crate) fn closest<'n>(wrong: &str, names: &'n [String]) -> Vec<&'n str> {
    let wrong = wrong.to_lowercase();
    let mut scored: Vec<(f64, &str)> =
        names.iter().map(|name| (likeness(&wrong, &name.to_lowercase()), name.as_str())).collect();
    scored.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let is_alike = |(likeness, _): &&(f64, &str)| *likeness >= ALIKE;
    let alike: Vec<&str> =
        scored.iter().take_while(is_alike).take(NAMES_MAX).map(|(_, name)| *name).collect();
    if alike.is_empty() {
        return names.iter().take(NAMES_MAX).map(String::as_str).collect();
    }
    alike
}

/// Returns the similarity of two names, from 0 to 1. People often omit the vendor before a name and
/// the size after it.
fn likeness(wrong: &str, name: &str) -> f64 {
    let short = name.rsplit_once('/').map_or(name, |(_, short)| short);
    let contains = !wrong.is_empty() && (name.contains(wrong) || wrong.contains(short));
    let whole = strsim::jaro_winkler(wrong, name).max(strsim::jaro_winkler(wrong, short));
    if contains { whole.max(0.9) } else { whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_name_has_near_ones() {
        let names = ["llama3.2:3b", "qwen3-coder:30b", "openai/gpt-5.1", "nomic-embed-text"];
        let names = names.map(str::to_owned);
        assert_eq!(closest("qwen3-coder", &names)[0], "qwen3-coder:30b");
        assert_eq!(closest("qwen-coder", &names)[0], "qwen3-coder:30b");
        assert_eq!(closest("GPT-5.1", &names)[0], "openai/gpt-5.1");
        assert_eq!(closest("zzz", &names).len(), 3);
        assert!(closest("zzz", &[]).is_empty());
    }
}
