//! MCP servers of a request: `{"type": "mcp", …}`, parsed strictly.

use agent::tools::mcp::policy::{ApprovalPolicy, ToolFilter};
use agent::tools::mcp::server;
use agent::tools::mcp::server::Credentials;
use reqwest::Url;
use reqwest::header::HeaderValue;
use serde_json::{Map, Value, json};

use crate::responses::execution::tool_config::{DeclaredServer, ToolConfig};
use crate::web::v1::error::{V1Error, V1Result};
use crate::web::v1::parsing::fields::{Fields, nested_in, wrong_type, wrong_value};
use crate::web::v1::parsing::tools::is_name;

/// The maximum number of servers in one request.
const MAX_SERVERS: usize = 16;

const KNOWN: [&str; 8] = [
    "allowed_tools",
    "authorization",
    "headers",
    "require_approval",
    "server_description",
    "server_label",
    "server_url",
    "type",
];

/// Adds a server to `tools` and returns its echo, without credentials.
///
/// # Errors
/// Returns 400 with the path of the invalid field.
pub fn parse_server(
    at: &str,
    object: &Map<String, Value>,
    tools: &mut ToolConfig,
) -> V1Result<Value> {
    let fields = Fields(object);
    let (declared, credentials, echo) = parse_fields(&fields).map_err(|it| nested_in(at, it))?;
    let mut others = tools.servers.iter();
    if others.any(|it| it.label == declared.label) {
        let param = format!("{at}.server_label");
        return Err(wrong_value(&param, "unique in the request"));
    }
    if tools.servers.len() == MAX_SERVERS {
        return Err(wrong_value(at, "at most 16 servers"));
    }
    tools
        .credentials
        .insert(declared.label.clone(), credentials);
    tools.servers.push(declared);
    Ok(echo)
}

fn parse_fields(fields: &Fields) -> V1Result<(DeclaredServer, Credentials, Value)> {
    let present: Map<String, Value> = fields
        .0
        .clone()
        .into_iter()
        .filter(|it| !it.1.is_null())
        .collect();
    Fields(&present).require_known(&KNOWN)?;
    let label = required(fields, "server_label")?;
    if !is_name(label) {
        let takes = "at most 64 letters, digits, `_` and `-`";
        return Err(wrong_value("server_label", takes));
    }
    let (url, query) = address(required(fields, "server_url")?)?;
    let description = fields.text("server_description")?;
    let credentials = Credentials {
        query,
        authorization: authorization(fields)?,
        headers: headers(fields)?,
    };
    let allowed = allowed(fields)?;
    let approval = approval(fields)?;
    let echo = json!({
        "type": "mcp", "server_label": label, "server_url": url,
        "server_description": description, "headers": null,
        "allowed_tools": fields.get("allowed_tools"),
        "require_approval": fields.get("require_approval").unwrap_or(&json!("always")),
    });
    let declared = DeclaredServer {
        label: label.to_owned(),
        url,
        allowed,
        approval,
    };
    Ok((declared, credentials, echo))
}

fn required<'a>(fields: &Fields<'a>, name: &str) -> V1Result<&'a str> {
    fields.text(name)?.ok_or_else(|| {
        let message = "This parameter is required.";
        V1Error::invalid("missing_required_parameter", name, message)
    })
}

/// Splits a URL into the address and its query. Whether the address may be called is checked later,
/// when the caller is known.
fn address(text: &str) -> V1Result<(String, Option<String>)> {
    let url = Url::parse(text).ok();
    let mut url = url.ok_or_else(|| wrong_value("server_url", "an https URL"))?;
    let query = url.query().map(str::to_owned);
    url.set_query(None);
    Ok((url.to_string(), query))
}

fn authorization(fields: &Fields) -> V1Result<Option<String>> {
    let Some(token) = fields.text("authorization")? else {
        return Ok(None);
    };
    // Some clients include the scheme `Bearer`.
    let token = token.strip_prefix("Bearer ").unwrap_or(token).trim();
    let is_sent =
        token.len() <= server::MAX_HEADER_VALUE_BYTES && HeaderValue::from_str(token).is_ok();
    match is_sent && !token.is_empty() {
        true => Ok(Some(token.to_owned())),
        false => Err(wrong_value("authorization", "a token")),
    }
}

