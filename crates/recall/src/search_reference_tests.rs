//! Compares a search with a simple one that scores every memory on its own and sorts all of them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use base::ids::MemoryId;
use proptest::collection::vec;
use proptest::prelude::*;

use super::{RecallRules, search};
use crate::entry::{EmbeddedMemory, MemoryEntry, RecallScope};
use crate::index::{MemoryChange, MemoryIndex};
use crate::quantized_vector::{QuantizedVector, QueryVector};
use crate::query::{ProviderVector, QueryText};
use crate::scan::MIN_PER_THREAD;
use crate::terms::{term_hash, terms};

const WORDS: [&str; 8] = [
    "harbor", "lantern", "storm", "violin", "raven", "orchard", "castle", "song",
];
const RULES: RecallRules = RecallRules {
    top_k: 7,
    threshold: 0.4,
    token_budget: i64::MAX,
    cosine_range: (0.0, 1.0),
};

/// The memories by their ids.
type Items = BTreeMap<usize, Item>;

/// A text and its vectors; some memories have no vector of the provider.
#[derive(Clone, Debug)]
struct Item {
    words: Vec<usize>,
    local: [f32; 3],
    of_provider: Option<[f32; 5]>,
    importance: f32,
}

impl Item {
    fn text(&self) -> String {
        let words: Vec<&str> = self.words.iter().map(|at| WORDS[*at]).collect();
        words.join(" ")
    }

    fn stored(&self, id: usize) -> MemoryChange {
        let id = MemoryId(i64::try_from(id).unwrap());
        MemoryChange::Stored(EmbeddedMemory {
            vector: Some(QuantizedVector::new(&self.local)),
            provider_vector: self.of_provider.map(|it| QuantizedVector::new(&it)),
            entry: MemoryEntry {
                importance: self.importance,
                ..MemoryEntry::new(id, &self.text())
            },
        })
    }
}

fn item() -> impl Strategy<Value = Item> {
    let component = || -1.0f32..1.0;
    let vectors = (
        [component(), component(), component()],
        prop::option::of([
            component(),
            component(),
            component(),
            component(),
            component(),
        ]),
    );
    (vec(0..WORDS.len(), 0..4), vectors, 0.0f32..1.0).prop_map(|(words, vectors, importance)| {
        Item {
            words,
            local: vectors.0,
            of_provider: vectors.1,
            importance,
        }
    })
}

fn dot(query: &[f32], vector: &[f32]) -> f32 {
    let vector = QuantizedVector::new(vector);
    QueryVector::new(query).dot(vector.codes(), vector.factor())
}

/// Returns id, score by words and score by vectors of each memory.
fn scores(items: &Items, queries: &[Item]) -> Vec<(usize, f32, f32)> {
    let has = |item: &Item, term: &str| {
        let hashes = terms(&item.text());
        hashes.iter().any(|it| term_hash(it) == term_hash(term))
    };
    let text_score = |item: &Item, query: &Item| {
        let (mut sum, mut total) = (0.0f32, 0.0f32);
        for term in terms(&query.text()) {
            let n = items.values().filter(|it| has(it, &term)).count() as f32;
            let weight = match n {
                0.0 => 0.4,
                _ => (1.0 + (items.len().max(50) as f32 - n + 0.5) / (n + 0.5)).ln(),
            };
            total += weight;
            sum += if has(item, &term) { weight } else { 0.0 };
        }
        if sum > 0.0 { sum / total } else { 0.0 }
    };
    let vector_score = |item: &Item, query: &Item| {
        let cosine = match (item.of_provider, query.of_provider) {
            (Some(a), Some(b)) => dot(&b, &a),
            _ => dot(&query.local, &item.local),
        };
        cosine.clamp(0.0, 1.0)
    };
    let best = |item: &Item, score: &dyn Fn(&Item, &Item) -> f32| {
        queries.iter().map(|it| score(item, it)).fold(0.0, f32::max)
    };
    let scored = items.iter();
    let scored = scored.map(|(id, it)| (*id, best(it, &text_score), best(it, &vector_score)));
    scored.collect()
}

