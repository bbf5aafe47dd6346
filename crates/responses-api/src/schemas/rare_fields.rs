//! Builds the schemas of fields that are left out if they have no value. `x-rare` marks them for the API
//! document, which otherwise requires every field of an answer.

use utoipa::openapi::schema::{SchemaType, Type};
use utoipa::openapi::{Object, ObjectBuilder};

fn rare(types: SchemaType) -> Object {
    ObjectBuilder::new()
        .schema_type(types)
        .extensions(Some([("x-rare", true)].into_iter().collect()))
        .build()
}

/// An object.
pub fn object() -> Object {
    rare(SchemaType::new(Type::Object))
}

/// An object, or null.
pub fn object_or_null() -> Object {
    rare(SchemaType::from_iter([Type::Object, Type::Null]))
}

/// A list.
pub fn list() -> Object {
    rare(SchemaType::new(Type::Array))
}