fn headers(fields: &Fields) -> V1Result<Vec<(String, String)>> {
    let Some(given) = fields.object("headers")? else {
        return Ok(Vec::new());
    };
    if given.len() > server::MAX_HEADERS {
        return Err(wrong_value("headers", "at most 32 headers"));
    }
    let mut all = Vec::new();
    for (name, value) in given {
        let param = format!("headers.{name}");
        let value = value.as_str();
        let value = value.ok_or_else(|| wrong_type(&param, "a string"))?;
        let is_bearer = name.eq_ignore_ascii_case("authorization");
        if !is_bearer && !server::is_allowed_header(name, value) {
            return Err(wrong_value(
                &param,
                "a header that MCP does not set by itself",
            ));
        }
        if is_bearer {
            return Err(wrong_value(&param, "absent; use `authorization` instead"));
        }
        all.push((name.clone(), value.to_owned()));
    }
    Ok(all)
}

fn allowed(fields: &Fields) -> V1Result<Option<ToolFilter>> {
    match fields.get("allowed_tools") {
        None => Ok(None),
        Some(Value::Array(names)) => Ok(Some(ToolFilter {
            tool_names: Some(tool_names("allowed_tools", names)?),
            read_only: None,
        })),
        Some(Value::Object(object)) => filter("allowed_tools", object).map(Some),
        Some(_) => Err(wrong_type("allowed_tools", "a list of names or a filter")),
    }
}

fn approval(fields: &Fields) -> V1Result<ApprovalPolicy> {
    let words = "always, never, or an object with filters";
    let object = match fields.get("require_approval") {
        None => return Ok(ApprovalPolicy::Always),
        Some(Value::String(word)) if word == "always" => return Ok(ApprovalPolicy::Always),
        Some(Value::String(word)) if word == "never" => return Ok(ApprovalPolicy::Never),
        Some(Value::Object(object)) if !object.is_empty() => object,
        Some(Value::String(_) | Value::Object(_)) => {
            return Err(wrong_value("require_approval", words));
        }
        Some(_) => return Err(wrong_type("require_approval", words)),
    };
    let inner = Fields(object);
    let within = |problem| nested_in("require_approval", problem);
    inner.require_known(&["always", "never"]).map_err(within)?;
    let one = |name: &str| match inner.object(name).map_err(within)? {
        None => Ok(ToolFilter::default()),
        Some(object) => filter(&format!("require_approval.{name}"), object),
    };
    Ok(ApprovalPolicy::Some {
        always: one("always")?,
        never: one("never")?,
    })
}

fn filter(at: &str, object: &Map<String, Value>) -> V1Result<ToolFilter> {
    let fields = Fields(object);
    let within = |problem| nested_in(at, problem);
    fields
        .require_known(&["tool_names", "read_only"])
        .map_err(within)?;
    let names = fields.list("tool_names").map_err(within)?;
    let names = names.map(|it| tool_names(&format!("{at}.tool_names"), it));
    let read_only = match fields.get("read_only") {
        None => None,
        Some(_) => Some(fields.flag("read_only", false).map_err(within)?),
    };
    let filter = ToolFilter {
        tool_names: names.transpose()?,
        read_only,
    };
    match filter == ToolFilter::default() {
        true => Err(wrong_value(at, "`tool_names` or `read_only`")),
        false => Ok(filter),
    }
}

fn tool_names(at: &str, names: &[Value]) -> V1Result<Vec<String>> {
    let each = names.iter().enumerate().map(|(n, it)| {
        let name = it.as_str().map(str::to_owned);
        name.ok_or_else(|| wrong_type(&format!("{at}[{n}]"), "a string"))
    });
    each.collect()
}

#[cfg(test)]
#[path = "mcp_tests.rs"]
mod tests;
