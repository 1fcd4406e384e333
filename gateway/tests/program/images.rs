//! Images by URL, which are fetched over real sockets for an upstream that takes data alone.

use crate::rig::{
    Gateway, MISSING_IMAGES, PICTURE, PICTURE_URL, SIGNATURE, Upstream, client, image_messages,
    images_config, request, send, soon, until,
};

#[tokio::test]
async fn an_image_reaches_the_upstream_as_data() {
    let upstream = Upstream::with_images().await;
    let gateway = Gateway::start_with(&[], &images_config(&upstream), &[]);
    for is_old in [false, true] {
        let urls = ["/image.png?s1gn4ture", "/moved.png", "/image.png?s1gn4ture"];
        let urls = urls.map(|path| upstream.image(path));
        let sent = request("POST", &gateway.url("/v1/messages"), image_messages(&urls, is_old));
        let got = send(&client(false), sent).await;
        assert_eq!(got.status.as_u16(), 200, "{}", got.body);
        assert_eq!(upstream.last().body.matches(PICTURE_URL).count(), 3);
        let asked = std::mem::take(&mut *upstream.asked.lock().unwrap());
        // Equal ones are one, and a redirection is one more.
        assert_eq!(asked.len(), 4);
        for image in asked.iter().filter(|asked| asked.method == "GET") {
            let mut names: Vec<&str> = image.headers.keys().map(|name| name.as_str()).collect();
            names.sort_unstable();
            assert_eq!(names, ["accept", "accept-encoding", "host", "user-agent"]);
        }
    }
    let bytes = format!("\"images\":{{\"fetched\":2,\"missing\":0,\"bytes\":{}", PICTURE.len() * 2);
    until("the log", || gateway.lines(&bytes).len() == 2).await;
    assert!(!gateway.log().contains(SIGNATURE));
}

#[tokio::test]
async fn one_that_does_not_come_is_an_error_or_words_and_never_in_the_log() {
    let upstream = Upstream::with_images().await;
    let gateway = Gateway::start_with(&[], &images_config(&upstream), &[]);
    for (path, why) in MISSING_IMAGES {
        for is_old in [false, true] {
            let url = upstream.image(&format!("{path}?{SIGNATURE}"));
            let sent =
                request("POST", &gateway.url("/v1/messages"), image_messages(&[url], is_old));
            let got = send(&client(false), sent).await;
            let told = if is_old { upstream.last().body } else { got.body.clone() };
            assert_eq!(got.status.as_u16(), if is_old { 200 } else { 400 }, "{path}");
            assert!(told.contains(why), "{path}: {told}");
        }
    }
    until("the end of each", || upstream.is_idle()).await;
    until("the log", || gateway.lines("image_not_fetched").len() == MISSING_IMAGES.len()).await;
    assert!(!gateway.log().contains(SIGNATURE));
    let asked = upstream.asked.lock().unwrap();
    assert_eq!(asked.iter().filter(|asked| asked.path == "/round.png?s1gn4ture").count(), 2);
}

#[tokio::test]
async fn several_are_fetched_at_one_time() {
    let upstream = Upstream::with_images().await;
    let gateway = Gateway::start_with(&[], &images_config(&upstream), &[]);
    // One after another, the first would use up the time of both.
    let urls = ["/silent.png?1", "/silent.png?2"].map(|path| upstream.image(path));
    let sent = request("POST", &gateway.url("/v1/messages"), image_messages(&urls, true));
    let got = send(&client(false), sent).await;
    assert_eq!(got.status.as_u16(), 200, "{}", got.body);
    let asked = upstream.asked.lock().unwrap();
    assert_eq!(asked.iter().filter(|asked| asked.method == "GET").count(), 2);
}

#[tokio::test]
async fn nobody_who_is_not_named_is_asked() {
    let upstream = Upstream::with_images().await;
    let gateway = Gateway::start_with(&[], &images_config(&upstream), &[]);
    let port = upstream.address.port();
    for host in ["localhost", "127.1", "2130706433", "[::ffff:127.0.0.1]", "0.0.0.0", "a@127.0.0.1"]
    {
        let url = format!("http://{host}:{port}/image.png");
        let sent = request("POST", &gateway.url("/v1/messages"), image_messages(&[url], false));
        let got = send(&client(false), sent).await;
        assert_eq!(got.status.as_u16(), 400, "{host}");
        assert!(got.body.contains("this gateway fetches none from there"), "{}", got.body);
    }
    assert!(upstream.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_client_that_goes_takes_the_fetch_with_it() {
    let upstream = Upstream::with_images().await;
    let config = images_config(&upstream).replace("1500", "60000");
    let gateway = Gateway::start_with(&[], &config, &[]);
    let urls = [upstream.image("/silent.png")];
    let sent = request("POST", &gateway.url("/v1/messages"), image_messages(&urls, false));
    let http = client(false);
    let waiting = tokio::spawn(async move { http.request(sent).await });
    until("the fetch", || !upstream.is_idle()).await;
    waiting.abort();
    until("its end", || upstream.is_idle()).await;
    until("the log", || !gateway.lines("client_gone").is_empty()).await;
    soon("another", async {
        let urls = [upstream.image("/image.png")];
        let sent = request("POST", &gateway.url("/v1/messages"), image_messages(&urls, false));
        assert_eq!(send(&client(false), sent).await.status.as_u16(), 200);
    })
    .await;
}