/// Returns the recalled ids, best first.
fn expected(items: &Items, queries: &[Item]) -> Vec<i64> {
    let scored = scores(items, queries);
    let mut fused: BTreeMap<usize, f32> = BTreeMap::new();
    for by_text in [true, false] {
        let key = |it: &(usize, f32, f32)| if by_text { (it.1, it.2) } else { (it.2, it.1) };
        let mut ranking: Vec<_> = scored.iter().filter(|it| key(it).0 > 0.0).collect();
        ranking.sort_by(|a, b| key(b).partial_cmp(&key(a)).unwrap().then(b.0.cmp(&a.0)));
        for (rank, it) in (1u8..=40).zip(ranking) {
            *fused.entry(it.0).or_default() += 1.0 / (60.0 + f32::from(rank));
        }
    }
    let is_found = |it: &&(usize, f32, f32)| fused.contains_key(&it.0);
    let mut found: Vec<_> = scored.iter().filter(is_found).collect();
    found.sort_by_key(|it| {
        let score = fused[&it.0] * (0.75 + 0.5 * items[&it.0].importance);
        // The order of positive floats is that of their bits.
        Reverse((score.to_bits(), it.0))
    });
    let close = found
        .into_iter()
        .filter(|it| it.1.max(it.2) >= RULES.threshold);
    let ids = close
        .take(RULES.top_k)
        .map(|it| i64::try_from(it.0).unwrap());
    ids.collect()
}

fn index(items: &Items) -> MemoryIndex {
    let stored = items.iter().map(|(id, it)| it.stored(*id));
    MemoryIndex::default().with_changes(1, stored)
}

fn recalled(index: &MemoryIndex, queries: &[Item]) -> Vec<i64> {
    let texts: Vec<String> = queries.iter().map(Item::text).collect();
    let vectors: Vec<Option<QueryVector>> = queries
        .iter()
        .map(|it| it.of_provider.map(|it| QueryVector::new(&it)))
        .collect();
    let queries = queries.iter().zip(&texts).zip(&vectors);
    let queries: Vec<QueryText<'_>> = queries
        .map(|((it, text), vector)| QueryText {
            text,
            authors: "",
            vector: Some(&it.local),
            provider_vector: vector.as_ref().map(|vector| ProviderVector {
                vector,
                cosine_range: (0.0, 1.0),
            }),
        })
        .collect();
    let scope = RecallScope::default();
    let found = search(index, &scope, &queries, &RULES, &|| false).into_iter();
    let recalled = found.filter(|it| it.rank.is_some());
    recalled.map(|it| it.memory.id.0).collect()
}

proptest! {
    #[test]
    fn a_search_finds_what_sorting_all_memories_finds(
        items in vec(item(), 0..120),
        queries in vec(item(), 1..3),
    ) {
        let items: Items = items.into_iter().enumerate().collect();
        prop_assert_eq!(recalled(&index(&items), &queries), expected(&items, &queries));
    }

    /// Many changes of few memories, so that blocks are created again.
    #[test]
    fn a_search_after_changes_finds_what_sorting_all_memories_finds(
        rounds in vec(vec((0usize..60, prop::option::of(item())), 0..30), 1..8),
        queries in vec(item(), 1..3),
    ) {
        let mut items = Items::new();
        let mut index = MemoryIndex::default();
        for (version, changes) in (1..).zip(rounds) {
            let changes: BTreeMap<usize, Option<Item>> = changes.into_iter().collect();
            let change = |(id, item): (&usize, &Option<Item>)| match item {
                Some(item) => item.stored(*id),
                None => MemoryChange::Removed(MemoryId(i64::try_from(*id).unwrap())),
            };
            index = index.with_changes(version, changes.iter().map(change));
            for (id, item) in changes {
                match item {
                    Some(item) => items.insert(id, item),
                    None => items.remove(&id),
                };
            }
            prop_assert_eq!(index.len(), items.len());
            prop_assert_eq!(recalled(&index, &queries), expected(&items, &queries));
        }
    }
}

#[test]
fn a_search_with_several_threads_finds_what_sorting_all_memories_finds() {
    let n = 2 * MIN_PER_THREAD + 100;
    let item = |id: usize| {
        let component = |by: usize| ((id * by) % 1_009) as f32 / 1_009.0 - 0.5;
        Item {
            words: Vec::new(),
            local: [component(7), component(31), component(101)],
            of_provider: None,
            importance: 0.5,
        }
    };
    let items: Items = (0..n).map(|id| (id, item(id))).collect();
    let query = Item {
        local: [0.6, -0.7, 0.4],
        ..item(0)
    };

    let recalled = recalled(&index(&items), std::slice::from_ref(&query));

    assert_eq!(recalled.len(), RULES.top_k);
    assert_eq!(recalled, expected(&items, &[query]));
}
