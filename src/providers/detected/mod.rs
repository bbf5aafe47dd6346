//! What the server finds out about the endpoints and models of providers, and records in their settings.

pub mod detected_facts;
pub mod detected_settings;
pub mod model_lists;
pub mod token_calibration;
