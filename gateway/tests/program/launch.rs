//! `creole launch`: the upstream that it finds, what the client is told, and how both end.
//!
//! What is found without a word is at usual ports of this machine. Those tests run in a network of
//! their own (`unshare`), where these ports are free; where there can be none, on the machine's
//! network, if its ports are free.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use crate::rig;
use creole_demo::{Answer, Demo, Options};

/// It prints its arguments and what it is told, asks a question through the gateway, opens the
/// gateway's page, and ends with 7.
pub(crate) const CLIENT: &str = r#"#!/bin/bash
echo "arguments: $*"
[ "$1" = --settings ] && echo "settings: $(cat "$2")"
env | sort
address=${ANTHROPIC_BASE_URL#http://}
body='{"model":"claude-sonnet-5","max_tokens":9,"messages":[{"role":"user","content":"demo:say pong"}]}'
exec 3<>"/dev/tcp/${address%:*}/${address#*:}"
printf 'POST /v1/messages HTTP/1.1\r\nhost: %s\r\ncontent-type: application/json\r\n' "$address" >&3
printf 'connection: close\r\nauthorization: Bearer %s\r\n' "$ANTHROPIC_AUTH_TOKEN" >&3
printf 'content-length: %s\r\n\r\n%s' "${#body}" "$body" >&3
cat <&3
exec 3<>"/dev/tcp/${address%:*}/${address#*:}"
printf 'GET / HTTP/1.1\r\nhost: %s\r\nconnection: close\r\naccept: text/html\r\n' "$address" >&3
printf 'authorization: Basic %s\r\n\r\n' "$(printf 'me:%s' "$ANTHROPIC_AUTH_TOKEN" | base64 -w0)" >&3
cat <&3
exit 7
"#;

/// A folder with a client, which is the first of `PATH`.
pub(crate) fn folder(name: &str, client: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("launch-{name}"));
    fs::create_dir_all(&folder).unwrap();
    let program = folder.join("claude");
    fs::write(&program, client).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

pub(crate) fn creole(folder: &Path, args: &[&str]) -> Command {
    let path = std::env::var("PATH").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_creole"));
    command.arg("launch").args(args).env_clear();
    command.env("PATH", format!("{}:{path}", folder.display())).env("TMPDIR", folder);
    command.env("HOME", folder).env("XDG_STATE_HOME", folder.join("state"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

impl Ran {
    pub(crate) fn has(&self, line: &str) -> bool {
        self.out.lines().any(|known| known == line)
    }
}

pub(crate) fn launch(name: &str, args: &[&str], env: &[(&str, &str)]) -> Ran {
    let folder = folder(name, CLIENT);
    creole(&folder, args).envs(env.iter().copied()).output().unwrap().into()
}

pub(crate) fn demo(models: &[&str]) -> Demo {
    let models = models.iter().map(|name| (*name).to_owned()).collect();
    Demo::start(Options { models, ..Options::default() }).unwrap()
}

#[test]
fn the_client_gets_its_arguments_its_answers_and_ends_with_its_own_code() {
    let demo = demo(&["only", "nomic-embed-text"]);
    let url = format!("{}/v1", demo.url());
    let args = ["claude", "--upstream", &url, "--context-window", "48000", "--", "-p", "a b"];
    let ran = launch("client", &args, &[("ANTHROPIC_API_KEY", "sk-canary")]);
    assert_eq!(ran.code, Some(7), "{}", ran.err);
    let arguments = ran.out.lines().next().unwrap();
    let settings = arguments.strip_prefix("arguments: --settings ").unwrap();
    let settings = settings.strip_suffix(" -p a b").unwrap();
    assert!(!Path::new(settings).exists(), "the key of the gateway is left behind");
    for line in [
        "ANTHROPIC_MODEL=only",
        "ANTHROPIC_DEFAULT_HAIKU_MODEL=only",
        "CLAUDE_CODE_MAX_CONTEXT_TOKENS=48000",
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS=6000",
        "CLAUDE_CODE_AUTO_MODE_SERVER=0",
    ] {
        assert!(ran.has(line), "{line}: {}", ran.out);
    }
    assert!(ran.out.contains("\"pong\"") && ran.out.contains("HTTP/1.1 200"), "{}", ran.out);
    assert!(ran.out.contains("<!DOCTYPE html>"), "{}", ran.out);
    let key = ran.out.lines().find_map(|line| line.strip_prefix("ANTHROPIC_AUTH_TOKEN=")).unwrap();
    assert!(ran.err.contains(&format!("(any name, password {key})")), "{}", ran.err);
    assert!(!ran.out.contains("sk-canary"), "the key of another API is hidden from the client");
    let asked = demo.requests().pop().unwrap();
    assert!(asked.body.contains("\"model\":\"only\""), "every name goes to the model");
    assert_eq!(asked.header("authorization"), None);
}

#[test]
fn a_configuration_of_the_users_is_served_to_the_client() {
    let (big, small) = (demo(&["big"]), demo(&["small"]));
    let mapped = rig::file(&format!(
        r#"{{"upstreams": {{"big": {{"url": "{}"}}, "small": {{"url": "{}", "key": {{"env": "MINE"}}}}}},
            "models": {{"claude-sonnet-5": {{"upstream": "small", "model": "small", "max_input_tokens": 50000}}, "*": {{"upstream": "big"}}}}}}"#,
        big.url(),
        small.url()
    ));
    let keys = [("MINE", "sk-mine")];
    let ran = launch("config", &["claude", "--config", &mapped], &keys);
    assert_eq!(ran.code, Some(7), "{}", ran.err);
    assert!(ran.out.contains("\"pong\"") && !ran.out.contains("ANTHROPIC_MODEL="), "{}", ran.out);
    let asked = small.requests().pop().unwrap();
    assert_eq!(asked.header("authorization"), Some("Bearer (7 characters)"));
    let named = ["claude", "--config", &mapped, "--model", "claude-sonnet-5"];
    let ran = launch("config", &named, &keys);
    assert!(ran.has("CLAUDE_CODE_MAX_CONTEXT_TOKENS=50000"), "{} {}", ran.out, ran.err);
    let single = rig::file(&format!(
        r#"{{"upstreams": {{"big": {{"url": "{}", "headers": {{"x-team": "a"}}}}}}}}"#,
        big.url()
    ));
    let ran = launch("config-one", &["claude", "--config", &single], &keys);
    assert!(ran.has("ANTHROPIC_MODEL=big"), "{} {}", ran.out, ran.err);
    assert_eq!(big.requests().pop().unwrap().header("x-team"), Some("a"));
    let ran = launch("config-two", &["claude", "--config", "/no/such/file"], &keys);
    assert!(ran.code == Some(2) && ran.err.contains("/no/such/file"), "{}", ran.err);
}

#[test]
fn a_vendors_key_goes_to_no_other_server() {
    let demo = demo(&["only"]);
    let url = format!("{}/v1", demo.url());
    let keys = [("OPENAI_API_KEY", "sk-openai-canary"), ("GROQ_API_KEY", "sk-groq-canary")];
    for profile in [&[][..], &["--profile", "openai"], &["--profile", "groq"]] {
        let args = [&["claude", "--upstream", &url], profile].concat();
        assert_eq!(launch("keys", &args, &keys).code, Some(7));
    }
    for asked in demo.requests() {
        assert_eq!(asked.header("authorization"), None, "{}", asked.path);
    }
    let args = ["claude", "--upstream", &url, "--key-env", "MINE"];
    assert_eq!(launch("keys", &args, &[("MINE", "sk-12345")]).code, Some(7));
    let asked = demo.requests().pop().unwrap();
    assert_eq!(asked.header("authorization"), Some("Bearer (8 characters)"));
}

#[test]
fn what_is_not_clear_is_an_error_that_names_the_choice() {
    let demo = demo(&["one", "two"]);
    let url = format!("{}/v1", demo.url());
    let refused = |args: &[&str], code, reason: &str| {
        let ran = launch("refused", args, &[]);
        assert_eq!(ran.code, Some(code), "{}", ran.err);
        assert!(ran.err.contains(reason) && ran.out.is_empty(), "{}", ran.err);
    };
    let upstream = ["claude", "--upstream", &url];
    refused(&upstream, 2, "choose a model with --model: one, two");
    refused(
        &[&upstream[..], &["--model", "x"]].concat(),
        2,
        "/v1 does not list x; the nearest: one, two",
    );
    refused(&[&upstream[..], &["--key-env", "NO"]].concat(), 2, "needs a key: set NO");
    refused(&["claude", "--profile", "groq"], 2, "needs a key: set GROQ_API_KEY");
    refused(&["claude", "--profile", "azure"], 2, "upstreams.default.url: expected a URL");
    refused(&["codex"], 2, "Responses API");
    refused(&["vim"], 2, "expected one of claude, opencode");
    let secure = url.replace("http://", "https://");
    refused(&["claude", "--upstream", &secure], 1, "write http:// in place of https://");
    let mut bare = creole(Path::new("/nowhere"), &upstream);
    let bare = bare.env("PATH", "/nowhere").output();
    let ran = Ran::from(bare.unwrap());
    assert!(ran.err.contains("claude is not installed: npm install"), "{}", ran.err);
    assert_eq!(ran.code, Some(1));
}

#[test]
fn the_user_reads_whether_the_clients_web_search_works() {
    let demo = demo(&["only"]);
    let url = format!("{}/v1", demo.url());
    let says = |flags: &[&str]| {
        let args = [&["claude", "--upstream", &url, "--context-window", "99000"], flags].concat();
        launch("search", &args, &[])
    };
    let ran = says(&["--search", "http://127.0.0.1:1/?key=sk-canary"]);
    assert_eq!(ran.code, Some(7), "{}", ran.err);
    assert!(ran.err.contains("WebSearch works: it asks http://127.0.0.1:1/\n"), "{}", ran.err);
    assert!(!ran.err.contains("sk-canary"), "{}", ran.err);
    let ran = says(&[]);
    assert!(ran.err.contains("WebSearch is switched off, because no search"), "{}", ran.err);
    assert!(ran.err.contains("--search URL names a SearXNG"), "{}", ran.err);
    let asked = demo.requests().len();
    for (flags, reason) in [
        (["--search", "127.0.0.1:8888"], "--search: expected a URL that begins with http://"),
        (["--mcp", "http://127.0.0.1:1/mcp"], "--mcp: expected NAME=URL"),
    ] {
        let ran = says(&flags);
        assert_eq!(ran.code, Some(2), "{}", ran.err);
        assert!(ran.err.contains(reason) && ran.err.lines().count() == 1, "{}", ran.err);
    }
    assert_eq!(demo.requests().len(), asked, "a wrong flag is told before anything is asked");
}

#[test]
fn a_server_that_cannot_be_reached_ends_the_launch_with_one_line() {
    let nowhere =
        format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    for (url, says) in [
        (&*nowhere, "(the connection was refused): start the server, or correct the port"),
        ("http://no.such.invalid", "the name in no.such.invalid could not be resolved"),
    ] {
        for model in [&[][..], &["--model", "x"]] {
            let ran = launch("unreachable", &[&["claude", "--upstream", url], model].concat(), &[]);
            assert_eq!((ran.code, &*ran.out), (Some(1), ""), "{}", ran.err);
            assert!(ran.err.contains(says) && ran.err.lines().count() == 1, "{}", ran.err);
        }
    }
}

#[tokio::test]
async fn a_server_that_answers_without_a_list_needs_the_name_of_the_model() {
    for (status, body, says) in [
        (
            404,
            r#"{"error": {"message": "no model"}}"#,
            "you named it; it lists no models (HTTP 404",
        ),
        (503, "{}", "the client starts all the same: http://"),
    ] {
        let upstream = rig::Upstream::answering(status, "application/json", body).await;
        let url = upstream.url();
        let args = move || {
            let ran = launch("unlisted", &["claude", "--upstream", &url, "--model", "x"], &[]);
            (ran, launch("unlisted", &["claude", "--upstream", &url], &[]))
        };
        let (named, unnamed) = tokio::task::spawn_blocking(args).await.unwrap();
        assert_eq!(named.code, Some(7), "{}", named.err);
        assert!(named.err.contains(says) && named.has("ANTHROPIC_MODEL=x"), "{}", named.err);
        assert_eq!(unnamed.code, Some(1), "{}", unnamed.err);
    }
}

#[tokio::test]
async fn a_signal_goes_to_the_client_which_decides() {
    let demo = demo(&["only"]);
    let url = format!("{}/v1", demo.url());
    let folder = folder(
        "signal",
        "#!/bin/bash\ntrap 'exit 9' TERM\ntrap 'echo interrupted' INT\ntouch \"$TMPDIR/up\"\n\
         while :; do sleep 0.05; done\n",
    );
    let up = folder.join("up");
    let _ = fs::remove_file(&up);
    let child = creole(&folder, &["claude", "--upstream", &url]).spawn().unwrap();
    rig::until("the client", || up.exists()).await;
    signal(&child, "-INT");
    tokio::time::sleep(Duration::from_millis(300)).await;
    signal(&child, "-TERM");
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.out.as_str()), (Some(9), "interrupted\n"), "{}", ran.err);
}

