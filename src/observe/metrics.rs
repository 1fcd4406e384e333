//! Metrics: one table of definitions for all hosts, and the samples of one exchange.
//!
//! A host keeps one [`Counters`] and gives the [`Sample`]s of each finished exchange to its
//! platform: Prometheus, Envoy's statistics, Analytics Engine. Names and labels are the same
//! everywhere.
//!
//! Label values are bounded, because each set of values costs memory for ever. Upstreams and the
//! entries of the model map are chosen by the operator. A model name that only the client chose
//! becomes a label once an upstream has answered for it, and there are at most [`MODELS_MAX`] such
//! labels. All other names are counted as `other`.
//!
//! If a new name is used more than an old name, the old name loses its label, and the host removes
//! the label's counters ([`Counters::take_given_up`]). A host that cannot remove counters has at
//! most [`GIVEN_MAX`] such labels until it restarts.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::mem;

use crate::Millis;
use crate::error::Fault;
use crate::observe::report::{JudgeReport, Outcome, Report, ToolsReport, VisionReport};

/// Maximum number of model names outside the model map that have their own label.
pub const MODELS_MAX: usize = 32;

/// Maximum number of present and former labels of model names outside the model map. Former labels
/// that a host has removed do not count.
pub const GIVEN_MAX: usize = 256;

/// Number of answers after which the counts of earlier answers are halved.
const ANSWERS_MAX: u32 = 1024;

/// Maximum length of a label value, in bytes.
const VALUE_BYTES_MAX: usize = 64;

/// Kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Metric that is a sum which only grows.
    Counter,
    /// Metric that is a distribution of values over [`BUCKETS`].
    Histogram,
}

/// Definition of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Name of the metric in Prometheus, unit included.
    pub name: &'static str,
    /// Kind of the metric.
    pub kind: MetricKind,
    /// Names of the metric's labels.
    pub labels: &'static [&'static str],
}

/// Upper bounds of the histogram buckets, in the unit of the metric. Envoy uses its own bounds.
pub const BUCKETS: [u64; 16] = [
    1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 600_000,
];

macro_rules! metrics {
    ($($constant:ident = $kind:ident $name:literal [$($label:literal),*] $help:literal;)+) => {
        $(
            #[doc = $help]
            pub const $constant: Metric = Metric {
                name: $name,
                kind: MetricKind::$kind,
                labels: &[$($label),*],
            };
        )+

        /// Every metric with its help text. The texts are not fields of [`Metric`], so that an
        /// Envoy filter need not contain them.
        pub const METRICS: &[(Metric, &str)] = &[$(($constant, $help)),+];
    };
}

