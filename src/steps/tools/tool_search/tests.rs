//! Tests of searches for deferred tools.

use super::*;
use crate::config::McpConnector;

const BODY: &str = r#"{"model":"m","messages":[],"tools":[
    {"name":"read","input_schema":{"type":"object","properties":{"weather":{}}}},
    {"name":"get_weather","description":"Says how warm it is","defer_loading":true,
     "input_schema":{"type":"object","properties":{"place":{"type":"object",
     "properties":{"postalCode":{"description":"A number, as on a letter"}}}}}},
    {"name":"send_mail","description":"Sends a letter","defer_loading":true,
     "input_schema":{"type":"object","properties":{"to":{"enum":["description"]}}}}]}"#;

fn names(found: &[&DeferredTool]) -> Vec<String> {
    found.iter().map(|tool| tool.name.clone()).collect()
}

#[test]
fn a_tool_is_known_by_its_name_its_description_and_its_arguments_at_any_depth() {
    let tools = catalogue::of(BODY, &McpConnector::default());
    assert_eq!(names(&tools.iter().collect::<Vec<_>>()), ["get_weather", "send_mail"]);
    let texts = ["get_weather", "Says how warm it is", "place", "postalCode"];
    assert_eq!(tools[0].texts[..4], texts);
    assert_eq!(tools[0].texts[4], "A number, as on a letter");
    assert_eq!(tools[1].texts, ["send_mail", "Sends a letter", "to"]);
    assert!(catalogue::of("{", &McpConnector::default()).is_empty());
}

#[test]
fn a_pattern_finds_tools_in_their_order_up_to_the_limit() {
    let tools = catalogue::of(BODY, &McpConnector::default());
    let find = |pattern, limit| pattern::find(pattern, &tools, limit).map(|found| names(&found));
    assert_eq!(find("get_.*", 5).unwrap(), ["get_weather"]);
    assert_eq!(find("letter", 5).unwrap(), ["get_weather", "send_mail"]);
    assert_eq!(find("letter", 1).unwrap(), ["get_weather"]);
    assert_eq!(find("(?i)SENDS", 5).unwrap(), ["send_mail"]);
    assert!(find("^mail", 5).unwrap().is_empty());
    assert!(matches!(find("(", 5), Err(ToolSearchFailure::InvalidToolInput(_))));
}

#[test]
fn a_pattern_that_would_take_long_is_not_run() {
    let text = "a".repeat(4 << 20);
    let tool = DeferredTool { name: "long".to_owned(), texts: vec![text] };
    let began = std::time::Instant::now();
    let tools = [tool];
    let found = pattern::find("(a{1,30}){1,30}b", &tools, 5);
    assert_eq!(found, Err(ToolSearchFailure::TooSlow));
    assert!(began.elapsed().as_secs() < 2);
}

#[test]
fn terms_find_the_tool_that_has_most_of_them_first() {
    let tools = catalogue::of(BODY, &McpConnector::default());
    let find = |query| names(&terms::find(query, &tools, 5));
    assert_eq!(find("weather"), ["get_weather"]);
    assert_eq!(find("Mail letter"), ["send_mail", "get_weather"]);
    assert_eq!(find("postal code"), ["get_weather"]);
    assert!(find("calendar").is_empty());
    assert!(find("...").is_empty());
    assert!(terms::find("a", &[], 5).is_empty());
}

#[test]
fn an_input_that_is_no_search_is_told_to_the_model() {
    let read = |method, input: &str| ToolSearch::read(method, input).map(|search| search.limit);
    let regex = |input: &str| read(ToolSearchMethod::Regex, input);
    assert_eq!(regex(r#"{"pattern":"a"}"#), Ok(5));
    assert_eq!(regex(r#"{"pattern":"a","limit":7}"#), Ok(7));
    assert_eq!(regex(r#"{"pattern":"a","limit":null}"#), Ok(5));
    let limit = Err("limit: expected an integer from 1 to 10000");
    for wrong in ["0", "10001", "-1", "1.5", "\"2\"", "[]"] {
        assert_eq!(regex(&format!(r#"{{"pattern":"a","limit":{wrong}}}"#)), limit, "{wrong}");
    }
    let long = "ü".repeat(201);
    assert_eq!(
        regex(&format!(r#"{{"pattern":"{long}"}}"#)),
        Err("pattern: expected at most 200 characters")
    );
    assert!(read(ToolSearchMethod::Bm25, &format!(r#"{{"query":"{long}"}}"#)).is_ok());
    for wrong in ["", "[]", "{}", r#"{"query":7}"#, r#"{"query":" "}"#, "{"] {
        assert!(read(ToolSearchMethod::Bm25, wrong).is_err(), "{wrong}");
    }
}
