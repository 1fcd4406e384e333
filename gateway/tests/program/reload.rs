//! The configuration is read again while the gateway runs.

use std::fs;
use std::path::{Path, PathBuf};

use crate::rig::{
    self, Gateway, Got, Out, Upstream, chunk, client, finish, messages, request, send,
};
use hyper::Response;
use hyper::body::Incoming;
use tokio::sync::mpsc::UnboundedReceiver;

/// Number of streams that a changed configuration leaves alone.
const STREAMS: usize = 200;

/// Folder of one test with a configuration that names a key of the upstream and one of clients.
struct Files(PathBuf);

impl Files {
    fn new(test: &str, upstream: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("reload-{test}"));
        // The folder may have the files of an earlier run.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let files = Self(folder);
        files.write("upstream", "sk-old\n");
        files.write("alice", "key-of-alice");
        files.configure(upstream, &["alice"]);
        files
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// Writes a file as Kubernetes does: the whole new file takes the place of the old one.
    fn write(&self, name: &str, text: &str) {
        fs::write(self.path("new"), text).unwrap();
        fs::rename(self.path("new"), self.path(name)).unwrap();
    }

    fn configure(&self, upstream: &str, clients: &[&str]) {
        let of = |name: &&str| format!(r#"{{"file": "{}"}}"#, self.path(name));
        let clients: Vec<String> = clients.iter().map(of).collect();
        let text = format!(
            "// Comments may be anywhere.\n{{\"upstreams\": {{\"u\": {{\"url\": \"{upstream}\", \"key\": {}}}}},\n\
             \"client_keys\": [{}],}}",
            of(&"upstream"),
            clients.join(", ")
        );
        self.write("config.json", &text);
    }

    fn start(&self) -> Gateway {
        Gateway::start_with(&["--config", &self.path("config.json")], "", &[])
    }
}

/// Returns a request of the client with this key.
fn of_client(
    gateway: &Gateway,
    key: &str,
    stream: bool,
) -> hyper::Request<http_body_util::Full<bytes::Bytes>> {
    let mut sending = request("POST", &gateway.url("/v1/messages"), messages(stream));
    sending.headers_mut().insert("x-api-key", key.parse().unwrap());
    sending
}

async fn status(gateway: &Gateway, key: &str) -> u16 {
    send(&client(false), of_client(gateway, key, false)).await.status.as_u16()
}

async fn metrics(gateway: &Gateway, key: &str) -> String {
    let mut sending = request("GET", &gateway.url("/metrics"), "");
    sending.headers_mut().insert("x-api-key", key.parse().unwrap());
    send(&client(false), sending).await.body
}

/// Begins a stream, of which the client has some text.
async fn begun(
    gateway: &Gateway,
    outs: &mut UnboundedReceiver<Out>,
) -> (Response<Incoming>, Out, String) {
    let asking = client(false);
    let sent = asking.request(of_client(gateway, "key-of-alice", true));
    let first = async {
        let mut out = outs.recv().await.unwrap();
        out.send_data(chunk("One")).await.unwrap();
        out
    };
    let (response, out) = rig::soon("the head", async { tokio::join!(sent, first) }).await;
    let (mut response, mut seen) = (response.unwrap(), String::new());
    rig::read_until(&mut response, &mut seen, "One").await;
    (response, out, seen)
}

/// Waits until the gateway has read its configuration so many times, by whole lines of its log.
async fn read_again(gateway: &Gateway, times: usize) {
    let is_whole = |line: &&String| line.ends_with('}');
    let lines = || gateway.lines("the configuration ").iter().filter(is_whole).count();
    rig::until("the configuration", || lines() >= times).await;
}

#[tokio::test]
async fn keys_change_under_200_streams_and_no_stream_is_lost() {
    let (upstream, mut outs) = Upstream::written().await;
    let files = Files::new("streams", &upstream.url());
    let gateway = files.start();
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        streams.push(begun(&gateway, &mut outs).await);
    }
    assert_eq!(upstream.last().headers["authorization"], "Bearer sk-old");
    files.write("upstream", "sk-new-one");
    files.write("bob", "key-of-bob");
    files.configure(&upstream.url(), &["bob"]);
    read_again(&gateway, 1).await;
    // The client's key was withdrawn, and its streams go on.
    assert_eq!(status(&gateway, "key-of-alice").await, 401);
    let asking = client(false);
    let sent = asking.request(of_client(&gateway, "key-of-bob", true));
    let answered = async { outs.recv().await.unwrap().send_data(finish()).await.is_ok() };
    let (answer, _) = tokio::join!(sent, answered);
    assert_eq!(answer.unwrap().status(), 200);
    assert_eq!(upstream.last().headers["authorization"], "Bearer sk-new-one");
    for (response, mut out, seen) in streams {
        out.send_data(chunk("Two")).await.unwrap();
        out.send_data(finish()).await.unwrap();
        drop(out);
        let rest: Got = rig::soon("the end", rig::read(response)).await;
        assert!(seen.contains("One") && rest.body.contains("Two"), "{rest:?}");
        assert!(rest.complete && rest.body.contains("message_stop"), "{rest:?}");
    }
    assert!(!gateway.log().contains("sk-new-one") && !gateway.log().contains("key-of"));
}

#[tokio::test]
async fn a_broken_file_leaves_the_configuration_as_it_was() {
    let upstream = Upstream::answering(200, "application/json", rig::COMPLETION).await;
    let files = Files::new("broken", &upstream.url());
    let gateway = files.start();
    let failed = "creole_gateway_config_reload_failed 1";
    for (times, text) in ["", "{\"upstreams\": {", "{\"upstreamz\": {}}"].iter().enumerate() {
        files.write("config.json", text);
        read_again(&gateway, times + 1).await;
        assert_eq!(status(&gateway, "key-of-alice").await, 200);
        assert!(metrics(&gateway, "key-of-alice").await.contains(failed), "{text}");
    }
    let said = gateway.lines("the configuration before stays in use");
    assert!(said[2].contains("upstreamz: unknown key; did you mean upstreams?"), "{said:?}");
    files.configure(&upstream.url(), &["alice", "carol"]);
    read_again(&gateway, 4).await;
    assert_eq!(gateway.lines("cannot read").len(), 1, "{}", gateway.log());
    files.write("carol", "key-of-carol");
    read_again(&gateway, 5).await;
    assert_eq!(status(&gateway, "key-of-carol").await, 200);
    let told = metrics(&gateway, "key-of-carol").await;
    assert!(told.contains("creole_gateway_config_reload_failed 0"), "{told}");
    assert!(told.contains("\ncreole_gateway_config_loaded_timestamp_seconds 1"), "{told}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_signal_has_the_configuration_read_and_a_file_that_cannot_be_used_ends_nothing() {
    let upstream = Upstream::answering(200, "application/json", rig::COMPLETION).await;
    let files = Files::new("signal", &upstream.url());
    let gateway = files.start();
    gateway.signal("-HUP");
    read_again(&gateway, 1).await;
    // An upstream that is the gateway itself is refused as at the start.
    files.configure(&format!("http://{}", gateway.address), &["alice"]);
    gateway.signal("-HUP");
    read_again(&gateway, 2).await;
    assert_eq!(gateway.lines("is the gateway itself").len(), 1, "{}", gateway.log());
    fs::remove_file(files.path("config.json")).unwrap();
    gateway.signal("-HUP");
    read_again(&gateway, 3).await;
    assert_eq!(status(&gateway, "key-of-alice").await, 200);
}
