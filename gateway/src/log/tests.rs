//! Tests of `log.rs`.

use super::*;

#[test]
fn the_end_waits_for_room_in_a_full_queue() {
    let (sender, entries) = sync_channel(1);
    let queue = Queue { sender, lost: Arc::default() };
    queue.sender.try_send(Entry::Line(Vec::new())).unwrap();
    let reader = thread::spawn(move || {
        thread::sleep(FULL_PAUSE);
        assert!(matches!(entries.recv(), Ok(Entry::Line(_))));
        assert!(matches!(entries.recv(), Ok(Entry::Finish(_))), "the end did not wait");
    });
    queue.finish();
    drop(queue);
    reader.join().unwrap();
}

#[test]
fn the_end_gives_up_in_its_time_on_a_queue_that_stays_full() {
    let (sender, _entries) = sync_channel(0);
    let queue = Queue { sender, lost: Arc::default() };
    let began = Instant::now();
    queue.finish();
    assert!(began.elapsed() >= FINISH_TIME);
}
