//! `creole launch`: what the user is asked and told, what the client gets, and what stays.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use creole_demo::{Answer, Demo, Options};
use serde_json::{Value, json};

use crate::launch::{CLIENT, Ran, creole, demo, folder, launch};
use crate::rig;

#[test]
fn after_the_client_the_user_reads_how_to_go_on_and_where_the_log_is() {
    let demo = demo(&["only"]);
    let url = format!("{}/v1", demo.url());
    let args = ["claude", "--upstream", &url, "--context-window", "99000", "--", "-p", "SECRETS"];
    let state = folder("resume", CLIENT).join("state");
    let _ = fs::remove_dir_all(&state);
    let ran = launch("resume", &args, &[]);
    let last: Vec<&str> = ran.err.lines().rev().take(2).collect();
    let log = state.join("creole/launch.log");
    assert_eq!(last[0], format!("creole: what happened is in {}", log.display()));
    let again = format!(" launch claude --upstream {url} --context-window 99000 -- --continue");
    assert!(last[1].ends_with(&again), "{}", last[1]);
    assert!(last[1].starts_with("creole: to go on with this session: "), "{}", last[1]);
    // An address may have a key, which scripts would write into their logs.
    let secret = ["--search", "http://127.0.0.1:1/?key=sk-canary"];
    let secret = launch("resume", &[&args[..5], &secret].concat(), &[]);
    assert!(!secret.err.contains("sk-canary") && !secret.err.contains("to go on"));
    let _ = fs::remove_file(&log);
    let ran = launch("resume", &args, &[]);
    let text = fs::read_to_string(&log).unwrap();
    assert!(text.contains(" launches claude behind http://127.0.0.1:"), "{text}");
    assert!(text.contains(" 200 claude-sonnet-5 → only"), "{text}");
    let key = ran.out.lines().find_map(|line| line.strip_prefix("ANTHROPIC_AUTH_TOKEN=")).unwrap();
    assert!(text.contains("info stopped") && !text.contains("warn"), "{text}");
    assert!(!text.contains(key) && !text.contains("demo:say") && !text.contains("SECRETS"));
    assert_eq!(fs::metadata(&log).unwrap().permissions().mode() & 0o777, 0o600);
    // The log of an earlier run stays, until it is too long.
    launch("resume", &args, &[]);
    assert!(fs::read_to_string(&log).unwrap().starts_with(&text));
    fs::File::options().write(true).open(&log).unwrap().set_len(6 << 20).unwrap();
    launch("resume", &args, &[]);
    assert!(fs::metadata(&log).unwrap().len() < 1 << 20);
    assert_eq!(fs::metadata(log.with_extension("old.log")).unwrap().len(), 6 << 20);
    let own = state.join("own.log");
    let args = [&["claude", "--log", own.to_str().unwrap()], &args[1..]].concat();
    let ran = launch("resume", &args, &[]);
    assert!(ran.err.ends_with(&format!("what happened is in {}\n", own.display())), "{}", ran.err);
    assert!(fs::read_to_string(&own).unwrap().contains(" 200 claude-sonnet-5"));
}

#[test]
fn without_a_place_for_the_log_the_launch_goes_on_and_says_so_once() {
    let demo = demo(&["only"]);
    let url = format!("{}/v1", demo.url());
    let nowhere = [("XDG_STATE_HOME", "/dev/null/state")];
    let ran = launch("stateless", &["claude", "--upstream", &url], &nowhere);
    assert_eq!(ran.code, Some(7), "{}", ran.err);
    assert!(ran.has("ANTHROPIC_MODEL=only") && ran.out.contains("\"pong\""), "{}", ran.out);
    assert_eq!(ran.err.matches("/dev/null/state").count(), 1, "{}", ran.err);
    assert!(ran.err.contains("creole: no log is kept: /dev/null/state/creole: "), "{}", ran.err);
    assert!(!ran.err.contains("what happened is in"), "{}", ran.err);
    let args = ["claude", "--upstream", &url, "--log", "/dev/null/a.log"];
    let ran = launch("stateless", &args, &[]);
    assert_eq!((ran.code, &*ran.out), (Some(2), ""), "{}", ran.err);
    assert!(ran.err.contains("--log /dev/null/a.log: "), "{}", ran.err);
}