/// In a terminal: `script` gives it one. The client reads the keyboard, gets Ctrl-C, and the
/// gateway goes on.
#[tokio::test]
#[cfg(target_os = "linux")]
async fn in_a_terminal_the_client_has_the_keyboard_and_ctrl_c_leaves_the_gateway_alone() {
    use std::io::{Read as _, Write as _};
    use std::sync::{Arc, Mutex};
    let demo = demo(&["only"]);
    let begin = "#!/bin/bash\ntest -t 0 && test -t 1 && echo a terminal\ntrap 'echo inter''rupted' INT\n\
                 echo asks; read -r line </dev/tty; echo \"got $line\"\n\
                 while :; do sleep 0.1 || break; done\n";
    let folder = folder("terminal", &CLIENT.replace("#!/bin/bash\n", begin));
    let own = env!("CARGO_BIN_EXE_creole");
    let launch = format!("exec '{own}' launch claude --upstream {}/v1", demo.url());
    let mut command = Command::new("script");
    command.args(["-q", "-e", "-c", &launch, "/dev/null"]).env_clear().env("TMPDIR", &folder);
    command.env("HOME", &folder).env("XDG_STATE_HOME", folder.join("state"));
    command.env("PATH", format!("{}:{}", folder.display(), std::env::var("PATH").unwrap()));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut keyboard = child.stdin.take().unwrap();
    let mut screen = child.stdout.take().unwrap();
    let shown = Arc::<Mutex<String>>::default();
    let written = Arc::clone(&shown);
    let reading = std::thread::spawn(move || {
        let mut piece = [0; 4096];
        while let Ok(length @ 1..) = screen.read(&mut piece) {
            written.lock().unwrap().push_str(&String::from_utf8_lossy(&piece[..length]));
        }
    });
    let shows = |text: &str| shown.lock().unwrap().contains(text);
    rig::until("the client", || shows("asks")).await;
    keyboard.write_all(b"hello\n").unwrap();
    rig::until("what was typed", || shows("got hello")).await;
    keyboard.write_all(b"\x03").unwrap();
    let ended = tokio::task::spawn_blocking(move || child.wait().unwrap());
    let code = rig::soon("the end", ended).await.unwrap().code();
    reading.join().unwrap();
    drop(keyboard);
    let shown = shown.lock().unwrap();
    assert!(shown.contains("a terminal") && shown.contains("interrupted"), "{shown}");
    // The gateway answered after Ctrl-C.
    assert!(shown.contains("\"pong\"") && shown.contains("HTTP/1.1 200"), "{shown}");
    assert_eq!(code, Some(7), "{shown}");
}

