//! Tests which spellings of a name match, in many scripts.

use super::tests::mentioned_ids;

/// Asserts for each `(text, name)` whether the text mentions the name.
fn assert_mentioned(cases: &[(&str, &str)], expected: bool) {
    for (text, name) in cases {
        let read = !mentioned_ids(text, &[name]).is_empty();
        assert_eq!(read, expected, "{name:?} in {text:?}");
    }
}

#[test]
fn a_name_is_recognized_in_any_case_and_between_punctuation() {
    assert_mentioned(
        &[
            ("Bob", "Bob"),
            ("hey bob!", "Bob"),
            ("BOB?", "bob"),
            ("(Bob)", "Bob"),
            ("*Bob* looks up", "Bob"),
            ("**Bob**", "Bob"),
            ("_Bob_ looks up", "Bob"),
            ("__Bob__", "Bob"),
            ("@Bob, hi", "Bob"),
            ("\"Bob\"", "Bob"),
            ("'Bob'", "Bob"),
            ("‘Bob’", "Bob"),
            ("Ann, Bob; Carl", "Bob"),
            ("Bob—wait", "Bob"),
            ("hello Bob", "  Bob "),
        ],
        true,
    );
}

#[test]
fn a_name_inside_a_word_is_not_recognized() {
    assert_mentioned(
        &[
            ("bobsled", "Bob"),
            ("kebob", "Bob"),
            ("snake_bob_case", "Bob"),
            ("Bob2", "Bob"),
            ("bob@bob.com", "bob.c"),
            ("plan", "lan"),
            ("élan", "lan"),
            ("Bobs", "Bob"),
        ],
        false,
    );
}

#[test]
fn a_possessive_ending_does_not_hide_a_name() {
    assert_mentioned(
        &[
            ("Bob's hat", "Bob"),
            ("Bob’s hat", "Bob"),
            ("BOB'S HAT", "Bob"),
            ("James' hat", "James"),
            ("Sir Lancelot's horse", "Sir Lancelot"),
            ("the Zoë’s", "Zoë"),
        ],
        true,
    );
    assert_mentioned(&[("Bob'sled", "Bob"), ("O'Brien", "Brien")], false);
}

#[test]
fn all_apostrophes_are_equivalent() {
    assert_mentioned(
        &[
            ("O’Brien!", "O'Brien"),
            ("o'brien", "O’Brien"),
            ("D’Artagnan’s", "d'Artagnan"),
        ],
        true,
    );
}

#[test]
fn composed_and_decomposed_letters_are_the_same() {
    assert_mentioned(
        &[
            ("hola Jose\u{301}", "José"),
            ("hola José", "Jose\u{301}"),
            ("Zoe\u{308}!", "ZOË"),
            ("A\u{30A}sa", "Åsa"),
            ("한나야", "\u{1112}\u{1161}\u{11AB}\u{1102}\u{1161}"),
        ],
        true,
    );
    assert_mentioned(
        &[("Jose", "José"), ("José", "Jose"), ("Jose\u{301}", "Jose")],
        false,
    );
}

#[test]
fn compatibility_forms_are_the_same() {
    assert_mentioned(
        &[
            ("Ｂｏｂ、こんにちは", "Bob"),
            ("Bob", "Ｂｏｂ"),
            ("ﾊﾘｰ!", "ハリー"),
            ("＠Bob", "Bob"),
            ("𝓑𝓸𝓫 hi", "Bob"),
            ("ﬁona", "Fiona"),
        ],
        true,
    );
}

#[test]
fn letters_fold_beyond_ascii() {
    assert_mentioned(
        &[
            ("herr strauß", "Strauss"),
            ("HERR STRAUSS", "Strauß"),
            ("ÅSA", "åsa"),
            ("ИВАН, привет", "Иван"),
            ("привет, иван!", "Иван"),
            ("ΟΔΥΣΣΕΥΣ", "Οδυσσεύς|Οδυσσευς"),
            ("γεια σου οδυσσευσ", "Οδυσσευς"),
            ("ŁUKASZ", "Łukasz"),
        ],
        true,
    );
    assert_mentioned(&[("Иванов", "Иван"), ("иванушка", "Иван")], false);
}

#[test]
fn dotted_and_dotless_turkish_i_are_equivalent() {
    assert_mentioned(
        &[
            ("ışık", "Işık"),
            ("IŞIK", "Işık"),
            ("işik", "Işık"),
            ("İBRAHİM!", "İbrahim"),
            ("ibrahim", "İbrahim"),
            ("İbrahim'in", "İbrahim'in"),
            ("merhaba i\u{307}brahim", "Ibrahim"),
        ],
        true,
    );
}

