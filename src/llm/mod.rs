//! Models: what they are asked, what they stream back, and who can be asked.
//!
//! A [`provider::Provider`] turns a [`request::Request`] into a stream of [`delta::Delta`]s. It
//! neither retries nor limits the time: both belong to `generation/`, which drives it.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `request`, `delta`, `tool`, `error` | the words spoken with a model |
//! | `provider` | the trait |
//! | `endpoint` | one address with its key, and the call of it |
//! | `dialect` | what the kinds of endpoints differ in |
//! | `answer`, `sse`, `lines`, `thoughts`, `json` | from bytes to deltas, for every kind |
//! | `chat`, `chat_body`, `chat_tools`, `chat_chunk`, `chat_error` | the Chat Completions API, and how refusals are told |
//! | `anthropic`, `anthropic_blocks`, `anthropic_events` | the Messages API |
//! | `gemini`, `gemini_parts`, `gemini_schema`, `gemini_chunk` | the Gemini API |
//! | `ollama`, `ollama_messages`, `ollama_lines` | Ollama's own API |
//! | `turns` | a prompt for APIs that want two sides to take turns |
//! | `tuning` | what a provider's settings say to its API alone |
//! | `scripted`, `scripted_ear`, `scripted_tools`, `scripted_json`, `scripted_voices` | the built-in demo model |
//! | `registry` | from settings to a provider |
//! | `catalog` | which models an endpoint has, and whether it answers |
//! | `discovery` | who of this machine has models |
//! | `egress`, `address`, `private_access`, `secret` | the way out, where it may lead, and the keys that may go there |
//! | `tokens` | how long a text is for a model |

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
pub mod private_access;
pub mod provider;
pub mod provider_options;
pub mod reasoning_tags;
pub mod registry;
pub mod request;
pub mod role_alternation;
pub mod scripted_json;
pub mod secret;
pub mod sse;
pub mod stream_decoder;
pub mod tokens;
pub mod tool;
pub mod untrusted_json;
