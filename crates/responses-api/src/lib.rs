//! The protocol of the OpenAI-compatible Responses API (`/v1`): parses and validates requests,
//! defines items, events and objects as types, and builds a response and its stream of events from
//! the events of a model call. No I/O.
//!
#![doc = include_str!("../README.md")]
//!
//! | module | contents |
//! | --- | --- |
//! | [`request`] | requests, their input items and tools, and what is wrong with them |
//! | [`item`] | the items of an output, and their parts |
//! | [`event`] | the events of a stream |
//! | [`response`] | the response object, errors, token usage |
//! | [`objects`] | lists, models, conversations, and what the smaller endpoints return |
//! | [`embedding_list`] | the answer to a request for embeddings |
//! | [`status`] | the states of responses and items |
//! | [`schemas`] | what requests, objects and events look like, for the API document |
//! | [`fold`] | turns events of a model call into the response and its stream |
//! | [`pending_tool_calls`] | checks that an input answers the calls that wait for the client |
//! | [`server_tools`] | the names of this server's own tools |
//! | [`failure_codes`] | the codes of failed model calls, and the error object |
//! | [`threads`] | the objects of Assistants and Threads |
//! | [`object_ids`] | the ids of all objects |

pub mod embedding_list;
pub mod event;
pub mod failure_codes;
pub mod fold;
pub mod item;
pub mod object_ids;
pub mod objects;
pub mod pending_tool_calls;
pub mod request;
pub mod response;
pub mod schemas;
pub mod server_tools;
pub mod status;
pub mod threads;
