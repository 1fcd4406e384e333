//! Upstreams that compress although they were asked not to, whatever they say of it.

use std::io::Write as _;

use crate::rig::{
    self, COMPLETION, EVENT_STREAM, FINISH, Gateway, Got, Upstream, chunk, client, messages,
    request, send,
};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zlib(text: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn deflate(text: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn headers(kind: &str, encoding: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, kind.parse().unwrap());
    if !encoding.is_empty() {
        headers.insert(CONTENT_ENCODING, encoding.parse().unwrap());
    }
    headers
}

/// What a client gets if the upstream answers with these bytes, in pieces of this size.
async fn answer(status: u16, encoding: &'static str, bytes: Vec<u8>, piece: usize) -> Got {
    let body = Bytes::from(bytes);
    let upstream = Upstream::start_with_headers(move |_, mut out| {
        let body = body.clone();
        tokio::spawn(async move {
            for piece in body.chunks(piece) {
                if out.send_data(Bytes::copy_from_slice(piece)).await.is_err() {
                    return;
                }
            }
        });
        (status, headers("application/json", encoding))
    })
    .await;
    let gateway = Gateway::start(&upstream.url(), r#"{"response_bytes_max": 3000000}"#);
    send(&client(false), request("POST", &gateway.url("/v1/messages"), messages(false))).await
}

#[tokio::test]
async fn an_answer_is_read_however_it_is_compressed_and_whatever_is_said_of_it() {
    let plain = COMPLETION.as_bytes().to_vec();
    for (said, bytes) in [
        ("gzip", gzip(&plain)),
        ("x-gzip", gzip(&plain)),
        ("deflate", zlib(&plain)),
        ("deflate", deflate(&plain)),
        ("", gzip(&plain)),
        ("identity", zlib(&plain)),
        ("gzip", plain.clone()),
        ("deflate", plain.clone()),
    ] {
        for piece in [1, 7, 10_000] {
            let got = answer(200, said, bytes.clone(), piece).await;
            assert_eq!(got.status, 200, "{said} {piece}: {got:?}");
            assert_eq!(got.json()["content"][0]["text"], "Hi there");
        }
    }
}

#[tokio::test]
async fn what_follows_the_end_of_a_compressed_answer_is_no_error() {
    let plain = COMPLETION.as_bytes();
    let (start, end) = plain.split_at(plain.len() / 2);
    let cut = |bytes: Vec<u8>| bytes[..bytes.len() / 2].to_vec();
    let behind: [&[u8]; 5] = [b"\0", &[0; 3000], b"\r\n", b"garbage, and more of it", b"\x1f\x8b"];
    for (said, packed) in [
        ("gzip", gzip(plain)),
        ("gzip", [gzip(start), gzip(end)].concat()),
        ("deflate", zlib(plain)),
        ("deflate", deflate(plain)),
    ] {
        for behind in behind {
            for piece in [1, packed.len(), 10_000] {
                let got = answer(200, said, [&packed[..], behind].concat(), piece).await;
                assert_eq!(got.status, 200, "{said} {behind:?} {piece}: {got:?}");
                assert_eq!(got.json()["content"][0]["text"], "Hi there");
            }
        }
    }
    // A part of the answer that does not end is missing.
    for packed in [[gzip(start), cut(gzip(end))].concat(), cut(gzip(plain)), cut(zlib(plain))] {
        answer(200, "gzip", packed, 10_000).await.assert_error(502, "api_error", "");
    }
}

#[tokio::test]
async fn an_error_is_told_with_its_words_though_it_is_compressed() {
    let error = br#"{"error":{"message":"This model is asleep.","type":"invalid_request_error"}}"#;
    for said in ["gzip", ""] {
        let got = answer(400, said, gzip(error), 10_000).await;
        got.assert_error(400, "invalid_request_error", "This model is asleep.");
    }
    // What cannot be unpacked leaves the status.
    let mut broken = gzip(error);
    broken[12] ^= 0xff;
    assert_eq!(answer(400, "gzip", broken, 10_000).await.status, 400);
}

#[tokio::test]
async fn an_answer_that_unpacks_to_too_much_or_to_nothing_is_an_error() {
    let start = COMPLETION.split("Hi there").next().unwrap();
    let bomb = gzip(&[start.as_bytes(), &vec![b'a'; 100_000_000]].concat());
    let text = "content-encoding cannot be read";
    answer(200, "gzip", bomb, 10_000).await.assert_error(502, "api_error", text);
    // A text that shrinks less is bounded by `response_bytes_max`.
    let large: String = (0..600_000).map(|number| format!("{number} ")).collect();
    let got = answer(200, "gzip", gzip(&[start, &large].concat().into_bytes()), 10_000).await;
    got.assert_error(502, "api_error", "");
    let mut broken = gzip(COMPLETION.as_bytes());
    broken[20] ^= 0xff;
    answer(200, "gzip", broken, 10_000).await.assert_error(502, "api_error", "");
    let mut cut = gzip(COMPLETION.as_bytes());
    cut.truncate(60);
    answer(200, "gzip", cut, 10_000).await.assert_error(502, "api_error", "");
    answer(200, "br", b"\x0b\x02\x80".to_vec(), 10).await.assert_error(502, "api_error", text);
}

#[tokio::test]
async fn each_event_of_a_compressed_stream_is_given_before_the_next_is_sent() {
    let (outs, mut received) = tokio::sync::mpsc::unbounded_channel();
    let upstream = Upstream::start_with_headers(move |_, out| {
        outs.send(out).unwrap();
        (200, headers(EVENT_STREAM, "gzip"))
    })
    .await;
    let gateway = Gateway::start(&upstream.url(), "{}");
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // As servers compress streams: with a flush behind each event.
    let mut packed = |text: &[u8]| {
        encoder.write_all(text).unwrap();
        encoder.flush().unwrap();
        Bytes::from(std::mem::take(encoder.get_mut()))
    };
    let client = client(false);
    let sent = client.request(request("POST", &gateway.url("/v1/messages"), messages(true)));
    let first = packed(&chunk("One "));
    let begin = async {
        let mut out = received.recv().await.unwrap();
        out.send_data(first).await.unwrap();
        out
    };
    let (response, mut out) = rig::soon("the head", async { tokio::join!(sent, begin) }).await;
    let mut response = response.unwrap();
    let mut seen = String::new();
    for word in ["Two ", "Three "] {
        rig::read_until(&mut response, &mut seen, if word == "Two " { "One " } else { "Two " })
            .await;
        out.send_data(packed(&chunk(word))).await.unwrap();
    }
    out.send_data(packed(FINISH.as_bytes())).await.unwrap();
    rig::read_until(&mut response, &mut seen, "message_stop").await;
    assert!(seen.contains("Three "), "{seen}");
}
