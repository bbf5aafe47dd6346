//! The tools of a node, and the bounds within which they run.

use crate::tools::executor::ToolExecutor;
use crate::tools::registry::ToolRegistry;

/// Tools that run here, and how. Cloning gives another handle.
#[derive(Clone, Default)]
pub struct ToolRuntime {
    pub registry: ToolRegistry,
    pub executor: ToolExecutor,
}
