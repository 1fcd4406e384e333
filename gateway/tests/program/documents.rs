//! PDFs that become text, for upstreams that take no files.

use std::time::Instant;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::rig::{COMPLETION, Gateway, Got, Upstream, client, pdf, request, send, until};

/// Encrypted, so that only whoever has its password can read it.
const LOCKED: &[u8] = include_bytes!("documents/locked.pdf");
/// Encrypted, with nothing that has to be known: its author only forbids to print it.
const UNLOCKED: &[u8] = include_bytes!("documents/unlocked.pdf");

fn document(pdf: &[u8]) -> Value {
    let data = BASE64_STANDARD.encode(pdf);
    json!({
        "type": "document", "title": "a.pdf",
        "source": {"type": "base64", "media_type": "application/pdf", "data": data},
    })
}

fn body(content: &[Value]) -> String {
    let messages = [json!({"role": "user", "content": content})];
    json!({"model": "claude-x", "max_tokens": 9, "messages": messages}).to_string()
}

fn in_result(content: &[Value]) -> String {
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"p": "a"}});
    let result = json!({"type": "tool_result", "tool_use_id": "toolu_1", "content": content});
    json!({
        "model": "claude-x", "max_tokens": 9,
        "tools": [{"name": "Read", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": "Read it"},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ],
    })
    .to_string()
}

/// A gateway with this configuration, and the upstream behind it.
async fn start(config: &str) -> (Upstream, Gateway) {
    let upstream = Upstream::answering(200, "application/json", COMPLETION).await;
    let gateway = Gateway::start(&upstream.url(), config);
    (upstream, gateway)
}

async fn ask(gateway: &Gateway, body: String) -> Got {
    send(&client(false), request("POST", &gateway.url("/v1/messages"), body)).await
}

/// What the upstream gets, and the warnings.
async fn sent(config: &str, body: String) -> (String, String) {
    let (upstream, gateway) = start(config).await;
    let got = ask(&gateway, body).await;
    assert_eq!(got.status, 200, "{got:?}");
    (upstream.last().body, got.header("x-creole-warnings").to_owned())
}

/// Processes that read documents for this gateway.
#[cfg(target_os = "linux")]
fn readers(gateway: &Gateway) -> Vec<u32> {
    let parent = format!("PPid:\t{}\n", gateway.child.id());
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|id: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        status.contains(&parent)
    })
    .collect()
}

