//! Table `memory_vectors`: the embedding of each memory, for each embedding model.

use base::clock::Timestamp;
use base::ids::{EmbeddingModelId, MemoryId};
use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "memory_vectors")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub memory_id: MemoryId,
    #[sea_orm(primary_key, auto_increment = false)]
    pub embedding_model_id: EmbeddingModelId,
    /// 32-bit floats, little-endian.
    pub embedding: Vec<u8>,
    pub created_at: Timestamp,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Returns the stored form of a vector.
pub fn to_bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|it| it.to_le_bytes()).collect()
}

/// Returns the vector of its stored form; `None` if that is damaged.
pub fn from_bytes(bytes: &[u8]) -> Option<Box<[f32]>> {
    let (numbers, rest) = bytes.as_chunks();
    let numbers = numbers.iter().map(|it| f32::from_le_bytes(*it));
    rest.is_empty().then(|| numbers.collect())
}

#[cfg(test)]
mod tests {
    use super::{from_bytes, to_bytes};

    #[test]
    fn a_vector_is_stored_as_little_endian_floats() {
        let vector = [1.0, -0.25, 0.0];

        assert_eq!(to_bytes(&vector)[..4], [0, 0, 0x80, 0x3f]);
        assert_eq!(from_bytes(&to_bytes(&vector)).as_deref(), Some(&vector[..]));
        assert_eq!(from_bytes(&[1, 2, 3]), None);
    }
}