metrics! {
    REQUESTS = Counter "creole_requests_total" ["outcome", "status", "upstream"]
        "Requests that are over, by how they ended and the status that the client got";
    ENDS = Counter "creole_ends_total" ["cause"]
        "Requests that are over, by what ended them: a stop reason, or what failed";
    CLIENT_REQUESTS = Counter "creole_client_requests_total" ["client_key", "outcome"]
        "Requests of clients that have keys of Creole's, by the name of the key";
    CLIENT_TOKENS = Counter "creole_client_tokens_total" ["client_key", "kind"]
        "Tokens of clients that have keys of Creole's: as creole_tokens_total";
    DURATION = Histogram "creole_request_duration_milliseconds" ["upstream"]
        "From the complete request to the last byte for the client";
    UPSTREAM_HEAD = Histogram "creole_upstream_head_milliseconds" ["upstream"]
        "From the complete request to the head of the upstream's answer";
    FIRST_TOKEN = Histogram "creole_first_token_milliseconds" ["upstream"]
        "From the complete request to the first content of the upstream";
    TRANSLATION = Histogram "creole_translation_microseconds" ["upstream"]
        "Time that was spent on translation, request and answer together";
    TOKENS = Counter "creole_tokens_total" ["kind", "model", "upstream"]
        "Tokens as the upstream counted them: input (not cached), cache_read, cache_creation, output (with thinking), thinking";
    ANSWERS = Counter "creole_answers_total" ["model", "served", "upstream"]
        "Answers of upstreams, by the model that the client named and the one that the upstream names";
    CHUNKS = Counter "creole_chunks_total" ["upstream"]
        "Chunks of the upstream";
    TOOL_CALLS = Counter "creole_tool_calls_total" ["upstream"]
        "Tool calls that clients got";
    TOOL_RESULTS = Counter "creole_tool_results_total" ["upstream"]
        "Tool results that clients sent, new ones";
    TOOL_IDS = Counter "creole_tool_ids_total" ["kind"]
        "Tool ids in requests: decoded (plain), tagged, foreign";
    JUDGE_ANSWERS = Counter "creole_judge_answers_total" ["result", "upstream"]
        "Answers to clients that asked for verdicts on tool calls, by what came of asking the judge, and its upstream";
    VERDICTS = Counter "creole_verdicts_total" ["verdict"]
        "Verdicts on tool calls: flagged, not_flagged, none";
    JUDGE_TOKENS = Counter "creole_judge_tokens_total" ["kind", "upstream"]
        "Tokens of the judge, as its upstream counted them: input, output";
    VISION_IMAGES = Counter "creole_vision_images_total" ["result", "upstream"]
        "Images for the model that describes them: described, failed; and its upstream";
    VISION_TOKENS = Counter "creole_vision_tokens_total" ["kind", "upstream"]
        "Tokens of the model that describes images, as its upstream counted them: input, output";
    DOCUMENTS = Counter "creole_documents_total" ["result"]
        "Documents whose text was wanted: read, unread";
    FETCHED_IMAGES = Counter "creole_fetched_images_total" ["result"]
        "Images on the web that were wanted: fetched, missing";
    SERVER_TOOL_CALLS = Counter "creole_server_tool_calls_total" ["result", "tool"]
        "Calls of server tools that Creole ran, by their result (ok, failed) and kind: web_search, web_fetch, tool_search, mcp";
    SERVER_TOOL_TURNS = Counter "creole_server_tool_turns_total" ["upstream"]
        "Requests to upstreams for answers in which Creole ran server tools";
    RETRIES = Counter "creole_retries_total" ["kind", "upstream"]
        "Requests that were sent again after a refusal: evidence (what was refused was found in the request, for want of known words), other";
    WARNINGS = Counter "creole_warnings_total" ["code"]
        "What was changed or left out on the way";
    GUARDS = Counter "creole_guards_total" ["guard"]
        "Requests in which a guard acted";
    BYTES = Counter "creole_bytes_total" ["direction"]
        "Bytes of bodies: from_client, to_upstream, from_upstream, to_client";
}

/// Value that an exchange adds to one metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample<'a> {
    /// Metric to which the value is added.
    pub metric: &'static Metric,
    /// Values of the metric's labels, in the order of the label names. Each value is a word of safe
    /// characters.
    pub labels: &'a [&'a str],
    /// Amount that is added to a counter, or observed by a histogram.
    pub value: u64,
}

impl Sample<'_> {
    /// Returns pairs of label name and label value.
    pub fn pairs(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.metric.labels.iter().zip(self.labels).map(|(name, value)| (*name, *value))
    }
}

/// Entry of the operator's model map that matched the model of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelEntry<'a> {
    /// No entry, because there is no model map: every model name passes through.
    NoMap,
    /// Entry of the model map for a model name, or for a prefix such as `claude-*`.
    Entry(Cow<'a, str>),
    /// Catch-all entry `*` of the model map, or no entry that matches the model name.
    Other,
}

/// State with which a host bounds the number of label values.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    models: Labels,
    served: Labels,
}

