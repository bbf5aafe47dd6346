//! Returns the tools that the settings of a space allow.

use agent::tools::tool_settings::SpaceTools;

use crate::memories::memory_settings::MemorySettings;
use crate::spaces::space;

/// The name of the memory tool in the settings of a space.
pub const MEMORY_TOOL: &str = "memory";

/// Returns the tools that the settings of a space allow. If the space neither learns nor
/// recalls, the memory tool is not among them.
pub fn allowed_in(space: &space::Model) -> SpaceTools {
    let mut allowed = SpaceTools::from_settings(&space.settings);
    let memory = MemorySettings::of_space(&space.settings);
    if !memory.learns() && !memory.recalls() {
        allowed.remove_builtin(MEMORY_TOOL);
    }
    allowed
}
