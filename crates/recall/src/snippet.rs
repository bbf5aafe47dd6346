//! Decides which messages become memories as they are, without a model: those that say something
//! about a person and are neither too short nor too long.

use crate::content::{folded, one_line};

/// The minimum and maximum length of such a message, in characters.
const CHARS: std::ops::RangeInclusive<usize> = 40..=600;
/// A word this long that mixes letters and digits is taken for a key.
const MIN_KEY_CHARS: usize = 20;
/// What announces a secret, in a folded text.
const SECRET_WORDS: [&str; 13] = [
    "password",
    "passwort",
    "passphrase",
    "api key",
    "api_key",
    "secret key",
    "private key",
    "contraseña",
    "mot de passe",
    "пароль",
    "パスワード",
    "비밀번호",
    "密码",
];
/// Words that refer to a person, in a folded text of a script with spaces.
#[rustfmt::skip]
const PERSON_WORDS: &[&str] = &[
    "he", "her", "hers", "him", "his", "i", "i'm", "me", "mine", "my", "our", "she", "their", "them", "they", "us",
    "we", "you", "your",
    "dein", "dich", "du", "er", "ich", "ihr", "mein", "meine", "mich", "mir", "sie", "unser", "wir",
    "elle", "il", "je", "ma", "mes", "moi", "mon", "nous", "ta", "toi", "ton", "tu", "vous",
    "ella", "él", "mi", "mis", "nosotros", "tú", "yo",
    "мне", "мой", "моя", "мы", "он", "она", "они", "ты", "я",
];
/// The same for scripts without spaces.
const PERSON_CHARACTERS: [&str; 11] = [
    "我", "你", "您", "他", "她", "私", "僕", "俺", "彼", "나", "너",
];

/// Returns the memory that this message of `author` becomes, as `Author: text`; `None` if it becomes
/// none. `names` are the names of the members.
pub fn snippet<'a>(
    author: &str,
    text: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let line = one_line(text)?;
    let is_suitable = CHARS.contains(&line.chars().count())
        && !looks_like_secret(&line)
        && is_about_person(&line, names);
    is_suitable
        .then(|| one_line(&format!("{author}: {line}")))
        .flatten()
}

/// Returns whether the text seems to contain a password or a key.
pub fn looks_like_secret(text: &str) -> bool {
    let folded = folded(text);
    let is_key = |word: &str| {
        let is_long = word.chars().count() >= MIN_KEY_CHARS && !word.contains("://");
        is_long
            && word.chars().any(|c| c.is_ascii_digit())
            && word.chars().any(|c| c.is_ascii_alphabetic())
            && word.chars().all(|c| c.is_ascii_graphic())
    };
    SECRET_WORDS.iter().any(|it| folded.contains(it)) || folded.split_whitespace().any(is_key)
}

fn is_about_person<'a>(text: &str, names: impl IntoIterator<Item = &'a str>) -> bool {
    let folded_text = folded(text);
    let mut words = folded_text.split(|c: char| !c.is_alphanumeric() && c != '\'');
    let has_pronoun = words.any(|it| PERSON_WORDS.contains(&it));
    let has_character = || PERSON_CHARACTERS.iter().any(|it| folded_text.contains(it));
    has_pronoun
        || has_character()
        || names.into_iter().any(|name| {
            let name = folded(name);
            !name.trim().is_empty() && folded_text.contains(name.trim())
        })
}

#[cfg(test)]
mod tests {
    use super::snippet;

    fn made(text: &str) -> Option<String> {
        snippet("Ann", text, ["Ann", "Captain Vera"])
    }

    #[test]
    fn a_sentence_about_a_person_becomes_a_memory_with_its_author() {
        assert_eq!(
            made("My dog is called Pixel,\nand he loves the lighthouse.").as_deref(),
            Some("Ann: My dog is called Pixel, and he loves the lighthouse.")
        );
        assert!(made("The old lighthouse belongs to captain vera since the war.").is_some());
        assert!(made("我的狗叫像素，它非常喜欢灯塔，每天晚上都要去海边看船，然后在沙滩上跑来跑去，直到天亮。").is_some());
    }

    #[test]
    fn a_message_about_no_person_becomes_none() {
        assert_eq!(
            made("The lighthouse was built in 1870 of red stone and iron."),
            None
        );
        // `the` contains `he`.
        assert_eq!(
            made("Then the weather there changed, over the northern bay."),
            None
        );
    }

    #[test]
    fn a_short_or_long_message_becomes_none() {
        assert_eq!(made("My dog is called Pixel."), None);
        assert_eq!(made(&"I walk along the shore. ".repeat(30)), None);
    }

    #[test]
    fn a_message_with_a_secret_becomes_none() {
        for text in [
            "My password for the harbor office is rosebud, please remember it.",
            "I use the key sk-proj-4f9a8b7c6d5e4f3a2b1c for the model of the harbor.",
        ] {
            assert_eq!(made(text), None, "{text}");
        }
        assert!(
            made("I read about it at https://example.org/lighthouses/1870 yesterday.").is_some()
        );
    }
}