/// Model names that have a label, and names that may get a label, each with a number of answers.
#[derive(Clone, Debug, Default)]
struct Labels {
    known: BTreeMap<String, u32>,
    waiting: BTreeMap<String, u32>,
    /// Names that lost their label and are not removed by the host yet.
    given_up: Vec<String>,
    answers: u32,
}

/// Callback that adds a value to a metric, under the given label values.
type Add<'f> = dyn FnMut(&'static Metric, &[&str], u64) + 'f;

impl Counters {
    /// Calls `give` with every sample that a finished exchange adds. A request that was passed
    /// through untouched, whose report is open, adds no sample.
    pub fn count(
        &mut self,
        report: &Report,
        model: ModelEntry<'_>,
        now: Millis,
        mut give: impl FnMut(Sample<'_>),
    ) {
        if report.outcome == Outcome::Open {
            return;
        }
        let mut add = |metric: &'static Metric, labels: &[&str], value: u64| {
            if value > 0 || metric.kind == MetricKind::Histogram {
                give(Sample { metric, labels, value });
            }
        };
        let upstream = match report.upstream.as_str() {
            "" => "none".into(),
            name => word(name),
        };
        let client_key = report.client_key.as_deref().map(word);
        count_end(report, &upstream, client_key.as_deref(), &mut add);
        if report.upstream_request_bytes > 0 {
            count_times(report, &upstream, now, &mut add);
            let model = self.model(report, model);
            if report.answer.stop_reason.is_some() {
                let served = self.served(report);
                add(&ANSWERS, &[&model, &served, &upstream], 1);
            }
            count_tokens(report, &model, &upstream, client_key.as_deref(), &mut add);
        }
        count_contents(report, &upstream, &mut add);
        if let Some(judge) = report.judge.as_ref().filter(|judge| !judge.result.is_empty()) {
            count_verdicts(judge, &mut add);
        }
        if let Some(vision) = &report.vision {
            count_descriptions(vision, &mut add);
        }
        if let Some(documents) = &report.documents {
            add(&DOCUMENTS, &["read"], documents.read as u64);
            add(&DOCUMENTS, &["unread"], documents.unread as u64);
        }
        if let Some(images) = &report.images {
            add(&FETCHED_IMAGES, &["fetched"], images.fetched as u64);
            add(&FETCHED_IMAGES, &["missing"], images.missing as u64);
        }
        if let Some(tools) = &report.tools {
            count_server_tools(tools, &upstream, &mut add);
        }
    }

    /// Takes the names and values of labels that were given up, so that the host can remove their
    /// counters.
    pub fn take_given_up(&mut self) -> impl Iterator<Item = (&'static str, String)> {
        let [models, served] =
            [&mut self.models, &mut self.served].map(|labels| mem::take(&mut labels.given_up));
        let models = models.into_iter().map(|value| ("model", value));
        models.chain(served.into_iter().map(|value| ("served", value)))
    }

    /// Returns the label value for the model that the client named.
    pub fn model<'a>(&mut self, report: &'a Report, entry: ModelEntry<'_>) -> Cow<'a, str> {
        match entry {
            ModelEntry::Entry(entry) => word(&entry).into_owned().into(),
            ModelEntry::NoMap => self.models.label(word(&report.model), report),
            ModelEntry::Other => "other".into(),
        }
    }

    /// Returns the label value for the model that served the request.
    fn served<'a>(&mut self, report: &'a Report) -> Cow<'a, str> {
        self.served.label(word(report.served_model()), report)
    }
}

