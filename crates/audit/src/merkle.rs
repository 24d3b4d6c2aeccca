//! The Merkle tree over the records (RFC 6962): roots, proofs, and their checks.

use crate::Hash;

/// More leaves than any log has; sums of sizes up to here cannot overflow.
const MAX_SIZE: u64 = 1 << 62;

/// The state for extending a tree: the roots of its complete subtrees.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Frontier {
    size: u64,
    // INVARIANT: one node for each bit that is set in `size`, largest subtree first.
    nodes: Vec<Hash>,
}

impl Frontier {
    /// Creates a tree without leaves.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates the frontier with these nodes; `None` if a tree of that size has another number of them.
    pub fn from_nodes(size: u64, nodes: Vec<Hash>) -> Option<Self> {
        (size <= MAX_SIZE && nodes.len() == size.count_ones() as usize).then_some(Self { size, nodes })
    }

    /// Adds a leaf.
    pub fn push(&mut self, leaf: Hash) {
        let mut node = leaf;
        // As in adding one to a binary number, each carry merges a pair of equal subtrees.
        let carries = self.size.trailing_ones() as usize;
        for left in self.nodes.drain(self.nodes.len() - carries..).rev() {
            node = Hash::node(&left, &node);
        }
        self.nodes.push(node);
        self.size += 1;
    }

    /// Returns the number of leaves.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Returns the root over all leaves.
    pub fn root(&self) -> Hash {
        let fold = self.nodes.iter().rev().copied().reduce(|right, left| Hash::node(&left, &right));
        fold.unwrap_or_else(empty_root)
    }

    /// Returns the roots of the complete subtrees, largest first.
    pub fn nodes(&self) -> &[Hash] {
        &self.nodes
    }

    fn node(&self, from: u64, to: u64) -> Option<Hash> {
        let width = to - from;
        let larger = self.size & !(width | (width - 1));
        let is_node = width.is_power_of_two() && self.size & width != 0 && from == larger;
        is_node.then(|| self.nodes.get(larger.count_ones() as usize).copied()).flatten()
    }
}

/// The source of proofs: the frontier of the removed records, and the leaves after them.
#[derive(Clone, Debug)]
pub struct Tree {
    base: Frontier,
    leaves: Vec<Hash>,
}

impl Tree {
    /// Creates the tree of a base, which may be empty, and the leaves after it.
    pub const fn new(base: Frontier, leaves: Vec<Hash>) -> Self {
        Self { base, leaves }
    }

    /// Returns the number of leaves, including the removed ones.
    pub const fn size(&self) -> u64 {
        self.base.size + self.leaves.len() as u64
    }

    /// Returns the root over the first `size` leaves; `None` if it is unknown.
    pub fn root_at(&self, size: u64) -> Option<Hash> {
        match size {
            0 => Some(empty_root()),
            _ if size > self.size() => None,
            _ => self.subtree(0, size),
        }
    }

    /// Returns the proof that a leaf is among the first `size`; `None` if it cannot be made.
    pub fn inclusion(&self, index: u64, size: u64) -> Option<Vec<Hash>> {
        if index < self.base.size || index >= size || size > self.size() {
            return None;
        }
        // From the root down to the leaf, with the sibling of each step; a proof has the reverse order.
        let (mut from, mut to) = (0, size);
        let mut proof = Vec::new();
        while to - from > 1 {
            let middle = middle(from, to);
            if index < middle {
                proof.push(self.subtree(middle, to)?);
                to = middle;
            } else {
                proof.push(self.subtree(from, middle)?);
                from = middle;
            }
        }
        proof.reverse();
        Some(proof)
    }

    /// Returns the proof that the first `new` leaves begin with the first `old`; `None` if it cannot be made.
    pub fn consistency(&self, old: u64, new: u64) -> Option<Vec<Hash>> {
        if old > new || new > self.size() {
            return None;
        }
        if old == 0 {
            return Some(Vec::new());
        }
        // From the root down to the last subtree of the old tree.
        let (mut from, mut to) = (0, new);
        let mut proof = Vec::new();
        while to != old {
            let middle = middle(from, to);
            if old <= middle {
                proof.push(self.subtree(middle, to)?);
                to = middle;
            } else {
                proof.push(self.subtree(from, middle)?);
                from = middle;
            }
        }
        // The whole old tree is left out: the verifier has its root.
        if from != 0 {
            proof.push(self.subtree(from, to)?);
        }
        proof.reverse();
        Some(proof)
    }

