//! What a shell would make of a text.

use proptest::prelude::*;

use super::*;

/// Returns the words of every command, as a list a command, with `NAME=value` before the words for variables.
fn shown(text: &str) -> Result<Vec<Vec<String>>, String> {
    let script = read(text).map_err(|error| error.to_string())?;
    let line = |command: &SimpleCommand| {
        let variables = command.variables.iter().map(|(name, value)| format!("{name}={value}"));
        variables.chain(command.words.iter().map(|word| word.text.clone())).collect()
    };
    Ok(script.commands.iter().map(line).collect())
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    assert_eq!(shown(text), Ok(vec![expected.iter().map(ToString::to_string).collect::<Vec<_>>()]), "{text:?}");
}

#[track_caller]
fn check_error(text: &str, expected: &str) {
    assert_eq!(shown(text), Err(expected.to_owned()), "{text:?}");
}

#[track_caller]
fn check_notes(text: &str, expected: &[(NoteKind, &str, usize)]) {
    let script = read(text).unwrap();
    let notes: Vec<_> = script.notes.iter().map(|note| (note.kind, note.text.as_str(), note.at)).collect();
    assert_eq!(notes, expected, "{text:?}");
    assert_eq!(script.commands.len(), 1, "{text:?}");
}

#[test]
fn words_are_split_as_a_shell_splits_them() {
    check("python  a.py\t--x 1", &["python", "a.py", "--x", "1"]);
    check("a 'b c' \"d e\" f\\ g", &["a", "b c", "d e", "f g"]);
    check(r#"a 'it'\''s' "say \"x\" \\ \n" '' """#, &["a", "it's", r#"say "x" \ \n"#, "", ""]);
    check(r#"a --x='{"k": 1}' --y="{\"k\": [1]}""#, &["a", r#"--x={"k": 1}"#, r#"--y={"k": [1]}"#]);
    check("a [ngram] '[ngram]' [--x]", &["a", "[ngram]", "[ngram]", "[--x]"]);
    check("a b#c # rest 'open", &["a", "b#c"]);
    check("a $ \"$\" 5$ \"a $ b\"", &["a", "$", "$", "5$", "a $ b"]);
    check("a \u{e9} '\u{4e2d}'", &["a", "\u{e9}", "\u{4e2d}"]);
    check("a --model <model name> --x=<N>", &["a", "--model", "<model name>", "--x=<N>"]);
}

#[test]
fn continued_lines_are_one_command() {
    check("a \\\n  --b 1 \\\r\n  --c", &["a", "--b", "1", "--c"]);
    check("a 'b\\\nc' \"d\\\ne\" f\\\ng", &["a", "b\\\nc", "de", "fg"]);
    check("a b\\", &["a", "b"]);
    check("\r\n\n  a b\r\n", &["a", "b"]);
    check_notes("a \\  \n --b", &[(NoteKind::BlankAfterBackslash, "\\", 2)]);
}

#[test]
fn variables_before_the_program_belong_to_it() {
    check("A=1 B='x y' C= prog D=2", &["A=1", "B=x y", "C=", "prog", "D=2"]);
    check("'A=1' prog", &["A=1", "prog"]);
    assert_eq!(read("'A=1' prog").unwrap().commands[0].variables, []);
    assert_eq!(read("1A=1 prog").unwrap().commands[0].words[0].text, "1A=1");
}

#[test]
fn variables_of_their_own_lines_are_kept_and_put_in() {
    let script = read("export M=org/model X=1\nN='2 3'; cd vllm && prog --model $M ${N} \"$N\" '$N'").unwrap();
    assert_eq!(
        script.variables.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>(),
        ["M=org/model", "N=2 3", "X=1"]
    );
    let words: Vec<_> = script.commands[0].words.iter().map(|word| word.text.as_str()).collect();
    assert_eq!(words, ["prog", "--model", "org/model", "2", "3", "2 3", "$N"]);
    assert_eq!(script.notes, [Note { kind: NoteKind::SideCommand, text: "cd vllm".into(), at: 32 }]);
}

#[test]
fn what_a_shell_does_beside_the_benchmark_is_noted() {
    check_notes("a b > log 2>&1", &[(NoteKind::Redirection, "> log", 4), (NoteKind::Redirection, "2>&1", 10)]);
    check_notes("a b 2>&1 | tee -a log", &[(NoteKind::Redirection, "2>&1", 4), (NoteKind::Tee, "| tee -a log", 9)]);
    check_notes(
        "a b >>log; echo done",
        &[(NoteKind::Redirection, ">>log", 4), (NoteKind::SideCommand, "echo done", 11)],
    );
    check_notes("a b &>log &", &[(NoteKind::Redirection, "&>log", 4), (NoteKind::Background, "&", 10)]);
    check_notes("$ a b", &[(NoteKind::Prompt, "$", 0)]);
    check_notes("a *.json", &[(NoteKind::Pattern, "*.json", 2)]);
    check_notes(
        "a 1>1>1>2",
        &[(NoteKind::Redirection, "1>1", 2), (NoteKind::Redirection, "1>1", 4), (NoteKind::Redirection, "1>2", 6)],
    );
}

#[test]
fn what_is_no_simple_command_is_named_with_its_place() {
    for (text, expected) in [
        ("", "no command at byte 0 of the command"),
        (" # only words of explanation", "no command at byte 0 of the command"),
        ("export A=1", "no command at byte 0 of the command"),
        ("a 'b", "a quote `'` that never ends at byte 2 of the command"),
        ("a \"b", "a quote `\"` that never ends at byte 2 of the command"),
        ("a | grep b", "a pipe at byte 2 of the command"),
        ("| a", "a pipe at byte 0 of the command"),
        ("a |", "a pipe at byte 2 of the command"),
        ("a || b", "an alternative (`||`) at byte 2 of the command"),
        ("(a b)", "a parenthesis at byte 0 of the command"),
        ("a $(nproc)", "a command's output used as text at byte 2 of the command"),
        ("a `nproc`", "a command's output used as text at byte 2 of the command"),
        ("a \"`nproc`\"", "a command's output used as text at byte 3 of the command"),
        ("a $((1+1))", "arithmetic at byte 2 of the command"),
        ("a --m $MODEL", "the variable `$MODEL`, which the command doesn't set, at byte 6 of the command"),
        ("M=1 a $M", "the variable `$M`, which the command doesn't set, at byte 6 of the command"),
        ("a ${M:-x}", "a variable with a rule (`${..}`) at byte 2 of the command"),
        ("a $'x'", "a quote after `$` at byte 2 of the command"),
        ("a < b", "input from a file at byte 2 of the command"),
        ("for i in 1 2; do a; done", "the shell's word `for` at byte 0 of the command"),
    ] {
        check_error(text, expected);
    }
    check_error(&"a".repeat(LONGEST + 1), "more text than 65536 bytes at byte 0 of the command");
}

#[test]
fn variables_that_grow_by_doubling_are_stopped() {
    let doubled = format!("A=0123456789abcdef\n{}p $A", "A=$A$A\n".repeat(60));
    assert_eq!(read(&doubled).unwrap_err().construct, Construct::TooLong);
}

proptest! {
    #[test]
    fn quoted_words_are_read_back(words in prop::collection::vec(any::<String>(), 1..8)) {
        let words: Vec<String> = words.into_iter().map(|word| word.replace('\0', "")).collect();
        let mut all = vec!["program".to_owned()];
        all.extend(words);
        let line = join(all.iter().map(String::as_str));
        let script = read(&line).unwrap();
        let read_back: Vec<String> = script.commands[0].words.iter().map(|word| word.text.clone()).collect();
        prop_assert_eq!(read_back, all);
        prop_assert_eq!(script.notes, vec![]);
    }

    #[test]
    fn no_text_is_too_strange(text in any::<String>()) {
        let _ = read(&text);
    }

    #[test]
    fn no_mixture_of_a_shells_signs_is_too_strange(text in "[ab1 \t\r\n\\\\'\"$(){}<>|&;#`=~*?\\[\\]-]{0,60}") {
        match read(&text) {
            Ok(script) => prop_assert!(script.commands.iter().all(|command| !command.words.is_empty())),
            Err(error) => prop_assert!(error.at <= text.len()),
        }
    }
}
