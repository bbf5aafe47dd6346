//! Builds the schemas of the `/ws` frames for the API document: commands of clients, answers and
//! events.

use realtime::presence::PresenceUpdated;
use realtime::presence_table::PresentMember;
use realtime::typing::HumanTyping;
use utoipa::openapi::schema::{AdditionalProperties, Object, SchemaType, Type};
use utoipa::openapi::{ArrayBuilder, ObjectBuilder, OneOfBuilder, Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::conversations::jobs::job_view::JobUpdated;
use crate::conversations::read_mark::ReadUpdated;
use crate::conversations::translations::translation_events::{
    MessageTranslated, TranslationFailed,
};
use crate::memories::events::memory_events as memories;
use crate::runs::events;
use crate::runs::reading::snapshot::Snapshot;
use crate::runs::reading::views::ConversationView;
use crate::runs::store::tool_approval::ToolApprovalUpdated;
use crate::spaces::events as spaces;
use crate::web::live::{command, server_frames};
use crate::web::openapi::endpoint::NamedSchema;
use crate::web::openapi::schemas;

/// Returns the schemas of all frames.
pub fn schemas() -> Vec<NamedSchema> {
    let mut named = Vec::new();
    let commands = commands(&mut named);
    named.push(one_of("SocketCommand", "A frame of a client.", commands));
    let events = events(&mut named);
    named.push(one_of("SocketEvent", "An event.", events));
    named.extend(schemas::for_type::<events::ShortStreamChunk<'_>>());
    named.extend(answers());
    named
}

fn commands(named: &mut Vec<NamedSchema>) -> Vec<String> {
    named.extend([
        command::<command::Subscribe>("subscribe"),
        command::<command::Unsubscribe>("unsubscribe"),
        command::<command::SubscribeSpace>("subscribe_space"),
        command::<command::AwayCommand>("away"),
        command::<command::TypingCommand>("typing"),
        command::<command::EmptyPayload>("ping"),
    ]);
    names(named)
}

/// Returns the frame with these fields, an id and its operation.
fn command<C: ToSchema>(op: &str) -> NamedSchema {
    let fields = object(C::schema());
    let mut frame = tagged_object("op", &[op])
        .property("id", number())
        .required("id");
    for (name, schema) in fields.properties {
        frame = frame.property(name, schema);
    }
    for name in fields.required {
        frame = frame.required(name);
    }
    let frame = frame
        .description(fields.description)
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)));
    (format!("Socket{}", to_camel_case(op)), frame.into())
}

fn events(named: &mut Vec<NamedSchema>) -> Vec<String> {
    let mut events = Vec::new();
    let mut event = |(frame, of): (NamedSchema, Vec<NamedSchema>)| {
        events.push(frame);
        named.extend(of);
    };
    let (name, of) = event_schema::<events::TypingStart>(&["typing_start"]);
    event((with_handle(name), of));
    event(event_schema::<events::StreamChunk<'_>>(&["stream_chunk"]));
    event(event_schema::<server_frames::StreamRepaired<'_>>(&[
        "stream_reset",
    ]));
    event(event_schema::<events::StreamComplete>(&["stream_complete"]));
    event(event_schema::<events::TypingStop>(&["typing_stop"]));
    event(event_schema::<events::MessageEvent>(&[
        "message_created",
        "message_updated",
    ]));
    event(event_schema::<events::MessageHidden>(&["message_hidden"]));
    event(event_schema::<events::RevAdvanced>(&["rev_advanced"]));
    event(event_schema::<events::ReactionsUpdated>(&[
        "reactions_updated",
    ]));
    event(event_schema::<events::RunEvent>(&[
        "run_queued",
        "run_skipped",
        "run_failed",
        "run_canceled",
    ]));
    event(event_schema::<events::QueueUpdated>(&["queue_updated"]));
    event(event_schema::<events::Activity>(&["activity"]));
    event(event_schema::<spaces::ConversationUpdated<ConversationView>>(&["conversation_updated"]));
    event(event_schema::<spaces::ConversationDeleted>(&[
        "conversation_deleted",
    ]));
    event(event_schema::<spaces::SpaceUpdated>(&["space_updated"]));
    event(event_schema::<spaces::SpaceDeleted>(&["space_deleted"]));
    event(event_schema::<memories::MemoryUpdated>(&["memory_updated"]));
    event(event_schema::<memories::MemoryDeleted>(&["memory_deleted"]));
    event(event_schema::<memories::MemoriesForgotten>(&[
        "memories_forgotten",
    ]));
    event(event_schema::<memories::MemoryStateChanged>(&[
        "memory_state",
    ]));
    event(event_schema::<memories::SummaryUpdated>(&[
        "summary_updated",
    ]));
    event(event_schema::<spaces::MembershipUpdated>(&[
        "membership_updated",
    ]));
    event(event_schema::<spaces::CopilotUpdated>(&["copilot_updated"]));
    event(event_schema::<spaces::InvitationCreated>(&[
        "invitation_created",
    ]));
    event(event_schema::<events::YourTurn>(&["your_turn"]));
    event(event_schema::<events::CopilotCandidate>(&[
        "copilot_candidate",
    ]));
    event(event_schema::<events::CopilotCandidateError>(&[
        "copilot_candidate_error",
    ]));
    event(event_schema::<ToolApprovalUpdated>(&[
        "tool_approval_updated",
    ]));
    event(event_schema::<MessageTranslated<'_>>(&[
        "message_translated",
    ]));
    event(event_schema::<TranslationFailed<'_>>(&[
        "translation_failed",
    ]));
    event(event_schema::<ReadUpdated>(&["read_updated"]));
    event(event_schema::<JobUpdated>(&["job_updated"]));
    event(event_schema::<HumanTyping>(&["human_typing"]));
    event(event_schema::<PresenceUpdated>(&["presence_updated"]));
    event(event_schema::<server_frames::Resync>(&["resync"]));
    event(event_schema::<server_frames::Unsubscribed>(&[
        "unsubscribed",
    ]));
    event(event_schema::<server_frames::UnsubscribedSpace>(&[
        "unsubscribed",
    ]));
    let names = names(&events);
    named.extend(events);
    names
}

