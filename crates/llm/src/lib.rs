//! Sends a request to a model provider (OpenAI and compatible servers, Anthropic, Gemini, Ollama or
//! the built-in demo model) and returns its response as a stream of deltas, whatever the API.
//!
#![doc = include_str!("../README.md")]
//!
//! | module | contents |
//! | --- | --- |
//! | [`request`], [`delta`], [`tool`], [`error`] | types of requests, responses and errors |
//! | [`provider`] | the trait of model providers |
//! | [`registry`] | builds providers from settings |
//! | [`endpoint`], [`secret`] | the provider that makes HTTP calls, and its key |
//! | [`dialect`] | the trait of provider APIs |
//! | [`openai_chat`], [`anthropic`], [`gemini`], [`ollama`] | one API each |
//! | [`text_completion`] | APIs that continue one text |
//! | [`stream`] | from bytes to deltas, for every API |
//! | [`role_alternation`] | prompts for APIs that require alternating roles |
//! | [`compatibility`] | what endpoints and models accept beyond the rules of their API |
//! | [`reasoning`] | how much a model should reason, and what is sent back to it after a tool call |
//! | [`provider_options`] | options of a provider for its API |
//! | [`demo`] | the built-in demo model |
//! | [`model_list`], [`discovery`] | lists models, tests a connection, finds model servers on this machine |
//! | [`embeddings`] | converts texts to vectors with a provider's model |
//! | [`tokens`] | counts tokens, and cuts a text at a number of tokens |

pub mod anthropic;
pub mod compatibility;
pub mod delta;
pub mod demo;
pub mod dialect;
pub mod discovery;
pub mod embeddings;
pub mod endpoint;
pub mod error;
pub mod gemini;
pub mod model_list;
pub mod ollama;
pub mod openai_chat;
pub mod provider;
pub mod provider_options;
pub mod reasoning;
pub mod registry;
pub mod request;
pub mod role_alternation;
pub mod secret;
pub mod stream;
#[cfg(test)]
mod test_server;
pub mod text_completion;
pub mod tokens;
pub mod tool;
