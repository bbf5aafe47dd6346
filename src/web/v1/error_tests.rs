//! Tests that the message about an invalid value contains the parameter and its value, because SDKs
//! print nothing else.

use actix_web::ResponseError;
use responses_api::pending_tool_calls::ToolOutputError;
use responses_api::request::error::WrongReference;

use crate::responses::error::ResponseEngineError;
use crate::responses::execution::mcp::approvals::ApprovalError;
use crate::web::v1::error::V1Error;

fn field(param: &str) -> WrongReference {
    WrongReference {
        param: param.to_owned(),
        value: "the_value".to_owned(),
    }
}

#[test]
fn a_message_contains_the_parameter_and_its_value() {
    let id = || "the_value".to_owned();
    let output = |error| ResponseEngineError::InvalidToolOutputs(error);
    for (error, status) in [
        (ResponseEngineError::ConversationNotFound(id()), 404),
        (ResponseEngineError::PreviousNotFound(id()), 400),
        (ResponseEngineError::PreviousInProgress(id()), 400),
        (ResponseEngineError::PreviousNotUsable(id()), 400),
        (ResponseEngineError::UnknownItem(field("input[1].id")), 400),
        (
            ResponseEngineError::UnknownTool(field("tools[1].type")),
            400,
        ),
        (output(ToolOutputError::Missing(vec![id()])), 400),
        (
            output(ToolOutputError::Unknown(field("input[1].call_id"))),
            400,
        ),
        (
            output(ToolOutputError::Duplicate(field("input[1].call_id"))),
            400,
        ),
        (
            ResponseEngineError::InvalidApprovals(ApprovalError::Missing(vec![id()])),
            400,
        ),
        (
            ResponseEngineError::InvalidApprovals(ApprovalError::Unknown(field("input[1].x"))),
            400,
        ),
    ] {
        let error = V1Error::from(error);

        let param = error.param.clone().unwrap();
        assert_eq!(error.status, status, "{error}");
        for part in [format!("'{param}'"), "the_value".to_owned()] {
            assert!(error.message.contains(&part), "{error}");
        }
    }
}

#[test]
fn a_message_contains_the_parameter_but_no_secret_value() {
    for error in [
        ResponseEngineError::UndecryptableItem("input[0].encrypted_content".to_owned()),
        ResponseEngineError::UnsupportedParameter("top_logprobs"),
        ResponseEngineError::StreamNotAvailable,
        ResponseEngineError::SpaceArchived,
        ResponseEngineError::TokenLimitReached,
        ResponseEngineError::NoSpeaker,
        ResponseEngineError::TooLongForModel,
        ResponseEngineError::HistoryTooLarge(1 << 20),
        ResponseEngineError::ForbiddenServerAddress("wiki".to_owned()),
    ] {
        let error = V1Error::from(error);

        let param = error.param.clone().unwrap();
        assert!(error.message.contains(&format!("'{param}'")), "{error}");
    }
}

#[test]
fn a_long_value_is_cut() {
    let long = "x".repeat(500);

    let error = V1Error::from(ResponseEngineError::PreviousNotFound(long));

    assert!(error.message.len() < 200, "{error}");
}

#[test]
fn clients_repeat_no_request_whose_model_was_called_several_times() {
    for (status, retry_after, expected) in [
        (502, None, Some("false")),
        (502, Some(3), None),
        (429, Some(1), None),
        (500, None, None),
    ] {
        let error = V1Error {
            retry_after,
            ..V1Error::new(status, "upstream_error", "It failed.")
        };

        let answer = error.error_response();

        let found = answer.headers().get("x-should-retry");
        assert_eq!(found.map(|it| it.to_str().unwrap()), expected, "{status}");
    }
}
