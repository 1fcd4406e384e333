//! Tests of `listen.rs`.

use std::time::Instant;

use super::*;

#[tokio::test]
async fn a_failed_accept_closes_one_idle_client_at_most_and_waits() {
    for (code, closed) in [(24, true), (23, true), (103, false), (1, false), (105, false)] {
        let connections = Connections::new(10);
        let [first, second] = [connections.client(), connections.client()].map(Option::unwrap);
        let begun = Instant::now();
        make_room(&io::Error::from_raw_os_error(code), &connections).await;
        assert!(begun.elapsed() >= ACCEPT_PAUSE, "{code}");
        for (client, is_closed) in [(&first, closed), (&second, false)] {
            let wait = tokio::time::timeout(Duration::ZERO, client.ended());
            assert_eq!(wait.await.is_ok(), is_closed, "{code}");
        }
    }
}

#[test]
fn only_an_address_that_others_reach_needs_keys_of_clients() {
    let config = |text: &str| Config::from_json(text, |name| Some(name.to_owned())).unwrap();
    let own = r#""upstreams":{"u":{"key":{"secret":"K"}}}"#;
    let clients = config(&format!(r#"{{{own},"client_keys":[{{"secret":"C"}}]}}"#));
    let own = config(&format!("{{{own}}}"));
    let is_exposed = |config: &Config, address: &str, allow_anyone| {
        exposed(config, address.parse().unwrap(), allow_anyone).is_some()
    };
    for address in ["0.0.0.0:1", "[::]:1", "192.168.1.5:1", "[::ffff:192.168.1.5]:1"] {
        assert!(is_exposed(&own, address, false), "{address}");
        assert!(!is_exposed(&own, address, true), "{address}");
        assert!(!is_exposed(&clients, address, false), "{address}");
        assert!(!is_exposed(&Config::default(), address, false), "{address}");
    }
    for address in ["127.0.0.1:1", "127.1.2.3:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
        assert!(!is_exposed(&own, address, false), "{address}");
    }
}
