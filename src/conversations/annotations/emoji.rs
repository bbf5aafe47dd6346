//! Parses the emoji of a reaction: one emoji that is shown in color by itself.

use unicode_properties::{EmojiStatus, UnicodeEmoji};
use unicode_segmentation::UnicodeSegmentation;

/// The maximum length of an emoji in bytes of UTF-8.
pub const MAX_BYTES: usize = 32;

const PRESENTATION: char = '\u{fe0f}';
const JOINER: char = '\u{200d}';
const KEYCAP: char = '\u{20e3}';
const BLACK_FLAG: char = '\u{1f3f4}';
const CANCEL_TAG: char = '\u{e007f}';
/// The subdivisions that have a flag of their own in tags.
const SUBDIVISIONS: [&str; 3] = ["gbeng", "gbsct", "gbwls"];
/// The regions that have a flag: ISO 3166, and those that Unicode adds.
const REGIONS: &str = "ac ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bl \
    bm bn bo bq br bs bt bv bw by bz ca cc cd cf cg ch ci ck cl cm cn co cp cq cr cu cv cw cx cy cz de dg \
    dj dk dm do dz ea ec ee eg eh er es et eu fi fj fk fm fo fr ga gb gd ge gf gg gh gi gl gm gn gp gq gr \
    gs gt gu gw gy hk hm hn hr ht hu ic id ie il im in io iq ir is it je jm jo jp ke kg kh ki km kn kp kr \
    kw ky kz la lb lc li lk lr ls lt lu lv ly ma mc md me mf mg mh mk ml mm mn mo mp mq mr ms mt mu mv mw \
    mx my mz na nc ne nf ng ni nl no np nr nu nz om pa pe pf pg ph pk pl pm pn pr ps pt pw py qa re ro rs \
    ru rw sa sb sc sd se sg sh si sj sk sl sm sn so sr ss st sv sx sy sz ta tc td tf tg th tj tk tl tm tn \
    to tr tt tv tw tz ua ug um un us uy uz va vc ve vg vi vn vu wf ws xk ye yt za zm zw";

/// An emoji in the form that is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emoji(String);

impl Emoji {
    /// Parses one emoji. Returns `None` for anything else: several emoji, a symbol that is shown as text
    /// unless a selector requests color, or a modifier that does not belong to its base.
    pub fn parse(text: &str) -> Option<Self> {
        let is_single = text.len() <= MAX_BYTES && text.graphemes(true).count() == 1;
        let chars: Vec<char> = text.chars().collect();
        let is_emoji = is_single
            && (is_flag(&chars)
                || is_keycap(&chars)
                || is_subdivision(&chars)
                || is_sequence(&chars));
        is_emoji.then(|| Self(text.to_owned()))
    }

    /// Returns the text of the emoji.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The flag of a region: two regional indicators.
fn is_flag(chars: &[char]) -> bool {
    let letter = |it: &char| {
        let offset = u32::from(*it).checked_sub(0x1f1e6)?;
        let letter = u8::try_from(offset).ok().filter(|it| *it < 26)?;
        Some(char::from(b'a' + letter))
    };
    let code: Option<String> = chars.iter().map(letter).collect();
    code.is_some_and(|code| code.len() == 2 && REGIONS.split(' ').any(|it| it == code))
}

/// A digit, `#` or `*` as a key.
fn is_keycap(chars: &[char]) -> bool {
    matches!(chars, ['0'..='9' | '#' | '*', PRESENTATION, KEYCAP])
}

/// The flag of England, Scotland or Wales: a black flag, and a code in tags.
fn is_subdivision(chars: &[char]) -> bool {
    let [BLACK_FLAG, tags @ .., CANCEL_TAG] = chars else {
        return false;
    };
    let letter = |it: &char| {
        let offset = u32::from(*it).checked_sub(0xe0000)?;
        u8::try_from(offset).ok().map(char::from)
    };
    let code: Option<String> = tags.iter().map(letter).collect();
    code.is_some_and(|code| SUBDIVISIONS.contains(&code.as_str()))
}

/// One emoji with its skin tone or selector, or several that are joined to one.
fn is_sequence(chars: &[char]) -> bool {
    let parts: Vec<&[char]> = chars.split(|it| *it == JOINER).collect();
    match parts.as_slice() {
        [single] => is_element(single, false),
        joined => joined.iter().all(|it| is_element(it, true)),
    }
}

fn is_element(chars: &[char], is_joined: bool) -> bool {
    match chars {
        // A part of a joined emoji needs no selector: many programs omit it.
        [base] => match is_joined {
            true => is_base(*base),
            false => is_base(*base) && has_emoji_presentation(*base),
        },
        [base, PRESENTATION] => is_base(*base),
        [base, modifier] => is_modifier(*modifier) && takes_modifier(*base),
        _ => false,
    }
}

/// Returns whether a character is an emoji by itself. Digits and regional indicators are only parts of
/// others.
fn is_base(it: char) -> bool {
    it.is_emoji_char() && !it.is_ascii() && !matches!(it, '\u{1f1e6}'..='\u{1f1ff}')
}

fn is_modifier(it: char) -> bool {
    matches!(it, '\u{1f3fb}'..='\u{1f3ff}')
}

fn has_emoji_presentation(it: char) -> bool {
    matches!(
        it.emoji_status(),
        EmojiStatus::EmojiPresentation
            | EmojiStatus::EmojiPresentationAndModifierBase
            | EmojiStatus::EmojiPresentationAndModifierAndEmojiComponent
            | EmojiStatus::EmojiPresentationAndEmojiComponent
    )
}

fn takes_modifier(it: char) -> bool {
    matches!(
        it.emoji_status(),
        EmojiStatus::EmojiModifierBase | EmojiStatus::EmojiPresentationAndModifierBase
    )
}

#[cfg(test)]
mod tests {
    use super::Emoji;

    #[test]
    fn an_emoji_of_each_kind_is_accepted() {
        for it in [
            "👍",
            "👍🏽",
            "❤️",
            "☝️",
            "☝🏿",
            "😀",
            "🇩🇪",
            "🇪🇺",
            "1️⃣",
            "#️⃣",
            "👩‍💻",
            "👩🏽‍💻",
            "🏳️‍🌈",
            "👨‍👩‍👧‍👦",
            "❤️‍🔥",
            "🤷‍♂️",
            "🤷‍♂",
            "🏴󠁧󠁢󠁥󠁮󠁧󠁿",
            "🏴",
            "©️",
            "🥷",
            "🫠",
        ] {
            assert!(Emoji::parse(it).is_some(), "{it:?} was refused");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for it in [
            "",
            " ",
            "a",
            "1",
            "#",
            "é",
            "ok",
            "👍👍",
            "👍 ",
            "❤",
            "☝",
            "©",
            "❤\u{fe0e}",
            "1🏽",
            "1️",
            "©🏽",
            "😀🏽",
            "👍🏽🏽",
            "🇽🇽",
            "🇩",
            "🇩🇪🇫",
            "👍\u{e0067}\u{e007f}",
            "🏴\u{e0067}\u{e007f}",
            "🏴\u{e0067}",
            "\u{200d}",
            "👍\u{200d}",
            "\u{200d}👍",
            "\u{fe0f}",
            "a\u{200d}👍",
            "\u{20e3}",
            "中",
            "👍\u{301}",
            "1\u{20e3}",
            "👨‍👩‍👧‍👦‍👨‍👩‍👧‍👦",
        ] {
            assert!(Emoji::parse(it).is_none(), "{it:?} was accepted");
        }
    }
}
