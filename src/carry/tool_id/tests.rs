//! Tests of `tool_id.rs`.

use super::*;
use proptest::prelude::*;

fn given(outgoing: &mut Outgoing<'_>, client_id: &str, tool_name: &str) -> String {
    outgoing.id(client_id.to_owned().into(), tool_name).to_owned()
}

fn encoded(id: &str) -> String {
    encode(id, &NameSet::default())
}

#[test]
fn ids_of_known_servers_keep_their_text() {
    for (upstream, client) in [
        ("call_abc123", "toolu_abc123"),
        ("call_c_abc", "toolu_c_c_abc"),
        ("call_u2_abc", "toolu_c_u2_abc"),
        ("call_ux_abc", "toolu_ux_abc"),
        ("D681PevKs", "toolu_r_D681PevKs"),
        (
            "chatcmpl-tool-0123456789abcdef0123456789abcdef",
            "toolu_r_chatcmpl-tool-0123456789abcdef0123456789abcdef",
        ),
        ("functions.get_weather:0", "toolu_x_functions-dget_weather-c0"),
        ("list_dir:0", "toolu_x_list_dir-c0"),
        ("a/b c-é", "toolu_x_a-sb-x20c---xc3-xa9"),
        ("toolu_01A09q90qw90lq917835lq9", "toolu_r_toolu_01A09q90qw90lq917835lq9"),
        ("call_", "toolu_r_call_"),
    ] {
        assert_eq!(encoded(upstream), client);
        assert_eq!(decode(client).as_deref(), Some(upstream));
    }
    assert_eq!(decode("toolu_01A09q90qw90lq917835lq9").unwrap(), "call_01A09q90qw90lq917835lq9");
}

#[test]
fn an_id_that_comes_again_is_numbered_and_decodes_to_the_same() {
    let mut used = NameSet::default();
    for client in ["toolu_0", "toolu_u2_0", "toolu_u3_0"] {
        assert_eq!(encode("call_0", &used), client);
        assert_eq!(decode(client).unwrap(), "call_0");
        used.add(client.to_owned());
    }
    let mut used = NameSet::default();
    used.add("toolu_0");
    used.add("toolu_u3_0");
    assert_eq!(encode("call_0", &used), "toolu_u2_0");
    assert_eq!(decode("toolu_u12345678901234567890123_0").unwrap(), "call_0");
}

#[test]
fn what_is_not_canonical_is_foreign() {
    for client in [
        "srvtoolu_01abc",
        "call_abc",
        "",
        "toolu_",
        "toolu_r_",
        "toolu_c_",
        "toolu_x_",
        "toolu_u2_",
        "toolu_r_call_abc",
        "toolu_c_abc",
        "toolu_u1_abc",
        "toolu_u02_abc",
        "toolu_u0_abc",
        "toolu_u2_u2_abc",
        "toolu_a b",
        "toolu_é",
        "toolu_x_abc",
        "toolu_x_a-",
        "toolu_x_a-x",
        "toolu_x_a-x2",
        "toolu_x_a-x2E",
        "toolu_x_a-x2e",
        "toolu_x_a-xff",
        "toolu_x_a-q",
    ] {
        assert_eq!(decode(client), None, "{client}");
    }
}

/// Strategy for ids with the characters and prefixes that the format itself uses.
fn upstream_ids() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "(|call_|call_c_|call_u2_|toolu_)[abcrux0129_\\-.:/ @é漢\n\"{}]{1,24}",
        1 => any::<String>().prop_filter("ids are not empty", |id| !id.is_empty()),
    ]
}

fn client_ids() -> impl Strategy<Value = String> {
    "toolu_(|u2_|u1_|u02_|u13_)(|c_|r_|x_)[abcdrux_\\-.019:]{0,12}"
}

