//! Roots and inclusion paths of the RFC 9162 SHA-256 tree.
//!
//! Leaves and inner nodes are hashed with different prefixes and the last leaf
//! is never doubled, so neither can stand for the other.

use crate::num::{Digest, sha256};

/// Returns the hash of a leaf (RFC 9162 section 2.1.1).
pub fn leaf_hash(data: &[&[u8]]) -> Digest {
    let mut parts = vec![LEAF_PREFIX.as_slice()];
    parts.extend_from_slice(data);
    sha256(&parts)
}

/// Returns the root over leaf hashes; of no leaves, the SHA-256 of nothing.
pub fn root(leaves: &[Digest]) -> Digest {
    match leaves {
        [] => sha256(&[]),
        [leaf] => *leaf,
        [..] => {
            let (left, right) = leaves.split_at(split(leaves.len()));
            node(root(left), root(right))
        }
    }
}

/// Returns the path from leaf `index` to the root, leaf side first; `None` if
/// there is no such leaf.
pub fn inclusion_path(leaves: &[Digest], index: usize) -> Option<Vec<Digest>> {
    if index >= leaves.len() {
        return None;
    }
    if leaves.len() == 1 {
        return Some(Vec::new());
    }
    let (left, right) = leaves.split_at(split(leaves.len()));
    let (mut path, sibling) = if index < left.len() {
        (inclusion_path(left, index)?, root(right))
    } else {
        (inclusion_path(right, index - left.len())?, root(left))
    };
    path.push(sibling);
    Some(path)
}

/// Says whether `path` leads from leaf `index` of `count` to `expected_root`.
///
/// # Source
/// RFC 9162 section 2.1.3.2.
pub fn verify_inclusion(
    leaf: Digest,
    index: u64,
    count: u64,
    path: &[Digest],
    expected_root: Digest,
) -> bool {
    if index >= count {
        return false;
    }
    let (mut node_index, mut last_index) = (index, count - 1);
    let mut hash = leaf;
    for &sibling in path {
        if last_index == 0 {
            return false;
        }
        if node_index & 1 == 1 || node_index == last_index {
            hash = node(sibling, hash);
            // A node without a right sibling rises until it is a right child.
            while node_index & 1 == 0 && node_index != 0 {
                node_index >>= 1;
                last_index >>= 1;
            }
        } else {
            hash = node(hash, sibling);
        }
        node_index >>= 1;
        last_index >>= 1;
    }
    last_index == 0 && hash == expected_root
}

/// The largest power of two below `count`, which is at least 2.
pub(super) fn split(count: usize) -> usize {
    1 << (count - 1).ilog2()
}

/// The hash of an inner node (RFC 9162 section 2.1.1).
pub(super) fn node(left: Digest, right: Digest) -> Digest {
    sha256(&[&NODE_PREFIX, &left.0, &right.0])
}

// RFC 9162 section 2.1.1.
const LEAF_PREFIX: [u8; 1] = [0];
const NODE_PREFIX: [u8; 1] = [1];

#[cfg(test)]
mod tests {
    use super::*;

    /// The eight leaves that certificate-transparency implementations share as
    /// test data, and the roots over the first one, two, … of them.
    ///
    /// # Source
    /// Certificate Transparency's reference Merkle tree tests.
    const LEAVES: [&str; 8] = [
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    ];
    const ROOTS: [&str; 8] = [
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ];

    fn leaves() -> Vec<Digest> {
        LEAVES.iter().map(|text| leaf_hash(&[&hex::decode(text).unwrap()])).collect()
    }

    #[test]
    fn roots_are_those_of_certificate_transparency() {
        for (count, expected) in (1..).zip(ROOTS) {
            assert_eq!(root(&leaves()[..count]).to_string(), expected, "{count} leaves");
        }
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(root(&[]).to_string(), empty);
    }

    #[test]
    fn every_path_leads_to_the_root_and_no_other_leaf_fits() {
        for count in 1..40usize {
            let leaves: Vec<Digest> =
                (0..count).map(|i| leaf_hash(&[&(i as u64).to_le_bytes()])).collect();
            let root = root(&leaves);
            for index in 0..count {
                let path = inclusion_path(&leaves, index).unwrap();
                for claimed in 0..count {
                    let fits =
                        verify_inclusion(leaves[index], claimed as u64, count as u64, &path, root);
                    assert_eq!(fits, claimed == index, "{index} as {claimed} of {count}");
                }
                assert!(
                    !verify_inclusion(root, index as u64, count as u64, &path, root) || count == 1
                );
                let mut longer = path.clone();
                longer.push(root);
                assert!(!verify_inclusion(
                    leaves[index],
                    index as u64,
                    count as u64,
                    &longer,
                    root
                ));
            }
            assert!(inclusion_path(&leaves, count).is_none());
            assert!(!verify_inclusion(root, count as u64, count as u64, &[], root));
        }
    }

    #[test]
    fn an_inner_node_is_not_a_leaf() {
        let leaves = leaves();
        let inner = node(leaves[0], leaves[1]);
        assert_ne!(leaf_hash(&[&leaves[0].0, &leaves[1].0]), inner);
    }
}
