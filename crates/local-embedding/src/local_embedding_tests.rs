//! Tests of the local embedding: fixed vectors, folding, and which texts are near each other.

use sha2::{Digest, Sha256};

use super::{DIMENSIONS, embed, ln};

fn similarity(left: &str, right: &str) -> f32 {
    let (left, right) = (embed(left), embed(right));
    left.iter().zip(&right).map(|(a, b)| a * b).sum()
}

/// Asserts that a text is nearer to the first text than to the second.
#[track_caller]
fn assert_nearer(text: &str, near: &str, far: &str) {
    let (near_by, far_by) = (similarity(text, near), similarity(text, far));
    assert!(
        near_by > far_by + 0.2,
        "{text:?} is near {near:?} by {near_by}, near {far:?} by {far_by}"
    );
}

/// Returns the beginning of the SHA-256 of a vector's bytes, least significant first.
fn digest(vector: &[f32]) -> String {
    let bytes: Vec<u8> = vector.iter().flat_map(|it| it.to_le_bytes()).collect();
    let hash = Sha256::digest(bytes);
    hash[..8].iter().map(|it| format!("{it:02x}")).collect()
}

/// Stored vectors are compared with new ones: a change here needs another name of the model.
const GOLDEN: [(&str, &str); 20] = [
    (
        "The lighthouse keeper lives on the island.",
        "5acaebfaba9e3022",
    ),
    ("iPhones at McDonald’s, NASA and eBay", "2edcf21b9031399b"),
    ("a", "2f99800c8841a05d"),
    ("x", "0499df1d2e989eea"),
    (
        " My dog is called Pixel; Pixel barks, Pixel sleeps. ",
        "b5eb0bbb6b2a1b1b",
    ),
    ("Straße, naïve café, Ærø", "f41032160a9a042d"),
    (
        "Ｆｕｌｌ－ｗｉｄｔｈ ＬＥＴＴＥＲＳ １２３",
        "7c5a5b7a24d1750d",
    ),
    ("Смотритель маяка живёт на острове.", "ac1fcc240c1cad02"),
    ("ΟΔΥΣΣΕΥΣ και Πηνελόπη", "f83e33637311f3be"),
    ("حارس المنارة يعيش في الجزيرة", "1e6fc0cb8037acc3"),
    ("प्रकाशस्तंभ का रखवाला", "d450f07e6b7580d4"),
    ("灯塔的看守人住在岛上。", "0aeb7090871b4643"),
    ("燈塔的看守人住在島上,他養了一隻狗。", "8f9a37b04a25e7dc"),
    ("灯台守は島に住んでいる。", "624cedaeeadd26ae"),
    ("ｶﾀｶﾅとひらがな、ラーメン", "e7a51f40191bba19"),
    ("등대지기는 섬에 산다", "e1fce662311c8a4a"),
    ("คนเฝ้าประภาคารอาศัยอยู่บนเกาะ", "51ecda47aa1310f1"),
    ("👩\u{200d}🚒🔥❤\u{fe0f} 🇩🇪", "ad6e81d093640a35"),
    ("GPT-5模型 v2.0 です", "f95d181acc6ed19d"),
    ("42 3.14 2026-11-27", "71621e1a4b26ce5c"),
];

#[test]
fn the_vectors_of_twenty_texts_never_change() {
    for (text, expected) in GOLDEN {
        assert_eq!(digest(&embed(text)), expected, "{text:?}");
    }
}

#[test]
fn a_vector_has_256_components_and_the_length_one() {
    for (text, _) in GOLDEN {
        let vector = embed(text);
        let squares: f32 = vector.iter().map(|it| it * it).sum();

        assert_eq!(vector.len(), DIMENSIONS);
        assert!((squares - 1.0).abs() < 1e-5, "{text:?}: {squares}");
    }
}

#[test]
fn a_text_without_words_has_a_vector_of_zeros() {
    for text in ["", " \n", "?!… 。", "\u{200b}\u{feff}", "\u{301}"] {
        assert_eq!(embed(text), [0.0; DIMENSIONS], "{text:?}");
    }
}

#[test]
fn case_width_composition_and_punctuation_do_not_matter() {
    for (left, right) in [
        ("The Lighthouse, at night!", "the lighthouse at night"),
        ("ＬＩＧＨＴ", "light"),
        ("Straße", "STRASSE"),
        ("Caf\u{e9}", "cafe\u{301}"),
        ("ｶﾀｶﾅ", "カタカナ"),
        ("МАЯК", "маяк"),
        ("👩\u{200d}🚒", "👩🚒"),
        ("❤\u{fe0f}", "❤"),
        ("ﬁre", "fire"),
    ] {
        assert_eq!(embed(left), embed(right), "{left:?} and {right:?}");
    }
}

#[test]
fn inflections_and_other_word_orders_are_near() {
    assert_nearer(
        "keeper of the lighthouse",
        "lighthouse keeper",
        "a bowl of tomato soup",
    );
    assert_nearer(
        "My dog is called Pixel",
        "what is my dog called?",
        "the train leaves at seven",
    );
    assert_nearer(
        "She paints lighthouses",
        "painting a lighthouse",
        "the bank closes at noon",
    );
    assert_nearer(
        "смотритель маяка",
        "на маяке живёт смотритель",
        "тарелка супа",
    );
}

#[test]
fn texts_without_spaces_are_near_if_they_share_words() {
    assert_nearer("灯塔的看守人", "她是看守灯塔的人", "今天晚饭吃面条");
    assert_nearer("灯台守の犬", "犬は灯台にいる", "電車が遅れた");
    assert_nearer("등대지기의 개", "개는 등대에 있다", "기차가 늦었다");
    assert_nearer("คนเฝ้าประภาคาร", "ประภาคารมีคนเฝ้า", "รถไฟมาสาย");
}

#[test]
fn a_repeated_word_weighs_more_but_less_than_proportionally() {
    let once = similarity("storm", "storm lamp");
    let twice = similarity("storm", "storm storm lamp");
    let often = similarity("storm", &format!("{}lamp", "storm ".repeat(50)));

    assert!(once < twice && twice < often && often < 0.99);
}

#[test]
fn the_logarithm_is_as_exact_as_that_of_the_platform() {
    for count in (1..2_000).chain([65_535, 1 << 20, 4_000_000_000]) {
        let expected = f64::ln(count as f64);
        assert!((ln(count) - expected).abs() < 1e-13, "{count}");
    }
}
