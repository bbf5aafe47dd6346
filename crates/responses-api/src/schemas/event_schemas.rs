//! Builds the schemas of the events of a stream: each has its type, its sequence number, and the
//! fields of its payload.

use utoipa::ToSchema;
use utoipa::openapi::schema::Type;
use utoipa::openapi::{AllOfBuilder, ObjectBuilder, OneOfBuilder, Ref, RefOr, Schema};

/// Returns the name of the schema of an event.
fn name(variant: &str) -> String {
    format!("Event_{variant}")
}

/// Returns the schema of one of these events.
pub fn one_of(variants: &[&str]) -> RefOr<Schema> {
    let events = OneOfBuilder::new().description(Some(
        "An event of a response. Its name is its `type`. The last event is followed by `data: [DONE]`.",
    ));
    let refer =
        |events: OneOfBuilder, variant: &&str| events.item(Ref::from_schema_name(name(variant)));
    variants.iter().fold(events, refer).into()
}

/// Adds the schema of an event, and those that it refers to.
pub fn add<P: ToSchema>(named: &mut Vec<(String, RefOr<Schema>)>, variant: &str, kind: &str) {
    let mut head = ObjectBuilder::new()
        .property(
            "type",
            ObjectBuilder::new()
                .schema_type(Type::String)
                .enum_values(Some([kind])),
        )
        .required("type")
        .property(
            "sequence_number",
            ObjectBuilder::new().schema_type(Type::Integer),
        )
        .required("sequence_number");
    if kind.ends_with(".delta") {
        let padding = ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some("Random characters, if the client requests them."))
            .extensions(Some([("x-optional", true)].into_iter().collect()));
        head = head.property("obfuscation", padding);
    }
    let event = AllOfBuilder::new()
        .item(Ref::from_schema_name(P::name()))
        .item(head);
    named.push((name(variant), event.into()));
    named.push((P::name().into_owned(), P::schema()));
    P::schemas(named);
}