impl Labels {
    /// Counts an answered exchange for a model name. Returns the name if it has a label, or else
    /// `other`.
    fn label<'a>(&mut self, name: Cow<'a, str>, report: &Report) -> Cow<'a, str> {
        if report.outcome == Outcome::Answered && !name.is_empty() {
            self.count(&name);
        }
        if self.known.contains_key(&*name) { name } else { "other".into() }
    }

    /// Counts an answer for a model name. The name gets a label if a label is free, or belongs to a
    /// name with fewer answers.
    fn count(&mut self, name: &str) {
        self.answers = self.answers.saturating_add(1);
        if self.answers >= ANSWERS_MAX {
            self.answers = 0;
            self.known.values_mut().chain(self.waiting.values_mut()).for_each(|count| *count /= 2);
        }
        if let Some(count) = self.known.get_mut(name) {
            *count = count.saturating_add(1);
            return;
        }
        if self.known.len().saturating_add(self.given_up.len()) >= GIVEN_MAX {
            return;
        }
        let count = self.waiting.remove(name).unwrap_or_default().saturating_add(1);
        if self.known.len() >= MODELS_MAX {
            let Some((least, answers)) = least(&self.known) else { return };
            // A name with a single answer takes no label from another name.
            if count <= answers.max(1) {
                if self.waiting.len() >= MODELS_MAX
                    && let Some((least, _)) = self::least(&self.waiting)
                {
                    self.waiting.remove(&least);
                }
                self.waiting.insert(name.to_owned(), count);
                return;
            }
            self.known.remove(&least);
            self.given_up.push(least);
        }
        self.known.insert(name.to_owned(), count);
    }
}

/// Returns the name with the fewest answers, and the number of its answers.
fn least(names: &BTreeMap<String, u32>) -> Option<(String, u32)> {
    let least = names.iter().min_by_key(|(_, count)| **count);
    least.map(|(name, count)| (name.clone(), *count))
}

fn count_tokens(
    report: &Report,
    model: &str,
    upstream: &str,
    client_key: Option<&str>,
    add: &mut Add<'_>,
) {
    let answer = &report.answer;
    let tokens = [
        ("input", answer.input_tokens),
        ("cache_read", answer.cache_read_tokens),
        ("cache_creation", answer.cache_creation_tokens),
        ("output", answer.output_tokens),
        ("thinking", answer.thinking_tokens),
    ];
    if tokens.iter().all(|(_, count)| *count == 0) {
        return;
    }
    for (kind, count) in tokens {
        add(&TOKENS, &[kind, model, upstream], count);
        if let Some(name) = client_key {
            add(&CLIENT_TOKENS, &[name, kind], count);
        }
    }
}

fn count_end(report: &Report, upstream: &str, client_key: Option<&str>, add: &mut Add<'_>) {
    add(&REQUESTS, &[outcome(report), &status(report.status), upstream], 1);
    add(&ENDS, &[report.cause()], 1);
    if let Some(name) = client_key {
        add(&CLIENT_REQUESTS, &[name, outcome(report)], 1);
    }
}

fn count_times(report: &Report, upstream: &str, now: Millis, add: &mut Add<'_>) {
    let since = |at: Millis| at.saturating_sub(report.requested_at);
    for (metric, value) in [
        (&DURATION, Some(since(report.ended_at.unwrap_or(now)))),
        (&UPSTREAM_HEAD, report.head_at.map(since)),
        (&FIRST_TOKEN, report.content_at.map(since)),
        (&TRANSLATION, report.translation_us),
    ] {
        if let Some(value) = value {
            add(metric, &[upstream], value);
        }
    }
}

fn count_verdicts(judge: &JudgeReport, add: &mut Add<'_>) {
    let upstream = word(&judge.upstream);
    add(&JUDGE_ANSWERS, &[judge.result, &upstream], 1);
    for (verdict, count) in
        [("flagged", judge.flagged), ("not_flagged", judge.not_flagged), ("none", judge.unjudged)]
    {
        add(&VERDICTS, &[verdict], count.into());
    }
    add(&JUDGE_TOKENS, &["input", &upstream], judge.input_tokens);
    add(&JUDGE_TOKENS, &["output", &upstream], judge.output_tokens);
}

fn count_descriptions(vision: &VisionReport, add: &mut Add<'_>) {
    let upstream = word(&vision.upstream);
    for (result, count) in [("described", vision.described), ("failed", vision.failed)] {
        add(&VISION_IMAGES, &[result, &upstream], count as u64);
    }
    add(&VISION_TOKENS, &["input", &upstream], vision.input_tokens);
    add(&VISION_TOKENS, &["output", &upstream], vision.output_tokens);
}