fn signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
}

/// Runs a test, by its name, where the usual ports are free: this program runs it again, alone, in
/// another network.
#[track_caller]
fn in_a_network_of_its_own(test: &str, body: impl FnOnce()) {
    const INNER: &str = "CREOLE_OWN_NETWORK";
    if std::env::var_os(INNER).is_some() {
        return body();
    }
    let own = std::env::current_exe().unwrap();
    let test = format!("launch::{test}");
    let inner = ["--exact", &test, "--nocapture"];
    // The superuser keeps its rights over other users, which a namespace of users has not.
    let flags = ["-n", "-rn"].into_iter().find(|flags| {
        let mut made = Command::new("unshare");
        let made = made.args([flags, "ip", "link", "set", "lo", "up"]).output();
        made.is_ok_and(|made| made.status.success())
    });
    let mut command = Command::new(flags.map_or(&*own, |_| Path::new("unshare")));
    if let Some(flags) = flags {
        let shell = "ip link set lo up && exec \"$0\" \"$@\"";
        command.args([flags, "sh", "-c", shell]).arg(&own);
    } else {
        println!("no network of its own: on the machine's");
    }
    let ran = Ran::from(command.args(inner).env(INNER, "1").output().unwrap());
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("1 passed"), "{}", ran.out);
    print!("{}", ran.out);
}

