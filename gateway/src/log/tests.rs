//! Tests of `log/mod.rs`.

use super::*;

#[test]
fn the_end_waits_for_room_in_a_full_queue() {
    let (sender, entries) = sync_channel(1);
    let queue = Queue { sender, lost: Arc::default() };
    queue.sender.try_send(LogEntry::Line(Vec::new())).unwrap();
    let reader = thread::spawn(move || {
        thread::sleep(FULL_PAUSE);
        assert!(matches!(entries.recv(), Ok(LogEntry::Line(_))));
        assert!(matches!(entries.recv(), Ok(LogEntry::Finish(_))), "the end did not wait");
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

#[test]
fn no_line_of_the_gateway_itself_moves_the_cursor_or_turns_the_words() {
    for format in [Format::Json, Format::Text] {
        let mut line = String::new();
        let said = "a\u{1b}[2J\n\u{9b}\u{202e}\u{2066}b";
        write_own(&mut Writer::new(&mut line), format, Level::WARN, said).unwrap();
        assert!(line.contains("a�[2J����b"), "{line:?}");
    }
}

/// Disk with a limited number of free bytes.
struct Disk {
    left: usize,
    written: Vec<u8>,
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(self.left);
        if count == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.left = self.left.saturating_sub(count);
        self.written.extend(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_disk_that_fills_within_a_line_spoils_no_other_line() {
    let (mut disk, mut is_cut) = (Disk { left: 6, written: Vec::new() }, false);
    assert!(write_line(b"one\n", &mut is_cut, &mut disk).is_ok());
    assert!(write_line(b"cut off\n", &mut is_cut, &mut disk).is_err());
    assert!(write_line(b"lost\n", &mut is_cut, &mut disk).is_err());
    disk.left = 100;
    for line in [b"two\n", b"six\n"] {
        assert!(write_line(line, &mut is_cut, &mut disk).is_ok());
    }
    assert_eq!(disk.written, b"one\ncu\ntwo\nsix\n");
    // A line of which no byte was written leaves no empty line.
    let (mut disk, mut is_cut) = (Disk { left: 4, written: Vec::new() }, false);
    assert!(write_line(b"one\n", &mut is_cut, &mut disk).is_ok());
    assert!(write_line(b"lost\n", &mut is_cut, &mut disk).is_err());
    disk.left = 100;
    assert!(write_line(b"two\n", &mut is_cut, &mut disk).is_ok());
    assert_eq!(disk.written, b"one\ntwo\n");
}
