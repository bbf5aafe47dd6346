//! The capture groups of a pattern and their names.

/// The capture groups of a pattern.
#[derive(Debug, Default)]
pub struct CaptureGroups {
    pub n_groups: u32,
    /// The names with their groups, in order.
    pub names: Vec<(String, u32)>,
    /// Whether some group has a name, valid or not.
    pub has_names: bool,
}

impl CaptureGroups {
    /// Returns the groups with a name.
    pub fn groups(&self, name: &str) -> Vec<u32> {
        let named = self.names.iter().filter(|(it, _)| it == name);
        named.map(|(_, group)| *group).collect()
    }
}
