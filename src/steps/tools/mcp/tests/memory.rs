//! Tests of the memory of servers.

use super::*;

fn list_of(ttl_ms: u64, is_public: bool) -> Arc<McpList> {
    let tool = ListedTool { name: "add".to_owned(), ..ListedTool::default() };
    Arc::new(McpList { tools: vec![tool], ttl_ms, is_public })
}

fn with_token(token: &str) -> McpTarget {
    McpTarget { token: Some(token.to_owned()), ..McpTarget::clone(&target()) }
}

#[test]
fn an_era_is_remembered_for_ten_minutes() {
    let memory = ToolMemory::default();
    memory.note_era(&target().url, McpEra::Legacy("2025-03-26"), 1000);
    memory.note_era(&target().url, McpEra::Modern, 2000);
    assert_eq!(memory.era(&target(), 601_999), Some(McpEra::Modern));
    assert_eq!(memory.era(&target(), 602_000), None);
    let other = McpTarget { url: "http://other".to_owned(), ..McpTarget::clone(&target()) };
    assert_eq!(memory.era(&other, 2000), None);
}

#[test]
fn a_private_list_is_for_its_token_alone() {
    let memory = ToolMemory::default();
    memory.note_list(&with_token("a"), &list_of(1000, false), 300_000, 0);
    assert!(memory.list(&with_token("a"), 999).is_some());
    assert!(memory.list(&with_token("b"), 999).is_none());
    let without = McpTarget { token: None, ..with_token("") };
    assert!(memory.list(&without, 999).is_none());
    assert!(memory.list(&with_token("a"), 1000).is_none());
    memory.note_list(&with_token("a"), &list_of(1000, true), 300_000, 0);
    assert!(memory.list(&with_token("b"), 999).is_some() && memory.list(&without, 0).is_some());
}

#[test]
fn a_list_is_kept_no_longer_than_the_operator_and_the_server_say() {
    let memory = ToolMemory::default();
    memory.note_list(&target(), &list_of(0, true), 300_000, 0);
    memory.note_list(&target(), &list_of(1000, true), 0, 0);
    assert!(memory.list(&target(), 0).is_none());
    memory.note_list(&target(), &list_of(u64::MAX, true), 300_000, 0);
    assert!(memory.list(&target(), 299_999).is_some());
    assert!(memory.list(&target(), 300_000).is_none());
}

#[test]
fn the_oldest_is_forgotten() {
    let memory = ToolMemory::default();
    let at =
        |number: u32| McpTarget { url: format!("http://{number}"), ..McpTarget::clone(&target()) };
    for number in 0..300 {
        memory.note_era(&at(number).url, McpEra::Modern, 0);
    }
    assert_eq!(memory.era(&at(43), 0), None);
    assert_eq!(memory.era(&at(44), 0), Some(McpEra::Modern));
    let tool = ListedTool { description: "x".repeat(2_000_000), ..ListedTool::default() };
    let large = Arc::new(McpList { tools: vec![tool], ttl_ms: 1000, is_public: true });
    for number in 0..10 {
        memory.note_list(&at(number), &large, 1000, 0);
    }
    assert!(memory.list(&at(5), 0).is_none() && memory.list(&at(6), 0).is_some());
    assert_eq!(format!("{memory:?}"), "ToolMemory { .. }");
}