fn count_server_tools(tools: &ToolsReport, upstream: &str, add: &mut Add<'_>) {
    for (kind, count) in tools.calls.iter() {
        let succeeded = count.calls.saturating_sub(count.failed);
        add(&SERVER_TOOL_CALLS, &["ok", kind], succeeded.into());
        add(&SERVER_TOOL_CALLS, &["failed", kind], count.failed.into());
    }
    add(&SERVER_TOOL_TURNS, &[upstream], tools.turns.into());
}

fn count_contents(report: &Report, upstream: &str, add: &mut Add<'_>) {
    let counts = &report.counts;
    add(&CHUNKS, &[upstream], report.answer.chunks);
    add(&TOOL_CALLS, &[upstream], report.answer.tool_calls.into());
    add(&TOOL_RESULTS, &[upstream], counts.new_results.into());
    for (kind, count) in [
        ("decoded", counts.ids_decoded),
        ("tagged", counts.ids_tagged),
        ("foreign", counts.ids_foreign),
    ] {
        add(&TOOL_IDS, &[kind], count.into());
    }
    let by_evidence = report.retries_by_evidence;
    add(&RETRIES, &["evidence", upstream], by_evidence.into());
    add(&RETRIES, &["other", upstream], report.retries.saturating_sub(by_evidence).into());
    let mut codes: BTreeMap<&str, u64> = BTreeMap::new();
    for warning in report.warnings.iter() {
        let sum = codes.entry(warning.code).or_default();
        *sum = sum.saturating_add(warning.count.into());
    }
    for (code, count) in codes {
        add(&WARNINGS, &[code], count);
    }
    for guard in report.warnings.guards() {
        add(&GUARDS, &[guard], 1);
    }
    for (direction, bytes) in [
        ("from_client", report.request_bytes),
        ("to_upstream", report.upstream_request_bytes),
        ("from_upstream", report.upstream_response_bytes),
        ("to_client", report.response_bytes),
    ] {
        add(&BYTES, &[direction], bytes as u64);
    }
}

/// Returns the value of the label `outcome`: the end of an exchange, and for a failure whose fault
/// it was.
#[must_use]
pub fn outcome(report: &Report) -> &'static str {
    match report.outcome {
        Outcome::Open => "passed",
        Outcome::Answered => "answered",
        Outcome::Abandoned => "abandoned",
        Outcome::Failed(_, Fault::Client) => "failed_client",
        Outcome::Failed(_, Fault::Upstream) => "failed_upstream",
        Outcome::Failed(_, Fault::Operator) => "failed_operator",
    }
}

/// Returns the value of the label `status`: the number for a status that Creole itself gives, the
/// class (`4xx`) for a status that an upstream chose.
fn status(status: u16) -> Cow<'static, str> {
    match status {
        200 | 400..=405 | 409 | 413 | 429 | 499 | 500 | 502 | 504 | 529 => {
            status.to_string().into()
        }
        200..300 => "2xx".into(),
        400..500 => "4xx".into(),
        500..600 => "5xx".into(),
        _ => "other".into(),
    }
}

/// Returns a text as a label value: ASCII letters, digits and a few marks that exposition formats
/// and Envoy's tags do not use; other characters become `_`.
fn word(text: &str) -> Cow<'_, str> {
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:*@+".contains(&byte);
    if text.len() <= VALUE_BYTES_MAX && text.bytes().all(safe) {
        return text.into();
    }
    let replaced = |letter: char| match u8::try_from(letter) {
        Ok(byte) if safe(byte) => letter,
        _ => '_',
    };
    text.chars().take(VALUE_BYTES_MAX).map(replaced).collect::<String>().into()
}

#[cfg(test)]
mod tests;
