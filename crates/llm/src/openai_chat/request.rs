//! Builds the JSON body of a request to the Chat Completions API, for OpenAI or for compatible
//! servers. A speaker's name is sent in `name` where that is valid, otherwise before the text (not
//! in system messages).

use base::prompt_role::PromptRole;
use serde_json::{Map, Value, json};

use crate::compatibility::backend::ModelBackend;
use crate::compatibility::name_prefix;
use crate::compatibility::role_handling::{RoleHandling, SystemRole};
use crate::openai_chat::variant::ChatVariant;
use crate::openai_chat::{logprobs, result_files, role_order, samplers, thoughts, tools};
use crate::provider_options::ProviderOptions;
use crate::request::{Message, Request};

/// The API rejects more.
pub const MAX_STOPS: usize = 4;
/// Routers that forward requests to OpenAI's newer API reject a lower token limit.
pub const MIN_OUTPUT_TOKENS: u32 = 16;
const MAX_NAME_CHARS: usize = 64;

/// Returns the body of a streaming request.
pub fn body(request: &Request, options: &ProviderOptions, variant: ChatVariant) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(request.model));
    body.insert("messages".to_owned(), messages(request, options, variant));
    body.insert("stream".to_owned(), json!(true));
    // Mistral always reports the usage, and rejects the field.
    if options.backend != ModelBackend::Mistral {
        body.insert(
            "stream_options".to_owned(),
            json!({ "include_usage": true }),
        );
    }
    if let Some(temperature) = request.temperature {
        body.insert("temperature".to_owned(), json!(temperature));
    }
    if let Some(top_p) = request.top_p {
        body.insert("top_p".to_owned(), json!(top_p));
    }
    if let Some(max_tokens) = options.token_limit(request) {
        let names = match variant {
            ChatVariant::Compatible => ["max_tokens", "max_completion_tokens"],
            ChatVariant::Openai => ["max_completion_tokens", "max_tokens"],
        };
        let is_accepted = |it: &&str| !request.refused.fields.contains(*it);
        if let Some(field) = names.into_iter().find(is_accepted) {
            body.insert(field.to_owned(), json!(max_tokens.max(MIN_OUTPUT_TOKENS)));
        }
    }
    let of = (variant, options.backend);
    samplers::insert_samplers(&mut body, &request.samplers, of, options.samplers.as_ref());
    if request.is_prefilled {
        let flags = options.backend.continuation_flags().iter();
        body.extend(flags.map(|(name, value)| ((*name).to_owned(), json!(value))));
    }
    let stops: Vec<&String> = request
        .stop
        .iter()
        .filter(|it| !it.is_empty())
        .take(MAX_STOPS)
        .collect();
    if !stops.is_empty() {
        body.insert("stop".to_owned(), json!(stops));
    }
    if !request.logit_bias.is_empty() {
        body.insert("logit_bias".to_owned(), json!(request.logit_bias));
    }
    tools::insert_tools_and_format(&mut body, request);
    logprobs::insert_logprobs(&mut body, request);
    if let Some(effort) = options.effort(request) {
        body.insert("reasoning_effort".to_owned(), json!(effort.as_str()));
    }
    Value::Object(body)
}

fn messages(request: &Request, options: &ProviderOptions, variant: ChatVariant) -> Value {
    let handling = match request.refused.role_order {
        true => RoleHandling::StrictAlternation,
        false => options.role_handling.resolve(&options.host, &request.model),
    };
    let system = options.system_role.resolve(&request.model);
    let arranged = role_order::arrange(request, handling, system);
    let messages = result_files::in_own_messages(&arranged);
    // An endpoint that refuses `name` gets names in the text.
    let variant = match request.refused.fields.contains("name") {
        true => ChatVariant::Compatible,
        false => variant,
    };
    let mut sent: Vec<Value> = messages.iter().map(|it| message(it, variant)).collect();
    if system == SystemRole::Developer {
        for message in sent.iter_mut().filter(|it| it["role"] == "system") {
            message["role"] = json!("developer");
        }
    }
    thoughts::complete_reasoning_content(&mut sent);
    let is_marked = request.is_prefilled && options.supports_prefix;
    if let Some(last) = sent.last_mut().filter(|_| is_marked) {
        last["prefix"] = json!(true);
    }
    Value::Array(sent)
}

/// Returns one message of the prompt.
pub fn message(message: &Message, variant: ChatVariant) -> Value {
    if let Some(call) = &message.answers {
        return json!({ "role": "tool", "tool_call_id": call.id, "content": message.content });
    }
    let mut sent = named_message(message, variant);
    if !message.calls.is_empty() {
        sent["tool_calls"] = message.calls.iter().map(tools::call).collect();
        // Models were trained with `null` instead of empty text in messages with tool calls.
        if message.content.is_empty() {
            sent["content"] = Value::Null;
        }
    }
    if variant == ChatVariant::Compatible {
        thoughts::insert_thoughts(&mut sent, &message.thoughts);
    }
    if !message.attachments.is_empty() {
        sent["content"] = tools::content_parts(&sent["content"], &message.attachments);
    }
    sent
}

fn named_message(message: &Message, variant: ChatVariant) -> Value {
    let role = message.role.as_str();
    match message
        .name
        .as_deref()
        .map(str::trim)
        .filter(|name| !name.is_empty())
    {
        None => json!({ "role": role, "content": message.content }),
        Some(name) if variant == ChatVariant::Openai && is_valid_name(name) => {
            json!({ "role": role, "name": name, "content": message.content })
        }
        // A name on a system message only distinguishes examples; in the text it would confuse the
        // model.
        Some(_) if message.role == PromptRole::System => {
            json!({ "role": role, "content": message.content })
        }
        Some(name) => json!({ "role": role, "content": name_prefix::add(name, &message.content) }),
    }
}