#[tokio::test]
async fn a_pdf_of_the_user_is_its_text_in_its_place() {
    let pdf = pdf::pages(&["First page", "Second page"]);
    let content = [json!({"type": "text", "text": "Look:"}), document(&pdf)];
    let (sent, warnings) = sent("{}", body(&content)).await;
    assert!(sent.contains(r#"[page 1 of 2]\nFirst page\n[page 2 of 2]\nSecond page"#), "{sent}");
    assert!(sent.contains("a.pdf"), "{sent}");
    assert!(!sent.contains(BASE64_STANDARD.encode(&pdf).get(..40).unwrap()), "{sent}");
    assert_eq!(warnings, "document_read");
}

#[tokio::test]
async fn so_are_those_in_a_tools_result_each_in_its_place() {
    let documents = ["alpha", "beta"].map(|text| document(&pdf::pages(&[text])));
    let (sent, warnings) = sent("{}", in_result(&documents)).await;
    let sent: Value = serde_json::from_str(&sent).unwrap();
    let messages = sent["messages"].as_array().unwrap();
    let result = messages.iter().find(|message| message["role"] == "tool").unwrap().to_string();
    let at = |text: &str| result.find(text).unwrap_or_else(|| panic!("{result}"));
    assert!(at("alpha") < at("beta"), "{result}");
    assert_eq!(warnings, "document_read");
}

#[tokio::test]
async fn of_what_cannot_be_read_the_model_is_told_why() {
    let cases: [(&[u8], &str, &str); 5] = [
        (&pdf::scan(2), "only images", "document_not_read:no_text"),
        (LOCKED, "encrypted with a password", "document_not_read:encrypted"),
        (b"%PDF-1.4 and nothing else", "damaged", "document_not_read:malformed"),
        (b"GIF89a", "no PDF", "document_not_read:malformed"),
        (b"", "damaged", "document_not_read:malformed"),
    ];
    for (pdf, words, warning) in cases {
        let (sent, warnings) = sent("{}", body(&[document(pdf)])).await;
        assert!(sent.contains("[document omitted: ") && sent.contains(words), "{sent}");
        assert_eq!(warnings, warning);
    }
}

#[tokio::test]
async fn pages_beyond_the_limit_are_left_out_and_the_model_is_told() {
    let config = r#"{"read_documents": {"pages_max": 2}}"#;
    let pdf = pdf::pages(&["one", "two", "three", "four"]);
    let (sent, _) = sent(config, body(&[document(&pdf)])).await;
    assert!(sent.contains("[page 2 of 4]\\ntwo") && !sent.contains("three"), "{sent}");
    assert!(sent.contains("[the last 2 of 4 pages are left out: this gateway reads 2]"), "{sent}");
}

#[tokio::test]
async fn with_no_pages_nothing_is_read() {
    let (_upstream, gateway) = start(r#"{"read_documents": {"pages_max": 0}}"#).await;
    let got = ask(&gateway, body(&[document(&pdf::pages(&["text"]))])).await;
    got.assert_error(400, "invalid_request_error", "does not support PDF input");
}

#[tokio::test]
async fn an_upstream_that_takes_files_gets_the_file() {
    let config = r#"{"upstreams": {"a": {"profile_overrides": {"file_parts": true}}}}"#;
    let pdf = pdf::pages(&["text"]);
    let (upstream, gateway) = start(config).await;
    assert_eq!(ask(&gateway, body(&[document(&pdf)])).await.status, 200);
    assert!(upstream.last().body.contains(&BASE64_STANDARD.encode(&pdf)));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_client_that_goes_ends_the_reading_which_had_no_variable() {
    let upstream = Upstream::answering(200, "application/json", COMPLETION).await;
    let args = ["--upstream", &upstream.url(), "--key-env", "CANARY_KEY"];
    let gateway = Gateway::start_with(&args, "{}", &[("CANARY_KEY", "sk-canary")]);
    let url = gateway.url("/v1/messages");
    let request = request("POST", &url, body(&[document(&pdf::slow(&[]))]));
    let asking = tokio::spawn(client(false).request(request));
    until("a reader", || !readers(&gateway).is_empty()).await;
    let reader = readers(&gateway)[0];
    let program = || std::fs::read_to_string(format!("/proc/{reader}/cmdline")).unwrap_or_default();
    until("the program", || program().contains("read-document")).await;
    assert_eq!(std::fs::read(format!("/proc/{reader}/environ")).unwrap(), b"");
    asking.abort();
    until("its end", || readers(&gateway).is_empty()).await;
    assert!(upstream.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_document_that_takes_too_long_takes_no_time_from_others() {
    let config = r#"{"read_documents": {"timeout_ms": 4000}}"#;
    let pdfs = ["one", "two"].map(|text| document(&pdf::pages(&[text])));
    let [one, two] = pdfs;
    let (sent, warnings) = sent(config, body(&[one, document(&pdf::slow(&[])), two])).await;
    assert_eq!(sent.matches("reading the PDF took too long").count(), 1, "{sent}");
    assert!(sent.contains("]\\none") && sent.contains("]\\ntwo"), "{sent}");
    assert_eq!(warnings, "document_read,document_not_read:too_slow");
}

#[tokio::test]
async fn what_was_cut_off_stays_so_for_the_turns_that_follow_and_nobody_waits_for_it_again() {
    let config = r#"{"read_documents": {"timeout_ms": 2000}}"#;
    let (upstream, gateway) = start(config).await;
    let pdf = document(&pdf::slow(&["first"]));
    let mut sent = Vec::new();
    for is_known in [false, true, true] {
        let began = Instant::now();
        assert_eq!(ask(&gateway, body(std::slice::from_ref(&pdf))).await.status, 200);
        assert_eq!(began.elapsed().as_millis() < 400, is_known);
        sent.push(upstream.last().body);
    }
    assert!(sent[0].contains("first") && sent[0].contains("reading it took too long"), "{sent:?}");
    assert!(sent.iter().all(|one| *one == sent[0]), "{sent:?}");
}

#[tokio::test]
async fn one_that_had_little_time_is_read_the_next_time() {
    let config = r#"{"read_documents": {"timeout_ms": 1200}}"#;
    let (upstream, gateway) = start(config).await;
    // The newest take turns until the time is over; one is cut off with less than its share.
    let slow = |at: usize| document(&pdf::slow(&[&format!("slow {at}")]));
    let content: Vec<_> = (0..5).map(slow).collect();
    for known in [3, 5] {
        assert_eq!(ask(&gateway, body(&content)).await.status, 200);
        let sent = upstream.last().body;
        let came = sent.matches("reading it took too long").count();
        assert!((known..=known + 1).contains(&came), "{came}: {sent}");
    }
}

#[tokio::test]
async fn a_usual_document_is_read_at_once_beside_clients_whose_documents_take_long() {
    let (upstream, gateway) = start(r#"{"read_documents": {"timeout_ms": 20000}}"#).await;
    let slow = |client: usize| {
        let slow = |at: usize| document(&pdf::slow(&[&format!("{client} {at}")]));
        body(&(0..4).map(slow).collect::<Vec<_>>())
    };
    let attack = async {
        futures_util::future::join_all((0..8).map(|client| ask(&gateway, slow(client)))).await
    };
    let honest = async {
        tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
        for number in 0..5 {
            let began = Instant::now();
            let text = format!("honest {number}");
            let got = ask(&gateway, body(&[document(&pdf::pages(&[&text]))])).await;
            assert_eq!(
                (got.status.as_u16(), got.header("x-creole-warnings")),
                (200, "document_read")
            );
            assert!(upstream.asked.lock().unwrap().iter().any(|one| one.body.contains(&text)));
            // Without turns it waits for all that came before it.
            assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
        }
    };
    tokio::select! {
        _ = attack => panic!("the attack has ended"),
        () = honest => {}
    }
}

#[tokio::test]
async fn whoever_waited_for_the_same_document_has_it_at_once() {
    let config = r#"{"read_documents": {"timeout_ms": 4000}}"#;
    let (upstream, gateway) = start(config).await;
    let content = [document(&pdf::slow(&["first"]))];
    let began = Instant::now();
    let answers = (0..6).map(|_| ask(&gateway, body(&content)));
    for got in futures_util::future::join_all(answers).await {
        assert_eq!(got.status, 200);
    }
    // Two at one time.
    assert!(began.elapsed().as_millis() < 1900, "{:?}", began.elapsed());
    let asked = upstream.asked.lock().unwrap();
    assert!(asked.iter().all(|one| one.body == asked[0].body), "{asked:?}");
}

#[tokio::test]
async fn one_that_is_known_is_there_when_there_is_no_time() {
    let config = r#"{"read_documents": {"timeout_ms": 400}}"#;
    let (upstream, gateway) = start(config).await;
    let known = document(&pdf::pages(&["well known"]));
    assert_eq!(ask(&gateway, body(std::slice::from_ref(&known))).await.status, 200);
    let mut content = vec![known];
    content.extend((0..6).map(|at| document(&pdf::slow(&[&at.to_string()]))));
    assert_eq!(ask(&gateway, body(&content)).await.status, 200);
    let sent = upstream.last().body;
    assert!(sent.contains("well known") && sent.contains("had no time to read the PDF"), "{sent}");
}

#[tokio::test]
async fn a_count_of_tokens_counts_the_text() {
    let upstream = Upstream::answering(404, "application/json", "{}").await;
    let gateway = Gateway::start(&upstream.url(), "{}");
    let pdf = document(&pdf::pages(&[&"word ".repeat(1000)]));
    let asked = request("POST", &gateway.url("/v1/messages/count_tokens"), body(&[pdf]));
    let got = send(&client(false), asked).await;
    let count: Value = serde_json::from_str(&got.body).unwrap();
    let tokens = count["input_tokens"].as_u64().unwrap();
    assert!((900..1500).contains(&tokens), "{}", got.body);
}

#[tokio::test]
async fn the_log_says_how_many_were_read_and_nothing_of_them() {
    let (_upstream, gateway) = start("{}").await;
    let content = [document(&pdf::pages(&["s3cret"])), document(b"%PDF s3cret")];
    assert_eq!(ask(&gateway, body(&content)).await.status, 200);
    let wanted = "\"documents\":{\"read\":1,\"unread\":1,\"duration_ms\":";
    until("the log", || !gateway.lines(wanted).is_empty()).await;
    assert!(!gateway.log().contains("s3cret"));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_gateway_that_is_told_to_stop_reads_to_the_end_first() {
    use rustix::process::{Pid, Signal, kill_process};
    let config = r#"{"read_documents": {"timeout_ms": 4000}}"#;
    let (upstream, gateway) = start(config).await;
    let request = request("POST", &gateway.url("/v1/messages"), body(&[document(&pdf::slow(&[]))]));
    let asking = tokio::spawn(async move { send(&client(false), request).await });
    // Signals of a terminal and of a service's end are for all processes of a group.
    let group = |id: u32| rustix::process::getpgid(Pid::from_raw(id as i32)).ok();
    let is_apart = |reader: &u32| group(*reader) != group(gateway.child.id());
    until("a reader", || readers(&gateway).first().is_some_and(is_apart)).await;
    let own = Pid::from_raw(gateway.child.id() as i32).unwrap();
    kill_process(own, Signal::TERM).unwrap();
    assert_eq!(asking.await.unwrap().status, 200);
    assert!(upstream.last().body.contains("took too long"));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_reader_ends_with_a_gateway_that_is_killed() {
    let (_upstream, mut gateway) = start("{}").await;
    let request = request("POST", &gateway.url("/v1/messages"), body(&[document(&pdf::slow(&[]))]));
    let asking = tokio::spawn(client(false).request(request));
    until("a reader", || !readers(&gateway).is_empty()).await;
    let reader = readers(&gateway)[0];
    // A process that ended has none.
    let program = || std::fs::read_to_string(format!("/proc/{reader}/cmdline")).unwrap_or_default();
    until("the program", || program().contains("read-document")).await;
    // By now it reads.
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert!(program().contains("read-document"), "the document is not slow");
    gateway.child.kill().unwrap();
    let killed = Instant::now();
    until("its end", || program().is_empty()).await;
    assert!(killed.elapsed().as_millis() < 1000, "{:?}", killed.elapsed());
    asking.abort();
}

/// What the program itself says: its exit code, and the text.
fn read(pdf: &[u8], args: &[&str]) -> (Option<i32>, String) {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    let mut child = Command::new(env!("CARGO_BIN_EXE_creole"))
        .args(["read-document", "--seconds-max=20"])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _ = child.stdin.take().unwrap().write_all(pdf);
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

fn read_all(pdf: &[u8]) -> (Option<i32>, String) {
    read(pdf, &["--pages-max=100", "--bytes-max=100000"])
}

#[test]
fn words_lines_paragraphs_and_columns_come_of_distances() {
    let show = |x: u32, y: u32, text: &str| format!("BT /F 12 Tf {x} {y} Td ({text}) Tj ET ");
    let page = [
        show(50, 700, "One"),
        show(78, 700, "line"),
        show(300, 700, "far"),
        show(50, 686, "Next"),
        show(50, 640, "Paragraph"),
        "BT /F 12 Tf 50 600 Td [(wo) 20 (rd) -300 (gap)] TJ ET".to_owned(),
    ];
    let (code, text) = read_all(&pdf::drawn(&[page.concat()], ""));
    assert_eq!(code, Some(0));
    assert_eq!(text, "[page 1 of 1]\nOne line\tfar\nNext\n\nParagraph\n\nword gap\n");
}

#[test]
fn a_document_without_a_password_is_read_though_it_is_encrypted() {
    let (code, text) = read_all(UNLOCKED);
    assert_eq!((code, text.contains("quick brown fox")), (Some(0), true), "{text}");
}

#[test]
fn chinese_is_read_where_the_file_has_neither_its_font_nor_its_letters() {
    let system = "/CIDSystemInfo<</Registry(Adobe)/Ordering(GB1)/Supplement 4>>";
    let descendant =
        format!("<</Type/Font/Subtype/CIDFontType0/BaseFont/STSong-Light{system}/DW 1000>>");
    let font = format!(
        "<</Type/Font/Subtype/Type0/BaseFont/STSong-Light/Encoding/UniGB-UCS2-H/DescendantFonts[{descendant}]>>"
    );
    let objects = [
        b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
        b"<</Type/Pages/Count 1/Kids[3 0 R]>>".to_vec(),
        b"<</Type/Page/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>".to_vec(),
        pdf::stream("", "BT /F 12 Tf 50 700 Td <4E2D6587> Tj ET"),
        font.into(),
    ];
    let (code, text) = read_all(&pdf::file(&objects));
    assert_eq!((code, text.as_str()), (Some(0), "[page 1 of 1]\n中文\n"));
}

#[test]
fn a_page_without_text_is_named_where_others_have_some() {
    let image = "BI /W 1 /H 1 /CS /G /BPC 8 ID x EI";
    let pages = [pdf::line(700, "text"), image.to_owned(), String::new()];
    let (_, text) = read_all(&pdf::drawn(&pages, ""));
    let rest = "[page 2 of 3: an image without text]\n[page 3 of 3: no text]\n";
    assert_eq!(text, format!("[page 1 of 3]\ntext\n{rest}"));
}

#[test]
fn a_page_with_an_image_says_that_it_is_missing() {
    let page = [&pdf::line(700, "Figure 1"), "BI /W 1 /H 1 /CS /G /BPC 8 ID x EI"].concat();
    let (_, text) = read_all(&pdf::drawn(&[page], ""));
    assert_eq!(text, "[page 1 of 1, without its images]\nFigure 1\n");
}

#[test]
fn a_glyph_stands_for_no_more_letters_than_fonts_have_for_one() {
    let letters = "0041".repeat(30_000);
    let table = format!(
        "1 begincodespacerange <00> <ff> endcodespacerange 1 beginbfchar <41> <{letters}> endbfchar"
    );
    let font = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode 6 0 R>>";
    let objects = [
        b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
        b"<</Type/Pages/Count 1/Kids[3 0 R]>>".to_vec(),
        b"<</Type/Page/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>".to_vec(),
        pdf::stream("", "BT /F 12 Tf 50 700 Td (A) Tj ET"),
        font.into(),
        pdf::stream("", &table),
    ];
    let (code, text) = read_all(&pdf::file(&objects));
    assert_eq!(code, Some(0));
    assert!((1..100).contains(&text.matches('A').count()), "{} bytes", text.len());
}

#[test]
fn text_beyond_the_limit_is_left_out() {
    let pdf = pdf::pages(&["a long line of text", "another long line", "a third one"]);
    let (code, text) = read(&pdf, &["--pages-max=100", "--bytes-max=40"]);
    assert_eq!(code, Some(0));
    assert!(text.contains("a long line") && !text.contains("third"), "{text}");
    assert!(text.ends_with("left out: the text is too long]\n"), "{text}");
}

#[test]
fn trees_and_forms_that_contain_themselves_end() {
    let leaf = "<</Type/Page/Contents 4 0 R/Resources<</Font<</F 5 0 R>>/XObject<</X 6 0 R>>>>>>";
    let font = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>";
    let form = "/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X 6 0 R>>>>";
    let objects = [
        b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
        b"<</Type/Pages/Count 9/Kids[2 0 R 3 0 R 2 0 R]>>".to_vec(),
        leaf.into(),
        pdf::stream("", &[&pdf::line(700, "text"), "/X Do"].concat()),
        font.into(),
        pdf::stream(form, "/X Do /X Do"),
    ];
    let (code, text) = read_all(&pdf::file(&objects));
    assert_eq!((code, text.as_str()), (Some(0), "[page 1 of 1]\ntext\n"));
}

#[test]
fn deep_nesting_ends() {
    let deep = ["[".repeat(300_000), "]".repeat(300_000)].concat();
    let mut pdf = pdf::pages(&["text"]);
    pdf.extend(format!("9 0 obj\n{deep}\nendobj\n").bytes());
    assert_eq!(read_all(&pdf).0, Some(0));
    let catalogue = format!("<</Type/Catalog/X {deep}/Pages 2 0 R>>");
    let (code, _) = read_all(&pdf::file(&[catalogue.into(), b"<</Type/Pages/Kids[]>>".to_vec()]));
    assert_eq!(code, Some(71));
}

/// Elsewhere the limit of time has to do.
#[cfg(target_os = "linux")]
#[test]
fn what_grows_without_bounds_takes_no_more_memory_than_it_may() {
    // Two gigabytes.
    let pdf = pdf::repeated(&"BT ET ".repeat(1 << 16), 1 << 13);
    let (code, text) = read_all(&pdf);
    assert_ne!(code, Some(0), "{text}");
    assert_eq!(text, "");
}
