//! Tests of `test.rs`.

use super::*;

#[test]
fn the_counts_of_a_test_run_are_read() {
    let line = "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s";
    assert_eq!(counts(line), Some([12, 3, 1]));
    assert_eq!(counts("18 passed, 2 failed"), Some([18, 2, 0]));
    assert_eq!(counts("test a ... ok"), None);
}

#[test]
fn a_stage_that_counts_no_test_has_failed() {
    let silent = Work::Own(|_, each| each(&mut Command::new("true")));
    let outcome =
        run(&Stage { name: "silent", work: silent }, &mut Built::default(), Manner::Quick);
    assert_eq!((outcome.good, outcome.passed, outcome.failed), (false, 0, 1));
    let counts = Work::Own(|_, each| each(Command::new("echo").arg("1 passed, 0 failed")));
    let outcome =
        run(&Stage { name: "counts", work: counts }, &mut Built::default(), Manner::Quick);
    assert_eq!((outcome.good, outcome.passed, outcome.failed), (true, 1, 0));
}

#[test]
fn a_word_that_is_in_no_name_of_a_stage_is_refused() {
    let check = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        every_word_has_a_stage(&words, stages().iter().chain(&stages_beside()))
    };
    check(&[]).unwrap();
    check(&["core", "demo", "chaos"]).unwrap();
    let error = check(&["core", "deom"]).unwrap_err().to_string();
    assert!(error.contains("deom") && error.contains("demo model; "), "{error}");
}

#[test]
fn each_stage_of_the_second_tier_exists_and_the_page_has_a_place_for_its_last_run() {
    let (first, beside) = (stages(), stages_beside());
    for name in SECOND_TIER.iter().chain(ON_DEMAND) {
        assert!(first.iter().chain(&beside).any(|stage| stage.name == *name), "{name}");
    }
    let page = include_str!("../../../docs/status.md");
    let written = with_last_run(page, "1970-01-01, 3 passed").unwrap();
    let [start, end] = LAST_RUN;
    assert!(written.contains(&format!("{start}1970-01-01, 3 passed{end}")), "{written}");
    assert_eq!(written.lines().count(), page.lines().count());
}

#[test]
fn a_command_that_hangs_is_ended_and_one_that_leaves_the_pipe_open_is_not_waited_for() {
    for script in
        ["echo '1 passed, 0 failed'; exec sleep 30", "sleep 30 & echo '1 passed, 0 failed'"]
    {
        let start = Instant::now();
        let mut outcome = StageOutcome::of("hangs");
        let mut command = Command::new("sh");
        let done =
            count_within(Duration::from_millis(500), command.args(["-c", script]), &mut outcome);
        assert!(done.unwrap_err().to_string().contains("still ran"), "{script}");
        assert!(start.elapsed() < Duration::from_secs(10), "{script}");
        assert_eq!(outcome.passed, 1, "{script}");
    }
}

/// Returns the arguments of each `cargo xtask` in a text, up to the placeholders for the reader's
/// words.
fn commands(text: &str) -> Vec<Vec<String>> {
    let is_own = |word: &String| {
        word.contains('…') || word.chars().all(|letter| letter.is_ascii_uppercase())
    };
    let rest = text.split("cargo xtask ").skip(1);
    let lines = rest.map(|rest| rest.split(['\n', '`', '#', '\\', '|']).next().unwrap());
    let arguments = lines.map(|line| {
        let mut words = Vec::new();
        for (at, part) in line.split('"').enumerate() {
            // Every second part of the split text is in quotes.
            match at % 2 {
                0 => words.extend(part.split_whitespace().map(str::to_owned)),
                _ => words.push(part.to_owned()),
            }
        }
        words.into_iter().take_while(|word| !is_own(word)).collect::<Vec<_>>()
    });
    arguments.filter(|words| !words.is_empty()).collect()
}

/// Returns the reason why `cargo xtask` rejects these arguments; `None` if the command exists.
fn refusal(arguments: &[String]) -> Option<String> {
    use clap::Parser as _;
    use clap::error::ErrorKind::MissingRequiredArgument;
    match crate::Arguments::try_parse_from([&["cargo xtask".to_owned()], arguments].concat()) {
        // The missing arguments are in the next line of the text.
        Err(error) if error.kind() == MissingRequiredArgument => None,
        Err(error) => Some(error.kind().to_string()),
        Ok(crate::Arguments { command: crate::Command::Test(options) }) => {
            let (stages, others) = (stages(), stages_beside());
            let known = every_word_has_a_stage(&options.only, stages.iter().chain(&others));
            known.err().map(|error| error.to_string())
        }
        Ok(_) => None,
    }
}

#[test]
fn the_commands_in_workflows_and_documents_exist() {
    let mut git = Command::new("git");
    let listed =
        git.args(["ls-files", "*.md", "*.yml", ".ci/run"]).current_dir(workspace::root()).output();
    let listed = String::from_utf8(listed.unwrap().stdout).unwrap();
    let (mut count, mut wrong) = (0, Vec::new());
    for file in listed.lines() {
        let text = fs::read_to_string(workspace::root().join(file)).unwrap();
        for arguments in commands(&text) {
            count += 1;
            let reason = refusal(&arguments);
            wrong.extend(reason.map(|reason| format!("{file}: {arguments:?}: {reason}")));
        }
    }
    assert!(count > 100, "only {count} commands were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