#[test]
fn chinese_names_are_recognized_without_spaces() {
    assert_mentioned(
        &[
            ("你好孫悟空你在哪裡", "孫悟空"),
            ("我觉得李白很厉害。", "李白"),
            ("李白Bob你好", "Bob"),
            ("请问Bob在吗", "Bob"),
        ],
        true,
    );
    assert_mentioned(&[("孫悟飯", "孫悟空"), ("天空很蓝", "孫悟空")], false);
}

#[test]
fn japanese_names_are_recognized_without_spaces() {
    assert_mentioned(
        &[
            ("さくらちゃん、おはよう", "さくら"),
            ("ジョーカーが来た", "ジョーカー"),
            ("今日は初音ミクの歌", "初音ミク"),
            ("このAI子は", "AI子"),
            ("佐々木さん", "佐々木"),
            ("ハリーは魔法使い", "ハリー・ポッター"),
        ],
        true,
    );
    assert_mentioned(&[("さくた", "さくら"), ("ABAI子", "AI子")], false);
}

#[test]
fn korean_names_are_recognized_with_their_particles() {
    assert_mentioned(
        &[
            ("유나야 안녕", "유나"),
            ("김유나는 어디 있어?", "김유나"),
            ("Bob아 안녕", "Bob"),
            ("그래서 민준이가 말했다", "민준"),
            ("유나가 왔다", "김 유나"),
        ],
        true,
    );
    assert_mentioned(&[("윤아야", "유나"), ("Bobby아", "Bob")], false);
}

#[test]
fn southeast_asian_names_are_recognized_without_spaces() {
    assert_mentioned(
        &[
            ("สวัสดีสมชายครับ", "สมชาย"),
            ("ສະບາຍດີບຸນມີ", "ບຸນມີ"),
            ("សួស្តីសុខា", "សុខា"),
            ("မင်္ဂလာပါအောင်", "အောင်"),
        ],
        true,
    );
    // The tone mark makes it a different word: a match must end at a letter boundary.
    assert_mentioned(&[("ที่บ้าน", "ที")], false);
}

#[test]
fn names_in_other_scripts_are_recognized_at_word_boundaries() {
    assert_mentioned(
        &[
            ("مرحبا علي!", "علي"),
            ("يا ليلى، تعالي", "ليلى"),
            ("שלום דוד", "דוד"),
            ("नमस्ते राम जी", "राम"),
            ("გამარჯობა ნინო", "ნინო"),
            ("Բարեւ Արամ", "Արամ"),
            ("سلام \u{202B}آرش\u{202C}", "آرش"),
        ],
        true,
    );
    assert_mentioned(&[("عليا", "علي"), ("रामायण", "राम")], false);
}

#[test]
fn a_word_of_a_longer_name_counts_in_scripts_without_capitals() {
    assert_mentioned(
        &[
            ("يا آرثر", "الملك آرثر"),
            ("悟空!", "孫 悟空"),
            ("ნინო", "ქალბატონი ნინო"),
            ("ポッターくん", "ハリー・ポッター"),
        ],
        true,
    );
    assert_mentioned(&[("空が青い", "孫 悟空"), ("白い", "李 白")], false);
}

#[test]
fn emoji_can_be_names() {
    assert_mentioned(
        &[
            ("hi🦊there", "🦊"),
            ("🦊🐻", "🦊🐻"),
            ("❤ you", "❤\u{FE0F}"),
            ("Luna!", "Luna 🌙"),
            ("luna 🌙, hi", "Luna 🌙"),
            ("👩\u{200D}🚀 up", "👩\u{200D}🚀"),
            ("🇫🇷!", "🇫🇷"),
        ],
        true,
    );
    assert_mentioned(&[("👩\u{200D}🚀", "👩"), ("👍🏽", "👍")], false);
}

#[test]
fn names_of_punctuation_never_match() {
    assert_mentioned(
        &[
            ("really??", "?"),
            ("...", "..."),
            ("", ""),
            ("—", "—"),
            ("、", "、"),
            (" ", " "),
        ],
        false,
    );
}

#[test]
fn a_capitalized_word_of_a_longer_name_counts() {
    assert_mentioned(
        &[
            ("Lancelot, come", "Sir Lancelot"),
            ("lancelot's horse", "Sir Lancelot"),
            ("Flux?", "Flux the Cat"),
            ("my cat", "Flux the Cat"),
            ("Picard", "Jean-Luc Picard"),
            ("luc", "Jean-Luc Picard"),
            ("Ольга", "Ольга из Киева"),
        ],
        true,
    );
    assert_mentioned(
        &[
            ("the door", "Flux the Cat"),
            ("I see a door", "Henry I"),
            ("из дома", "Ольга из Киева"),
            ("unit 7", "Number 7"),
            ("sea", "deep sea monster"),
        ],
        false,
    );
}

#[test]
fn white_space_inside_a_name_does_not_matter() {
    assert_mentioned(
        &[
            ("Sir\u{A0}Lancelot", "Sir Lancelot"),
            ("sir \n lancelot", "Sir  Lancelot"),
        ],
        true,
    );
}
