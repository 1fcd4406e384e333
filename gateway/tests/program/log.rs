//! How the log is written, and a log that takes no lines, for which no request must care.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::ExitStatus;

use crate::rig::{self, COMPLETION, Gateway, Upstream, client, messages, request, send};

async fn ended(gateway: &mut Gateway) -> ExitStatus {
    let ended = async {
        loop {
            if let Some(status) = gateway.child.try_wait().unwrap() {
                break status;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    rig::soon("the end of the process", ended).await
}

#[tokio::test]
async fn a_log_that_cannot_be_written_costs_no_request() {
    let upstream = Upstream::answering(200, "application/json", COMPLETION).await;
    let (reader, writer) = std::io::pipe().unwrap();
    let args = ["--upstream", &upstream.url()];
    let mut gateway = Gateway::start_logging_to(writer.into(), &args, "{}", &[]);
    // As a collector of logs that died.
    drop(reader);
    for _ in 0..3 {
        let sent = request("POST", &gateway.url("/v1/messages"), messages(false));
        assert_eq!(send(&client(false), sent).await.status, 200);
    }
    gateway.signal("-TERM");
    assert!(ended(&mut gateway).await.success());
}

#[tokio::test]
async fn a_log_that_nobody_reads_holds_no_request_and_counts_what_it_lost() {
    let upstream = Upstream::answering(200, "application/json", COMPLETION).await;
    let (reader, writer) = std::io::pipe().unwrap();
    let args = ["--upstream", &upstream.url()];
    let mut gateway = Gateway::start_logging_to(writer.into(), &args, "{}", &[]);
    // More than a pipe and the queue before it have room for.
    const SENT: u64 = 2000;
    let client = client(false);
    for _ in 0..SENT {
        assert_eq!(send(&client, request("GET", &gateway.url("/"), "")).await.status, 200);
    }
    // While there is a reader, lines find room again.
    let read = tokio::task::spawn_blocking(|| {
        let (mut shown, mut lost) = (0, 0);
        for line in BufReader::new(reader).lines() {
            let json: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
            if json["path"] == "/" {
                shown += 1;
            }
            if let Some((count, _)) = json["message"]
                .as_str()
                .and_then(|told| told.split_once(" lines of the log were lost"))
            {
                assert_eq!(json["level"], "warn", "{json}");
                lost += count.parse::<u64>().unwrap();
            }
            if lost > 0 && shown + lost == SENT {
                break;
            }
        }
        (shown, lost)
    });
    let (shown, lost) = rig::soon("the count of lost lines", read).await.unwrap();
    assert!(lost > 0 && shown + lost == SENT, "{shown} lines, {lost} lost");
    gateway.signal("-TERM");
    assert!(ended(&mut gateway).await.success());
}

#[tokio::test]
async fn refused_requests_do_not_fill_the_log_and_are_counted() {
    let gateway = Gateway::start(&rig::nobody().await, "{}");
    let client = client(false);
    let refuse = async || {
        let mut foreign = request("POST", &gateway.url("/v1/messages"), messages(false));
        foreign.headers_mut().insert("origin", "http://evil.example".parse().unwrap());
        assert_eq!(send(&client, foreign).await.status, 403);
    };
    let lines = || gateway.lines(r#""status":403"#).len();
    for _ in 0..150 {
        refuse().await;
    }
    assert!((100..=150).contains(&lines()), "{}", lines());
    while !gateway.log().contains("lines of refused requests were left out") {
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        refuse().await;
    }
    assert!(lines() < 150, "{}", lines());
}

/// What a gateway writes to a terminal for one request, and at its start and end.
async fn on_terminal(args: &[&str], env: &[(&str, &str)]) -> String {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let upstream = Upstream::answering(200, "application/json", COMPLETION).await;
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let written = std::fs::OpenOptions::new().write(true).open(name).unwrap();
    let url = upstream.url();
    let args = [&["--upstream", &url], args].concat();
    let env = [&[("TERM", "xterm-256color")], env].concat();
    let mut gateway = Gateway::start_logging_to(written.into(), &args, "{}", &env);
    let sent = request("POST", &gateway.url("/v1/messages"), messages(false));
    assert_eq!(send(&client(false), sent).await.status, 200);
    gateway.signal("-TERM");
    assert!(ended(&mut gateway).await.success());
    // Nobody writes to it any more, so it ends: with an error on Linux.
    let mut shown = Vec::new();
    let _ = std::fs::File::from(terminal).read_to_end(&mut shown);
    String::from_utf8(shown).unwrap()
}

#[tokio::test]
async fn a_terminal_gets_a_short_coloured_line_for_each_exchange() {
    let shown = on_terminal(&[], &[]).await;
    let line = shown.lines().find(|line| line.contains("200")).unwrap_or_else(|| panic!("{shown}"));
    assert!(line.contains("\u{1b}[32m200\u{1b}[0m"), "{line:?}");
    assert!(!shown.contains('{'), "{shown}");
    for told in ["upstream default", "http://127.0.0.1", "stopping; ", "stopped"] {
        assert!(shown.contains(told), "{told} in {shown}");
    }
    let bare = on_terminal(&[], &[("NO_COLOR", "1")]).await;
    assert!(!bare.contains('\u{1b}'), "{bare:?}");
    let line = bare.lines().find(|line| line.contains(" 200 ")).unwrap();
    assert!(line.contains(" @default  ") && line.contains(" out"), "{line}");
    let json = on_terminal(&["--log-format", "json"], &[]).await;
    for line in json.lines() {
        let _: serde_json::Value = serde_json::from_str(line).unwrap();
    }
}

#[tokio::test]
async fn where_no_terminal_is_the_log_is_json_unless_text_is_asked_for() {
    let upstream = Upstream::answering(200, "application/json", COMPLETION).await;
    for text in [false, true] {
        let args = ["--upstream", &upstream.url(), "--log-format", "text"];
        let gateway = Gateway::start_with(if text { &args } else { &args[..2] }, "{}", &[]);
        let sent = request("POST", &gateway.url("/v1/messages"), messages(false));
        assert_eq!(send(&client(false), sent).await.status, 200);
        let own = if text { " 200 " } else { r#""status":200"# };
        rig::until("the line", || !gateway.lines(own).is_empty()).await;
        assert_eq!(gateway.log().contains(r#"{"time":"#), !text, "{}", gateway.log());
        assert!(!gateway.log().contains('\u{1b}'), "{}", gateway.log());
    }
}

/// A request that is answered 200 with "/".
async fn ask(gateway: &Gateway) {
    assert_eq!(send(&client(false), request("GET", &gateway.url("/"), "")).await.status, 200);
}

/// What is in a file once it has so many lines about the request of [`ask`].
async fn lines_in(file: &str, count: usize) -> Vec<serde_json::Value> {
    let read = || std::fs::read_to_string(file).unwrap();
    rig::until("the lines", || read().matches(r#""path":"/""#).count() == count).await;
    read().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn a_file_gets_the_log_at_its_end_also_after_it_was_truncated() {
    let file = rig::file("{\"earlier\":\"line\"}\n");
    let args = ["--upstream", "http://127.0.0.1:9", "--log", &file];
    let gateway = Gateway::start_with(&args, "{}", &[]);
    ask(&gateway).await;
    ask(&gateway).await;
    let lines = lines_in(&file, 2).await;
    assert_eq!(lines[0]["earlier"], "line");
    assert!(
        lines.iter().any(|line| line["message"]
            .as_str()
            .is_some_and(|it| it.contains("http://127.0.0.1:9")))
    );
    // As logrotate does with `copytruncate`.
    std::fs::write(&file, "").unwrap();
    ask(&gateway).await;
    assert_eq!(lines_in(&file, 1).await.len(), 1, "what was lost of the file came back");
    assert_eq!(gateway.log(), "", "standard error gets the log, too");
}

#[tokio::test]
async fn a_file_gets_text_without_colours_if_it_is_asked_for() {
    let file = rig::file("");
    let args = ["--upstream", "http://127.0.0.1:9", "--log", &file, "--log-format", "text"];
    let gateway = Gateway::start_with(&args, "{}", &[]);
    ask(&gateway).await;
    let read = || std::fs::read_to_string(&file).unwrap();
    rig::until("the line", || read().contains(" 200 GET /  ")).await;
    assert!(!read().contains('\u{1b}') && !read().contains('{'), "{}", read());
}

#[cfg(unix)]
#[tokio::test]
async fn a_new_file_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let file = rig::file("");
    std::fs::remove_file(&file).unwrap();
    let args = ["--upstream", "http://127.0.0.1:9", "--log", &file];
    let _gateway = Gateway::start_with(&args, "{}", &[]);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn a_log_on_a_full_disk_costs_no_request() {
    let args = ["--upstream", "http://127.0.0.1:9", "--log", "/dev/full"];
    let mut gateway = Gateway::start_with(&args, "{}", &[]);
    for _ in 0..3 {
        ask(&gateway).await;
    }
    gateway.signal("-TERM");
    assert!(ended(&mut gateway).await.success());
}

#[test]
fn a_file_that_cannot_be_opened_is_named_and_nothing_is_served() {
    for command in ["serve", "demo"] {
        let args = [command, "--listen", "127.0.0.1:0", "--log", "/no/such/folder/log"];
        let args = if command == "serve" {
            [&args[..], &["--upstream", "http://127.0.0.1:9"]].concat()
        } else {
            args.to_vec()
        };
        let output =
            std::process::Command::new(env!("CARGO_BIN_EXE_creole")).args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            said,
            "creole: --log /no/such/folder/log: No such file or directory (os error 2)\n"
        );
    }
}