#[test]
fn a_client_that_prints_one_answer_does_not_hide_the_failures_that_it_retries() {
    let demo = demo(&["only"]);
    let url = format!("{}/v1", demo.url());
    let says = |status: u16, print: &[&str]| {
        let body = r#"{"error": {"message": "SECRETS", "code": "busy_now"}}"#;
        let path = "/v1/chat/completions".to_owned();
        let when = "demo:say".to_owned();
        demo.script([Answer { path, when, times: 1, ..Answer::json(status, body) }]);
        let args = ["claude", "--upstream", &url, "--context-window", "99000", "--"];
        launch("retried", &[&args, print].concat(), &[]).err
    };
    for (status, shown_as) in [(429, 429), (500, 500), (503, 529)] {
        let err = says(status, &["-p", "hi"]);
        let shown: Vec<&str> = err.lines().filter(|line| line.contains("busy_now")).collect();
        assert_eq!(shown.len(), 1, "{err}");
        assert!(shown[0].starts_with(&format!("creole: {shown_as} ")), "{err}");
        assert!(!err.contains("SECRETS"), "{err}");
    }
    assert!(!says(400, &["-p", "hi"]).contains("busy_now"), "it is not asked again");
    assert!(!says(503, &["--verbose"]).contains("busy_now"), "the client has the screen");
}

/// The settings file that the client got.
fn settings(ran: &Ran) -> Value {
    let text = ran.out.lines().find_map(|line| line.strip_prefix("settings: ")).unwrap();
    serde_json::from_str(text).unwrap()
}

#[test]
fn the_path_that_answers_is_taken_and_said() {
    let demo = demo(&["only"]);
    for path in ["/v2/models", "/v1/v1/models"] {
        let path = path.to_owned();
        demo.script([Answer { path, times: 0, ..Answer::json(404, "{}") }]);
    }
    for wrong in ["/v2", ""] {
        let url = format!("{}{wrong}", demo.url());
        let ran = launch("path", &["claude", "--upstream", &url], &[]);
        assert_eq!(ran.code, Some(7), "{}", ran.err);
        assert!(ran.has("ANTHROPIC_MODEL=only") && ran.out.contains("\"pong\""), "{}", ran.out);
        if wrong == "/v2" {
            let says = format!("{url}/v1: there is no API at {url}, and this path answers");
            assert!(ran.err.contains(&says), "{}", ran.err);
        }
    }
}

#[test]
fn a_refused_or_missing_key_ends_the_launch_with_the_cure() {
    let key = Some("sk-right".to_owned());
    let demo = Demo::start(Options { key, ..Options::default() }).unwrap();
    let url = format!("{}/v1", demo.url());
    let missing = "asks for a key (401): name the environment variable that has it, --key-env NAME";
    let wrong = "refuses the key (401): it is wrong, has ended, or may not do this; put another one \
                 into MINE";
    let keys = [("MINE", "sk-wrong"), ("OURS", "sk-right")];
    // Some servers list models to everyone.
    for is_listed in [false, true] {
        if is_listed {
            let path = "/v1/models".to_owned();
            let list = r#"{"data": [{"id": "demo"}]}"#;
            demo.script([Answer { path, times: 0, ..Answer::json(200, list) }]);
        }
        for (flags, says) in [(&[][..], missing), (&["--key-env", "MINE"], wrong)] {
            for model in [&[][..], &["--model", "demo"]] {
                let args = [&["claude", "--upstream", &url], flags, model].concat();
                let ran = launch("key", &args, &keys);
                assert_eq!((ran.code, &*ran.out), (Some(1), ""), "{}", ran.err);
                assert!(ran.err.contains(says), "{is_listed}: {}", ran.err);
                assert!(!ran.err.contains("sk-wrong"), "{}", ran.err);
            }
        }
        let args = ["claude", "--upstream", &url, "--key-env", "OURS", "--model", "demo"];
        assert_eq!(launch("key", &args, &keys).code, Some(7));
    }
}

