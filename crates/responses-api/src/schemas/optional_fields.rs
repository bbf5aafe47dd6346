//! Builds the schemas of fields that are left out if they have no value. `x-optional` marks them for the API
//! document, which otherwise requires every field of an answer.

use utoipa::openapi::schema::{SchemaType, Type};
use utoipa::openapi::{Object, ObjectBuilder};

fn optional(types: SchemaType) -> Object {
    ObjectBuilder::new()
        .schema_type(types)
        .extensions(Some([("x-optional", true)].into_iter().collect()))
        .build()
}

/// An object.
pub fn object() -> Object {
    optional(SchemaType::new(Type::Object))
}

/// An object, or null.
pub fn object_or_null() -> Object {
    optional(SchemaType::from_iter([Type::Object, Type::Null]))
}

/// A list.
pub fn list() -> Object {
    optional(SchemaType::new(Type::Array))
}