/// The demo model at a usual port, unless another program of this machine has it.
fn at(port: u16, models: &[&str]) -> Option<Demo> {
    let Ok(listener) = TcpListener::bind(("127.0.0.1", port)) else {
        println!("not tested: port {port} is taken on this machine");
        return None;
    };
    let models = models.iter().map(|name| (*name).to_owned()).collect();
    Some(Demo::start_on(listener, Options { models, ..Options::default() }).unwrap())
}

#[test]
fn ollama_at_its_usual_port_needs_no_word() {
    in_a_network_of_its_own("ollama_at_its_usual_port_needs_no_word", inner_ollama);
}

fn inner_ollama() {
    let Some(ollama) = at(11434, &["qwen3-coder:30b"]) else { return };
    let ps = r#"{"models":[{"name":"qwen3-coder:30b","context_length":65536}]}"#;
    let answer = Answer { path: "/api/ps".to_owned(), times: 0, ..Answer::json(200, ps) };
    ollama.script([answer]);
    let ran = launch("ollama", &["claude"], &[("OPENAI_API_KEY", "sk-canary")]);
    assert_eq!(ran.code, Some(7), "{}", ran.err);
    for said in [
        "ollama at http://127.0.0.1:11434/v1: it answers",
        "model qwen3-coder:30b: the only one",
        "not used: openai (OPENAI_API_KEY)",
    ] {
        assert!(ran.err.contains(said), "{}", ran.err);
    }
    assert!(ran.has("ANTHROPIC_MODEL=qwen3-coder:30b"), "{}", ran.out);
    assert!(ran.has("CLAUDE_CODE_MAX_CONTEXT_TOKENS=65536"), "{}", ran.out);
    assert!(ran.out.contains("\"pong\""), "{}", ran.out);
    for asked in ollama.requests() {
        assert_eq!(asked.header("authorization"), None, "{}", asked.path);
    }
}

