//! Words that are too common to find anything by them: English, German, French, Spanish, Russian,
//! Chinese and Japanese.

/// Returns whether a folded word is a stop word.
pub fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

/// Sorted.
#[rustfmt::skip]
const STOP_WORDS: &[&str] = &[
    "a", "aber", "about", "after", "again", "al", "all", "als", "also", "am", "an", "and", "any",
    "are", "as", "at", "au", "auch", "auf", "aus", "aux", "avec", "be", "because", "been",
    "before", "bei", "being", "bin", "bis", "but", "by", "can", "can't", "ce", "ces", "cette",
    "como", "con", "could", "cuando", "dans", "das", "dass", "de", "dein", "del", "dem", "den",
    "der", "des", "dich", "did", "didn't", "die", "dir", "do", "doch", "does", "doesn't", "doing",
    "don", "don't", "donde", "down", "du", "during", "each", "ein", "eine", "einem", "einen",
    "einer", "el", "ella", "elle", "en", "er", "era", "eres", "es", "est", "esta", "este", "esto",
    "et", "few", "for", "from", "further", "für", "habe", "haben", "had", "has", "hat", "have",
    "having", "he", "her", "here", "hers", "him", "his", "how", "i", "i'm", "ich", "if", "ihr",
    "il", "ils", "im", "in", "into", "is", "isn't", "ist", "it", "it's", "its", "itself", "ja",
    "je", "just", "kann", "la", "las", "le", "les", "leur", "ll", "lo", "los", "lui", "ma", "mais",
    "me", "mein", "mes", "mi", "mich", "mir", "mis", "mit", "moi", "mon", "more", "most", "muy",
    "my", "nach", "ne", "nicht", "no", "noch", "nor", "nos", "not", "nous", "now", "nur", "oder",
    "of", "off", "on", "once", "only", "or", "other", "ou", "our", "out", "over", "own", "où",
    "par", "para", "pas", "pero", "por", "pour", "qu", "que", "qui", "qué", "re", "sa", "same",
    "schon", "se", "sein", "ser", "ses", "she", "should", "si", "sich", "sie", "sin", "sind", "so",
    "some", "son", "sont", "su", "such", "sur", "sus", "ta", "te", "tes", "than", "that", "that's",
    "the", "their", "them", "then", "there", "there's", "these", "they", "this", "those",
    "through", "to", "toi", "ton", "too", "tu", "tus", "un", "una", "und", "under", "une", "uno",
    "uns", "unser", "until", "up", "ve", "very", "vom", "von", "vous", "war", "warum", "was", "we",
    "weil", "wenn", "wer", "were", "what", "what's", "when", "where", "which", "while", "who",
    "whom", "why", "wie", "will", "wir", "wird", "with", "wo", "won't", "would", "y", "ya", "yo",
    "you", "you're", "your", "yours", "zu", "zum", "zur", "в", "во", "вы", "да", "для", "до",
    "его", "ее", "если", "есть", "и", "из", "или", "как", "ко", "когда", "мне", "мой", "мы", "на",
    "не", "нет", "но", "о", "об", "он", "она", "они", "от", "по", "с", "со", "так", "там", "то",
    "ты", "у", "что", "это", "я", "か", "が", "した", "で", "です", "と", "ない", "に", "ね", "の", "は", "ます",
    "も", "よ", "を", "不", "也", "了", "什么", "什麼", "他", "他的", "们", "你", "你的", "們", "吗", "吧", "呢", "和",
    "嗎", "在", "她", "她的", "它", "就", "怎么", "怎麼", "我", "我的", "是", "是不", "是什", "有", "的", "这", "這", "那",
    "都",
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
