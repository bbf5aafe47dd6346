//! Model providers: requests, response streams, and clients for the provider APIs.
//!
//! A [`provider::Provider`] turns a [`request::Request`] into a stream of [`delta::Delta`]s. It
//! neither retries nor limits the time: both belong to `generation/`, which drives it.
//!
//! | file | contents |
//! | --- | --- |
//! | `request`, `delta`, `tool`, `error` | types of requests, responses and errors |
//! | `provider` | the trait |
//! | `endpoint` | a base URL with its key, and calls to it |
//! | `dialect` | the trait of provider APIs |
//! | `stream_decoder`, `sse`, `ndjson`, `reasoning_tags`, `untrusted_json` | from bytes to deltas, for every API |
//! | `openai_chat`, `openai_chat_*` | the Chat Completions API, and error messages of all APIs |
//! | `anthropic`, `anthropic_blocks`, `anthropic_events` | Anthropic's Messages API |
//! | `gemini`, `gemini_parts`, `gemini_schema`, `gemini_chunk` | the Gemini API |
//! | `ollama`, `ollama_messages`, `ollama_stream` | Ollama's native API |
//! | `role_alternation` | prompts for APIs that require alternating roles |
//! | `provider_options` | options of a provider for its API |
//! | `demo`, `demo_keywords`, `demo_tools`, `scripted_json`, `demo_personas` | the built-in demo model |
//! | `registry` | builds providers from settings |
//! | `model_list` | lists the models of an endpoint and tests the connection |
//! | `discovery` | finds model servers on this machine |
//! | `outbound_client`, `address_policy`, `private_access`, `secret` | the HTTP client, the addresses that it may call, and API keys |
//! | `tokens` | counts tokens |

pub mod address_policy;
pub mod anthropic;
pub mod anthropic_blocks;
pub mod anthropic_events;
pub mod delta;
pub mod demo;
pub mod demo_keywords;
pub mod demo_personas;
pub mod demo_tools;
pub mod dialect;
pub mod discovery;
pub mod endpoint;
pub mod error;
pub mod gemini;
pub mod gemini_chunk;
pub mod gemini_parts;
pub mod gemini_schema;
pub mod model_list;
pub mod ndjson;
pub mod ollama;
pub mod ollama_messages;
pub mod ollama_stream;
pub mod openai_chat;
pub mod openai_chat_chunk;
pub mod openai_chat_error;
pub mod openai_chat_logprobs;
pub mod openai_chat_request;
pub mod openai_chat_samplers;
pub mod openai_chat_tools;
pub mod outbound_client;
pub mod outbound_error;
pub mod private_access;
pub mod prompt_role;
pub mod provider;
pub mod provider_options;
pub mod reasoning_tags;
pub mod registry;
pub mod request;
pub mod role_alternation;
pub mod samplers;
pub mod scripted_json;
pub mod secret;
pub mod sse;
pub mod stream_decoder;
pub mod tokens;
pub mod tool;
pub mod untrusted_json;