#[test]
fn check_without_a_word_takes_the_server_that_launch_takes() {
    in_a_network_of_its_own("check_without_a_word_takes_the_server_that_launch_takes", inner_check);
}

fn inner_check() {
    let check = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_creole"));
        command.arg("check").env("OPENAI_API_KEY", "sk-canary").stdin(Stdio::null());
        Ran::from(command.output().unwrap())
    };
    let Some(ollama) = at(11434, &["qwen3-coder:30b"]) else { return };
    let ran = check();
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("ollama at http://127.0.0.1:11434/v1: it answers"), "{}", ran.err);
    assert!(ran.out.contains("--upstream http://127.0.0.1:11434/v1"), "{}", ran.out);
    for asked in ollama.requests() {
        // What stands for a client's key, and not the vendor's.
        let key = asked.header("authorization");
        assert!(key.is_none_or(|key| key == "Bearer (5 characters)"), "{}: {key:?}", asked.path);
    }
    drop(ollama);
    let ran = check();
    // Another program of this machine may be at one of the other ports, where there is no network
    // of its own.
    if ran.out.is_empty() {
        assert_eq!(ran.code, Some(1), "{}", ran.err);
        assert!(ran.err.contains("no server of this machine was found. Start one"), "{}", ran.err);
        for looked in ["ollama at http://127.0.0.1:11434/v1: the conn", "8080", "1234", "8000"] {
            assert!(ran.err.contains(looked), "{looked}: {}", ran.err);
        }
        assert!(!ran.err.contains("no upstream"), "that is for serve: {}", ran.err);
    }
}

