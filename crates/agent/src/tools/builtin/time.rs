//! The built-in tool `troupe:time`: returns the current date, time and weekday, in UTC or at the
//! offset from UTC that the model gives.

use async_trait::async_trait;
use base::clock::Clock;
use chrono::{FixedOffset, SecondsFormat};
use llm::tool::Tool;
use serde_json::json;

use crate::tools::tool::{ServerTool, ToolArguments, ToolResult};

/// Returns the current time. Time zones are given as offsets from UTC, not as names.
pub struct TimeTool {
    pub clock: Clock,
}

/// Returns the declaration for models.
pub fn declaration() -> Tool {
    Tool {
        name: "troupe_time".to_owned(),
        description: Some(
            "Tells the present date and time, in UTC or at a given distance from it.".to_owned(),
        ),
        parameters: json!({
            "type": "object",
            "properties": {
                "utc_offset": {
                    "type": "string",
                    "description": "The distance from UTC, like +02:00 or -05:30. Left out: UTC.",
                },
            },
            "additionalProperties": false,
        }),
        strict: None,
    }
}

#[async_trait]
impl ServerTool for TimeTool {
    fn declaration(&self) -> Tool {
        declaration()
    }

    async fn run(&self, arguments: &ToolArguments, _: &(dyn Fn(&str) + Sync)) -> ToolResult {
        let offset = match arguments.get("utc_offset").filter(|it| !it.is_null()) {
            None => "+00:00",
            // A value that is not a string is not an offset either.
            Some(offset) => offset.as_str().unwrap_or("?"),
        };
        let offset: FixedOffset = match offset {
            "UTC" | "Z" | "" => "+00:00",
            offset => offset,
        }
        .parse()
        .map_err(|_| "`utc_offset` must look like +02:00.".to_owned())?;
        let now = self.clock.now();
        let local = now.to_utc().with_timezone(&offset);
        let output = json!({
            "time": local.to_rfc3339_opts(SecondsFormat::Secs, true),
            "weekday": local.format("%A").to_string(),
            "unix_seconds": now.0.div_euclid(1_000),
        });
        Ok(output.to_string())
    }
}

#[cfg(test)]
mod tests {
    use base::clock::{Clock, Timestamp};
    use serde_json::{Value, json};

    use super::TimeTool;
    use crate::tools::tool::{ServerTool, ToolResult};

    async fn run_tool(arguments: Value) -> ToolResult {
        let clock = Clock::manual_at(Timestamp(1_784_500_000_000));
        TimeTool { clock }
            .run(arguments.as_object().unwrap(), &|_| {})
            .await
    }

    #[tokio::test]
    async fn the_time_is_given_at_the_requested_utc_offset() {
        assert_eq!(
            run_tool(json!({})).await.unwrap(),
            r#"{"time":"2026-07-19T22:26:40Z","weekday":"Sunday","unix_seconds":1784500000}"#
        );
        assert_eq!(
            run_tool(json!({ "utc_offset": "+05:30" })).await.unwrap(),
            r#"{"time":"2026-07-20T03:56:40+05:30","weekday":"Monday","unix_seconds":1784500000}"#
        );
    }

    #[tokio::test]
    async fn an_invalid_offset_is_an_error() {
        for offset in [json!("Berlin"), json!("+99:00"), json!(2)] {
            assert!(
                run_tool(json!({ "utc_offset": offset })).await.is_err(),
                "{offset}"
            );
        }
    }
}
