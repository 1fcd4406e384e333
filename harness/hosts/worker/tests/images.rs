//! Tests of images by URL, which the Worker fetches for an upstream that accepts images only as
//! data.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use creole_rig::{MISSING_IMAGES, PICTURE_URL, SIGNATURE, image_messages, images_config};
use creole_worker_tests::{Upstream, Worker, post, until};
use tokio::io::AsyncWriteExt as _;

#[tokio::test]
async fn an_image_reaches_the_upstream_as_data() {
    let upstream = Upstream::with_images().await;
    let worker = Worker::start_with(&[("CREOLE_CONFIG", &images_config(&upstream))]);
    for is_old in [false, true] {
        let urls = ["/image.png?s1gn4ture", "/moved.png", "/image.png?s1gn4ture"];
        let urls = urls.map(|path| upstream.image(path));
        let got = post(&worker, "/v1/messages", image_messages(&urls, is_old)).await;
        assert_eq!(got.status.as_u16(), 200, "{}", got.body);
        assert_eq!(upstream.last().body.matches(PICTURE_URL).count(), 3);
        let asked = std::mem::take(&mut *upstream.asked.lock().unwrap());
        assert_eq!(asked.len(), 4);
        for image in asked.iter().filter(|asked| asked.method == "GET") {
            let names: Vec<_> = image.headers.keys().map(|name| name.as_str()).collect();
            assert_eq!(image.headers.get("x-api-key"), None, "{names:?}");
            assert_eq!(image.headers["cache-control"], "no-cache", "Cloudflare's cache: {names:?}");
        }
    }
}

#[tokio::test]
async fn one_that_does_not_come_is_an_error_or_words() {
    let upstream = Upstream::with_images().await;
    let worker = Worker::start_with(&[("CREOLE_CONFIG", &images_config(&upstream))]);
    for (path, why) in MISSING_IMAGES {
        for is_old in [false, true] {
            let urls = [upstream.image(&format!("{path}?{SIGNATURE}"))];
            let got = post(&worker, "/v1/messages", image_messages(&urls, is_old)).await;
            let told = if is_old { upstream.last().body } else { got.body.clone() };
            assert_eq!(got.status.as_u16(), if is_old { 200 } else { 400 }, "{path}");
            assert!(told.contains(why), "{path}: {told}");
        }
    }
    until("the end of each", || upstream.is_idle()).await;
    until("the log", || worker.log().matches("\"status\":400").count() == MISSING_IMAGES.len())
        .await;
    assert!(!worker.log().contains(SIGNATURE), "{}", worker.log());
}

#[tokio::test]
async fn several_are_fetched_at_one_time() {
    let upstream = Upstream::with_images().await;
    let worker = Worker::start_with(&[("CREOLE_CONFIG", &images_config(&upstream))]);
    // One after another, the first would use up the time of both.
    let urls = ["/silent.png?1", "/silent.png?2"].map(|path| upstream.image(path));
    let got = post(&worker, "/v1/messages", image_messages(&urls, true)).await;
    assert_eq!(got.status.as_u16(), 200, "{}", got.body);
    let asked = upstream.asked.lock().unwrap();
    assert_eq!(asked.iter().filter(|asked| asked.method == "GET").count(), 2);
}

#[tokio::test]
async fn a_server_that_is_down_is_not_the_end() {
    let upstream = Upstream::with_images().await;
    let down = creole_worker_tests::nobody().await.replace("/v1", "");
    let hosts = |host: &str| format!("[\"{host}\"]");
    let config = images_config(&upstream).replace(&hosts(&upstream.image("")), &hosts(&down));
    let worker = Worker::start_with(&[("CREOLE_CONFIG", &config)]);
    let urls = [format!("{down}/image.png?{SIGNATURE}")];
    let got = post(&worker, "/v1/messages", image_messages(&urls, true)).await;
    assert_eq!(got.status.as_u16(), 200, "{}", got.body);
    assert!(upstream.last().body.contains("its server could not be reached"));
    until("the log", || worker.log().contains("an image could not be fetched")).await;
    assert!(!worker.log().contains(SIGNATURE), "{}", worker.log());
}

#[tokio::test]
async fn calls_are_counted_before_the_platform_refuses_them() {
    let upstream = Upstream::with_images().await;
    let config = images_config(&upstream);
    let worker = Worker::start_with(&[("CREOLE_CONFIG", &config), ("SUBREQUESTS_MAX", "17")]);
    let urls: Vec<_> = (0..5).map(|nth| upstream.image(&format!("/image.png?{nth}"))).collect();
    let got = post(&worker, "/v1/messages", image_messages(&urls, true)).await;
    assert_eq!(got.status.as_u16(), 200, "{}", got.body);
    assert_eq!(upstream.last().body.matches("its server could not be reached").count(), 2);
    assert!(worker.log().contains("needs more calls than the platform allows"), "{}", worker.log());
    let asked = upstream.asked.lock().unwrap();
    assert_eq!(asked.iter().filter(|asked| asked.method == "GET").count(), 3);
}

#[tokio::test]
async fn a_client_that_breaks_its_connection_ends_the_fetch() {
    let upstream = Upstream::with_images().await;
    let config = images_config(&upstream).replace("1500", "60000");
    let worker = Worker::start_with(&[("CREOLE_CONFIG", &config)]);
    let body = image_messages(&[upstream.image("/silent.png")], false);
    let length = body.len();
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: k\r\ncontent-length: {length}\r\n\r\n"
    );
    let mut client = tokio::net::TcpStream::connect(worker.address).await.unwrap();
    client.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    until("the image's request", || !upstream.is_idle()).await;
    // For the runtime, a mere end of the client's data is no disconnect.
    client.set_zero_linger().unwrap();
    drop(client);
    until("its end", || upstream.is_idle()).await;
}