#[test]
fn of_several_servers_the_first_in_order_that_has_the_model_is_taken() {
    in_a_network_of_its_own(
        "of_several_servers_the_first_in_order_that_has_the_model_is_taken",
        inner_several,
    );
}

fn inner_several() {
    let (Some(_ollama), Some(_studio)) = (at(11434, &["first"]), at(1234, &["second"])) else {
        return;
    };
    let ran = launch("several", &["claude"], &[]);
    assert!(ran.has("ANTHROPIC_MODEL=first"), "{}", ran.err);
    assert!(ran.err.contains("not used: lmstudio at http://127.0.0.1:1234/v1"), "{}", ran.err);
    let ran = launch("several", &["claude", "--model", "second"], &[]);
    assert!(ran.has("ANTHROPIC_MODEL=second"), "{}", ran.err);
    assert!(ran.err.contains("lmstudio at http://127.0.0.1:1234/v1: it answers"), "{}", ran.err);
}

#[test]
fn a_name_that_no_server_lists_is_told_with_the_nearest_before_all_else() {
    in_a_network_of_its_own(
        "a_name_that_no_server_lists_is_told_with_the_nearest_before_all_else",
        inner_nearest,
    );
}

fn inner_nearest() {
    let Some(_ollama) = at(11434, &["qwen3-coder:30b", "llama3.2:3b"]) else { return };
    let says = "does not list qwen3-coder; the nearest: qwen3-coder:30b";
    let ran = launch("nearest", &["claude", "--model", "qwen3-coder"], &[]);
    assert_eq!((ran.code, &*ran.out), (Some(2), ""), "{}", ran.err);
    assert_eq!(ran.err.lines().next(), Some(&*format!("creole: ollama {says}")), "{}", ran.err);
    assert!(ran.err.contains("OPENAI_API_KEY is not set"), "{}", ran.err);
    assert!(!ran.err.contains("no model found"), "{}", ran.err);
    let url = "http://127.0.0.1:11434/v1";
    let ran = launch("nearest", &["claude", "--upstream", url, "--model", "qwen3-coder"], &[]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert_eq!(ran.err, format!("creole: {url} {says}\n"));
}

#[test]
fn the_demo_that_runs_needs_no_name_of_a_model() {
    in_a_network_of_its_own("the_demo_that_runs_needs_no_name_of_a_model", inner_demo);
}

fn inner_demo() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_creole"));
    let mut demo =
        command.arg("demo").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut said = BufReader::new(demo.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("Ctrl-C") {
        line.clear();
        assert_ne!(said.read_line(&mut line).unwrap(), 0, "it ended");
    }
    let ran = launch("demo", &["claude"], &[]);
    let search = launch("demo", &["claude", "--search", "http://127.0.0.1:1"], &[]);
    let says = "a gateway at http://127.0.0.1:8787: --search, --mcp, --judge and --log need a";
    assert!(search.out.is_empty() && search.err.contains(says), "{}", search.err);
    demo.kill().unwrap();
    demo.wait().unwrap();
    assert_eq!(ran.code, Some(7), "{}", ran.err);
    assert!(ran.err.contains("and is used: model demo: the demo model"), "{}", ran.err);
    assert!(ran.err.contains("WebSearch works if that gateway has a search"), "{}", ran.err);
    assert!(ran.has("ANTHROPIC_MODEL=demo") && ran.out.contains("\"pong\""), "{}", ran.out);
}

#[test]
fn a_gateway_that_runs_is_used_and_nothing_at_all_is_told_place_by_place() {
    in_a_network_of_its_own(
        "a_gateway_that_runs_is_used_and_nothing_at_all_is_told_place_by_place",
        inner_gateway,
    );
}

fn inner_gateway() {
    let ran = launch("nothing", &["claude"], &[]);
    assert_eq!(ran.code, Some(1));
    for looked in ["11434", "8080", "1234", "8000", "OPENAI_API_KEY is not set", "127.0.0.1:8787"] {
        assert!(ran.err.contains(looked), "{looked}: {}", ran.err);
    }
    let demo = demo(&["behind"]);
    let _gateway = rig::Gateway::start_with(
        &["--upstream", &demo.url(), "--listen", "127.0.0.1:8787", "--model", "behind"],
        "{}",
        &[],
    );
    let ran = launch("gateway", &["claude"], &[]);
    assert_eq!(ran.code, Some(7), "{}", ran.err);
    assert!(
        ran.err.contains("already running at http://127.0.0.1:8787, and is used"),
        "{}",
        ran.err
    );
    assert!(ran.has("ANTHROPIC_BASE_URL=http://127.0.0.1:8787") && ran.out.contains("\"pong\""));
    // A model that it does not list is looked for elsewhere.
    let Some(_ollama) = at(11434, &["elsewhere"]) else { return };
    let ran = launch("gateway", &["claude", "--model", "elsewhere"], &[]);
    assert!(ran.err.contains("ollama at http://127.0.0.1:11434/v1: it answers"), "{}", ran.err);
    let ran = launch("gateway", &["claude", "--model", "behind"], &[]);
    assert!(ran.has("ANTHROPIC_BASE_URL=http://127.0.0.1:8787"), "{}", ran.err);
}

#[test]
fn a_server_of_another_user_is_taken_only_where_it_is_named() {
    in_a_network_of_its_own(
        "a_server_of_another_user_is_taken_only_where_it_is_named",
        inner_other_user,
    );
}

fn inner_other_user() {
    for (port, profile) in [
        (11434, "ollama"),
        (8080, "llama.cpp"),
        (1234, "lmstudio"),
        (8000, "vllm"),
        (30000, "sglang"),
    ] {
        let Ok(listener) = TcpListener::bind(("127.0.0.1", port)) else { continue };
        // The kernel's table names the owner of the socket's file.
        if std::os::unix::fs::fchown(&listener, Some(1001), None).is_err() {
            println!("not tested: this user cannot give a socket away");
            return;
        }
        let models = vec!["canary".to_owned()];
        let options = Options { models, ..Options::default() };
        let demo = Demo::start_on(listener, options).unwrap();
        let words = "another user of this machine runs it; its URL in a flag takes it all the same";
        let ran = launch("other", &["claude"], &[]);
        assert_eq!(ran.code, Some(1), "{profile}: {}", ran.err);
        assert!(ran.err.contains(words), "{}", ran.err);
        let ran = launch("other", &["claude", "--profile", profile], &[]);
        assert_eq!(ran.code, Some(2), "{profile}: {}", ran.err);
        for command in ["check", "serve"] {
            let mut creole = Command::new("timeout");
            creole.args(["5", env!("CARGO_BIN_EXE_creole"), command, "--profile", profile]);
            let ran = Ran::from(creole.stdin(Stdio::null()).output().unwrap());
            assert_eq!(ran.code, Some(2), "{command} {profile}: {}", ran.err);
            assert!(ran.err.contains(words), "{}", ran.err);
        }
        let ran =
            Ran::from(Command::new(env!("CARGO_BIN_EXE_creole")).arg("check").output().unwrap());
        assert_eq!(ran.code, Some(1), "{}", ran.err);
        let asked = demo.requests().into_iter().any(|asked| asked.method == "POST");
        assert!(!asked, "{profile}: it got a prompt");
        let url = format!("http://127.0.0.1:{port}/v1");
        let ran = launch("other", &["claude", "--upstream", &url], &[]);
        assert_eq!(ran.code, Some(7), "{profile}: {}", ran.err);
    }
}
