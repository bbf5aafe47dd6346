//! The tools of a node, and the bounds within which they run.

use crate::tools::executor::Executor;
use crate::tools::registry::Registry;

/// Tools that run here, and how. Cloning gives another handle.
#[derive(Clone, Default)]
pub struct Workshop {
    pub registry: Registry,
    pub executor: Executor,
}
