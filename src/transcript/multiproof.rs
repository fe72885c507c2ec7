//! Proofs that several leaves belong to one RFC 9162 tree.
//!
//! The tree is walked from its root, left before right. A part without an opened leaf
//! is one node of the proof; an opened leaf is computed from its contents. Proofs of
//! neighbours share their nodes, and one leaf's proof is its inclusion path in the
//! order of the leaves.

use super::merkle::{self, node, split};
use crate::num::Digest;

/// Returns the nodes beside the opened leaves; `opened` says of every leaf whether it
/// is.
///
/// # Panics
/// If the two lists have different lengths.
pub fn nodes(leaves: &[Digest], opened: &[bool]) -> Vec<Digest> {
    assert_eq!(leaves.len(), opened.len(), "one mark a leaf");
    let mut found = Vec::new();
    collect(leaves, opened, &mut found);
    found
}

fn collect(leaves: &[Digest], opened: &[bool], found: &mut Vec<Digest>) {
    if !opened.contains(&true) {
        found.push(merkle::root(leaves));
    } else if leaves.len() > 1 {
        let at = split(leaves.len());
        collect(&leaves[..at], &opened[..at], found);
        collect(&leaves[at..], &opened[at..], found);
    }
}

/// How many nodes there are beside the opened leaves: what a proof must have, known before
/// it is read.
pub fn count(opened: &[bool]) -> u64 {
    if !opened.contains(&true) {
        return 1;
    }
    match opened.len() {
        1 => 0,
        several => {
            let (left, right) = opened.split_at(split(several));
            count(left) + count(right)
        }
    }
}

/// Returns the root that opened leaves, in order, and the nodes beside them lead to;
/// `None` if there are too few or too many of either.
pub fn root(opened: &[bool], leaves: &[Digest], nodes: &[Digest]) -> Option<Digest> {
    let (mut leaves, mut nodes) = (leaves.iter(), nodes.iter());
    let root = rebuild(opened, &mut leaves, &mut nodes)?;
    (leaves.next().is_none() && nodes.next().is_none()).then_some(root)
}

fn rebuild<'a>(
    opened: &[bool],
    leaves: &mut impl Iterator<Item = &'a Digest>,
    nodes: &mut impl Iterator<Item = &'a Digest>,
) -> Option<Digest> {
    if !opened.contains(&true) {
        return nodes.next().copied();
    }
    if opened.len() == 1 {
        return leaves.next().copied();
    }
    let (left, right) = opened.split_at(split(opened.len()));
    Some(node(rebuild(left, leaves, nodes)?, rebuild(right, leaves, nodes)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves(count: u64) -> Vec<Digest> {
        (0..count).map(|i| merkle::leaf_hash(&[&i.to_le_bytes()])).collect()
    }

    #[test]
    fn every_set_of_leaves_of_small_trees_leads_to_the_root_and_no_other_set_does() {
        for count in 1..=8u64 {
            let leaves = leaves(count);
            let expected = merkle::root(&leaves);
            for set in 0..1u32 << count {
                let opened: Vec<bool> = (0..count).map(|i| set >> i & 1 == 1).collect();
                let marked = leaves.iter().zip(&opened);
                let own: Vec<Digest> =
                    marked.filter_map(|(&leaf, &open)| open.then_some(leaf)).collect();
                let nodes = nodes(&leaves, &opened);
                assert_eq!(super::count(&opened), nodes.len() as u64);
                assert_eq!(root(&opened, &own, &nodes), Some(expected), "{set:b} of {count}");
                for other in 0..own.len() {
                    let mut changed = own.clone();
                    changed[other].0[31] ^= 1;
                    assert_ne!(root(&opened, &changed, &nodes), Some(expected));
                    assert_eq!(root(&opened, &own[1..], &nodes), None, "a leaf too few");
                }
                let longer = [&nodes[..], &[expected]].concat();
                assert_eq!(root(&opened, &own, &longer), None, "a node too many");
                for other in 0..1u32 << count {
                    let claimed: Vec<bool> = (0..count).map(|i| other >> i & 1 == 1).collect();
                    let accepted = root(&claimed, &own, &nodes) == Some(expected);
                    // Nothing opened: the one node is the root itself, whatever is claimed.
                    assert_eq!(accepted, other == set, "{set:b} as {other:b} of {count}");
                }
            }
        }
    }

    #[test]
    fn one_leaf_has_its_inclusion_path() {
        let leaves = leaves(13);
        for index in 0..leaves.len() {
            let opened: Vec<bool> = (0..leaves.len()).map(|i| i == index).collect();
            let mut found = nodes(&leaves, &opened);
            let mut path = merkle::inclusion_path(&leaves, index).unwrap();
            found.sort();
            path.sort();
            assert_eq!(found, path);
        }
    }
}
