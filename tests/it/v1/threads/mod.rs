//! Tests of `/v1/assistants` and `/v1/threads`.

mod assistants;
mod cleanup;
mod messages;
mod pages;
mod support;
mod thread_documents;
