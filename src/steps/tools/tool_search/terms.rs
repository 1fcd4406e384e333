//! Search for tools by terms, with the best match first (BM25).

use super::catalogue::DeferredTool;

/// Weight of a term that occurs again in the same tool.
const K1: f64 = 1.2;

/// Weight of the length of a tool's texts.
const B: f64 = 0.75;

/// Returns the `limit` tools that match the terms best. Tools that match equally well keep their
/// order.
pub(super) fn find<'t>(
    query: &str,
    tools: &'t [DeferredTool],
    limit: usize,
) -> Vec<&'t DeferredTool> {
    let mut terms = tokens(query);
    terms.sort_unstable();
    terms.dedup();
    let counted: Vec<(Vec<u32>, usize)> = tools.iter().map(|tool| count(tool, &terms)).collect();
    let total = counted.iter().map(|(_, length)| *length).fold(0, usize::saturating_add);
    let mean = total as f64 / (counted.len().max(1)) as f64;
    let weights: Vec<f64> = (0..terms.len())
        .map(|at| {
            let having =
                |(counts, _): &&(Vec<u32>, usize)| counts.get(at).is_some_and(|it| *it > 0);
            let having = counted.iter().filter(having).count() as f64;
            (1.0 + (counted.len() as f64 - having + 0.5) / (having + 0.5)).ln()
        })
        .collect();
    let mut scored: Vec<(f64, &DeferredTool)> = tools
        .iter()
        .zip(&counted)
        .map(|(tool, (counts, length))| (score(counts, &weights, *length as f64 / mean), tool))
        .filter(|(score, _)| *score > 0.0)
        .collect();
    scored.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    scored.into_iter().take(limit).map(|(_, tool)| tool).collect()
}

/// Returns the number of occurrences of each term in the texts of a tool, and the number of all
/// words in the texts. The terms are sorted.
fn count(tool: &DeferredTool, terms: &[String]) -> (Vec<u32>, usize) {
    let (mut counts, mut length) = (vec![0u32; terms.len()], 0usize);
    for token in tool.texts.iter().flat_map(|text| tokens(text)) {
        length = length.saturating_add(1);
        let place = terms.binary_search(&token).ok();
        if let Some(count) = place.and_then(|at| counts.get_mut(at)) {
            *count = count.saturating_add(1);
        }
    }
    (counts, length)
}

/// Returns the score of a tool. `length`: the number of its words, as a share of the mean.
fn score(counts: &[u32], weights: &[f64], length: f64) -> f64 {
    let of_term = |(count, weight): (&u32, &f64)| {
        let count = f64::from(*count);
        weight * count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length))
    };
    counts.iter().zip(weights).map(of_term).sum()
}

/// Returns the words of a text in lower case. A word ends at a character that is no letter and no
/// digit, and before a capital letter after a small one.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let (mut token, mut was_small) = (String::new(), false);
    for letter in text.chars() {
        let begins = letter.is_uppercase() && was_small;
        if (begins || !letter.is_alphanumeric()) && !token.is_empty() {
            tokens.push(std::mem::take(&mut token));
        }
        if letter.is_alphanumeric() {
            token.extend(letter.to_lowercase());
        }
        was_small = letter.is_lowercase() || letter.is_numeric();
    }
    if !token.is_empty() {
        tokens.push(token);
    }
    tokens
}
