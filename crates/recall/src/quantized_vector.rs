//! A vector with one byte for each component, so that the vectors of large embedding models fit into
//! memory, and the vector of a query with which many of them are compared. The cosine of two of them
//! differs by less than 0.01 from that of the original vectors.

/// A vector as whole numbers from -127 to 127 and their common factor.
#[derive(Clone, Debug, PartialEq)]
pub struct QuantizedVector {
    codes: Box<[i8]>,
    factor: f32,
}

impl QuantizedVector {
    /// Rounds the components of a vector.
    pub fn new(vector: &[f32]) -> Self {
        const LARGEST: f32 = 127.0;
        let largest = vector.iter().fold(0.0f32, |most, it| most.max(it.abs()));
        let factor = largest / LARGEST;
        // A zero vector has no direction and remains zero.
        let divisor = if factor > 0.0 { factor } else { 1.0 };
        // The conversion saturates, so no component changes its sign.
        let codes = vector.iter().map(|it| (it / divisor).round() as i8);
        Self {
            codes: codes.collect(),
            factor,
        }
    }

    /// Creates a vector from the parts of another one.
    pub fn from_codes(codes: &[i8], factor: f32) -> Self {
        Self {
            codes: codes.into(),
            factor,
        }
    }

    /// Returns its whole numbers.
    pub fn codes(&self) -> &[i8] {
        &self.codes
    }

    /// Returns the factor by which its whole numbers are multiplied.
    pub fn factor(&self) -> f32 {
        self.factor
    }

    /// Returns the number of its components.
    pub fn dimensions(&self) -> usize {
        self.codes.len()
    }
}

/// The quantized vector of a query. Its codes have 16 bits, so that the compiler multiplies and adds
/// eight of them in one instruction, on every processor.
#[derive(Clone, Debug)]
pub struct QueryVector {
    codes: Box<[i16]>,
    factor: f32,
}

impl QueryVector {
    /// Rounds the components of a vector.
    pub fn new(vector: &[f32]) -> Self {
        let quantized = QuantizedVector::new(vector);
        Self {
            codes: quantized.codes.iter().map(|it| i16::from(*it)).collect(),
            factor: quantized.factor,
        }
    }

    /// Returns the number of its components.
    pub fn dimensions(&self) -> usize {
        self.codes.len()
    }

    /// Returns the dot product with the codes and the factor of a vector of as many dimensions. It
    /// approximates the cosine for vectors of length 1.
    pub fn dot(&self, codes: &[i8], factor: f32) -> f32 {
        // The sum of this many products of two codes fits into 32 bits.
        const PART: usize = 65_536;
        let parts = self.codes.chunks(PART).zip(codes.chunks(PART));
        let sum: i64 = parts.map(|(a, b)| i64::from(dot_codes(a, b))).sum();
        sum as f32 * self.factor * factor
    }
}

/// The compiler recognizes the product of two numbers of 16 bits: both sides with 8 bits take twice as
/// long.
fn dot_codes(a: &[i16], b: &[i8]) -> i32 {
    let b = b.iter().map(|it| i16::from(*it));
    let products = a.iter().zip(b).map(|(a, b)| i32::from(*a) * i32::from(b));
    products.sum()
}

#[cfg(test)]
mod tests {
    use super::{QuantizedVector, QueryVector};

    fn unit(numbers: &[f32]) -> Vec<f32> {
        let length = numbers.iter().map(|it| it * it).sum::<f32>().sqrt();
        numbers.iter().map(|it| it / length).collect()
    }

    fn dot(a: &[f32], b: &[f32]) -> f32 {
        let b = QuantizedVector::new(b);
        QueryVector::new(a).dot(b.codes(), b.factor())
    }

    #[test]
    fn the_cosine_is_nearly_that_of_the_original_vectors() {
        let wave = |step: f32| -> Vec<f32> {
            let numbers: Vec<f32> = (0..1_536).map(|it| (it as f32 * step).sin()).collect();
            unit(&numbers)
        };
        let cases = [
            (unit(&[1.0, 2.0, -3.0]), unit(&[2.0, 0.5, -1.0])),
            (unit(&[1.0, 0.0]), unit(&[-1.0, 0.001])),
            (wave(0.3), wave(0.301)),
            (wave(0.3), wave(1.7)),
        ];
        for (a, b) in cases {
            let exact: f32 = a.iter().zip(&b).map(|(a, b)| a * b).sum();

            let cosine = dot(&a, &b);

            assert!((cosine - exact).abs() < 0.01, "{cosine} instead of {exact}");
        }
    }

    #[test]
    fn a_vector_of_zeros_is_similar_to_nothing() {
        assert_eq!(dot(&[0.6, 0.8], &[0.0, 0.0]), 0.0);
    }
}
