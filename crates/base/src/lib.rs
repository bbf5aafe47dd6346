//! What the other crates share: ids, time, shutdown, derived keys, display names, and the vocabulary
//! of prompts (roles and samplers).

pub mod clock;
pub mod display_name;
pub mod fail_point;
pub mod ids;
pub mod key_derivation;
pub mod prompt_role;
pub mod samplers;
pub mod shutdown;
