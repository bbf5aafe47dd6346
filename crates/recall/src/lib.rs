//! Searches the memories of a space, and turns messages into memories without a model.
//!
#![doc = include_str!("../README.md")]
//!
//! | module | contents |
//! | --- | --- |
//! | [`entry`] | a memory in the index, and the scope of a search |
//! | [`index`] | all memories of a space, and how it follows changes |
//! | [`quantized_vector`] | a vector with one byte for each component |
//! | [`query`] | a text to search for, and how well a memory fits to it |
//! | [`search`] | threshold and selection |
//! | [`terms`] | the words by which a text is found, regardless of their inflection |
//! | [`content`] | normalized texts and their hash |
//! | [`memory_line`] | a memory as a line of a file |
//! | [`snippet`] | which message becomes a memory as it is |

mod block;
pub mod content;
pub mod entry;
pub mod index;
pub mod memory_line;
pub mod quantized_vector;
pub mod query;
mod ranking;
mod scan;
mod scored_memory;
pub mod search;
pub mod snippet;
mod stemming;
mod stop_words;
pub mod terms;
