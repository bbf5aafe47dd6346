//! Builds the schemas of request values that may have several types.

use utoipa::PartialSchema;
use utoipa::openapi::schema::{AdditionalProperties, SchemaType, Type};
use utoipa::openapi::{ArrayBuilder, ObjectBuilder, OneOfBuilder, RefOr, Schema};

/// Any object.
pub fn object() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Object)
}

/// The fields of a body, to which others can be added.
pub fn fields_of<T: PartialSchema>(description: &str) -> ObjectBuilder {
    let fields = match T::schema() {
        RefOr::T(Schema::Object(fields)) => ObjectBuilder::from(fields),
        _ => ObjectBuilder::new(),
    };
    fields.description(Some(description))
}

/// A string that is not empty.
pub fn text() -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
}

/// A list of at least `min` and at most `max` objects.
pub fn objects(min: usize, max: usize) -> ArrayBuilder {
    ArrayBuilder::new()
        .items(object())
        .min_items(Some(min))
        .max_items(Some(max))
}

fn null() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Null)
}

/// A text, or a list of input items.
pub fn text_or_items() -> Schema {
    OneOfBuilder::new()
        .item(ObjectBuilder::new().schema_type(Type::String))
        .item(objects(1, 2_000))
        .item(null())
        .description(Some(
            "A text, or a list of items: messages, calls of tools and their outputs, reasoning, and references.",
        ))
        .build()
        .into()
}

/// A text, or a list of parts of a message.
pub fn text_or_parts() -> Schema {
    OneOfBuilder::new()
        .item(ObjectBuilder::new().schema_type(Type::String))
        .item(ArrayBuilder::new().items(object()).min_items(Some(1)))
        .description(Some("A text, or a list of parts: texts and pictures."))
        .build()
        .into()
}

/// `auto`, or an object that describes the format of answers.
pub fn answer_format() -> Schema {
    let auto = ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(["auto"]));
    OneOfBuilder::new()
        .item(auto)
        .item(object())
        .item(null())
        .description(Some(
            "The format of answers: `auto`, or an object as in Chat Completions.",
        ))
        .build()
        .into()
}

/// The id of a conversation, or an object with it.
pub fn conversation() -> Schema {
    let id = || ObjectBuilder::new().schema_type(Type::String);
    OneOfBuilder::new()
        .item(id())
        .item(object().property("id", id()).required("id"))
        .item(null())
        .description(Some(
            "A conversation that the response continues: its id, or an object with it.",
        ))
        .build()
        .into()
}

/// A word, or an object that names a tool.
pub fn tool_choice() -> Schema {
    OneOfBuilder::new()
        .item(
            ObjectBuilder::new()
                .schema_type(Type::String)
                .enum_values(Some(["auto", "none", "required"])),
        )
        .item(object())
        .item(null())
        .description(Some(
            "Whether the model calls a tool: a word, the name of a tool, or `allowed_tools`.",
        ))
        .build()
        .into()
}

/// A stop sequence, or several.
pub fn stop() -> Schema {
    let one = || {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .max_length(Some(512))
    };
    OneOfBuilder::new()
        .item(one())
        .item(ArrayBuilder::new().items(one()).max_items(Some(4)))
        .item(null())
        .description(Some("The answer ends before any of these texts."))
        .build()
        .into()
}

/// The texts of a request for embeddings.
pub fn embedded_texts() -> Schema {
    let id = || {
        ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(0))
            .maximum(Some(u32::MAX))
    };
    let list = || ArrayBuilder::new().min_items(Some(1));
    OneOfBuilder::new()
        .item(text())
        .item(list().items(text()).max_items(Some(2_048)))
        .item(list().items(id()))
        .item(list().items(list().items(id())).max_items(Some(2_048)))
        .description(Some(
            "A text, or a list of texts. Models of OpenAI also accept lists of token ids.",
        ))
        .build()
        .into()
}

/// The id of a conversation of a space, as a number or its digits.
pub fn space_conversation() -> Schema {
    OneOfBuilder::new()
        .item(ObjectBuilder::new().schema_type(Type::Integer))
        .item(ObjectBuilder::new().schema_type(Type::String))
        .description(Some("The id of a conversation of a space, as in `/api`."))
        .build()
        .into()
}

/// Up to sixteen texts of the client by name.
pub fn metadata() -> Schema {
    let value = ObjectBuilder::new()
        .schema_type(Type::String)
        .max_length(Some(512));
    let types = SchemaType::from_iter([Type::Object, Type::Null]);
    ObjectBuilder::new()
        .schema_type(types)
        .max_properties(Some(16))
        .property_names(Some(
            ObjectBuilder::new()
                .schema_type(Type::String)
                .max_length(Some(64)),
        ))
        .additional_properties(Some(AdditionalProperties::<Schema>::from(value)))
        .description(Some(
            "Up to sixteen texts of the client. The server never reads them.",
        ))
        .build()
        .into()
}

/// Returns the names of the fields of a schema in alphabetical order.
#[cfg(test)]
pub(crate) fn field_names<T: utoipa::ToSchema>() -> Vec<String> {
    let schema = serde_json::to_value(T::schema()).expect("a schema is an object with text keys");
    let properties = schema["properties"].as_object().into_iter().flatten();
    let mut names: Vec<String> = properties.map(|it| it.0.clone()).collect();
    names.sort();
    names
}
