//! Tests of `dns.rs`.

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};

#[tokio::test]
async fn a_name_that_hangs_takes_one_thread_however_many_wait_for_it() {
    static BEGUN: AtomicUsize = AtomicUsize::new(0);
    let names = Resolver::with(|name| {
        if name.starts_with("slow") {
            BEGUN.fetch_add(1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_secs(600));
        }
        Ok(vec![SocketAddr::from(([127, 0, 0, 1], 0))].into_iter())
    });
    let names = names.unwrap();
    let slow: Vec<_> = (0..1000).map(|_| names.look_up("slow.test")).collect();
    let mut quick = names.look_up("quick.test");
    quick.wait_for(Option::is_some).await.unwrap();
    assert_eq!(BEGUN.load(Ordering::SeqCst), 1);
    // Paused time does not stop the thread of the look-up.
    tokio::time::pause();
    for slow in slow {
        assert_eq!(found(slow, None).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}

#[tokio::test]
async fn a_name_that_was_found_is_looked_up_anew_next_time() {
    let names = Resolver::with(|_| Err(io::Error::other("no such name"))).unwrap();
    for _ in 0..2 {
        let error = found(names.look_up("a.test"), None).await.unwrap_err();
        assert_eq!(error.to_string(), "no such name");
        assert!(names.waiting.lock().unwrap().is_empty());
    }
}

#[tokio::test]
async fn of_a_name_that_must_be_public_only_such_addresses_are_given() {
    let names = Resolver::with(|name| {
        let all = [[169, 254, 169, 254], [1, 1, 1, 1], [10, 0, 0, 1]];
        let all = all.into_iter().filter(|it| name == "mixed.test" || it[0] != 1);
        Ok(all.map(|it| SocketAddr::from((it, 0))).collect::<Vec<_>>().into_iter())
    });
    let (names, mut public) = {
        let names = names.unwrap();
        (names.clone(), names.only_public(&[]).unwrap())
    };
    let mut given = public.call("mixed.test".parse().unwrap()).await.unwrap();
    assert_eq!((given.next(), given.next()), (Some(SocketAddr::from(([1, 1, 1, 1], 0))), None));
    let error = public.call("private.test".parse().unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    let network = "[\"10.0.0.0/8\"]";
    let network = format!(r#"{{"server_tools":{{"private_networks":{network}}}}}"#);
    let network = creole::Config::from_json(&network, |_| None).unwrap();
    let networks = &network.settings.server_tools.private_networks;
    let mut allowed = names.only_public(networks).unwrap();
    let given = allowed.call("private.test".parse().unwrap()).await.unwrap();
    assert_eq!(given.collect::<Vec<_>>(), [SocketAddr::from(([10, 0, 0, 1], 0))]);
    assert_eq!(names.clone().call("private.test".parse().unwrap()).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_name_that_changes_between_two_look_ups_gives_no_private_address() {
    static LOOK_UPS: AtomicUsize = AtomicUsize::new(0);
    let names = Resolver::with(|_| {
        let is_first = LOOK_UPS.fetch_add(1, Ordering::SeqCst) == 0;
        let address = if is_first { [1, 1, 1, 1] } else { [127, 0, 0, 1] };
        Ok(vec![SocketAddr::from((address, 0))].into_iter())
    });
    let mut public = names.unwrap().only_public(&[]).unwrap();
    let given = public.call("changes.test".parse().unwrap()).await.unwrap();
    assert_eq!(given.collect::<Vec<_>>(), [SocketAddr::from(([1, 1, 1, 1], 0))]);
    let error = public.call("changes.test".parse().unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    assert_eq!(LOOK_UPS.load(Ordering::SeqCst), 2, "each connection has a look-up of its own");
}

#[tokio::test]
async fn names_that_clients_choose_keep_no_upstreams_name_waiting() {
    let names = Resolver::with(|name| {
        if name.starts_with("slow") {
            std::thread::sleep(Duration::from_secs(600));
        }
        Ok(vec![SocketAddr::from(([127, 0, 0, 1], 0))].into_iter())
    });
    let names = names.unwrap();
    let public = names.only_public(&[]).unwrap();
    for at in 0..PUBLIC_WAITING_MAX {
        assert!(public.look_up(&format!("slow-{at}.test")).borrow().is_none());
    }
    let refused = found(public.look_up("slow-more.test"), None).await.unwrap_err();
    assert_eq!(refused.to_string(), "too many names are looked up");
    assert_eq!(public.waiting.lock().unwrap().len(), PUBLIC_WAITING_MAX);
    let given = found(names.look_up("quick.test"), None);
    let given = tokio::time::timeout(Duration::from_secs(60), given).await.unwrap();
    assert_eq!(given.unwrap().len(), 1);
}

#[test]
fn localhost_is_the_address_of_ipv4_first_and_other_names_keep_their_order() {
    let both: Vec<SocketAddr> = ["[::1]:0", "127.0.0.1:0"].map(|one| one.parse().unwrap()).into();
    for name in ["localhost", "LOCALHOST.", "model.localhost"] {
        assert!(in_order(name, both.clone())[0].is_ipv4(), "{name}");
    }
    assert_eq!(in_order("models.example", both.clone()), both);
}