#[test]
fn a_window_that_is_too_small_starts_nothing_unless_the_user_wants_it() {
    let demo = demo(&["only"]);
    let url = format!("{}/v1", demo.url());
    let args = ["claude", "--upstream", &url, "--context-window", "8192"];
    let ran = launch("small", &args, &[]);
    assert_eq!((ran.code, &*ran.out), (Some(1), ""), "{}", ran.err);
    let says = "a window of 8192 tokens is too small for Claude Code";
    assert!(ran.err.contains(says) && ran.err.contains("--yes starts all the same"), "{}", ran.err);
    let ran = launch("small", &[&args[..], &["--yes"]].concat(), &[]);
    assert_eq!(ran.code, Some(7), "{}", ran.err);
    assert!(ran.err.contains(says) && ran.has("CLAUDE_CODE_MAX_CONTEXT_TOKENS=8192"));
}

#[test]
fn claude_code_gets_settings_that_follow_from_the_gateway_and_keeps_the_users_own() {
    let demo = demo(&["only", "guard"]);
    let url = format!("{}/v1", demo.url());
    let args = ["claude", "--upstream", &url, "--model", "only"];
    let own = folder("settings", CLIENT).join(".claude");
    fs::create_dir_all(&own).unwrap();
    let users = own.join("settings.json");
    let _ = fs::remove_file(&users);
    let ran = launch("settings", &args, &[]);
    let set = settings(&ran);
    assert_eq!(set["permissions"]["deny"], json!(["WebSearch"]));
    assert_eq!(set["permissions"]["defaultMode"], "default");
    assert_eq!(set["statusLine"]["type"], "command");
    let line = set["statusLine"]["command"].as_str().unwrap();
    let written = json!({"statusLine": set["statusLine"]});
    let gateway = set["env"]["ANTHROPIC_BASE_URL"].as_str().unwrap();
    assert!(line.ends_with(&format!("creole status-line --gateway {gateway}")), "{line}");
    let key = set["env"]["ANTHROPIC_AUTH_TOKEN"].as_str().unwrap();
    assert!(key.len() == 32 && !line.contains(key), "{line}");
    assert!(ran.err.contains("auto mode is off until you choose it: in it the model itself"));
    assert!(ran.err.contains("144 kB") && ran.err.contains("--judge MODEL"), "{}", ran.err);
    // What searches is not denied, and a judge leaves auto mode to the client.
    let more = ["--search", "http://127.0.0.1:1/", "--judge", "guard"];
    let ran = launch("settings", &[&args[..], &more].concat(), &[]);
    assert_eq!(settings(&ran).get("permissions"), None, "{}", ran.out);
    assert!(ran.err.contains("auto mode: guard judges tool calls"), "{}", ran.err);
    assert!(!ran.out.contains("CLAUDE_CODE_AUTO_MODE_SERVER"), "{}", ran.out);
    // A line that Creole wrote is not the user's.
    fs::write(&users, format!("// mine\n{written}")).unwrap();
    assert_eq!(settings(&launch("settings", &args, &[]))["statusLine"]["type"], "command");
    let chosen = r#"{"permissions": {"defaultMode": "plan"}, "statusLine": {"type": "command"}}"#;
    fs::write(&users, chosen).unwrap();
    let ran = launch("settings", &args, &[]);
    let set = settings(&ran);
    assert_eq!(set["permissions"], json!({"deny": ["WebSearch"]}));
    assert_eq!(set.get("statusLine"), None);
    assert!(ran.err.contains("auto mode, which your settings decide about"), "{}", ran.err);
    let wrong = launch("settings", &[&args[..], &["--judge", "gard"]].concat(), &[]);
    assert_eq!(wrong.code, Some(2), "{}", wrong.err);
    assert!(wrong.err.contains("does not list gard; the nearest: guard"), "{}", wrong.err);
}

