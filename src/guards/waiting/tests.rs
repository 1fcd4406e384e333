//! Tests of `waiting.rs`.

use super::*;
use crate::json::Str;

#[test]
fn a_call_waits_by_its_tool_or_by_what_it_is_asked_to_do() {
    for (name, input, expected) in [
        ("TaskOutput", "{}", true),
        ("wait", "{}", true),
        ("mcp__browser__browser_wait_for", "{}", true),
        ("waitForJob", "{}", true),
        ("browserWait", "{}", true),
        ("await_job", "{}", false),
        ("waiter", "{}", false),
        ("Waiter", "{}", false),
        ("Bash", r#"{"command":"sleep 300; gh run view 1"}"#, true),
        ("Bash", r#"{"command":"gh run view 1\nsleep 5"}"#, true),
        ("Bash", r#"{"command":["bash","-lc","sleep 5"]}"#, true),
        ("Bash", r#"{"command":"Start-Sleep -Seconds 9"}"#, true),
        ("Bash", r#"{"command":"python -c 'time.sleep(5)'"}"#, true),
        ("Bash", r#"{"command":"sleep $((2 * 5)) && ls"}"#, true),
        ("Bash", r#"{"command":["sleep", "5"]}"#, true),
        ("Bash", r#"{"command":"ls sleeper asleep"}"#, false),
        ("Bash", r#"{"command":"cd sleep-tracker && npm test"}"#, false),
        ("Bash", r#"{"command":"grep -rn sleep src; git commit -m 'remove sleep'"}"#, false),
        ("Bash", r#"{"command":"pytest tests/test_sleep.py"}"#, false),
        ("Bash", r#"{"command":"sleep .5; sleep infinity"}"#, true),
        ("Bash", r#"{"command":"powershell Start-Sleep -Milliseconds 500"}"#, true),
        ("Bash", r#"{"command":"cargo test sleep 2>&1 | tail -20"}"#, false),
        ("Bash", r#"{"command":"grep -rn sleep . ; grep -rn 'sleep' ./src"}"#, false),
        ("Bash", r#"{"command":"pytest -k sleep -s; pytest -k sleep -m slow"}"#, false),
        ("Bash", r#"{"command":"rg \"sleep\" $DIR"}"#, false),
        ("Bash", r#"{"command":"ls","description":"sleep"}"#, false),
        ("Bash", "no object", false),
        ("computer", r#"{"duration":5, "action" : "wait"}"#, true),
        ("computer", r#"{"action":"wait_for"}"#, false),
        ("computer", r#"{"action":"type","text":"wait"}"#, false),
        ("computer", r#"{"action":"type","text":"\"action\":\"wait\""}"#, false),
        ("batch", r#"{"actions":[{"name":"c","input":{"action":"wait"}}]}"#, true),
        ("execute_bash", r#"{"command":""}"#, true),
        ("terminal", r#"{"command": "" ,"is_input":false}"#, true),
        ("terminal", r#"{"command":"ls"}"#, false),
        // An empty command of `Bash` is an error of the model: Claude Code does not wait for it.
        ("Bash", r#"{"command":""}"#, false),
    ] {
        let (id, name) = (Str::plain("t"), Str::plain(name));
        let call = ToolUse::of(id, name, input);
        assert_eq!(waits(&call), expected, "{name:?} {input}");
    }
}
