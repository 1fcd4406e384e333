//! Small test harness for cases that share started hosts, with output like libtest's. libtest never
//! drops values that tests share, but host processes must end after the cases.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

/// Name of a test case, which states the claim, and the function that checks the claim.
pub type Case<T> = (&'static str, fn(&T));

/// Runs the cases that the command line names, one after the other; without names, all cases.
pub fn run<T>(what: &str, shared: &T, cases: &[Case<T>]) -> ExitCode {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    // A misspelt word would silently leave cases out.
    let unknown = |word: &&String| !cases.iter().any(|(name, _)| name.contains(word.as_str()));
    if let Some(word) = wanted.iter().find(unknown) {
        println!("no case has {word} in its name; there are:");
        cases.iter().for_each(|(name, _)| println!("  {name}"));
        return ExitCode::FAILURE;
    }
    let since = Instant::now();
    let (mut passed, mut failed) = (0, 0);
    for (name, check) in cases {
        if !wanted.is_empty() && !wanted.iter().any(|wanted| name.contains(wanted.as_str())) {
            continue;
        }
        let since = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| check(shared)));
        let seconds = since.elapsed().as_secs_f64();
        match outcome {
            Ok(()) => {
                passed += 1;
                println!("test {name} ... ok ({seconds:.1} s)");
            }
            Err(_) => {
                failed += 1;
                println!("test {name} ... FAILED ({seconds:.1} s)");
            }
        }
    }
    let word = if failed == 0 { "ok" } else { "FAILED" };
    let seconds = since.elapsed().as_secs_f64();
    println!(
        "\ntest result: {word}. {passed} passed; {failed} failed; 0 ignored; {what}, {seconds:.1} s\n"
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
