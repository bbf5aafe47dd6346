//! Tests the scores by words and by vectors, and their fusion.

use super::fixtures::{found, index, memory, near, recalled, with_vector};
use super::{RecallRules, search};
use crate::entry::{EmbeddedMemory, RecallScope};
use crate::quantized_vector::{QuantizedVector, QueryVector};
use crate::query::{ProviderVector, QueryText};

/// Asserts a score by vectors, whose components are rounded.
#[track_caller]
fn assert_close(score: Option<f32>, expected: f32) {
    let score = score.unwrap();
    assert!(
        (score - expected).abs() < 0.02,
        "{score} instead of {expected}"
    );
}

#[test]
fn a_memory_with_the_words_of_the_query_is_recalled() {
    let index = index([
        memory(1, "Ann: My dog is called Pixel."),
        memory(2, "Bob: The sea was rough last night."),
    ]);

    let found = found(&index, "Is your dog called Pixel?", &RecallRules::default());

    assert_eq!(recalled(&found), [1]);
    assert_eq!(found[0].matched, ["dog", "pixel"]);
    assert_eq!(found[0].text_score, 1.0);
    assert_eq!(found[0].vector_score, None);
}

#[test]
fn a_memory_with_another_form_of_a_word_is_recalled() {
    let index = index([
        memory(1, "Ann: My two dogs are in the bakery."),
        memory(2, "Bob: The sea was rough last night."),
    ]);

    let found = found(&index, "Ann's dog", &RecallRules::default());

    assert_eq!(recalled(&found), [1]);
    assert_eq!(found[0].matched, ["ann", "dog"]);
    assert_eq!(found[0].text_score, 1.0);
}

#[test]
fn a_rare_word_weighs_more_than_a_common_one() {
    let common = (10..40).map(|id| memory(id, "Ann: The harbor is quiet."));
    let index = index(common.chain([memory(1, "Bob: Marigold sails at dawn.")]));

    let found = found(&index, "harbor Marigold", &RecallRules::default());

    assert_eq!(recalled(&found), [1]);
    assert!(found[0].text_score > 0.8, "{}", found[0].text_score);
    assert!(near(&found).iter().all(|id| *id >= 10));
}

#[test]
fn a_vector_finds_what_shares_no_word_with_the_query() {
    let index = index([
        with_vector(1, "Ann: My hound is Pixel.", [1.0, 0.0]),
        with_vector(2, "Bob: The sea was rough.", [0.0, 1.0]),
    ]);
    let query = QueryText {
        text: "dog",
        authors: "",
        vector: Some(&[0.8, 0.6]),
        provider_vector: None,
    };

    let found = search(
        &index,
        &RecallScope::default(),
        &[query],
        &RecallRules {
            threshold: 0.7,
            ..RecallRules::default()
        },
        &|| false,
    );

    assert_eq!((recalled(&found), near(&found)), (vec![1], vec![2]));
    assert_close(found[0].vector_score, 0.8);
}

#[test]
fn a_cosine_is_mapped_to_the_range_of_its_model() {
    let index = index([with_vector(1, "hound", [1.0, 0.0])]);
    let score = |cosine_range| {
        let query = QueryText {
            text: "dog",
            authors: "",
            vector: Some(&[0.6, 0.8]),
            provider_vector: None,
        };
        let rules = RecallRules {
            cosine_range,
            ..RecallRules::default()
        };
        let found = search(&index, &RecallScope::default(), &[query], &rules, &|| false);
        found.first().and_then(|it| it.vector_score)
    };

    assert_close(score((0.0, 1.0)), 0.6);
    assert_eq!(score((0.2, 0.5)), Some(1.0));
    assert_close(score((0.1, 1.1)), 0.5);
}

#[test]
fn vectors_of_another_model_are_not_compared() {
    let index = index([with_vector(1, "hound", [1.0, 0.0])]);
    let query = QueryText {
        text: "dog",
        authors: "",
        vector: Some(&[1.0, 0.0, 0.0]),
        provider_vector: None,
    };
    let rules = RecallRules::default();

    let found = search(&index, &RecallScope::default(), &[query], &rules, &|| false);

    assert!(found.is_empty());
}

