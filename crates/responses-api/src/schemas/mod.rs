//! Describes the bodies, objects and events of the API for its OpenAPI document.
//!
//! Requests are parsed by hand in `request`, so their schemas are separate types here; tests compare
//! their fields with the ones that the parser knows. Objects that the server returns derive their
//! schemas where they are defined, unless their fields are collected at run time.

pub mod chat_body;
pub mod event_schemas;
pub mod optional_fields;
pub mod output_items;
pub mod request_bodies;
pub mod request_values;
pub mod response_body;
pub mod response_object;
pub mod thread_bodies;
pub mod thread_events;
pub mod thread_run_bodies;
