//! Words that a search ignores, because they are too common or because they only form a question:
//! "do you still know what my dog is called?" is a question about a dog.
//!
//! A word is ignored only in the language of its text, because it may be a noun in another one: "war" is a
//! common verb in German. The language is the one of which a text has the most stop words.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The stop words of each language: English, German, French, Spanish, Russian, Chinese and Japanese. If a
/// text has as many stop words of two languages, it counts as a text of the first.
#[rustfmt::skip]
const LANGUAGES: [&[&str]; 7] = [
    &[
        "a", "about", "after", "again", "all", "also", "always", "am", "an", "and", "any",
        "anybody", "anyone", "anything", "are", "aren't", "as", "at", "be", "because", "been",
        "before", "being", "but", "by", "called", "can", "can't", "could", "couldn't", "did",
        "didn't", "do", "does", "doesn't", "doing", "don", "don't", "down", "during", "each",
        "even", "ever", "few", "for", "from", "further", "get", "gets", "getting", "go", "goes",
        "going", "got", "had", "hadn't", "has", "hasn't", "have", "haven't", "having", "he",
        "he'll", "her", "here", "hers", "him", "his", "how", "i", "i'd", "i'll", "i'm", "i've",
        "if", "in", "into", "is", "isn't", "it", "it's", "its", "itself", "just", "knew",
        "know", "known", "knows", "let", "ll", "many", "maybe", "me", "might", "more", "most",
        "much", "must", "my", "name", "named", "names", "never", "no", "nor", "not", "nothing",
        "now", "of", "off", "oh", "ok", "okay", "on", "once", "only", "or", "other", "our",
        "out", "over", "own", "please", "re", "really", "remember", "remembers", "said", "same",
        "say", "says", "shall", "she", "she'll", "should", "shouldn't", "since", "so", "some",
        "somebody", "someone", "something", "sort", "still", "such", "tell", "tells", "than",
        "that", "that's", "the", "their", "them", "then", "there", "there's", "these", "they",
        "they'll", "they're", "they've", "thing", "things", "think", "thinks", "this", "those",
        "through", "to", "told", "too", "under", "until", "up", "us", "ve", "very", "was",
        "wasn't", "we", "we'd", "we'll", "we're", "we've", "were", "weren't", "what", "what's",
        "when", "where", "which", "while", "who", "whom", "why", "will", "with", "won't",
        "would", "wouldn't", "yes", "you", "you'd", "you'll", "you're", "you've", "your",
        "yours",
    ],
    &[
        "aber", "als", "also", "am", "an", "auch", "auf", "aus", "bei", "bin", "bis", "das",
        "dass", "dein", "dem", "den", "der", "des", "dich", "die", "dir", "doch", "du", "ein",
        "eine", "einem", "einen", "einer", "er", "es", "für", "habe", "haben", "hat", "ich",
        "ihr", "im", "in", "ist", "ja", "kann", "mein", "mich", "mir", "mit", "nach", "name",
        "nicht", "noch", "nur", "oder", "schon", "sein", "sich", "sie", "sind", "so", "und",
        "uns", "unser", "vom", "von", "war", "warum", "was", "weil", "wenn", "wer", "wie",
        "will", "wir", "wird", "wo", "zu", "zum", "zur",
    ],
    &[
        "a", "au", "aux", "avec", "ce", "ces", "cette", "dans", "de", "des", "du", "elle", "en",
        "est", "et", "il", "ils", "je", "la", "le", "les", "leur", "lui", "ma", "mais", "me",
        "mes", "moi", "mon", "ne", "nos", "nous", "on", "ou", "où", "par", "pas", "pour", "qu",
        "que", "qui", "sa", "se", "ses", "si", "son", "sont", "sur", "ta", "te", "tes", "toi",
        "ton", "tu", "un", "une", "vous", "y",
    ],
    &[
        "a", "al", "como", "con", "cuando", "de", "del", "donde", "el", "ella", "en", "era",
        "eres", "es", "esta", "este", "esto", "la", "las", "lo", "los", "me", "mi", "mis",
        "muy", "no", "para", "pero", "por", "que", "qué", "se", "ser", "si", "sin", "son", "su",
        "sus", "te", "tu", "tus", "un", "una", "uno", "y", "ya", "yo",
    ],
    &[
        "в", "во", "вы", "да", "для", "до", "его", "ее", "если", "есть", "и", "из", "или",
        "как", "ко", "когда", "мне", "мой", "мы", "на", "не", "нет", "но", "о", "об", "он",
        "она", "они", "от", "по", "с", "со", "так", "там", "то", "ты", "у", "что", "это", "я",
    ],
    &[
        "不", "也", "了", "什么", "什麼", "他", "他的", "们", "你", "你的", "們",
        "吗", "吧", "呢", "和", "嗎", "在", "她", "她的", "它", "就", "怎么",
        "怎麼", "我", "我的", "是", "是不", "是什", "有", "的", "这", "這", "那",
        "都",
    ],
    &[
        "か", "が", "した", "で", "です", "と", "ない", "に", "ね", "の", "は",
        "ます", "も", "よ", "を",
    ],
];

