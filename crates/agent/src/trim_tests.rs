//! Tests of how the text of a reply is trimmed.

use proptest::prelude::{any, prop_assert, prop_assert_eq};
use proptest::proptest;
use proptest::sample::{Index, select};

use super::ReplyTrimmer;

fn ada_trimmer() -> ReplyTrimmer {
    ReplyTrimmer::new(&["Ada", "Countess"], &["Bob", "Sir Lancelot"])
}

fn clean(mut trim: ReplyTrimmer, text: &str) -> String {
    trim.push(text) + &trim.finish()
}

#[test]
fn white_space_is_removed_at_both_ends_but_not_inside() {
    assert_eq!(
        clean(ada_trimmer(), " \n\t Hello.\n\n  You there? \n "),
        "Hello.\n\n  You there?"
    );
}

#[test]
fn verbatim_text_is_not_trimmed() {
    let text = " \t{\r\n  \"a\": 1\n}\u{85}\n";

    assert_eq!(clean(ReplyTrimmer::verbatim(), text), text);
    assert_eq!(clean(ReplyTrimmer::verbatim(), "a\0b"), "ab");
}

#[test]
fn control_characters_are_removed_except_line_breaks_and_tabs() {
    assert_eq!(
        clean(ada_trimmer(), "a\0b\u{1b}[1mc\r\nd\te\u{85}f\u{7f}"),
        "ab[1mc\nd\tef"
    );
}

#[test]
fn the_marker_of_a_whisper_is_removed_at_the_beginning() {
    let trimmer = || ada_trimmer().without_marker(Some("(whispered to "));
    for text in [
        "(whispered to Bob) Hello.",
        " (whispered to Bob, Sir Lancelot)\nHello.",
        "Ada: (whispered to Bob) Hello.",
        "**Ada:** (whispered to Bob) Hello.",
        "(whispered to Bob) Ada: Hello.",
    ] {
        assert_eq!(clean(trimmer(), text), "Hello.", "{text:?}");
    }
    for kept in [
        "(whispered to\nBob) Hello.",
        "(whispered to nobody in particular",
        "(whispering) Hello.",
        "Hello. (whispered to Bob) Bye.",
        "(whi",
    ] {
        assert_eq!(clean(trimmer(), kept), kept);
    }
    let marked = "(whispered to Bob) Hello.";
    assert_eq!(clean(ada_trimmer(), marked), marked, "no prompt had one");
    let continued = trimmer().continuing(true);
    assert_eq!(clean(continued, marked), marked);
}

#[test]
fn the_name_of_the_speaker_is_removed_only_at_the_beginning() {
    for own in [
        "Ada: ",
        "ada:",
        " **Ada:** ",
        "**Ada**: ",
        "Countess:\n\n",
        "Ada: Ada: ",
    ] {
        let text = format!("{own}Hello.\nAda: I said hello.");

        assert_eq!(
            clean(ada_trimmer(), &text),
            "Hello.\nAda: I said hello.",
            "{own:?}"
        );
    }
}

#[test]
fn white_space_before_a_continuation_is_kept() {
    for is_mid_line in [false, true] {
        let continued = |text| clean(ada_trimmer().continuing(is_mid_line), text);

        assert_eq!(continued(" and so on. "), " and so on.");
        assert_eq!(continued("\n\nThen.\nBob: Hi!"), "\n\nThen.");
        assert_eq!(continued("Ada: Then."), " Then.");
        assert_eq!(continued("\nBob: Hi!"), "");
        assert_eq!(continued(" \n "), "");
    }
}

#[test]
fn the_name_of_another_member_within_a_continued_line_cuts_nothing() {
    let continued = |is_mid_line, text| clean(ada_trimmer().continuing(is_mid_line), text);

    assert_eq!(continued(true, " Bob: no.\nBob: Hi!"), " Bob: no.");
    assert_eq!(continued(false, "Bob: no."), "");
}

#[test]
fn emphasis_is_kept_when_the_name_of_the_speaker_is_removed() {
    assert_eq!(
        clean(ada_trimmer(), "*Ada: waves.* Hello."),
        "*waves.* Hello."
    );
    assert_eq!(clean(ada_trimmer(), "**Ada: **"), "");
}

