//! Defines `NameSkeleton`, the visual form of a name: names that look alike have the same one.
//! Callers use it so that a user cannot imitate the username of another account or the name of
//! another member of a space. No I/O.
//!
//! `Аnn` with a Cyrillic А, `ＡＮＮ` in full-width letters and `Ann` with an invisible mark look like
//! `Ann`. Only whole names are compared, because a shared part does not mislead.

use unicode_normalization::UnicodeNormalization;
use unicode_security::skeleton;

/// The visual form of a name; confusable names have the same one.
#[derive(Clone, Debug)]
pub struct NameSkeleton {
    /// In the original case: a capital I looks like a small l.
    as_written: String,
    /// Case-folded: `ANN` equals `ann`.
    in_one_case: String,
}

impl NameSkeleton {
    /// Returns the skeleton of `name`.
    pub fn from_name(name: &str) -> Self {
        let composed: String = name.nfkc().collect();
        Self {
            as_written: fold_skeleton(&composed),
            in_one_case: fold_skeleton(&caseless::default_case_fold_str(&composed)),
        }
    }

    /// Returns the skeleton in the original case.
    pub fn as_written(&self) -> &str {
        &self.as_written
    }

    /// Returns the case-folded skeleton.
    pub fn in_one_case(&self) -> &str {
        &self.in_one_case
    }

    /// Returns whether the names could be confused.
    pub fn is_confusable_with(&self, other: &Self) -> bool {
        self.as_written == other.as_written || self.in_one_case == other.in_one_case
    }
}

/// Case-folds a text, drops invisible characters and replaces each other character by the simplest
/// one that looks like it.
fn fold_skeleton(text: &str) -> String {
    let plain: String = skeleton(text).collect();
    let folded = caseless::default_case_fold_str(&plain);
    let words: Vec<&str> = folded.split_whitespace().collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::NameSkeleton;

    fn are_confusable(one: &str, two: &str) -> bool {
        let (one, two) = (NameSkeleton::from_name(one), NameSkeleton::from_name(two));
        assert_eq!(one.is_confusable_with(&two), two.is_confusable_with(&one));
        one.is_confusable_with(&two)
    }

    #[test]
    fn a_name_is_confusable_with_its_lookalikes() {
        for (one, two) in [
            ("admin", "admin"),
            ("admin", "Admin"),
            ("admin", "\u{430}dmin"),            // Cyrillic а
            ("admin", "adm\u{131}n"),            // dotless ı
            ("ADMIN", "\u{410}D\u{41c}IN"),      // Cyrillic А and М
            ("Anna", "\u{391}nn\u{3b1}"),        // Greek Α and α
            ("Ann", "\u{ff21}\u{ff4e}\u{ff4e}"), // full-width letters
            ("Ann", "A\u{200b}nn\u{2060}"),      // invisible characters
            ("Ann Lee", "Ann\u{a0} Lee"),        // two kinds of space
            ("Ian", "lan"),                      // I and l
            ("Bob", "B0b"),                      // O and 0
            ("Zoë", "Zoe\u{308}"),               // composed and not
            ("Stra\u{df}e", "STRASSE"),
        ] {
            assert!(are_confusable(one, two), "{one:?} and {two:?}");
        }
    }

    #[test]
    fn different_names_are_not_confusable() {
        for (one, two) in [
            ("Ann", "Anna"),
            ("Ann", "Ann 2"),
            ("Zoë", "Zoe"),
            ("Anna", "Hanna"),
            ("Guest 1", "Guest 2"),
            ("Анна", "Иван"),
            ("小林", "小森"),
        ] {
            assert!(!are_confusable(one, two), "{one:?} and {two:?}");
        }
    }
}