#[test]
fn each_model_has_one_name_in_the_clients_list() {
    let demo = demo(&["only", "claude-mine", "other"]);
    let url = format!("{}/v1", demo.url());
    let client = r#"#!/bin/bash
curl -s "$ANTHROPIC_BASE_URL/v1/models?limit=1000" -H "x-api-key: $ANTHROPIC_AUTH_TOKEN" \
  -H 'anthropic-version: 2023-06-01' -A 'claude-code/2.1.332'
"#;
    let folder = folder("list", client);
    let args = ["claude", "--upstream", &url, "--model", "only"];
    let ran: Ran = creole(&folder, &args).output().unwrap().into();
    let list: Value = serde_json::from_str(&ran.out).unwrap();
    let mut names: Vec<&str> =
        list["data"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["claude-creole/only", "claude-creole/other", "claude-mine"]);
}

#[test]
fn the_page_and_the_status_line_of_a_launch_are_found_while_it_runs() {
    let demo = demo(&["only"]);
    let url = format!("{}/v1", demo.url());
    let own = env!("CARGO_BIN_EXE_creole");
    let extra = format!(
        "session='{{\"model\":{{\"id\":\"claude-x\"}},\"context_window\":{{\"used_percentage\":12,\"context_window_size\":65536}}}}'\n\
         echo \"page: $('{own}' page)\"\n\
         echo \"status: $(echo \"$session\" | '{own}' status-line --gateway $ANTHROPIC_BASE_URL)\"\n\
         echo \"gone: $(echo \"$session\" | '{own}' status-line --gateway http://127.0.0.1:9)\"\n\
         exit 7\n"
    );
    let folder = folder("page", &CLIENT.replace("exit 7\n", &extra));
    let args = ["claude", "--upstream", &url];
    let ran: Ran = creole(&folder, &args).output().unwrap().into();
    let said = |name: &str| ran.out.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    let value = |name: &str| said(name).to_owned();
    let (address, key) = (value("ANTHROPIC_BASE_URL="), value("ANTHROPIC_AUTH_TOKEN="));
    let page = said("page: ");
    assert!(page.starts_with(&format!("{address}/  claude in ")), "{page}");
    assert!(page.ends_with(&format!("(any name, password {key})")), "{page}");
    assert!(said("status: ").starts_with("claude-x  12% of 65.5k"), "{}", said("status: "));
    assert!(said("status: ").ends_with(&format!("{address}/")), "{}", said("status: "));
    assert_eq!(said("gone: "), "claude-x  12% of 65.5k  no gateway at http://127.0.0.1:9");
    let running = folder.join("state/creole/running");
    assert_eq!(fs::read_dir(&running).unwrap().count(), 0);
    // A file of a launch that was killed is no gateway that runs.
    let stale = running.join("1.json");
    fs::write(&stale, r#"{"address":"127.0.0.1:9","key":"K","client":"claude","folder":"/"}"#)
        .unwrap();
    let mut command = Command::new(own);
    command.arg("page").env("HOME", &folder).env("XDG_STATE_HOME", folder.join("state"));
    let ran: Ran = command.output().unwrap().into();
    assert!(!stale.exists() && !ran.out.contains("127.0.0.1:9"), "{}", ran.out);
}

#[test]
fn the_status_line_sends_the_sessions_key_to_the_sessions_server_alone() {
    let demo = demo(&["only"]);
    let url = demo.url();
    for (session, key) in [(&*url, true), (&format!("{url}/"), true), ("http://127.0.0.1:9", false)]
    {
        let mut command = Command::new(env!("CARGO_BIN_EXE_creole"));
        command.args(["status-line", "--gateway", &url]).stdin(Stdio::null());
        command.env("ANTHROPIC_BASE_URL", session).env("ANTHROPIC_AUTH_TOKEN", "sk-canary");
        command.output().unwrap();
        let asked = demo.requests().pop().unwrap();
        assert_eq!(asked.header("x-api-key").is_some(), key, "{session}");
    }
}

/// Runs `creole launch claude` in a terminal of 20 columns, presses `keys`, and returns what the
/// screen showed.
#[cfg(target_os = "linux")]
fn in_a_narrow_terminal(folder: &Path, args: &str, keys: &[&str]) -> String {
    use std::io::Write as _;
    let own = env!("CARGO_BIN_EXE_creole");
    let launch = format!("stty cols 20 rows 12; exec '{own}' launch claude {args}");
    let mut command = Command::new("timeout");
    command
        .args(["--foreground", "60", "script", "-q", "-e", "-c", &launch, "/dev/null"])
        .env_clear()
        .env("TMPDIR", folder);
    command.env("HOME", folder).env("XDG_STATE_HOME", folder.join("state")).env("TERM", "xterm");
    command.env("PATH", format!("{}:{}", folder.display(), std::env::var("PATH").unwrap()));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut keyboard = child.stdin.take().unwrap();
    for key in keys {
        std::thread::sleep(Duration::from_millis(700));
        keyboard.write_all(key.as_bytes()).unwrap();
    }
    let ran = Ran::from(child.wait_with_output().unwrap());
    drop(keyboard);
    let mut parts = ran.out.split("\x1b[");
    let mut shown = parts.next().unwrap().to_owned();
    for part in parts {
        // What begins such a part ends with a letter.
        shown.push_str(part.split_once(char::is_alphabetic).map_or("", |(_, rest)| rest));
    }
    shown.replace('\r', "")
}

#[test]
#[cfg(target_os = "linux")]
fn on_a_terminal_the_user_chooses_the_model_once_for_a_folder() {
    let long = "a-model-with-a-name-longer-than-the-screen";
    let demo = demo(&[long, "second", "third"]);
    let url = format!("{}/v1", demo.url());
    let folder = folder("menu", CLIENT);
    let _ = fs::remove_dir_all(folder.join("state"));
    let args = format!("--upstream {url}");
    let shown = in_a_narrow_terminal(&folder, &args, &["thi", "\r"]);
    assert!(shown.contains("ANTHROPIC_MODEL=third"), "{shown}");
    assert!(shown.contains("a-model-with-a-…"), "{shown}");
    // The second time nothing is asked, unless the user wants it.
    let shown = in_a_narrow_terminal(&folder, &args, &[]);
    assert!(shown.contains("ANTHROPIC_MODEL=third"), "{shown}");
    let shown = in_a_narrow_terminal(&folder, &format!("{args} --ask"), &["\r"]);
    assert!(shown.contains(&format!("ANTHROPIC_MODEL={long}")), "{shown}");
    let shown = in_a_narrow_terminal(&folder, &format!("{args} --ask"), &["\x1b"]);
    assert!(shown.contains("nothing was chosen") && !shown.contains("MODEL="), "{shown}");
    let shown = in_a_narrow_terminal(&folder, &format!("{args} --ask"), &["\x03"]);
    assert!(!shown.contains("MODEL="), "{shown}");
    let shown = in_a_narrow_terminal(&folder, &format!("{args} --yes"), &[]);
    assert!(!shown.contains("ANTHROPIC_MODEL="), "{shown}");
    // Before a window that is too small, the user reads why.
    let small = format!("{args} --model second --context-window 8192");
    let shown = in_a_narrow_terminal(&folder, &small, &["n"]);
    assert!(shown.contains("not started") && !shown.contains("MODEL="), "{shown}");
    let shown = in_a_narrow_terminal(&folder, &small, &["\r"]);
    assert!(shown.contains("ANTHROPIC_MODEL=second"), "{shown}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_client_that_is_missing_is_installed_after_a_yes() {
    let demo = demo(&["only"]);
    let url = format!("--upstream {}/v1", demo.url());
    let folder = folder("install", CLIENT);
    fs::rename(folder.join("claude"), folder.join("claude-to-be")).unwrap();
    let npm = "#!/bin/bash\necho \"npm: $*\"\nmv \"$TMPDIR/claude-to-be\" \"$TMPDIR/claude\"\n";
    fs::write(folder.join("npm"), npm).unwrap();
    fs::set_permissions(folder.join("npm"), fs::Permissions::from_mode(0o755)).unwrap();
    let shown = in_a_narrow_terminal(&folder, &url, &["n"]);
    assert!(shown.contains("is not installed") && !shown.contains("npm: "), "{shown}");
    let shown = in_a_narrow_terminal(&folder, &url, &["\r"]);
    assert!(shown.contains("npm: install -g @anthropic-ai/claude-code@2."), "{shown}");
    assert!(shown.contains("ANTHROPIC_MODEL=only"), "{shown}");
}

#[test]
fn settings_are_written_for_a_gateway_that_runs_and_taken_back_byte_for_byte() {
    let demo = demo(&["only"]);
    let gateway =
        rig::Gateway::start_with(&["--upstream", &demo.url(), "--model", "only"], "{}", &[]);
    let url = gateway.url("");
    let folder = folder("configure", CLIENT);
    let _ = fs::remove_dir_all(folder.join("state"));
    let path = folder.join(".claude/settings.json");
    let _ = fs::remove_file(&path);
    let run = |args: &[&str]| -> Ran {
        let mut command = Command::new(env!("CARGO_BIN_EXE_creole"));
        command.args(args).env_clear().env("HOME", &folder).stdin(Stdio::null());
        command.env("XDG_STATE_HOME", folder.join("state")).env("KEY", "sk-canary");
        command.output().unwrap().into()
    };
    let configure = ["configure", "claude", "--gateway", &url];
    let read = || fs::read_to_string(&path).unwrap();
    // Without a file there is none afterwards, and a new one is private.
    let ran = run(&configure);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let set: Value = serde_json::from_str(&read()).unwrap();
    assert_eq!(set["env"]["ANTHROPIC_BASE_URL"], url);
    assert_eq!(set["env"]["ANTHROPIC_MODEL"], "only");
    let line = set["statusLine"]["command"].as_str().unwrap();
    assert!(line.ends_with(&format!("creole status-line --gateway {url}")), "{line}");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let ran = run(&["unconfigure", "claude"]);
    assert_eq!((ran.code, path.exists()), (Some(0), false), "{}", ran.err);
    // The user's own text stays, also if the command runs twice.
    let own =
        "{\n\t\"env\" : {\"A\":\"1\", \"ANTHROPIC_MODEL\": \"mine\"},\n  \"theme\":\"dark\" }";
    fs::write(&path, own).unwrap();
    for key in [&[][..], &["--key-env", "KEY"]] {
        let ran = run(&[&configure[..], key].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        assert!(read().contains(r#""A":"1""#) && read().contains("\n  \"theme\":\"dark\""));
        assert!(!ran.err.contains("sk-canary"), "{}", ran.err);
    }
    assert!(read().contains(r#""ANTHROPIC_AUTH_TOKEN": "sk-canary""#), "{}", read());
    fs::write(&path, read().replace("dark", "light")).unwrap();
    assert_eq!(run(&["unconfigure", "claude"]).code, Some(0));
    let left: Value = serde_json::from_str(&read()).unwrap();
    assert_eq!(left, json!({"env": {"A": "1", "ANTHROPIC_MODEL": "mine"}, "theme": "light"}));
    fs::write(&path, own).unwrap();
    assert_eq!(run(&configure).code, Some(0));
    assert_eq!(run(&["unconfigure", "claude"]).code, Some(0));
    assert_eq!(read(), own);
    // What cannot be done changes nothing, and says why.
    for (args, text, says) in [
        (&["unconfigure", "claude"][..], own, "nothing to take back"),
        (&configure, "{", "settings.json: "),
        (&configure, "[]", "settings.json: not an object of JSON"),
        (&configure, r#"{"env": 1}"#, "settings.json: not an object of JSON"),
        (&["configure", "claude", "--gateway", "http://127.0.0.1:9"], own, "creole serve starts"),
        (&["configure", "claude", "--gateway", &url, "--key-env", "NO"], own, "NO: the variable"),
        (&["configure", "claude", "--gateway", &url, "--model", "x"], own, "does not list x"),
    ] {
        fs::write(&path, text).unwrap();
        let ran = run(args);
        assert!(ran.code != Some(0) && ran.err.contains(says), "{says}: {}", ran.err);
        assert_eq!(read(), text, "{}", ran.err);
    }
}

#[test]
fn settings_are_never_lost_however_the_file_was_left() {
    let demo = demo(&["only"]);
    let gateway =
        rig::Gateway::start_with(&["--upstream", &demo.url(), "--model", "only"], "{}", &[]);
    let url = gateway.url("");
    let folder = folder("kept", CLIENT);
    let _ = fs::remove_dir_all(folder.join("state"));
    fs::create_dir_all(folder.join(".claude")).unwrap();
    let (link, path) = (folder.join(".claude/settings.json"), folder.join("dotfile.json"));
    let _ = fs::remove_file(&link);
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let run = |args: &[&str]| -> Ran {
        let mut command = Command::new(env!("CARGO_BIN_EXE_creole"));
        command.args(args).env_clear().env("HOME", &folder).stdin(Stdio::null());
        command.env("XDG_STATE_HOME", folder.join("state")).env("KEY", "sk-canary");
        command.output().unwrap().into()
    };
    let configure = ["configure", "claude", "--gateway", &url];
    let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    let own = r#"{"theme": "dark", "env": {"CLAUDE_CODE_AUTO_MODE_SERVER": "1", "ANTHROPIC_API_KEY": "k"}}"#;
    fs::write(&path, own).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let ran = run(&configure);
    assert!(ran.code == Some(0) && link.is_symlink() && mode() == 0o644, "{}", ran.err);
    assert!(ran.err.contains("ANTHROPIC_API_KEY is set"), "{}", ran.err);
    let set: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(set["env"]["CLAUDE_CODE_AUTO_MODE_SERVER"], "1", "the user's value stays");
    // What cannot be read keeps its backup.
    fs::write(&path, [0xff]).unwrap();
    for args in [&["unconfigure", "claude"][..], &configure] {
        let ran = run(args);
        assert!(ran.code != Some(0) && ran.err.contains("settings.json: "), "{}", ran.err);
        assert_eq!(fs::read(&path).unwrap(), [0xff]);
    }
    fs::write(&path, "").unwrap();
    assert_eq!(run(&["unconfigure", "claude"]).code, Some(0));
    assert_eq!(fs::read_to_string(&path).unwrap(), own);
    assert!(link.is_symlink() && mode() == 0o644);
    // A file with a real key is the user's alone.
    assert_eq!(run(&[&configure[..], &["--key-env", "KEY"]].concat()).code, Some(0));
    assert_eq!(mode(), 0o600);
    assert_eq!(run(&["unconfigure", "claude"]).code, Some(0));
    // Comments hide nothing from the way back.
    let own = "{ // mine\n  \"env\": {\"A\": \"1\", /* kept */},\n}\n";
    fs::write(&path, own).unwrap();
    assert_eq!(run(&configure).code, Some(0));
    let changed = fs::read_to_string(&path).unwrap().replace("// mine", "// still mine");
    fs::write(&path, changed).unwrap();
    let ran = run(&["unconfigure", "claude"]);
    let left = fs::read_to_string(&path).unwrap();
    assert!(ran.code == Some(0) && left.contains("// still mine"), "{}", ran.err);
    assert!(left.contains("/* kept */") && !left.contains("ANTHROPIC"), "{left}");
    // A link to nothing stays one.
    fs::remove_file(&path).unwrap();
    let ran = run(&configure);
    assert!(ran.code != Some(0) && link.is_symlink() && !path.exists(), "{}", ran.err);
}

#[test]
fn the_client_reaches_the_gateway_without_the_companys_proxy() {
    let demo = demo(&["only"]);
    let url = format!("{}/v1", demo.url());
    for (users, direct) in [
        (&[][..], "127.0.0.1"),
        (&[("no_proxy", ".inside"), ("HTTP_PROXY", "http://127.0.0.1:9")], ".inside,127.0.0.1"),
    ] {
        let ran = launch("proxy", &["claude", "--upstream", &url], users);
        assert_eq!(ran.code, Some(7), "{}", ran.err);
        for name in ["NO_PROXY", "no_proxy"] {
            assert!(ran.has(&format!("{name}={direct}")), "{}", ran.out);
        }
    }
}