#[test]
fn text_is_cut_at_the_first_line_of_another_member() {
    for line in [
        "Bob: Hi!",
        "bob:",
        "**Bob:** Hi!",
        "  Bob: Hi!",
        "Sir Lancelot: Ho!",
        "BOB：x",
    ] {
        let mut trim = ada_trimmer();

        let text = trim.push(&format!("Hello.\n\n{line}\nMore."));

        assert_eq!(text, "Hello.", "{line:?}");
        assert!(trim.is_cut());
        assert_eq!(trim.push("Even more."), "");
        assert_eq!(trim.finish(), "");
    }
}

#[test]
fn a_text_that_begins_with_the_name_of_another_member_becomes_empty() {
    assert_eq!(clean(ada_trimmer(), "Bob: Hello, I am Bob."), "");
    assert_eq!(clean(ada_trimmer(), "Ada: Bob: Hello."), "");
    assert_eq!(clean(ada_trimmer(), "*Ada: Bob: Hello."), "");
}

#[test]
fn a_name_inside_a_line_or_without_a_colon_cuts_nothing() {
    let text = "I told Bob: no.\nBob laughed.\nBobby: who?\nSir\nLancelot: hm.";

    assert_eq!(clean(ada_trimmer(), text), text);
}

#[test]
fn without_other_members_nothing_is_cut() {
    let trim = ReplyTrimmer::new(&["Ada"], &[]);

    assert_eq!(clean(trim, "Ada: One.\nBob: Two."), "One.\nBob: Two.");
    assert_eq!(
        clean(ReplyTrimmer::without_names(), " Ada: One. "),
        "Ada: One."
    );
}

#[test]
fn only_text_that_may_still_be_removed_is_held_back() {
    let mut trim = ada_trimmer();

    assert_eq!(trim.push("Ad"), "");
    assert_eq!(trim.push("d this"), "Add this");
    assert_eq!(trim.push(" \nB"), "");
    assert_eq!(trim.push("ox"), " \nBox");
    assert_eq!(trim.push("\nBob"), "");
    assert_eq!(trim.finish(), "\nBob");
}

#[test]
fn a_reply_begins_with_its_stored_prefix_unless_it_is_blank() {
    let after = |stored_prefix: &str| ada_trimmer().with_stored_prefix(stored_prefix.to_owned());

    assert_eq!(clean(after("Well,"), " yes. \n"), "Well, yes.");
    assert_eq!(
        clean(after("I met"), " Bob: he waved."),
        "I met Bob: he waved."
    );
    assert_eq!(clean(after("Well,"), " \n"), "");
    let mut trim = after("So:");
    assert_eq!(
        (trim.push(" "), trim.push("x"), trim.push("b")),
        (String::new(), "So: x".to_owned(), "b".to_owned())
    );
}

proptest! {
    #[test]
    fn the_trimmed_text_does_not_depend_on_where_pieces_are_cut(
        words in proptest::collection::vec(
            select(vec![
                "Ada", "Bob", ":", "：", "*", "**", "\n", " ", "\t", "\0", "\r\n", "é", "e\u{301}",
                "Sir ", "Lancelot", "hello", "🦀", "B",
            ]),
            0..30,
        ),
        cuts in proptest::collection::vec(any::<Index>(), 0..10),
    ) {
        let raw = words.concat();
        let mut cuts: Vec<usize> =
            cuts.iter().map(|it| raw.floor_char_boundary(it.index(raw.len() + 1))).collect();
        cuts.extend([0, raw.len()]);
        cuts.sort_unstable();

        let whole = clean(ada_trimmer(), &raw);
        let mut trim = ada_trimmer();
        let mut pieces: String = cuts.windows(2).map(|it| trim.push(&raw[it[0]..it[1]])).collect();
        pieces += &trim.finish();

        prop_assert_eq!(&pieces, &whole);
        prop_assert_eq!(whole.trim(), &whole);
        prop_assert!(!whole.chars().any(|it| it.is_control() && it != '\n' && it != '\t'));
        prop_assert_eq!(clean(ada_trimmer(), &whole), whole);
    }
}
