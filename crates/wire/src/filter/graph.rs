//! Representation of an expression as an acyclic graph of tests, each with a successor for either result.

use std::collections::{BTreeMap, HashMap};

use super::op;

/// A value read from a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Load {
    /// `LOAD_BYTE`, `LOAD_HALF` or `LOAD_WORD`.
    pub width: u16,
    /// Offset of the IPv4 header whose length is added to `offset`, if any.
    pub behind_ipv4: Option<u32>,
    /// Offset in the frame, bytes, or an ancillary offset ([`super::ANCILLARY`]).
    pub offset: u32,
    /// Mask applied to the loaded value.
    pub mask: u32,
}

/// Comparison of a loaded value with a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Test {
    /// Value to load.
    pub load: Load,
    /// `IF_EQUAL`, `IF_ABOVE`, `IF_AT_LEAST` or `IF_ANY_BIT`.
    pub comparison: u16,
    /// Constant to compare with.
    pub k: u32,
}

impl Test {
    /// Result of the test for a value.
    fn of(&self, value: u32) -> bool {
        match self.comparison {
            op::IF_EQUAL => value == self.k,
            op::IF_ABOVE => value > self.k,
            op::IF_AT_LEAST => value >= self.k,
            _ => value & self.k != 0,
        }
    }
}

/// Index of a node. Successors have smaller indices.
pub type NodeId = usize;

/// End node: the packet is rejected.
pub const REJECT: NodeId = 0;
/// End node: the packet is accepted.
pub const ACCEPT: NodeId = 1;
/// Number of end nodes before the first test.
const ENDS: usize = 2;
/// Maximum number of simplification rounds; a few are enough.
const MAX_ROUNDS: usize = 8;

/// A test and its successors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Node {
    /// Test of this node.
    pub test: Test,
    /// Successor if the test is true.
    pub yes: NodeId,
    /// Successor if the test is false.
    pub no: NodeId,
}

/// A graph without duplicate nodes.
#[derive(Debug, Default)]
pub struct Graph {
    nodes: Vec<Node>,
    known: HashMap<Node, NodeId>,
}

/// Knowledge about a loaded value.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Known {
    Value(u32),
    /// Results of earlier tests.
    Results(Vec<(Test, bool)>),
}

/// Maximum number of stored results per value: long lists of ports need not be stored in full.
const MAX_RESULTS: usize = 8;

/// Knowledge about the packet at a node, by loaded value.
type Facts = BTreeMap<Load, Known>;

/// Result of a test, if the facts determine it.
fn result(facts: &Facts, test: &Test) -> Option<bool> {
    match facts.get(&test.load)? {
        Known::Value(value) => Some(test.of(*value)),
        Known::Results(results) => results.iter().find(|(known, _)| known == test).map(|(_, result)| *result),
    }
}

/// Adds the result of a test that was unknown.
fn learn(facts: &mut Facts, test: Test, result: bool) {
    if result && test.comparison == op::IF_EQUAL {
        facts.insert(test.load, Known::Value(test.k));
    } else if let Known::Results(results) = facts.entry(test.load).or_insert(Known::Results(Vec::new()))
        && results.len() < MAX_RESULTS
    {
        results.push((test, result));
    }
}

/// Keeps only facts that are also true in `other`.
fn intersect(facts: &mut Facts, other: &Facts) {
    facts.retain(|load, known| match (&mut *known, other.get(load)) {
        (_, None) => false,
        (Known::Value(value), Some(Known::Value(also))) => value == also,
        (Known::Value(value), Some(Known::Results(results))) => {
            let kept = results.iter().filter(|(test, result)| test.of(*value) == *result).copied().collect();
            *known = Known::Results(kept);
            true
        }
        (Known::Results(results), Some(_)) => {
            results.retain(|(test, known)| result(other, test) == Some(*known));
            true
        }
    });
}

impl Graph {
    /// Returns the node with this test, new or existing. If both successors reject, no test is needed: it would
    /// also reject a frame that is too short.
    pub fn node(&mut self, test: Test, yes: NodeId, no: NodeId) -> NodeId {
        if yes == REJECT && no == REJECT {
            return REJECT;
        }
        let node = Node { test, yes, no };
        let next = self.nodes.len() + ENDS;
        let id = *self.known.entry(node).or_insert(next);
        if id == next {
            self.nodes.push(node);
        }
        id
    }

    /// Returns a node by its id; `None` for the end nodes.
    pub fn get(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.checked_sub(ENDS)?)
    }

    /// Returns the reachable nodes, each before its successors, without the end nodes.
    pub fn reachable(&self, root: NodeId) -> Vec<NodeId> {
        let mut reached = vec![false; root + 1];
        reached[root] = true;
        let mut order = Vec::new();
        for id in (ENDS..=root).rev() {
            if let (true, Some(node)) = (reached[id], self.get(id)) {
                reached[node.yes] = true;
                reached[node.no] = true;
                order.push(id);
            }
        }
        order
    }

    /// Skips tests whose results are known from earlier tests, and merges nodes that become equal. Every value is
    /// still loaded on each path, so a frame that is too short is rejected as before.
    pub fn simplify(&mut self, root: NodeId) -> NodeId {
        let mut root = root;
        for _ in 0..MAX_ROUNDS {
            let (next, next_root) = self.skip_known(root);
            let same = next.nodes == self.nodes;
            *self = next;
            root = next_root;
            if same {
                break;
            }
        }
        root
    }

    /// One round of [`Self::simplify`].
    fn skip_known(&self, root: NodeId) -> (Self, NodeId) {
        let order = self.reachable(root);
        let mut facts: HashMap<NodeId, Facts> = HashMap::from([(root, Facts::new())]);
        let mut skipped: Vec<(NodeId, Node)> = Vec::new();
        for id in order {
            // A node that is skipped on every path has no facts.
            let (Some(node), Some(known)) = (self.get(id), facts.remove(&id)) else { continue };
            let mut follow = |outcome: bool, mut target: NodeId| {
                let mut known = known.clone();
                learn(&mut known, node.test, outcome);
                while let Some(next) = self.get(target) {
                    match result(&known, &next.test) {
                        Some(true) => target = next.yes,
                        Some(false) => target = next.no,
                        None => break,
                    }
                }
                facts.entry(target).and_modify(|facts| intersect(facts, &known)).or_insert(known);
                target
            };
            let (yes, no) = (follow(true, node.yes), follow(false, node.no));
            skipped.push((id, Node { test: node.test, yes, no }));
        }
        let mut next = Self::default();
        let mut renamed: HashMap<NodeId, NodeId> = HashMap::from([(REJECT, REJECT), (ACCEPT, ACCEPT)]);
        for (id, node) in skipped.into_iter().rev() {
            let new = next.node(node.test, renamed[&node.yes], renamed[&node.no]);
            renamed.insert(id, new);
        }
        let root = renamed[&root];
        (next, root)
    }
}