    /// Returns the root over the leaves `from..to`; `None` if it depends on removed leaves.
    fn subtree(&self, from: u64, to: u64) -> Option<Hash> {
        if from >= self.base.size {
            let position = |leaf: u64| usize::try_from(leaf - self.base.size).ok();
            let mut subtree = Frontier::new();
            self.leaves.get(position(from)?..position(to)?)?.iter().for_each(|leaf| subtree.push(*leaf));
            return Some(subtree.root());
        }
        if let Some(node) = self.base.node(from, to) {
            return Some(node);
        }
        if to - from == 1 {
            return None;
        }
        let middle = middle(from, to);
        Some(Hash::node(&self.subtree(from, middle)?, &self.subtree(middle, to)?))
    }
}

/// Returns `true` if the proof shows that the leaf has this index in the tree with this size and root (RFC 9162, 2.1.3.2).
pub fn is_included(leaf: &Hash, index: u64, size: u64, proof: &[Hash], root: &Hash) -> bool {
    if index >= size {
        return false;
    }
    let mut path = Path { node: index, last: size - 1 };
    let mut hash = *leaf;
    for sibling in proof {
        match path.climb() {
            Some(Side::Left) => hash = Hash::node(sibling, &hash),
            Some(Side::Right) => hash = Hash::node(&hash, sibling),
            None => return false,
        }
    }
    path.last == 0 && hash == *root
}

/// Returns `true` if the proof shows that the new tree begins with all leaves of the old one (RFC 9162, 2.1.4.2).
pub fn is_consistent(old_size: u64, new_size: u64, proof: &[Hash], old_root: &Hash, new_root: &Hash) -> bool {
    if old_size == new_size {
        return proof.is_empty() && old_root == new_root;
    }
    if old_size == 0 {
        return proof.is_empty() && *old_root == empty_root();
    }
    if old_size > new_size {
        return false;
    }
    // A proof begins with the last subtree of the old tree, unless that is the whole old tree.
    let (start, siblings) = match proof {
        _ if old_size.is_power_of_two() => (old_root, proof),
        [start, siblings @ ..] => (start, siblings),
        [] => return false,
    };
    let complete = (old_size - 1).trailing_ones();
    let mut path = Path { node: (old_size - 1) >> complete, last: (new_size - 1) >> complete };
    let (mut old, mut new) = (*start, *start);
    for sibling in siblings {
        match path.climb() {
            Some(Side::Left) => {
                old = Hash::node(sibling, &old);
                new = Hash::node(sibling, &new);
            }
            // A right sibling is newer than the old tree.
            Some(Side::Right) => new = Hash::node(&new, sibling),
            None => return false,
        }
    }
    path.last == 0 && old == *old_root && new == *new_root
}

/// The path from a node to the root: its index in its level, and that of the last node there.
struct Path {
    node: u64,
    last: u64,
}

enum Side {
    Left,
    Right,
}

impl Path {
    /// Goes up one sibling and returns its side; `None` at the root.
    fn climb(&mut self) -> Option<Side> {
        if self.last == 0 {
            return None;
        }
        let (side, carried) = if self.node & 1 == 1 || self.node == self.last {
            // The last node of a level may have no sibling: it is carried up until it has one.
            (Side::Left, self.node.trailing_zeros())
        } else {
            (Side::Right, 0)
        };
        self.node = self.node >> carried >> 1;
        self.last = self.last >> carried >> 1;
        Some(side)
    }
}

fn empty_root() -> Hash {
    Hash::sha256(&[])
}

