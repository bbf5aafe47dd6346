//! The rules of seven APIs for requests: which fields exist, which values are allowed, and in which order the
//! roles must be. Each check returns why the real API would reject a request.

use serde_json::Value;

/// An API: the name of its provider, and the check of a request.
pub struct StrictApi {
    pub name: &'static str,
    pub check: fn(&Value) -> Result<(), String>,
}

pub const OPENAI: StrictApi = StrictApi {
    name: "OpenAI",
    check: openai,
};
pub const ANTHROPIC: StrictApi = StrictApi {
    name: "Anthropic",
    check: anthropic,
};
pub const GEMINI: StrictApi = StrictApi {
    name: "Gemini",
    check: gemini,
};
pub const OLLAMA: StrictApi = StrictApi {
    name: "Ollama",
    check: ollama,
};
pub const LLAMA_CPP: StrictApi = StrictApi {
    name: "llama.cpp",
    check: llama_cpp,
};
pub const KOBOLD_CPP: StrictApi = StrictApi {
    name: "KoboldCpp",
    check: kobold_cpp,
};
pub const MISTRAL: StrictApi = StrictApi {
    name: "Mistral",
    check: mistral,
};

fn openai(body: &Value) -> Result<(), String> {
    only(
        body,
        "model messages temperature top_p max_tokens max_completion_tokens stream stream_options stop seed \
         frequency_penalty presence_penalty logit_bias n user response_format tools tool_choice \
         parallel_tool_calls reasoning_effort",
    )?;
    require(
        !(body["max_tokens"].is_number() && body["max_completion_tokens"].is_number()),
        "two limits",
    )?;
    stops(&body["stop"], 4)?;
    for message in list(body, "messages")? {
        only(message, "role content name tool_calls tool_call_id")?;
        let role = message["role"].as_str().unwrap_or_default();
        let is_known = ["system", "developer", "user", "assistant", "tool"].contains(&role);
        require(is_known, "an unknown role")?;
        text(&message["content"])?;
        if let Some(name) = message["name"].as_str() {
            let is_valid = |it: char| !it.is_whitespace() && !"<|\\/>".contains(it);
            require(
                !name.is_empty() && name.chars().all(is_valid),
                "an invalid name",
            )?;
        }
    }
    Ok(())
}

fn mistral(body: &Value) -> Result<(), String> {
    only(
        body,
        "model messages temperature top_p max_tokens stream stop random_seed frequency_penalty \
         presence_penalty n response_format tools tool_choice parallel_tool_calls safe_prompt prompt_mode",
    )?;
    let messages = list(body, "messages")?;
    for message in messages {
        only(message, "role content prefix tool_calls tool_call_id")?;
        text(&message["content"])?;
    }
    let roles = roles(messages);
    let turns = match roles.first() {
        Some(&"system") => &roles[1..],
        _ => &roles[..],
    };
    require(
        !turns.contains(&"system"),
        "a system message after the first",
    )?;
    alternating(turns, "assistant")?;
    let is_prefix = messages.last().is_some_and(|it| it["prefix"] == true);
    require(
        turns.last() == Some(&"user") || is_prefix,
        "the last message is the assistant's",
    )
}

fn anthropic(body: &Value) -> Result<(), String> {
    only(
        body,
        "model system messages max_tokens temperature top_p top_k stop_sequences stream metadata thinking \
         tools tool_choice service_tier output_config",
    )?;
    require(
        body["max_tokens"].as_i64().is_some_and(|it| it > 0),
        "no max_tokens",
    )?;
    require(
        body["temperature"].as_f64().is_none_or(|it| it <= 1.0),
        "temperature above 1",
    )?;
    for stop in body["stop_sequences"].as_array().into_iter().flatten() {
        let is_blank = stop.as_str().is_none_or(|it| it.trim().is_empty());
        require(!is_blank, "a blank stop sequence")?;
    }
    let messages = list(body, "messages")?;
    let marks = body.to_string().matches("cache_control").count();
    require(marks <= 4, "more than 4 cache marks")?;
    for message in messages {
        only(message, "role content")?;
        for block in message["content"].as_array().into_iter().flatten() {
            text(&block["text"])?;
        }
        if message["content"].is_string() {
            text(&message["content"])?;
        }
    }
    let roles = roles(messages);
    alternating(&roles, "assistant")?;
    let last = messages.last().map(|it| &it["content"]);
    let last = last.and_then(|it| {
        it.as_str()
            .or_else(|| it.as_array()?.last()?["text"].as_str())
    });
    let is_trimmed = last.is_none_or(|it| it.trim_end() == it);
    require(
        roles.last() != Some(&"assistant") || is_trimmed,
        "the prefill ends with white space",
    )
}