#[test]
fn vectors_of_a_provider_are_compared_where_both_sides_have_one() {
    let with_provider = |id, vector: &[f32]| EmbeddedMemory {
        provider_vector: Some(QuantizedVector::new(vector)),
        ..with_vector(id, "hound", [0.0, 1.0])
    };
    let index = index([
        with_provider(1, &[1.0, 0.0, 0.0]),
        // Of a model with other dimensions.
        with_provider(2, &[1.0, 0.0]),
        with_vector(3, "hound", [0.8, 0.6]),
    ]);
    let vector = QueryVector::new(&[0.5, 0.5, 0.5]);
    let score = |id: i64, provider_vector| {
        let query = QueryText {
            text: "dog",
            authors: "",
            vector: Some(&[1.0, 0.0]),
            provider_vector,
        };
        let rules = RecallRules::default();
        let found = search(&index, &RecallScope::default(), &[query], &rules, &|| false);
        let found = found.into_iter().find(|it| it.memory.id.0 == id);
        found.and_then(|it| it.vector_score)
    };
    let of_provider = ProviderVector {
        vector: &vector,
        cosine_range: (0.0, 0.5),
    };

    assert_close(score(1, Some(of_provider)), 1.0);
    assert_eq!(score(2, Some(of_provider)), None);
    assert_close(score(3, Some(of_provider)), 0.8);
    assert_eq!(score(1, None), None);
    assert_close(score(3, None), 0.8);
}

#[test]
fn each_memory_is_scored_by_the_query_that_fits_it_best() {
    let index = index([
        memory(1, "Ann: My dog is called Pixel."),
        memory(2, "Bob: The lighthouse burned down."),
    ]);
    let query = |text| QueryText {
        text,
        authors: "",
        vector: None,
        provider_vector: None,
    };

    let found = search(
        &index,
        &RecallScope::default(),
        &[query("my dog"), query("lighthouse")],
        &RecallRules::default(),
        &|| false,
    );

    assert_eq!(recalled(&found), [2, 1]);
}

#[test]
fn a_word_finds_the_only_memory_of_a_space() {
    let index = index([memory(1, "Ann has a puppy called Pixel.")]);
    let recalled = |text| {
        let query = QueryText {
            text,
            authors: "Ann",
            vector: None,
            provider_vector: None,
        };
        let rules = RecallRules::default();
        let found = search(&index, &RecallScope::default(), &[query], &rules, &|| false);
        found.iter().filter(|it| it.rank.is_some()).count()
    };

    assert_eq!(recalled("Is the puppy hungry?"), 1);
    assert_eq!(recalled("Is the harbor frozen?"), 0);
}

#[test]
fn the_name_of_an_author_counts_less_than_a_word_of_the_text() {
    let index = index([
        memory(1, "Lena: I work in the bakery."),
        memory(2, "Bob: The sea was rough."),
    ]);
    let score = |text, authors| {
        let query = QueryText {
            text,
            authors,
            vector: None,
            provider_vector: None,
        };
        let rules = RecallRules::default();
        let found = search(&index, &RecallScope::default(), &[query], &rules, &|| false);
        found.first().map(|it| it.text_score)
    };

    let as_author = score("It is raining again.", "Lena").unwrap();
    let in_text = score("Is it raining where Lena is?", "Bob").unwrap();
    let in_both = score("Does Lena like rain?", "Lena").unwrap();

    assert!(as_author < 0.4 && in_text > 0.4, "{as_author}, {in_text}");
    assert!(in_both > as_author, "{in_both}");
    assert_eq!(score("What is it?", "Lena"), None);
}

#[test]
fn of_memories_with_the_same_words_the_one_with_the_nearer_vector_is_first() {
    let index = index([
        with_vector(1, "Bob: I run for mayor.", [0.8, 0.6]),
        with_vector(2, "Bob: I sold my van.", [0.6, 0.8]),
    ]);
    let query = QueryText {
        text: "Bob",
        authors: "",
        vector: Some(&[1.0, 0.0]),
        provider_vector: None,
    };

    let found = search(
        &index,
        &RecallScope::default(),
        &[query],
        &RecallRules::default(),
        &|| false,
    );

    assert_eq!(recalled(&found), [1, 2]);
}
