//! Row-major tensors of bit patterns.

use super::{Bf16, Digest, F32, sha256};

/// Element type of a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Dtype {
    /// bfloat16.
    Bf16,
    /// binary32.
    F32,
    /// Unsigned 32-bit integer (token ids, positions).
    U32,
}

impl Dtype {
    /// Bytes of one element.
    pub fn size_bytes(self) -> usize {
        match self {
            Self::Bf16 => 2,
            Self::F32 | Self::U32 => 4,
        }
    }

    /// The name used in plans, transcripts and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
            Self::U32 => "u32",
        }
    }
}

/// Elements of a tensor, by type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Data {
    /// bfloat16 elements.
    Bf16(Vec<Bf16>),
    /// binary32 elements.
    F32(Vec<F32>),
    /// Unsigned integers.
    U32(Vec<u32>),
}

/// A row-major tensor: the last dimension is contiguous.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tensor {
    shape: Vec<usize>,
    data: Data,
}

impl Tensor {
    /// Makes a tensor; `None` if the number of elements is not the product of
    /// `shape`.
    pub fn new(shape: &[usize], data: Data) -> Option<Self> {
        let count = match &data {
            Data::Bf16(v) => v.len(),
            Data::F32(v) => v.len(),
            Data::U32(v) => v.len(),
        };
        let product = shape.iter().try_fold(1usize, |p, &d| p.checked_mul(d))?;
        (product == count).then(|| Self { shape: shape.to_vec(), data })
    }

    /// A bfloat16 tensor of `rows × columns` from its elements.
    ///
    /// # Panics
    /// If the element count is not `rows · columns`.
    pub fn matrix(rows: usize, columns: usize, elements: Vec<Bf16>) -> Self {
        assert_eq!(elements.len(), rows * columns, "elements of a {rows} x {columns} matrix");
        Self { shape: vec![rows, columns], data: Data::Bf16(elements) }
    }

    /// Dimensions, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Elements.
    pub fn data(&self) -> &Data {
        &self.data
    }

    /// Element type.
    pub fn dtype(&self) -> Dtype {
        match self.data {
            Data::Bf16(_) => Dtype::Bf16,
            Data::F32(_) => Dtype::F32,
            Data::U32(_) => Dtype::U32,
        }
    }

    /// A copy of some rows of a matrix; `None` if it has not so many or is no matrix.
    pub fn rows(&self, rows: std::ops::Range<usize>) -> Option<Self> {
        let [count, columns] = self.shape[..] else { return None };
        if rows.start > rows.end || rows.end > count {
            return None;
        }
        let elements = rows.start * columns..rows.end * columns;
        let data = match &self.data {
            Data::Bf16(v) => Data::Bf16(v[elements].to_vec()),
            Data::F32(v) => Data::F32(v[elements].to_vec()),
            Data::U32(v) => Data::U32(v[elements].to_vec()),
        };
        Some(Self { shape: vec![rows.len(), columns], data })
    }

    /// The elements if they are bfloat16.
    pub fn as_bf16(&self) -> Option<&[Bf16]> {
        match &self.data {
            Data::Bf16(v) => Some(v),
            Data::F32(_) | Data::U32(_) => None,
        }
    }

    /// The elements if they are unsigned integers.
    pub fn as_u32(&self) -> Option<&[u32]> {
        match &self.data {
            Data::U32(v) => Some(v),
            Data::F32(_) | Data::Bf16(_) => None,
        }
    }

    /// The elements as little-endian bytes, the form that is digested and stored.
    pub fn to_le_bytes(&self) -> Vec<u8> {
        match &self.data {
            Data::Bf16(v) => v.iter().flat_map(|x| x.0.to_le_bytes()).collect(),
            Data::F32(v) => v.iter().flat_map(|x| x.0.to_le_bytes()).collect(),
            Data::U32(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
        }
    }

    /// SHA-256 of [`Self::to_le_bytes`]. Position, name, type and shape are bound
    /// where the digest is committed to (`spec/transcript.md`).
    pub fn content_digest(&self) -> Digest {
        sha256(&[&self.to_le_bytes()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_a_shape_that_does_not_fit() {
        assert!(Tensor::new(&[2, 2], Data::U32(vec![1, 2, 3])).is_none());
        assert!(Tensor::new(&[usize::MAX, 2], Data::U32(vec![])).is_none());
    }

    #[test]
    fn bytes_are_little_endian() {
        let t = Tensor::matrix(1, 2, vec![Bf16(0x1234), Bf16(0xabcd)]);
        assert_eq!(t.to_le_bytes(), [0x34, 0x12, 0xcd, 0xab]);
    }
}
