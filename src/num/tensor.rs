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

    /// Matrices of equal columns and type below each other; `None` if they are not,
    /// or if there is none.
    pub fn stack(parts: &[Self]) -> Option<Self> {
        let (first, others) = parts.split_first()?;
        let &[_, columns] = &first.shape[..] else { return None };
        let mut data = first.data.clone();
        for part in others {
            if part.shape.len() != 2 || part.shape[1] != columns {
                return None;
            }
            match (&mut data, &part.data) {
                (Data::Bf16(all), Data::Bf16(own)) => all.extend_from_slice(own),
                (Data::F32(all), Data::F32(own)) => all.extend_from_slice(own),
                (Data::U32(all), Data::U32(own)) => all.extend_from_slice(own),
                (Data::Bf16(_) | Data::F32(_) | Data::U32(_), _) => return None,
            }
        }
        let rows = parts.iter().map(|part| part.shape[0]).sum();
        Self::new(&[rows, columns], data)
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
        fn fill<T: Copy, const N: usize>(elements: &[T], bytes: impl Fn(T) -> [u8; N]) -> Vec<u8> {
            let mut all = vec![0; elements.len() * N];
            for (place, &element) in all.chunks_exact_mut(N).zip(elements) {
                place.copy_from_slice(&bytes(element));
            }
            all
        }
        match &self.data {
            Data::Bf16(v) => fill(v, |x| x.0.to_le_bytes()),
            Data::F32(v) => fill(v, |x| x.0.to_le_bytes()),
            Data::U32(v) => fill(v, u32::to_le_bytes),
        }
    }

    /// Length of [`Self::to_le_bytes`].
    pub fn len_bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.dtype().size_bytes()
    }

    /// Whether [`Self::to_le_bytes`] equals `bytes`, without making it.
    pub fn is_le_bytes(&self, bytes: &[u8]) -> bool {
        fn same<T: Copy, const N: usize>(
            elements: &[T],
            bytes: &[u8],
            word: impl Fn(T) -> [u8; N],
        ) -> bool {
            bytes.chunks_exact(N).zip(elements).all(|(bytes, &element)| bytes == word(element))
        }
        self.len_bytes() == bytes.len()
            && match &self.data {
                Data::Bf16(v) => same(v, bytes, |x| x.0.to_le_bytes()),
                Data::F32(v) => same(v, bytes, |x| x.0.to_le_bytes()),
                Data::U32(v) => same(v, bytes, u32::to_le_bytes),
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
        assert!(t.is_le_bytes(&[0x34, 0x12, 0xcd, 0xab]));
        for other in [&[0x34, 0x12, 0xcd][..], &[0x34, 0x12, 0xcd, 0xaa], &[0x34, 0x12], &[]] {
            assert!(!t.is_le_bytes(other), "{other:x?}");
        }
        let words = Tensor::new(&[2, 1], Data::U32(vec![1, 0x0203_0405])).unwrap();
        assert_eq!(words.to_le_bytes(), [1, 0, 0, 0, 5, 4, 3, 2]);
        assert!(words.is_le_bytes(&words.to_le_bytes()));
    }

    #[test]
    fn rows_taken_apart_stack_again() {
        let all = Tensor::matrix(3, 2, (0..6).map(Bf16).collect());
        let parts = [all.rows(0..1).unwrap(), all.rows(1..3).unwrap()];
        assert_eq!(Tensor::stack(&parts), Some(all.clone()));
        let narrow = Tensor::matrix(3, 1, (0..3).map(Bf16).collect());
        let words = Tensor::new(&[1, 2], Data::U32(vec![1, 2])).unwrap();
        for other in [narrow, words] {
            assert_eq!(Tensor::stack(&[all.clone(), other]), None, "columns or type differ");
        }
        assert_eq!(Tensor::stack(&[]), None);
    }
}
