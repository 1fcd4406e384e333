//! Tests of `setting.rs`.

use super::*;

fn read<T: Setting>(text: &str) -> Result<T, String> {
    T::read(&mut Reader::new(text, 8)).map_err(|error| error.to_string())
}

#[test]
fn an_error_of_a_number_says_what_was_found_and_how_large_it_may_be() {
    for found in ["1.5", "-1", "5000000000", "1e3"] {
        let expected = format!("expected a whole number from 0 to 4294967295, but found {found}");
        assert_eq!(read::<u32>(found), Err(expected));
    }
    assert_eq!(read::<u32>("4294967295"), Ok(u32::MAX));
    assert_eq!(read::<u64>("5000000000"), Ok(5_000_000_000));
    assert!(read::<usize>("-1").is_err_and(|error| error.ends_with(", but found -1")));
    assert!(read::<u64>("\"1\"").is_err_and(|error| error.ends_with("but found a string")));
}
