//! Converts the result of an MCP tool call to text; content that is not text becomes a placeholder.
//! No I/O.

use serde_json::Value;

use crate::tools::tool::ToolResult;

/// Returns the text of a result, or `Err` if the result is marked as an error.
pub fn result_text(result: &Value) -> ToolResult {
    let blocks = result["content"].as_array().map_or(&[][..], Vec::as_slice);
    let texts: Vec<String> = blocks.iter().map(block).collect();
    let mut text = texts.join("\n");
    if text.is_empty() && result["structuredContent"].is_object() {
        text = result["structuredContent"].to_string();
    }
    match result["isError"] == true {
        true if text.is_empty() => Err("The tool failed.".to_owned()),
        true => Err(text),
        false => Ok(text),
    }
}

fn block(block: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match block["type"].as_str() {
        Some("text") => word(&block["text"]),
        Some(kind @ ("image" | "audio")) => {
            let n_bytes = block["data"].as_str().map_or(0, |it| it.len() / 4 * 3);
            let media_type = word(&block["mimeType"]);
            format!("[{kind}: {media_type}, {n_bytes} bytes]")
        }
        Some("resource_link") => format!("[{}]({})", word(&block["name"]), word(&block["uri"])),
        Some("resource") => {
            let resource = &block["resource"];
            match resource["text"].as_str() {
                Some(text) => format!("{}\n{text}", word(&resource["uri"])),
                None => format!("[resource: {}]", word(&resource["uri"])),
            }
        }
        _ => "[content that is not text]".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::result_text;

    #[test]
    fn text_is_kept_and_other_content_is_described() {
        let result = json!({ "content": [
            { "type": "text", "text": "Two." },
            { "type": "image", "mimeType": "image/png", "data": "AAAAAAAA" },
            { "type": "resource_link", "name": "notes", "uri": "file:///n" },
            { "type": "resource", "resource": { "uri": "file:///a", "text": "A" } },
            { "type": "resource", "resource": { "uri": "file:///b", "blob": "AA" } },
            { "type": "dream" },
        ] });

        assert_eq!(
            result_text(&result).unwrap(),
            "Two.\n[image: image/png, 6 bytes]\n[notes](file:///n)\nfile:///a\nA\n\
             [resource: file:///b]\n[content that is not text]"
        );
    }

    #[test]
    fn a_failed_result_is_an_error() {
        let failed = json!({ "isError": true, "content": [{ "type": "text", "text": "No." }] });

        assert_eq!(result_text(&failed), Err("No.".to_owned()));
        assert!(result_text(&json!({ "isError": true })).is_err());
        assert_eq!(
            result_text(&json!({ "structuredContent": { "n": 2 } })),
            Ok(r#"{"n":2}"#.to_owned())
        );
        assert_eq!(result_text(&json!({})), Ok(String::new()));
    }
}