/// Returns whether the name matches the API's pattern for names, `^[^\s<|\\/>]+$`.
fn is_valid_name(name: &str) -> bool {
    name.chars().count() <= MAX_NAME_CHARS
        && !name.chars().any(|it| {
            it.is_whitespace() || it.is_control() || matches!(it, '<' | '|' | '\\' | '/' | '>')
        })
}

#[cfg(test)]
mod tests {
    use base::prompt_role::PromptRole;
    use serde_json::json;

    use super::ChatVariant;
    use crate::compatibility::backend::ModelBackend;
    use crate::provider_options::ProviderOptions;
    use crate::request::{Message, Request};

    fn body(request: &Request, variant: ChatVariant) -> serde_json::Value {
        super::body(request, &ProviderOptions::default(), variant)
    }

    fn sent(message: Message) -> serde_json::Value {
        let request = Request {
            messages: vec![message],
            ..Request::default()
        };
        body(&request, ChatVariant::Openai)["messages"][0].clone()
    }

    #[test]
    fn only_requested_settings_are_sent() {
        let request = Request {
            model: "m".to_owned(),
            seed: 7,
            ..Request::default()
        };

        assert_eq!(
            body(&request, ChatVariant::Openai),
            json!({ "model": "m", "messages": [], "stream": true, "stream_options": { "include_usage": true } }),
        );
    }

    #[test]
    fn the_beginning_of_the_response_is_marked() {
        let request = Request {
            messages: vec![
                Message::new(PromptRole::User, "Who are you?"),
                Message::new(PromptRole::Assistant, "I am"),
            ],
            is_prefilled: true,
            ..Request::default()
        };

        let sent = |options| super::body(&request, &options, ChatVariant::Compatible);
        let marked = sent(ProviderOptions {
            supports_prefix: true,
            ..ProviderOptions::default()
        });
        let flagged = sent(ProviderOptions {
            backend: ModelBackend::Vllm,
            ..ProviderOptions::default()
        });

        assert!(marked["messages"][0].get("prefix").is_none());
        let last = json!({ "role": "assistant", "content": "I am", "prefix": true });
        assert_eq!(marked["messages"][1], last);
        assert_eq!(flagged["continue_final_message"], true);
        assert_eq!(flagged["add_generation_prompt"], false);
        let unmarked = json!({ "role": "assistant", "content": "I am" });
        assert_eq!(flagged["messages"][1], unmarked);
    }

    #[test]
    fn the_length_limit_is_sent_in_the_field_of_the_variant() {
        let request = Request {
            max_tokens: Some(50),
            ..Request::default()
        };

        assert_eq!(body(&request, ChatVariant::Compatible)["max_tokens"], 50);
        assert_eq!(
            body(&request, ChatVariant::Openai)["max_completion_tokens"],
            50
        );
        let short = Request {
            max_tokens: Some(1),
            ..request
        };
        assert_eq!(body(&short, ChatVariant::Compatible)["max_tokens"], 16);
    }

    #[test]
    fn at_most_four_nonempty_stops_are_sent() {
        let stop = ["a", "", "b", "c", "d", "e"].map(str::to_owned).to_vec();
        let request = Request {
            stop,
            ..Request::default()
        };

        assert_eq!(
            body(&request, ChatVariant::Openai)["stop"],
            json!(["a", "b", "c", "d"])
        );
    }

    #[test]
    fn the_bias_of_tokens_is_sent() {
        let request = Request {
            logit_bias: [("50256".to_owned(), -100.0)].into(),
            ..Request::default()
        };

        let sent = body(&request, ChatVariant::Openai);
        assert_eq!(sent["logit_bias"], json!({ "50256": -100.0 }));
    }

    #[test]
    fn a_valid_name_is_sent_in_its_field() {
        for name in ["Ada", "Zoë", "李", "O'Neil"] {
            let message = sent(Message::new(PromptRole::User, "Hi.").with_name(name));

            assert_eq!(
                message,
                json!({ "role": "user", "name": name, "content": "Hi." })
            );
        }
    }

    #[test]
    fn compatible_endpoints_get_every_name_before_the_text() {
        let request = Request {
            messages: vec![Message::new(PromptRole::User, "Hi.").with_name("Ada")],
            ..Request::default()
        };

        let message = &body(&request, ChatVariant::Compatible)["messages"][0];

        assert_eq!(*message, json!({ "role": "user", "content": "Ada: Hi." }));
    }

    #[test]
    fn any_other_name_is_prefixed_to_the_text() {
        for name in [
            "Sir Lancelot",
            "a|b",
            "<Ada>",
            "a/b",
            "a\\b",
            &"x".repeat(65),
        ] {
            let message = sent(Message::new(PromptRole::Assistant, "Hi.").with_name(name));

            assert_eq!(
                message,
                json!({ "role": "assistant", "content": format!("{name}: Hi.") })
            );
        }
    }

    #[test]
    fn a_name_before_the_text_is_not_doubled() {
        let message =
            sent(Message::new(PromptRole::User, " sir lancelot: Hi.").with_name("Sir Lancelot"));

        assert_eq!(message["content"], " sir lancelot: Hi.");
    }

    #[test]
    fn a_blank_name_is_ignored() {
        let message = sent(Message::new(PromptRole::User, "Hi.").with_name(" "));

        assert_eq!(message, json!({ "role": "user", "content": "Hi." }));
    }
}