/// The languages in which a word is a stop word, a bit for each.
type LanguageSet = u8;

/// Each stop word, folded, with its languages.
static STOP_WORDS: LazyLock<HashMap<&str, LanguageSet>> = LazyLock::new(|| {
    let mut languages: HashMap<&str, LanguageSet> = HashMap::new();
    for (n, words) in LANGUAGES.iter().enumerate() {
        for word in words.iter().copied() {
            *languages.entry(word).or_default() |= 1 << n;
        }
    }
    languages
});

/// Removes the stop words of the language of a text from its words, which are folded. A single word is
/// kept, because it does not tell its language.
pub fn remove_stop_words(words: &mut Vec<&str>) {
    if let [_] = words[..] {
        return;
    }
    let of_text = language(words);
    words.retain(|it| languages_of(it) & of_text == 0);
}

/// Returns the language of which a text has the most stop words; no language if it has none.
fn language(words: &[&str]) -> LanguageSet {
    let mut n_words = [0u32; LANGUAGES.len()];
    for languages in words.iter().map(|it| languages_of(it)) {
        for (n, count) in n_words.iter_mut().enumerate() {
            *count += u32::from(languages >> n & 1);
        }
    }
    let most = n_words.into_iter().max().filter(|it| *it > 0);
    let found = n_words.iter().position(|it| Some(*it) == most);
    found.map_or(0, |n| 1 << n)
}

fn languages_of(word: &str) -> LanguageSet {
    STOP_WORDS.get(word).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{LANGUAGES, remove_stop_words};

    #[track_caller]
    fn assert_kept(text: &str, kept: &[&str]) {
        let mut words: Vec<&str> = text.split(' ').collect();
        remove_stop_words(&mut words);
        assert_eq!(words, kept);
    }

    #[test]
    fn the_words_are_folded() {
        let mut words = LANGUAGES.into_iter().flatten();
        assert!(words.all(|it| crate::content::folded(it) == *it));
    }

    #[test]
    fn only_stop_words_of_the_language_of_the_text_are_removed() {
        assert_kept("the war was long", &["war", "long"]);
        assert_kept("der krieg war lang", &["krieg", "lang"]);
        assert_kept("my son is in the den", &["son", "den"]);
        assert_kept("mon fils et son chien", &["fils", "chien"]);
    }

    #[test]
    fn a_text_of_stop_words_of_its_language_has_no_words() {
        assert_kept("what is it", &[]);
        assert_kept("was ist das", &[]);
    }

    #[test]
    fn of_two_equally_likely_languages_the_first_is_the_language() {
        assert_kept("who likes die hard", &["likes", "die", "hard"]);
    }

    #[test]
    fn a_single_word_is_kept() {
        assert_kept("war", &["war"]);
    }
}
