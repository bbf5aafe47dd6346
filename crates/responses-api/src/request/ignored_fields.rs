//! Lists the fields and tools of a valid request that have no effect on this server, by the names
//! that the header `troupe-ignored` of the answer uses.

use serde_json::Value;

use crate::request::object_reader::ObjectReader;
use crate::request::parameters::INCLUDABLE_WITHOUT_EFFECT;
use crate::request::server_rules::ServerRules;
use crate::request::tools::tool::DEFER_LOADING;
use crate::request::tools::{tool, web_search};

/// The fields whose value has no effect; the response repeats some of them. Whether `reasoning` has an
/// effect depends on the model.
const FIELDS: [&str; 7] = [
    "access_programs",
    "client_metadata",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "safety_identifier",
    "user",
];

/// The service tiers that request normal processing, which every request gets.
const USUAL_TIERS: [&str; 2] = ["auto", "default"];

/// Returns what has no effect: first the tools in their order, then the values of `include`, then the other
/// fields.
pub(super) fn find(body: &ObjectReader, rules: &ServerRules) -> Vec<String> {
    let mut ignored = Vec::new();
    for (at, tool) in body.list("tools").unwrap_or_default().iter().enumerate() {
        tools(tool, &format!("tools[{at}]"), rules, &mut ignored);
    }
    let included = body.list("include").unwrap_or_default().iter().enumerate();
    ignored.extend(included.filter_map(|(at, it)| {
        let name = it.as_str()?;
        let has_no_effect = INCLUDABLE_WITHOUT_EFFECT.contains(&name);
        has_no_effect.then(|| format!("include[{at}].{name}"))
    }));
    let given = FIELDS.iter().filter(|it| body.get(it).is_some());
    ignored.extend(given.map(|it| (*it).to_owned()));
    let tier = body.get("service_tier").and_then(Value::as_str);
    if tier.is_some_and(|it| !USUAL_TIERS.contains(&it)) {
        ignored.push("service_tier".to_owned());
    }
    let text = body.get("text");
    if text.is_some_and(|it| !it["verbosity"].is_null()) {
        ignored.push("text.verbosity".to_owned());
    }
    ignored
}

/// Adds the tool if this server does not run it, and the fields of functions that have no effect.
fn tools(tool: &Value, path: &str, rules: &ServerRules, ignored: &mut Vec<String>) {
    let kind = tool["type"].as_str().unwrap_or_default();
    if rules.has_web_search && web_search::is_type(kind) {
        let hints = web_search::ignored_hints(tool);
        ignored.extend(hints.map(|it| format!("{path}.{it}")));
    } else if tool::is_hosted(kind) {
        ignored.push(format!("{path}.{kind}"));
    }
    if kind == "function" && tool[DEFER_LOADING] == true {
        ignored.push(format!("{path}.{DEFER_LOADING}"));
    }
    let functions = tool["tools"].as_array().filter(|_| kind == "namespace");
    for (at, function) in functions.into_iter().flatten().enumerate() {
        tools(function, &format!("{path}.tools[{at}]"), rules, ignored);
    }
}
