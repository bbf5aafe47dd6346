//! The vectors of the memories of a block, one after the other in one array.

use crate::quantized_vector::QuantizedVector;

/// The vectors with the same number of dimensions.
#[derive(Debug)]
pub struct VectorRows {
    dimensions: usize,
    /// The position of the memory of each row, ascending.
    positions: Vec<u16>,
    factors: Vec<f32>,
    /// As many for each row as there are dimensions.
    codes: Vec<i8>,
}

impl VectorRows {
    /// Collects vectors: one array for each number of dimensions.
    pub fn group(vectors: &[(u16, &QuantizedVector)]) -> Vec<Self> {
        let mut dimensions: Vec<usize> = vectors.iter().map(|it| it.1.dimensions()).collect();
        dimensions.sort_unstable();
        dimensions.dedup();
        // A vector without components is similar to nothing.
        let dimensions = dimensions.into_iter().filter(|it| *it > 0);
        dimensions.map(|it| Self::new(it, vectors)).collect()
    }

    fn new(dimensions: usize, vectors: &[(u16, &QuantizedVector)]) -> Self {
        let of_this = |it: &&(u16, &QuantizedVector)| it.1.dimensions() == dimensions;
        let n = vectors.iter().filter(of_this).count();
        let mut rows = Self {
            dimensions,
            positions: Vec::with_capacity(n),
            factors: Vec::with_capacity(n),
            codes: Vec::with_capacity(n * dimensions),
        };
        for (position, vector) in vectors.iter().filter(of_this) {
            rows.positions.push(*position);
            rows.factors.push(vector.factor());
            rows.codes.extend_from_slice(vector.codes());
        }
        rows
    }

    /// Returns the number of components of each vector.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Returns the position of each memory, and the codes and the factor of its vector.
    pub fn rows(&self) -> impl Iterator<Item = (usize, &[i8], f32)> {
        let codes = self.codes.chunks_exact(self.dimensions);
        let rows = self.positions.iter().zip(codes).zip(&self.factors);
        rows.map(|((position, codes), factor)| (usize::from(*position), codes, *factor))
    }

    /// Returns its approximate size in memory, in bytes.
    pub fn n_bytes(&self) -> usize {
        let lists = size_of_val(&*self.positions) + size_of_val(&*self.factors);
        size_of::<Self>() + lists + self.codes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::VectorRows;
    use crate::quantized_vector::QuantizedVector;

    #[test]
    fn vectors_are_grouped_by_their_dimensions() {
        let vectors = [&[1.0, 0.0][..], &[1.0, 0.0, 0.0], &[0.0, -0.5], &[]];
        let vectors = vectors.map(QuantizedVector::new);
        let vectors: Vec<(u16, &QuantizedVector)> = (3..).zip(&vectors).collect();

        let groups = VectorRows::group(&vectors);

        let of_two: Vec<_> = groups[0].rows().collect();
        assert_eq!(of_two[0], (3, &[127, 0][..], 1.0 / 127.0));
        assert_eq!(of_two[1], (5, &[0, -127][..], 0.5 / 127.0));
        assert_eq!((groups.len(), of_two.len()), (2, 2));
        assert_eq!((groups[0].dimensions(), groups[1].dimensions()), (2, 3));
    }
}