fn gemini(body: &Value) -> Result<(), String> {
    only(
        body,
        "contents systemInstruction generationConfig safetySettings tools toolConfig cachedContent",
    )?;
    let config = &body["generationConfig"];
    if config.is_object() {
        only(
            config,
            "temperature topP topK maxOutputTokens stopSequences seed candidateCount presencePenalty \
             frequencyPenalty responseMimeType responseSchema responseJsonSchema thinkingConfig",
        )?;
    }
    stops(&config["stopSequences"], 5)?;
    let contents = list(body, "contents")?;
    for content in contents {
        only(content, "role parts")?;
        let parts = list(content, "parts")?;
        parts.iter().try_for_each(|it| text(&it["text"]))?;
    }
    let roles = roles(contents);
    alternating(&roles, "model")?;
    require(
        roles.last() == Some(&"user"),
        "the last turn is the model's",
    )
}

fn ollama(body: &Value) -> Result<(), String> {
    only(
        body,
        "model messages stream options keep_alive think format tools",
    )?;
    if body["options"].is_object() {
        only(
            &body["options"],
            "num_ctx num_predict temperature top_p top_k min_p typical_p repeat_penalty repeat_last_n \
             presence_penalty frequency_penalty seed stop mirostat mirostat_tau mirostat_eta tfs_z num_keep",
        )?;
    }
    for message in list(body, "messages")? {
        only(message, "role content images tool_calls tool_name thinking")?;
        let role = message["role"].as_str().unwrap_or_default();
        require(
            ["system", "user", "assistant", "tool"].contains(&role),
            "an unknown role",
        )?;
        text(&message["content"])?;
    }
    Ok(())
}

fn llama_cpp(body: &Value) -> Result<(), String> {
    if body["messages"].is_array() {
        return local_chat(body);
    }
    only(
        body,
        "prompt stream cache_prompt n_predict temperature top_p top_k min_p typical_p repeat_penalty \
         repeat_last_n presence_penalty frequency_penalty seed stop samplers grammar logit_bias top_n_sigma \
         dry_multiplier dry_base dry_allowed_length dry_penalty_last_n dry_sequence_breakers xtc_threshold \
         xtc_probability mirostat mirostat_tau mirostat_eta dynatemp_range dynatemp_exponent",
    )?;
    stops(&body["stop"], usize::MAX)?;
    prompt(body)
}

fn kobold_cpp(body: &Value) -> Result<(), String> {
    if body["messages"].is_array() {
        return local_chat(body);
    }
    only(
        body,
        "prompt max_length max_context_length temperature top_p top_k top_a min_p typical tfs rep_pen \
         rep_pen_range rep_pen_slope presence_penalty sampler_seed sampler_order stop_sequence grammar \
         banned_tokens logit_bias smoothing_factor nsigma dry_multiplier dry_base dry_allowed_length \
         dry_penalty_last_n dry_sequence_breakers xtc_threshold xtc_probability mirostat mirostat_tau \
         mirostat_eta dynatemp_range dynatemp_exponent trim_stop",
    )?;
    stops(&body["stop_sequence"], usize::MAX)?;
    prompt(body)
}

/// Checks a chat completion for a local server: those requests maintain memories.
fn local_chat(body: &Value) -> Result<(), String> {
    for message in list(body, "messages")? {
        only(message, "role content tool_calls tool_call_id")?;
        text(&message["content"])?;
    }
    Ok(())
}

/// Checks that a text prompt ends with the name of the speaker, or with the text to continue.
fn prompt(body: &Value) -> Result<(), String> {
    let prompt = body["prompt"].as_str().ok_or("no prompt")?;
    let last = prompt.lines().last().unwrap_or_default();
    require(last.contains(':'), "the prompt ends without a name")
}

fn only(object: &Value, allowed: &str) -> Result<(), String> {
    let fields = object.as_object().ok_or("not an object")?;
    let allowed: Vec<&str> = allowed.split_whitespace().collect();
    match fields.keys().find(|it| !allowed.contains(&it.as_str())) {
        Some(unknown) => Err(format!("an unknown field: {unknown}")),
        None => Ok(()),
    }
}

fn require(is_met: bool, reason: &str) -> Result<(), String> {
    match is_met {
        true => Ok(()),
        false => Err(reason.to_owned()),
    }
}

fn list<'a>(object: &'a Value, name: &str) -> Result<&'a Vec<Value>, String> {
    let items = object[name].as_array().filter(|it| !it.is_empty());
    items.ok_or_else(|| format!("{name} is empty"))
}

fn text(content: &Value) -> Result<(), String> {
    let is_blank = content.as_str().is_none_or(|it| it.trim().is_empty());
    require(!is_blank, "a message without text")
}

fn stops(list: &Value, most: usize) -> Result<(), String> {
    let n = list.as_array().map_or(0, Vec::len);
    require(n <= most, "too many stop sequences")
}

fn roles(messages: &[Value]) -> Vec<&str> {
    messages
        .iter()
        .filter_map(|it| it["role"].as_str())
        .collect()
}

/// Checks that the roles of the user and the model alternate, the user first.
fn alternating(roles: &[&str], model: &str) -> Result<(), String> {
    let wanted = ["user", model].into_iter().cycle();
    let is_met = roles.iter().zip(wanted).all(|(role, it)| *role == it);
    require(is_met, "the roles do not alternate")
}
