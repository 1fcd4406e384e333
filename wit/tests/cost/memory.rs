//! Memory of the component: after the start, for the largest request, and after many requests. The
//! memory of WebAssembly never shrinks, so a host keeps the memory that was needed once.

use super::bodies;
use super::instance::Instance;

/// Tests the memory of one instance after the start, because every VM of a host has an instance.
#[test]
fn an_instance_that_has_read_its_configuration_is_small() {
    const BYTES_MAX: usize = 2 << 20;
    let bytes = Instance::new().memory();
    println!("{bytes} bytes after the start");
    assert!(bytes <= BYTES_MAX, "{bytes} bytes, and {BYTES_MAX} are allowed");
}

#[test]
fn the_largest_request_needs_little_more_than_itself_twice() {
    for images in [0, 30_000_000] {
        let mut instance = Instance::new();
        let empty = instance.memory();
        let body = bodies::request(32_000_000, images);
        instance.request(body.as_bytes());
        let (needed, most) = (instance.memory() - empty, body.len() * 23 / 10);
        println!("{} bytes of request, {images} in images: {needed} bytes", body.len());
        assert!(needed <= most, "{needed} bytes for {} of request", body.len());
    }
}

#[test]
fn ten_thousand_requests_need_no_more_memory_than_a_hundred() {
    let mut instance = Instance::new();
    let body = bodies::request(2_000, 0);
    for _ in 0..100 {
        instance.request(body.as_bytes());
    }
    let after_hundred = instance.memory();
    for _ in 100..10_000 {
        instance.request(body.as_bytes());
    }
    println!("{after_hundred} bytes after 100 requests");
    assert_eq!(instance.memory(), after_hundred);
}