#[test]
fn ids_are_counted_by_their_form() {
    let mut ids = NameSet::default();
    for id in [
        "toolu_abc",
        "toolu_r_chatcmpl-1",
        "toolu_u2_abc",
        "toolu_x_a-db",
        "call_1",
        "toolu_user_1",
    ] {
        ids.add(id);
    }
    let mut counts = RequestCounts::default();
    count_forms(&ids, &mut counts);
    assert_eq!((counts.ids_decoded, counts.ids_tagged, counts.ids_foreign), (2, 3, 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn every_id_comes_back_exactly(id in upstream_ids()) {
        let mut used = NameSet::default();
        for _ in 0..3 {
            let client = encode(&id, &used);
            prop_assert!(is_safe(&client));
            prop_assert_eq!(decode(&client), Some(id.clone()));
            prop_assert!(used.add(client));
        }
    }

    #[test]
    fn different_ids_stay_different(ids in prop::collection::btree_set(upstream_ids(), 2..40)) {
        let clients: std::collections::BTreeSet<String> = ids.iter().map(|id| encoded(id)).collect();
        prop_assert_eq!(clients.len(), ids.len());
    }

    #[test]
    fn whatever_decodes_is_what_encode_writes(client in client_ids()) {
        if let Some(id) = decode(&client) {
            let plain = encoded(&id);
            let body = plain.strip_prefix("toolu_").unwrap();
            let rest = client.strip_prefix("toolu_").unwrap();
            let numbered = |number: &str| number.starts_with('u') && number.ends_with('_');
            let matches = rest.strip_suffix(body).is_some_and(|n| n.is_empty() || numbered(n));
            prop_assert!(matches);
        }
    }

}

proptest! {
    #[test]
    fn outgoing_ids_fit_and_stay_apart(
        clients in prop::collection::vec(
            prop_oneof![client_ids(), "[a-z_:]{0,12}", "call_[ab]", "[A-Za-z0-9]{9}", "[a-z]{40,80}"],
            1..24,
        ),
        max in prop_oneof![Just(0usize), Just(12), Just(40)],
    ) {
        for style in [IdStyle::Any, IdStyle::Mistral9, IdStyle::Kimi] {
            let mut outgoing = Outgoing::new(style, max);
            let mut seen = Names::<String>::default();
            for client in &clients {
                let id = given(&mut outgoing, client, "read");
                prop_assert_eq!(&given(&mut outgoing, client, "other"), &id);
                match style {
                    IdStyle::Mistral9 => prop_assert!(is_nine(&id)),
                    IdStyle::Kimi => prop_assert!(is_numbered(&id)),
                    IdStyle::Any => prop_assert!(max == 0 || id.chars().count() <= max),
                }
                prop_assert!(!id.is_empty());
                if let Some(other) = seen.insert(id.clone(), client.clone()) {
                    let both = (decode(client), decode(&other));
                    prop_assert!(
                        other == *client || both == (Some(id.clone()), Some(id)),
                        "{} and {}", other, client
                    );
                }
            }
        }
    }
}

#[test]
fn an_id_that_the_upstream_gave_twice_goes_back_once_in_each_message() {
    let mut outgoing = Outgoing::new(IdStyle::Any, 0);
    for _ in 0..2 {
        outgoing.begin_message();
        assert_eq!(given(&mut outgoing, "toolu_0", "f"), "call_0");
        // The id of a result is that of its call.
        assert_eq!(given(&mut outgoing, "toolu_0", ""), "call_0");
    }
    let mut outgoing = Outgoing::new(IdStyle::Any, 0);
    outgoing.begin_message();
    assert_eq!(given(&mut outgoing, "toolu_0", "f"), "call_0");
    assert_eq!(given(&mut outgoing, "toolu_u2_0", "f"), "toolu_u2_0");
    assert_eq!(given(&mut outgoing, "toolu_u2_0", ""), "toolu_u2_0");
    outgoing.begin_message();
    assert_eq!(given(&mut outgoing, "toolu_u3_0", "f"), "call_0");
}

#[test]
fn an_id_of_the_upstream_goes_back_exactly() {
    let mut any = Outgoing::new(IdStyle::Any, 0);
    assert_eq!(given(&mut any, "toolu_abc", "f"), "call_abc");
    let long = format!("call_{}", "s".repeat(2_000));
    assert_eq!(given(&mut any, &encoded(&long), "f"), long);
    let mut mistral = Outgoing::new(IdStyle::Mistral9, 0);
    assert_eq!(given(&mut mistral, "toolu_r_D681PevKs", "f"), "D681PevKs");
    let mut kimi = Outgoing::new(IdStyle::Kimi, 0);
    assert_eq!(given(&mut kimi, "toolu_x_functions-df-c0", "f"), "functions.f:0");
    assert_eq!(given(&mut kimi, "toolu_x_f-c1", "f"), "f:1");
}

#[test]
fn an_id_that_the_upstream_issued_in_two_turns_goes_back_as_it_came() {
    let mut outgoing = Outgoing::new(IdStyle::Any, 0);
    assert_eq!(given(&mut outgoing, "toolu_0", "f"), "call_0");
    outgoing.begin_message();
    assert_eq!(given(&mut outgoing, "toolu_u2_0", "f"), "call_0");
}

#[test]
fn an_id_that_the_upstream_could_not_have_issued_is_foreign() {
    let mut openai = Outgoing::new(IdStyle::Any, 40);
    let vllm = encoded("chatcmpl-tool-0123456789abcdef0123456789abcdef");
    let id = given(&mut openai, &vllm, "f");
    assert_eq!(id, format!("call_h{}", base62_of_hash(vllm.as_bytes(), 22)));
    let mut mistral = Outgoing::new(IdStyle::Mistral9, 0);
    assert_eq!(given(&mut mistral, "toolu_abc", "f"), base62_of_hash(b"toolu_abc", 9));
    assert_eq!(given(&mut mistral, "D681PevKs", "f"), "D681PevKs");
}

#[test]
fn foreign_ids_go_as_they_are_where_they_may() {
    let mut outgoing = Outgoing::new(IdStyle::Any, 0);
    assert_eq!(given(&mut outgoing, "srvtoolu_01abc", "f"), "srvtoolu_01abc");
    for bad in ["", "a b", "é", &"x".repeat(65)] {
        let id = given(&mut outgoing, bad, "f");
        assert!(id.starts_with("call_h") && id.len() == 28, "{bad:?}: {id}");
    }
    assert_eq!(given(&mut Outgoing::new(IdStyle::Any, 70), &"x".repeat(65), "f"), "x".repeat(65));
}

#[test]
fn a_prefix_is_left_out_where_it_would_leave_fewer_than_ten_digits() {
    let id = |length_max| given(&mut Outgoing::new(IdStyle::Any, length_max), "a b", "f");
    assert!(id(16).starts_with("call_h") && id(16).len() == 16, "{}", id(16));
    assert!(!id(15).starts_with("call_h") && id(15).len() == 15, "{}", id(15));
}

#[test]
fn kimi_ids_are_numbered_over_the_history() {
    let mut kimi = Outgoing::new(IdStyle::Kimi, 0);
    assert_eq!(given(&mut kimi, "toolu_01A", "read"), "functions.read:0");
    assert_eq!(given(&mut kimi, "toolu_01B", "list"), "functions.list:1");
    assert_eq!(given(&mut kimi, "toolu_01A", "read"), "functions.read:0");
    assert_eq!(given(&mut kimi, "toolu_x_functions-dread-c2", "read"), "functions.read:2");
    assert_eq!(given(&mut kimi, "toolu_01C", "read"), "functions.read:3");
    // The number 3 in the upstream's own id was given to a foreign call before.
    assert_eq!(given(&mut kimi, "toolu_x_functions-dread-c3", "read"), "functions.read:4");
}

#[test]
fn a_foreign_id_never_takes_the_place_of_another() {
    let mut outgoing = Outgoing::new(IdStyle::Any, 0);
    assert_eq!(given(&mut outgoing, "toolu_abc", "f"), "call_abc");
    let foreign = given(&mut outgoing, "call_abc", "f");
    assert!(foreign.starts_with("call_h"), "{foreign}");
    let mut reversed = Outgoing::new(IdStyle::Any, 0);
    assert_eq!(given(&mut reversed, "call_abc", "f"), "call_abc");
    assert_ne!(given(&mut reversed, "toolu_abc", "f"), "call_abc");
}
