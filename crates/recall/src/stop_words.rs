//! Words that a search ignores, because they are too common or because they only form a question:
//! "do you still know what my dog is called?" is a question about a dog. English, German, French,
//! Spanish, Russian, Chinese and Japanese.

/// Returns whether a folded word is a stop word.
pub fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

/// Sorted. A word that is a noun in another of these languages is left out, for example "kind".
#[rustfmt::skip]
const STOP_WORDS: &[&str] = &[
    "a", "aber", "about", "after", "again", "al", "all", "als", "also", "always", "am", "an", "and",
    "any", "anybody", "anyone", "anything", "are", "aren't", "as", "at", "au", "auch", "auf", "aus",
    "aux", "avec", "be", "because", "been", "before", "bei", "being", "bin", "bis", "but", "by",
    "called", "can", "can't", "ce", "ces", "cette", "como", "con", "could", "couldn't", "cuando",
    "dans", "das", "dass", "de", "dein", "del", "dem", "den", "der", "des", "dich", "did", "didn't",
    "die", "dir", "do", "doch", "does", "doesn't", "doing", "don", "don't", "donde", "down", "du",
    "during", "each", "ein", "eine", "einem", "einen", "einer", "el", "ella", "elle", "en", "er",
    "era", "eres", "es", "est", "esta", "este", "esto", "et", "even", "ever", "few", "for", "from",
    "further", "für", "get", "gets", "getting", "go", "goes", "going", "got", "habe", "haben",
    "had", "hadn't", "has", "hasn't", "hat", "have", "haven't", "having", "he", "he'll", "her",
    "here", "hers", "him", "his", "how", "i", "i'd", "i'll", "i'm", "i've", "ich", "if", "ihr",
    "il", "ils", "im", "in", "into", "is", "isn't", "ist", "it", "it's", "its", "itself", "ja",
    "je", "just", "kann", "knew", "know", "known", "knows", "la", "las", "le", "les", "let", "leur",
    "ll", "lo", "los", "lui", "ma", "mais", "many", "maybe", "me", "mein", "mes", "mi", "mich",
    "might", "mir", "mis", "mit", "moi", "mon", "more", "most", "much", "must", "muy", "my", "nach",
    "name", "named", "names", "ne", "never", "nicht", "no", "noch", "nor", "nos", "not", "nothing",
    "nous", "now", "nur", "oder", "of", "off", "oh", "ok", "okay", "on", "once", "only", "or",
    "other", "ou", "our", "out", "over", "own", "où", "par", "para", "pas", "pero", "please", "por",
    "pour", "qu", "que", "qui", "qué", "re", "really", "remember", "remembers", "sa", "said",
    "same", "say", "says", "schon", "se", "sein", "ser", "ses", "shall", "she", "she'll", "should",
    "shouldn't", "si", "sich", "sie", "sin", "since", "sind", "so", "some", "somebody", "someone",
    "something", "son", "sont", "sort", "still", "su", "such", "sur", "sus", "ta", "te", "tell",
    "tells", "tes", "than", "that", "that's", "the", "their", "them", "then", "there", "there's",
    "these", "they", "they'll", "they're", "they've", "thing", "things", "think", "thinks", "this",
    "those", "through", "to", "toi", "told", "ton", "too", "tu", "tus", "un", "una", "und", "under",
    "une", "uno", "uns", "unser", "until", "up", "us", "ve", "very", "vom", "von", "vous", "war",
    "warum", "was", "wasn't", "we", "we'd", "we'll", "we're", "we've", "weil", "wenn", "wer",
    "were", "weren't", "what", "what's", "when", "where", "which", "while", "who", "whom", "why",
    "wie", "will", "wir", "wird", "with", "wo", "won't", "would", "wouldn't", "y", "ya", "yes",
    "yo", "you", "you'd", "you'll", "you're", "you've", "your", "yours", "zu", "zum", "zur", "в",
    "во", "вы", "да", "для", "до", "его", "ее", "если", "есть", "и", "из", "или", "как", "ко",
    "когда", "мне", "мой", "мы", "на", "не", "нет", "но", "о", "об", "он", "она", "они", "от", "по",
    "с", "со", "так", "там", "то", "ты", "у", "что", "это", "я", "か", "が", "した", "で", "です", "と",
    "ない", "に", "ね", "の", "は", "ます", "も", "よ", "を", "不", "也", "了", "什么", "什麼", "他", "他的", "们", "你",
    "你的", "們", "吗", "吧", "呢", "和", "嗎", "在", "她", "她的", "它", "就", "怎么", "怎麼", "我", "我的", "是", "是不",
    "是什", "有", "的", "这", "這", "那", "都",
];

#[cfg(test)]
mod tests {
    use super::{STOP_WORDS, is_stop_word};

    #[test]
    fn the_list_is_sorted_and_folded() {
        assert!(STOP_WORDS.is_sorted());
        assert!(
            STOP_WORDS
                .iter()
                .all(|it| crate::content::folded(it) == *it)
        );
        assert!(is_stop_word("the") && !is_stop_word("dog"));
    }
}
