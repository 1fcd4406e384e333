//! Tests of `wheels.rs`.

use std::io::Read as _;

use zip::ZipArchive;

use super::*;
use crate::dist::binaries::TARGETS;
use crate::dist::package::sample;

fn read(path: &Path) -> Vec<(String, u32, Vec<u8>)> {
    let mut archive = ZipArchive::new(fs::File::open(path).unwrap()).unwrap();
    let mut files = Vec::new();
    for at in 0..archive.len() {
        let mut file = archive.by_index(at).unwrap();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        files.push((file.name().unwrap().into_owned(), file.unix_mode().unwrap(), bytes));
    }
    files
}

#[test]
fn the_record_has_a_hash_of_every_file_and_comes_last() {
    let (folder, binaries) = sample("wheels");
    let wheels = wheels(&binaries, &Facts::read(None).unwrap(), &folder).unwrap();
    assert_eq!(wheels.len(), TARGETS.len());
    for wheel in wheels {
        let mut files = read(&wheel);
        let (name, _, record) = files.pop().unwrap();
        let mut record: Vec<&str> = std::str::from_utf8(&record).unwrap().lines().collect();
        assert_eq!(record.pop().unwrap(), format!("{name},,"));
        assert!(record.iter().any(|line| line.contains("licenses/THIRD-PARTY.txt,sha256=")));
        assert_eq!(record.len(), files.len());
        for ((name, _, bytes), line) in files.iter().zip(record) {
            let digest = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(bytes));
            assert_eq!(line, format!("{name},sha256={digest},{}", bytes.len()));
        }
    }
}

#[test]
fn the_program_is_the_command_creole() {
    let (folder, binaries) = sample("wheels-program");
    for wheel in wheels(&binaries, &Facts::read(None).unwrap(), &folder).unwrap() {
        let programs: Vec<_> =
            read(&wheel).into_iter().filter(|(_, mode, _)| mode & 0o111 != 0).collect();
        let [(name, _, bytes)] = programs.as_slice() else { panic!("{programs:?}") };
        let windows = wheel.to_string_lossy().ends_with("win_amd64.whl");
        let program = if windows { "creole.exe" } else { "creole" };
        assert_eq!(*name, format!("creole_gateway-0.1.0.data/scripts/{program}"));
        assert_eq!(bytes, b"program");
    }
}

#[test]
fn a_static_program_is_for_every_linux() {
    let (folder, binaries) = sample("wheels-tags");
    let wheels = wheels(&binaries, &Facts::read(None).unwrap(), &folder).unwrap();
    let files = read(&wheels[0]);
    let (_, _, tags) = files.iter().find(|(name, ..)| name.ends_with("/WHEEL")).unwrap();
    let tags = std::str::from_utf8(tags).unwrap();
    for tag in ["manylinux_2_17_x86_64", "manylinux2014_x86_64", "musllinux_1_1_x86_64"] {
        assert!(tags.contains(&format!("\nTag: py3-none-{tag}\n")), "{tags}");
        assert!(wheels[0].to_string_lossy().contains(tag), "{}", wheels[0].display());
    }
}

#[test]
fn a_mac_gets_the_wheel_from_the_system_on_that_its_program_runs_on() {
    let tag = |triple| {
        let target = TARGETS.iter().find(|target| target.triple == triple).unwrap();
        platforms(target).unwrap()
    };
    assert_eq!(tag("x86_64-apple-darwin"), "macosx_10_12_x86_64");
    assert_eq!(tag("aarch64-apple-darwin"), "macosx_11_0_arm64");
    assert_eq!(tag("x86_64-pc-windows-gnu"), "win_amd64");
}

#[test]
fn the_same_program_gives_the_same_wheel() {
    let facts = Facts::read(None).unwrap();
    let make = || wheel("creole", b"program".to_vec(), "win_amd64", &facts).unwrap();
    let first = make();
    // Zip archives store times in steps of two seconds.
    std::thread::sleep(std::time::Duration::from_millis(2100));
    assert!(first == make());
}