/// Returns the frame of this event, `type` first, and the schemas that it refers to.
fn event_schema<E: ToSchema>(types: &[&str]) -> (NamedSchema, Vec<NamedSchema>) {
    let fields = object(E::schema());
    let mut frame = tagged_object("type", types);
    for (name, schema) in fields.properties {
        frame = frame.property(name, schema);
    }
    let mut of = Vec::new();
    E::schemas(&mut of);
    let name = format!("{}Event", E::name().split('_').next().unwrap_or_default());
    ((name, frame.description(fields.description).into()), of)
}

/// Returns the frame with the key that only sockets of protocol 2 receive.
fn with_handle((name, frame): NamedSchema) -> NamedSchema {
    let handle = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .description(Some(
            "Only in protocol 2: the handle of the pieces that follow.",
        ))
        .extensions(Some([("x-optional", true)].into_iter().collect()));
    let frame = ObjectBuilder::from(object(frame)).property("h", handle);
    (name, frame.into())
}

fn answers() -> Vec<NamedSchema> {
    let done = |about: &str| {
        ObjectBuilder::new()
            .schema_type(Type::Object)
            .description(Some(about))
            .property("re", number())
            .property("ok", bool::schema())
    };
    let snapshot = object(Snapshot::schema());
    let snapshot = ObjectBuilder::from(snapshot)
        .property("presence", ArrayBuilder::new().items(reference("Present")))
        .property("stream", schemas::nullable::<server_frames::StreamState>());
    let refused = ObjectBuilder::new()
        .schema_type(Type::Object)
        .description(Some(
            "The operation failed. `re` is null if the frame could not be parsed.",
        ))
        .property(
            "re",
            ObjectBuilder::from(number()).schema_type(number_or_null()),
        )
        .property("error", reference("ErrorBody"));
    let time = done("The answer to `ping`.").property("time", reference("Timestamp"));
    let begun = done("The answer to `subscribe`.")
        .property("rev", i64::schema())
        .property("snapshot", reference("Snapshot"));
    let mut named = schemas::for_type::<Snapshot>();
    named.retain(|(name, _)| name != "Snapshot");
    named.extend(schemas::for_type::<PresentMember>());
    named.extend(schemas::for_type::<server_frames::StreamState>());
    named.push(("Snapshot".to_owned(), snapshot.into()));
    let answers: Vec<NamedSchema> = vec![
        (
            "SocketDone".to_owned(),
            done("The operation succeeded.").into(),
        ),
        ("SocketTime".to_owned(), time.into()),
        ("SocketSubscribed".to_owned(), begun.into()),
        ("SocketRefused".to_owned(), refused.into()),
    ];
    let about = "The only answer to a frame.";
    let choices = names(&answers).into_iter().map(reference);
    let any = choices.fold(utoipa::openapi::schema::AnyOfBuilder::new(), |any, it| {
        any.item(it)
    });
    named.push((
        "SocketAnswer".to_owned(),
        any.description(Some(about)).into(),
    ));
    named.extend(answers);
    named
}

/// Returns an object whose field `name` is one of these words.
fn tagged_object(name: &str, words: &[&str]) -> ObjectBuilder {
    let words = ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(words.iter().map(|it| (*it).to_owned())));
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .property(name, words)
        .required(name)
}

fn number() -> Object {
    ObjectBuilder::new()
        .schema_type(Type::Number)
        .description(Some("Any number, chosen by the client."))
        .build()
}

fn number_or_null() -> SchemaType {
    SchemaType::from_iter([Type::Number, Type::Null])
}

fn reference(name: impl Into<String>) -> Ref {
    Ref::from_schema_name(name.into())
}

fn one_of(name: &str, about: &str, choices: Vec<String>) -> NamedSchema {
    let choices = choices.into_iter().map(reference);
    let one = choices.fold(OneOfBuilder::new(), |one, it| one.item(it));
    (name.to_owned(), one.description(Some(about)).into())
}

fn names(named: &[NamedSchema]) -> Vec<String> {
    named.iter().map(|(name, _)| name.clone()).collect()
}

/// Returns the object schema; all our frames are plain objects.
fn object(schema: RefOr<Schema>) -> Object {
    match schema {
        RefOr::T(Schema::Object(object)) => object,
        _ => Object::new(),
    }
}

/// Converts `subscribe_space` into `SubscribeSpace`.
fn to_camel_case(words: &str) -> String {
    let capital = |word: &str| {
        let (first, rest) = word.split_at(word.len().min(1));
        first.to_uppercase() + rest
    };
    words.split('_').map(capital).collect()
}
