//! Distance between the estimate of `count_tokens` and the counts of real tokenizers.
//!
//! `tests/tokens/samples.json` has texts of every class with the counts of four tokenizers;
//! `harness/tokens/count.mjs` made them.
#![allow(clippy::arithmetic_side_effects, clippy::panic, clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;

use creole::Config;
use creole::protocols::count_tokens;
use serde_json::{Value, json};

/// Number of tokens that a message costs beside its text.
const PER_MESSAGE: u64 = 4;

/// The estimate of a text, and the counts: o200k, cl100k, Llama 3, Qwen 3.
type Sums = BTreeMap<String, [f64; 5]>;

fn sums() -> Sums {
    let text = include_str!("tokens/samples.json");
    let samples: Vec<Value> = serde_json::from_str(text).unwrap();
    let mut sums = Sums::new();
    for sample in &samples {
        let message = json!({"role": "user", "content": sample["text"]});
        let body = json!({"model": "m", "messages": [message]}).to_string();
        let estimate = count_tokens(&body, &Config::default()).unwrap().input - PER_MESSAGE;
        let class = sample["class"].as_str().unwrap().to_owned();
        let sum = sums.entry(class).or_default();
        let counts =
            ["o200k", "cl100k", "llama3", "qwen3"].map(|name| sample[name].as_f64().unwrap());
        for (sum, count) in sum.iter_mut().zip([estimate as f64].iter().chain(&counts)) {
            *sum += count;
        }
    }
    sums
}

fn percent(estimate: f64, count: f64) -> f64 {
    100.0 * (estimate / count - 1.0)
}

#[test]
fn the_estimate_is_within_a_tenth_of_todays_tokenizers_for_each_class() {
    for (class, [estimate, o200k, cl100k, llama3, qwen3]) in sums() {
        let error = percent(estimate, (o200k + llama3 + qwen3) / 3.0);
        let each = [o200k, cl100k, llama3, qwen3].map(|count| percent(estimate, count));
        let [o200k, cl100k, llama3, qwen3] = each;
        println!(
            "{class:<14} {error:+6.1} % (o200k {o200k:+.1}, cl100k {cl100k:+.1}, Llama 3 {llama3:+.1}, Qwen 3 {qwen3:+.1})"
        );
        assert!(error.abs() <= 10.0, "{class}: {error:+.1} %");
        // In other classes the tokenizers themselves are further apart than that.
        if ["prose", "code", "JSON"].contains(&class.as_str()) {
            assert!(each.iter().all(|error| error.abs() <= 10.0), "{class}: {each:?}");
        }
    }
}

#[test]
fn every_class_has_a_sample() {
    let sums = sums();
    for class in ["prose", "code", "JSON", "Chinese", "Japanese", "Korean", "emoji in chat"] {
        assert!(sums.contains_key(class), "{class}");
    }
}
