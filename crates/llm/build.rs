//! Writes the o200k vocabulary as a finite-state map from the bytes of each token to its rank.
//! `src/tokens.rs` embeds the map and searches it in place.

use std::path::Path;
use std::{env, fs};

use fst::Map;

/// The number of ordinary tokens. Their ranks are below it; control tokens have higher ranks.
const N_TOKENS: u32 = 199_998;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let vocabulary = tiktoken_rs::o200k_base().expect("the library contains the vocabulary");
    let mut tokens: Vec<(Vec<u8>, u64)> = (0..N_TOKENS)
        .map(|rank| {
            let token = vocabulary.decode_bytes(&[rank]);
            (token.expect("every rank has a token"), u64::from(rank))
        })
        .collect();
    tokens.sort_unstable();
    let map = Map::from_iter(tokens).expect("the tokens are sorted and different");
    let folder = env::var_os("OUT_DIR").expect("cargo sets the folder");
    fs::write(
        Path::new(&folder).join("o200k.fst"),
        map.as_fst().as_bytes(),
    )
    .expect("the map can be written");
}
