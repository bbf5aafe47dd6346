//! Measures how long a search takes in spaces with 1,000, 10,000 and 100,000 memories, for two queries
//! with local vectors of 256 dimensions, without and with vectors of a provider of 1,536, and how much memory
//! an index of them needs. Targets: at most 5 ms with 1,000 memories and 50 ms with 100,000. Nothing is
//! asserted, because the results vary with the load of the machine.

// A benchmark prints its results and panics on errors.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use base::ids::MemoryId;
use recall::entry::{EmbeddedMemory, MemoryEntry, RecallScope};
use recall::index::{MemoryChange, MemoryIndex};
use recall::quantized_vector::{QuantizedVector, QueryVector};
use recall::query::{ProviderVector, QueryText};
use recall::search::{RecallRules, search};

const DIMENSIONS: usize = 256;
const PROVIDER_DIMENSIONS: usize = 1_536;
const ROUNDS: usize = 21;
const WORDS: [&str; 24] = [
    "harbor", "lantern", "keeper", "storm", "captain", "letter", "garden", "violin", "winter",
    "bridge", "market", "sister", "promise", "silver", "anchor", "island", "candle", "mirror",
    "raven", "orchard", "castle", "river", "shadow", "song",
];

fn main() {
    let sizes = [1_000, 10_000, 100_000].into_iter();
    for (n, has_provider) in sizes.flat_map(|n| [(n, false), (n, true)]) {
        let index = index(n, has_provider);
        let measure = |round| measure(&index, round, has_provider);
        let mut times: Vec<Duration> = (0..ROUNDS).map(measure).collect();
        times.sort_unstable();
        println!(
            "{n:>7} memories, vectors of a provider: {has_provider:>5}: median {:>6.2} ms, slowest {:>6.2} ms, index {:>5.1} MB",
            times[ROUNDS / 2].as_secs_f64() * 1_000.0,
            times[ROUNDS - 1].as_secs_f64() * 1_000.0,
            index.n_bytes() as f64 / 1e6
        );
    }
}

fn measure(index: &MemoryIndex, round: usize, has_provider: bool) -> Duration {
    let newest = sentence(7 * round);
    let recent = (0..4)
        .map(|n| sentence(7 * round + n))
        .collect::<Vec<_>>()
        .join("\n");
    let vectors = [round, round + 1].map(|n| vector(n, DIMENSIONS));
    let quantized = [round, round + 1].map(|n| QueryVector::new(&vector(n, PROVIDER_DIMENSIONS)));
    let provider_vector = |at: usize| {
        has_provider.then(|| ProviderVector {
            vector: &quantized[at],
            cosine_range: (0.0, 1.0),
        })
    };
    let queries = [
        QueryText {
            text: &newest,
            authors: "",
            vector: Some(&vectors[0]),
            provider_vector: provider_vector(0),
        },
        QueryText {
            text: &recent,
            authors: "",
            vector: Some(&vectors[1]),
            provider_vector: provider_vector(1),
        },
    ];
    let began = Instant::now();
    black_box(search(
        index,
        &RecallScope::default(),
        &queries,
        &RecallRules::default(),
        &|| false,
    ));
    began.elapsed()
}

fn index(n: usize, has_provider: bool) -> MemoryIndex {
    let memories = (0..n).map(|n| {
        let id = MemoryId(i64::try_from(n).unwrap());
        MemoryChange::Stored(EmbeddedMemory {
            vector: Some(quantized(n, DIMENSIONS)),
            provider_vector: has_provider.then(|| quantized(n, PROVIDER_DIMENSIONS)),
            entry: MemoryEntry {
                tokens: 30,
                ..MemoryEntry::new(id, &sentence(n))
            },
        })
    });
    MemoryIndex::default().with_changes(1, memories)
}

/// A sentence of twelve words, one of which only every thousandth has.
fn sentence(n: usize) -> String {
    let words = (0..11).map(|at| WORDS[(n * 31 + at * (n % 13 + 1)) % WORDS.len()]);
    let words: Vec<&str> = words.collect();
    format!("Ann: {} name{}", words.join(" "), n % 1_000)
}

fn quantized(n: usize, dimensions: usize) -> QuantizedVector {
    QuantizedVector::new(&vector(n, dimensions))
}

/// A vector of length 1 that depends on `n`.
fn vector(n: usize, dimensions: usize) -> Vec<f32> {
    let mut state = n as u32 ^ 0x9e37_79b9;
    let numbers = (0..dimensions).map(|_| {
        // Xorshift.
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as f32 / u32::MAX as f32 - 0.5
    });
    let numbers: Vec<f32> = numbers.collect();
    let length = numbers.iter().map(|it| it * it).sum::<f32>().sqrt();
    numbers.iter().map(|it| it / length).collect()
}
