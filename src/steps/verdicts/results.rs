//! Judge's verdict on each tool call, read from the judge's answer and written for the client.

use super::JudgedCall;
use super::brief::Brief;
use super::input::has_twins;
use crate::json::{self, Reader, Writer};
use crate::model::safeguards::DANGEROUS_TOOL_USE;
use crate::text::words;

/// Maximum length of an explanation, in bytes. The client shows the explanation to the user and to
/// the model.
const EXPLANATION_BYTES_MAX: usize = 1_000;

/// Maximum length of the judge's answer, in bytes. A longer answer is ignored completely, because
/// the cut end could contain a flag.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Markdown fence that some models write around JSON.
const FENCE: &str = "```";

/// Verdict of the safety judge on one tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    NotFlagged,
    /// Verdict that the judge flagged the call. `rule`: a path in the client's
    /// `classifier_context`.
    Flagged {
        explanation: String,
        rule: Option<String>,
    },
    /// Missing verdict, with a reason from the client's list of reasons.
    Unavailable(&'static str),
}

/// Result of the call to the safety judge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    /// Text of the judge's answer.
    Text(String),
    /// Failure of the judge's call: every tool call gets this reason instead of a verdict.
    None(&'static str),
    /// Failure to ask the judge: the client gets the status `unavailable` with this reason, without
    /// a verdict for each tool call.
    Unavailable(&'static str),
}

/// Verdicts of the safety judge on the tool calls of one answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdicts {
    /// Verdicts in the order of the tool calls, one for each call.
    Of(Vec<Verdict>),
    /// Missing verdicts for the whole answer, with the reason.
    Unavailable(&'static str),
    /// Host that cannot send a second request, and so cannot ask a judge.
    Unsupported,
}

impl Verdicts {
    /// Reads the judge's answer, and returns one verdict for each tool call in `calls`.
    pub(crate) fn new(calls: &[JudgedCall], brief: &Brief, judged: Judged) -> Self {
        let text = match judged {
            Judged::Text(text) => text,
            Judged::Unavailable(reason) => return Self::Unavailable(reason),
            Judged::None(reason) => {
                let of = |call: &JudgedCall| Verdict::Unavailable(call.unjudged.unwrap_or(reason));
                return Self::Of(calls.iter().map(of).collect());
            }
        };
        let said = AnswerEntries::read(&text);
        let verdicts = calls.iter().map(|call| match call.unjudged {
            Some(reason) => Verdict::Unavailable(reason),
            None => said.of(&call.key, brief),
        });
        Self::Of(verdicts.collect())
    }

    /// Writes the value of `safeguard_results` in the client's answer.
    pub(crate) fn written(&self, calls: &[JudgedCall]) -> String {
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

/// Entries of the judge's answer, one JSON object for each tool call.
struct AnswerEntries<'t>(Vec<&'t str>);

impl<'t> AnswerEntries<'t> {
    /// Reads a judge's answer that is one object, or has one object in a Markdown fence. Text
    /// outside of the object is ignored, because there a judge may quote its input or think aloud.
    fn read(text: &'t str) -> Self {
        let text = if text.len() > ANSWER_BYTES_MAX { "" } else { words::bare(text) };
        let object = if Reader::of(text).is_object() { text } else { fenced(text).unwrap_or("{}") };
        // If a name occurs twice in an object, neither member counts.
        let object = if has_twins(object) { "{}" } else { object };
        Self(json::elements(json::member(object, "verdicts").unwrap_or("[]")).collect())
    }

    /// Returns the verdict on the tool call with this id. If verdicts differ, a flag wins.
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

/// Returns the JSON object in the only Markdown fence of a text.
fn fenced(text: &str) -> Option<&str> {
    let (_, rest) = words::split_once(text, FENCE)?;
    let (block, behind) = words::split_once(rest, FENCE)?;
    let object = words::after_start(block, "json").unwrap_or(block);
    (!words::has(behind, FENCE) && Reader::of(object).is_object()).then_some(object)
}

fn text(object: &str, name: &str) -> String {
    json::member(object, name).and_then(json::string).unwrap_or_default().decode().into_owned()
}

/// Returns the judge's explanation in one line, shortened to the maximum length.
fn plain(text: &str) -> String {
    let line = text.split(char::is_whitespace).filter(|it| !it.is_empty()).collect::<Vec<_>>();
    words::beginning(&line.join(" "), EXPLANATION_BYTES_MAX).to_owned()
}