/// Returns the end of the left part of a tree with two or more leaves: at the largest power of two below its size.
const fn middle(from: u64, to: u64) -> u64 {
    from + (1 << (to - from - 1).ilog2())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGEST: u64 = 40;

    /// The definition of RFC 6962, word by word.
    fn naive_root(leaves: &[Hash]) -> Hash {
        match leaves {
            [] => Hash::sha256(b""),
            [leaf] => *leaf,
            _ => {
                let (left, right) = leaves.split_at(leaves.len().next_power_of_two() / 2);
                Hash::node(&naive_root(left), &naive_root(right))
            }
        }
    }

    fn leaves(size: u64) -> Vec<Hash> {
        (0..size).map(|number| Hash::leaf(&number.to_be_bytes())).collect()
    }

    fn frontier(leaves: &[Hash]) -> Frontier {
        let mut frontier = Frontier::new();
        leaves.iter().for_each(|leaf| frontier.push(*leaf));
        frontier
    }

    fn roots() -> Vec<Hash> {
        let leaves = leaves(LARGEST);
        (0..=leaves.len()).map(|size| naive_root(&leaves[..size])).collect()
    }

    /// Everything that is close to a proof but is not it.
    fn altered(proof: &[Hash]) -> Vec<Vec<Hash>> {
        let mut all = Vec::new();
        for place in 0..proof.len() {
            let mut other = proof.to_vec();
            other[place] = Hash::sha256(other[place].as_bytes());
            all.push(other);
            let mut shorter = proof.to_vec();
            shorter.remove(place);
            all.push(shorter);
            if place > 0 {
                let mut swapped = proof.to_vec();
                swapped.swap(place - 1, place);
                all.push(swapped);
            }
        }
        for place in 0..=proof.len() {
            let mut longer = proof.to_vec();
            longer.insert(place, Hash::ZERO);
            all.push(longer);
        }
        all
    }

    #[test]
    fn the_roots_of_certificate_transparency_come_out() {
        let leaves: [&[u8]; 8] = [
            b"",
            b"\x00",
            b"\x10",
            b"\x20\x21",
            b"\x30\x31",
            b"\x40\x41\x42\x43",
            b"\x50\x51\x52\x53\x54\x55\x56\x57",
            b"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f",
        ];
        let roots = [
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
            "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
            "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
            "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
            "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
            "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
            "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
        ];
        let mut frontier = Frontier::new();
        assert_eq!(frontier.root().to_string(), roots[0]);
        for (leaf, root) in leaves.into_iter().zip(&roots[1..]) {
            frontier.push(Hash::leaf(leaf));
            assert_eq!(frontier.root().to_string(), *root);
        }
        let tree = Tree::new(Frontier::new(), leaves.into_iter().map(Hash::leaf).collect());
        for (size, root) in roots.iter().enumerate() {
            assert_eq!(tree.root_at(size as u64).unwrap().to_string(), *root);
        }
        let texts = |proof: Option<Vec<Hash>>| proof.unwrap().iter().map(Hash::to_string).collect::<Vec<_>>();
        assert_eq!(
            texts(tree.inclusion(5, 8)),
            [
                "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
                "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
                "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            ]
        );
        assert_eq!(
            texts(tree.consistency(6, 8)),
            [
                "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
                "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
                "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            ]
        );
    }

    #[test]
    fn a_frontier_has_the_root_of_the_definition_and_can_be_written_down() {
        let leaves = leaves(LARGEST);
        for (size, root) in roots().into_iter().enumerate() {
            let frontier = frontier(&leaves[..size]);
            assert_eq!((frontier.size(), frontier.root()), (size as u64, root));
            let nodes = frontier.nodes().to_vec();
            assert_eq!(Frontier::from_nodes(size as u64, nodes.clone()), Some(frontier));
            assert_eq!(Frontier::from_nodes(size as u64, [nodes.clone(), vec![root]].concat()), None);
            assert_eq!(Frontier::from_nodes(size as u64 * 2 + 1, nodes), None);
        }
        assert_eq!(Frontier::from_nodes(u64::MAX, vec![Hash::ZERO; 64]), None);
    }

    #[test]
    fn inclusion_is_proved_for_every_leaf_and_nothing_else() {
        let (leaves, roots) = (leaves(LARGEST), roots());
        let tree = Tree::new(Frontier::new(), leaves.clone());
        for size in 1..=LARGEST {
            let root = &roots[size as usize];
            for index in 0..size {
                let leaf = &leaves[index as usize];
                let proof = tree.inclusion(index, size).unwrap();
                assert!(is_included(leaf, index, size, &proof, root), "{index} of {size}");
                for other in altered(&proof) {
                    assert!(!is_included(leaf, index, size, &other, root), "{index} of {size} by {other:?}");
                }
                for other in (0..size + 3).chain([u64::MAX]).filter(|other| *other != index) {
                    assert!(!is_included(leaf, other, size, &proof, root), "{index} as {other} of {size}");
                }
                assert!(!is_included(&Hash::ZERO, index, size, &proof, root));
                assert!(!is_included(leaf, index, size, &proof, &Hash::ZERO));
                assert!(!is_included(leaf, index, 0, &proof, root));
            }
            assert_eq!(tree.inclusion(size, size), None);
        }
        assert_eq!(tree.inclusion(0, LARGEST + 1), None);
    }

    #[test]
    fn consistency_is_proved_for_every_pair_and_nothing_else() {
        let roots = roots();
        let tree = Tree::new(Frontier::new(), leaves(LARGEST));
        for new in 0..=LARGEST {
            for old in 0..=new {
                let proof = tree.consistency(old, new).unwrap();
                let [old_root, new_root] = [old, new].map(|size| &roots[size as usize]);
                assert!(is_consistent(old, new, &proof, old_root, new_root), "{old} to {new}");
                for other in altered(&proof) {
                    assert!(!is_consistent(old, new, &other, old_root, new_root), "{old} to {new} by {other:?}");
                }
                assert!(!is_consistent(old, new, &proof, &Hash::ZERO, new_root), "{old} to {new}");
                // Every tree continues the empty one, whatever its root.
                assert_eq!(is_consistent(old, new, &proof, old_root, &Hash::ZERO), old == 0 && new != 0);
                for other in (1..=new).filter(|other| *other != old) {
                    assert!(!is_consistent(other, new, &proof, old_root, new_root), "{old} as {other} to {new}");
                }
            }
            assert_eq!(tree.consistency(new + 1, new), None);
            assert!(!is_consistent(new + 1, new, &[], &roots[new as usize], &roots[new as usize]));
        }
        assert_eq!(tree.consistency(1, LARGEST + 1), None);
    }

    #[test]
    fn removed_records_change_no_proof_of_the_others() {
        let leaves = leaves(LARGEST);
        let full = Tree::new(Frontier::new(), leaves.clone());
        let sizes = 0..=LARGEST;
        let pairs: Vec<_> = sizes.flat_map(|size| (0..=size).map(move |smaller| (smaller, size))).collect();
        let inclusion: Vec<_> = pairs.iter().map(|(index, size)| full.inclusion(*index, *size)).collect();
        let consistency: Vec<_> = pairs.iter().map(|(old, new)| full.consistency(*old, *new)).collect();
        let roots = roots();
        for base in 0..LARGEST {
            let (removed, kept) = leaves.split_at(base as usize);
            let tree = Tree::new(frontier(removed), kept.to_vec());
            assert_eq!(tree.size(), LARGEST);
            for (size, expected) in roots.iter().enumerate() {
                let root = tree.root_at(size as u64);
                assert!(root == Some(*expected) || root.is_none() && (size as u64) < base, "{size} after {base}");
            }
            for (place, (smaller, size)) in pairs.iter().copied().enumerate() {
                let expected = inclusion[place].as_ref().filter(|_| smaller >= base);
                assert_eq!(tree.inclusion(smaller, size).as_ref(), expected, "{smaller} of {size} after {base}");
                // A proof from within the removed part is sometimes possible, and right then.
                let proof = tree.consistency(smaller, size);
                let is_right = proof == consistency[place] || proof.is_none() && smaller < base;
                assert!(is_right, "{smaller} to {size} after {base}");
            }
        }
        assert_eq!(full.root_at(LARGEST + 1), None);
    }

    #[test]
    fn a_proof_that_needs_a_removed_subtree_cannot_be_made() {
        let leaves = leaves(9);
        let tree = Tree::new(frontier(&leaves[..7]), leaves[7..].to_vec());
        // 7 = 4 + 2 + 1: the roots over 4, 6 and 7 leaves are known, those between are not.
        let known: Vec<_> = (0..=9).filter(|size| tree.root_at(*size).is_some()).collect();
        assert_eq!(known, [0, 4, 6, 7, 8, 9]);
        assert_eq!(tree.consistency(5, 9), None);
        assert!(tree.consistency(6, 9).is_some());
    }

    #[test]
    fn the_largest_numbers_do_no_harm() {
        let sizes = [0, 1, 2, 3, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 63) + 1, u64::MAX - 1, u64::MAX];
        for first in sizes {
            for second in sizes {
                for length in [0, 1, 2, 63, 64, 65, 130] {
                    let proof = vec![Hash::ZERO; length];
                    assert!(!is_included(&Hash::ZERO, first, second, &proof, &Hash::sha256(b"no")));
                    assert!(!is_consistent(first, second, &proof, &Hash::ZERO, &Hash::sha256(b"no")));
                }
            }
        }
        let nodes = vec![Hash::ZERO; 62];
        let mut large = Frontier::from_nodes((1 << 62) - 1, nodes).unwrap();
        let tree = Tree::new(large.clone(), leaves(3));
        assert_eq!(tree.size(), (1 << 62) + 2);
        assert!(tree.inclusion(1 << 62, tree.size()).is_some());
        assert_eq!(tree.root_at(12345), None);
        large.push(Hash::ZERO);
        assert_eq!((large.size(), large.nodes().len()), (1 << 62, 1));
        large.push(Hash::ZERO);
        assert_eq!(large.nodes().len(), 2);
    }
}
