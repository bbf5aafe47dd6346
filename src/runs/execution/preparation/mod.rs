//! What a run or a copilot candidate needs to call its model: the prompt, the request and the tools.

pub mod prepared_run;
pub mod prompt_building;
pub mod tool_offers;
