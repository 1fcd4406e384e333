//! The judge's verdict on each call, read from its answer and written for the client.

use super::Call;
use super::brief::Brief;
use super::input::has_twins;
use crate::json::{self, Reader, Writer};
use crate::model::safeguards::DANGEROUS_TOOL_USE;
use crate::text::words;

/// Longest explanation, in bytes. The client shows it to the user and to the model.
const EXPLANATION_BYTES_MAX: usize = 1_000;

/// Longest answer of the judge, in bytes. Of a longer one nothing counts: its end could be the
/// flag.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Fence that some models write around JSON.
const FENCE: &str = "```";

/// Verdict on one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    NotFlagged,
    /// The judge flagged the call. `rule`: a path in the client's `classifier_context`.
    Flagged {
        explanation: String,
        rule: Option<String>,
    },
    /// No verdict, for this reason, in a word that the client knows.
    Unavailable(&'static str),
}

/// Result of asking the judge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    /// The judge answered with this text.
    Text(String),
    /// There is no verdict on any call, for this reason.
    None(&'static str),
    /// The judge could not be asked, for this reason, which becomes the status of the whole result.
    Unavailable(&'static str),
}

/// The verdicts on the calls of one answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdicts {
    /// Verdicts in the order of the calls, one for each.
    Of(Vec<Verdict>),
    /// No verdicts, for this reason.
    Unavailable(&'static str),
    /// This host cannot ask a judge.
    Unsupported,
}

impl Verdicts {
    /// Reads the judge's answer: one verdict for each of these calls.
    pub(crate) fn new(calls: &[Call], brief: &Brief, judged: Judged) -> Self {
        let text = match judged {
            Judged::Text(text) => text,
            Judged::Unavailable(reason) => return Self::Unavailable(reason),
            Judged::None(reason) => {
                let of = |call: &Call| Verdict::Unavailable(call.unjudged.unwrap_or(reason));
                return Self::Of(calls.iter().map(of).collect());
            }
        };
        let said = Said::read(&text);
        let verdicts = calls.iter().map(|call| match call.unjudged {
            Some(reason) => Verdict::Unavailable(reason),
            None => said.of(&call.key, brief),
        });
        Self::Of(verdicts.collect())
    }

    /// Writes the value of `safeguard_results`.
    pub(crate) fn written(&self, calls: &[Call]) -> String {
        json::written(|json| {
            json.begin_array().begin_object().key("type").text(DANGEROUS_TOOL_USE);
            json.key("status").begin_object();
            match self {
                Self::Unsupported => {
                    json.kind("unsupported");
                }
                Self::Unavailable(reason) => {
                    json.kind("unavailable").key("reason").text(reason);
                }
                Self::Of(verdicts) => {
                    json.kind("available").key("tool_uses").begin_object();
                    for (call, verdict) in calls.iter().zip(verdicts) {
                        verdict.write(json.key_text(&call.id));
                    }
                    json.end_object();
                }
            }
            json.end_object().end_object().end_array();
        })
    }
}

impl Verdict {
    fn write(&self, json: &mut Writer<'_>) {
        json.begin_object();
        match self {
            Self::NotFlagged => {
                json.kind("evaluated").key("outcome").text("not_flagged");
            }
            Self::Flagged { explanation, rule } => {
                json.kind("evaluated").key("outcome").text("flagged");
                if !explanation.is_empty() {
                    json.key("explanation").text(explanation);
                }
                if let Some(rule) = rule {
                    json.key("cited_rule").begin_object().kind("classifier_context");
                    json.key("path").text(rule).end_object();
                }
            }
            Self::Unavailable(reason) => {
                json.kind("unavailable").key("reason").text(reason);
            }
        }
        json.end_object();
    }
}

/// The entries of the judge's answer, as JSON objects.
struct Said<'t>(Vec<&'t str>);

impl<'t> Said<'t> {
    /// Reads an answer that is one object, or has it in a fence. In other words a judge may quote
    /// what it was shown, or think aloud, so nothing is looked for in them.
    fn read(text: &'t str) -> Self {
        let text = if text.len() > ANSWER_BYTES_MAX { "" } else { words::bare(text) };
        let object = if Reader::of(text).is_object() { text } else { fenced(text).unwrap_or("{}") };
        // Of two members of one name, neither counts.
        let object = if has_twins(object) { "{}" } else { object };
        Self(json::elements(json::member(object, "verdicts").unwrap_or("[]")).collect())
    }

    /// Returns the verdict on the call with this id. Of several that differ, the one that flags the
    /// call counts.
    fn of(&self, id: &str, brief: &Brief) -> Verdict {
        let mut found = Verdict::Unavailable("error");
        for entry in self.0.iter().filter(|entry| text(entry, "id").trim() == id) {
            match text(entry, "verdict").trim() {
                "flagged" => {
                    let explanation = plain(&text(entry, "explanation"));
                    let rule = Some(text(entry, "rule")).filter(|rule| brief.has_rule(rule));
                    return Verdict::Flagged { explanation, rule };
                }
                "not_flagged" => found = Verdict::NotFlagged,
                _ => return Verdict::Unavailable("error"),
            }
        }
        found
    }
}

/// Returns the object in the only fence of a text.
fn fenced(text: &str) -> Option<&str> {
    let (_, rest) = words::split_once(text, FENCE)?;
    let (block, behind) = words::split_once(rest, FENCE)?;
    let object = words::after_start(block, "json").unwrap_or(block);
    (!words::has(behind, FENCE) && Reader::of(object).is_object()).then_some(object)
}

fn text(object: &str, name: &str) -> String {
    json::member(object, name).and_then(json::string).unwrap_or_default().decode().into_owned()
}

/// Returns an explanation in one line.
fn plain(text: &str) -> String {
    let line = text.split(char::is_whitespace).filter(|it| !it.is_empty()).collect::<Vec<_>>();
    words::beginning(&line.join(" "), EXPLANATION_BYTES_MAX).to_owned()
}
