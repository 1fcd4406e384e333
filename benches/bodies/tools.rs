//! Bodies for server tools, generated: requests that offer them, rounds of an answer, and answers
//! of the services that Creole asks.

use super::{Dice, chunk, request};

/// Configuration without server tools.
pub(crate) const PLAIN: &str = r#"{"upstreams":{"u":{"url":"https://u.test","key":"none"}}}"#;

/// Configuration with every kind of server tool.
pub(crate) const WITH_TOOLS: &str = r#"{"upstreams":{"u":{"url":"https://u.test","key":"none"}},"server_tools":{"web_search":{"kind":"searxng","url":"http://search.test"},"web_fetch":{},"mcp":{"servers":{"notes":{"url":"http://notes.test/mcp"}}}}}"#;

/// Address of the page that the model fetches.
pub(crate) const PAGE_URL: &str = "https://page.test/a/b";

/// Returns an agent's request of about so many bytes that offers `web_search` and `web_fetch`, and
/// names the page.
pub(crate) fn request_with_tools(bytes: usize) -> String {
    let own = "\"tools\":[{\"type\":\"web_search_20250305\",\"name\":\"web_search\"},\
               {\"type\":\"web_fetch_20250910\",\"name\":\"web_fetch\"},";
    let said = format!("\"messages\":[{{\"role\":\"user\",\"content\":\"Read {PAGE_URL} ");
    request(bytes, 0).replacen("\"tools\":[", own, 1).replacen(
        "\"messages\":[{\"role\":\"user\",\"content\":\"",
        &said,
        1,
    )
}

/// Returns the events of a round in which the model calls this tool.
pub(crate) fn calling(name: &str, input: &str) -> Vec<String> {
    let arguments = input.replace('\\', "\\\\").replace('"', "\\\"");
    let call = format!(
        "\"tool_calls\":[{{\"index\":0,\"id\":\"call_1\",\"type\":\"function\",\"function\":\
         {{\"name\":\"{name}\",\"arguments\":\"{arguments}\"}}}}]"
    );
    let chunks = [chunk(&call, "null"), chunk("", "\"tool_calls\"")];
    let mut events: Vec<String> = chunks.iter().map(|it| format!("data: {it}\n\n")).collect();
    events.push("data: [DONE]\n\n".to_owned());
    events
}

/// Returns the answer of a search service with so many results of so many bytes.
pub(crate) fn found(results: usize, bytes: usize) -> String {
    let mut dice = Dice::new();
    let result = |at: usize| {
        let (title, text) = (dice.prose(40), dice.prose(bytes));
        format!("{{\"url\":\"https://a.test/{at}\",\"title\":\"{title}\",\"content\":\"{text}\"}}")
    };
    let results: Vec<String> = (0..results).map(result).collect();
    format!("{{\"query\":\"q\",\"results\":[{}]}}", results.join(","))
}

/// Returns a page of about so many bytes, as encyclopedias and blogs write them: a head with styles
/// and scripts, a menu, and paragraphs, lists and tables with links.
pub(crate) fn page(bytes: usize) -> String {
    let mut dice = Dice::new();
    let mut html = String::from(
        "<!DOCTYPE html>\n<html lang=\"en\" class=\"no-js\"><head><meta charset=\"utf-8\">\n\
         <title>A page &amp; its title</title>\n<link rel=\"stylesheet\" href=\"/s.css\">\n",
    );
    html.push_str("<style>\n");
    while html.len() < bytes / 12 {
        html.push_str(&format!(".{} > a {{ color: #123; margin: 0 auto }}\n", dice.word()));
    }
    html.push_str("</style>\n<script>\n");
    while html.len() < bytes / 6 {
        html.push_str(&format!("if (a.{} < b) {{ f(\"{}\"); }}\n", dice.word(), dice.word()));
    }
    html.push_str("</script></head>\n<body><nav><ul>\n");
    for at in 0..40 {
        html.push_str(&format!(
            "<li class=\"item\"><a href=\"/m/{at}\">{}</a></li>\n",
            dice.word()
        ));
    }
    html.push_str("</ul></nav>\n<main id=\"content\">\n");
    while html.len() < bytes {
        match dice.below(6) {
            0 => html.push_str(&format!("<h2 id=\"s{}\">{}</h2>\n", html.len(), dice.words(4))),
            1 => html.push_str(&format!(
                "<ul>\n<li>{}</li>\n<li><a href=\"/wiki/{}\" title=\"{}\">{}</a>, {}</li>\n</ul>\n",
                dice.words(8),
                dice.word(),
                dice.words(2),
                dice.words(2),
                dice.words(6)
            )),
            2 => html.push_str(&format!(
                "<table class=\"t\"><tr><th>{}</th><th>{}</th></tr>\n<tr><td>{}</td><td>{}</td></tr></table>\n",
                dice.word(),
                dice.word(),
                dice.words(2),
                dice.words(3)
            )),
            _ => html.push_str(&format!(
                "<p class=\"text\">{} <a href=\"https://b.test/{}/{}\" class=\"link\">{}</a> {}, \
                 <b>{}</b> {} &amp; {}.\n{}<sup id=\"c\"><a href=\"#n\">[1]</a></sup></p>\n",
                dice.words(20),
                dice.word(),
                dice.word(),
                dice.words(2),
                dice.words(25),
                dice.word(),
                dice.words(10),
                dice.words(5),
                dice.words(20)
            )),
        }
    }
    html.push_str("</main><footer>The end</footer></body></html>\n");
    html
}

impl Dice {
    /// Returns so many words with spaces between.
    fn words(&mut self, count: usize) -> String {
        let words: Vec<&str> = (0..count).map(|_| self.word()).collect();
        words.join(" ")
    }
}
