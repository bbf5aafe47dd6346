//! Lists all endpoints under `/v1`. Each handler declares its own method and path, and describes itself
//! for the API document; see `web/openapi/endpoint.rs`.

use crate::web::openapi::endpoint::{ApiEndpoint, endpoints};
use crate::web::v1::assistants::{run_steps, runs, stored_assistants, thread_messages, threads};
use crate::web::v1::chat::chat_completions;
use crate::web::v1::embeddings::create_embeddings;
use crate::web::v1::{compact, conversations, memory_query, models, responses, ws_upgrade};

/// Returns all endpoints in the order of the API document.
pub fn all_endpoints() -> Vec<ApiEndpoint> {
    [
        response_endpoints(),
        conversation_endpoints(),
        model_endpoints(),
        assistant_endpoints(),
        run_endpoints(),
    ]
    .concat()
}

fn response_endpoints() -> Vec<ApiEndpoint> {
    endpoints![
        responses::create,
        ws_upgrade::connect,
        // These two must precede `/v1/responses/{id}`, whose pattern matches their paths.
        compact::compact,
        responses::input_tokens,
        responses::show,
        responses::delete,
        responses::cancel,
        responses::input_items,
        chat_completions::create,
    ]
}

fn conversation_endpoints() -> Vec<ApiEndpoint> {
    endpoints![
        conversations::list,
        conversations::create,
        conversations::show,
        conversations::update,
        conversations::delete,
        conversations::list_items,
        conversations::append,
        conversations::show_item,
        conversations::delete_item,
    ]
}

fn model_endpoints() -> Vec<ApiEndpoint> {
    endpoints![
        models::list,
        models::show,
        create_embeddings::create,
        memory_query::query,
    ]
}

fn assistant_endpoints() -> Vec<ApiEndpoint> {
    endpoints![
        stored_assistants::list,
        stored_assistants::create,
        stored_assistants::show,
        stored_assistants::update,
        stored_assistants::delete,
        threads::create,
        // Must precede `/v1/threads/{id}`, whose pattern matches its path.
        runs::create_with_thread,
        threads::show,
        threads::update,
        threads::delete,
        thread_messages::list,
        thread_messages::create,
        thread_messages::show,
        thread_messages::update,
        thread_messages::delete,
    ]
}

fn run_endpoints() -> Vec<ApiEndpoint> {
    endpoints![
        runs::list,
        runs::create,
        runs::show,
        runs::update,
        runs::cancel,
        runs::submit_tool_outputs,
        run_steps::list,
        run_steps::show,
    ]
}
