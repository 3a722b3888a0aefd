//! An expression as an acyclic graph of tests, each with the node that follows if it holds and if it does not.

use std::collections::{BTreeMap, HashMap};

use super::op;

/// A value read from a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Load {
    /// `LOAD_BYTE`, `LOAD_HALF` or `LOAD_WORD`.
    pub width: u16,
    /// Where the IPv4 header begins whose length is added to the offset.
    pub behind_ipv4: Option<u32>,
    /// Bytes from the frame's begin, or something [`super::ANCILLARY`].
    pub offset: u32,
    /// Bits that count.
    pub mask: u32,
}

/// A comparison of a value with a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Test {
    /// The value.
    pub load: Load,
    /// `IF_EQUAL`, `IF_ABOVE`, `IF_AT_LEAST` or `IF_ANY_BIT`.
    pub comparison: u16,
    /// The constant.
    pub k: u32,
}

impl Test {
    /// Its result for a value.
    fn of(&self, value: u32) -> bool {
        match self.comparison {
            op::IF_EQUAL => value == self.k,
            op::IF_ABOVE => value > self.k,
            op::IF_AT_LEAST => value >= self.k,
            _ => value & self.k != 0,
        }
    }
}

/// Index of a node. Nodes that follow a node have smaller ones.
pub type NodeId = usize;

/// The packet is rejected.
pub const REJECT: NodeId = 0;
/// The packet passes.
pub const ACCEPT: NodeId = 1;
/// Nodes before the first test.
const ENDS: usize = 2;
/// Rounds of simplification at most; a few suffice.
const MOST_ROUNDS: usize = 8;

/// A test and what follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Node {
    /// The test.
    pub test: Test,
    /// Next if it holds.
    pub yes: NodeId,
    /// Next if it does not.
    pub no: NodeId,
}

/// Nodes, no two of them alike.
#[derive(Debug, Default)]
pub struct Graph {
    nodes: Vec<Node>,
    known: HashMap<Node, NodeId>,
}

/// What is known of a value after some tests.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Known {
    Value(u32),
    /// Results of tests.
    Results(Vec<(Test, bool)>),
}

/// Results remembered of one value: lists of ports need not be remembered whole.
const MOST_RESULTS: usize = 8;

/// What is known of the packet on the way to a node.
type Facts = BTreeMap<Load, Known>;

/// The result of a test where the facts decide it.
fn result(facts: &Facts, test: &Test) -> Option<bool> {
    match facts.get(&test.load)? {
        Known::Value(value) => Some(test.of(*value)),
        Known::Results(results) => results.iter().find(|(known, _)| known == test).map(|(_, result)| *result),
    }
}

/// Adds the result of a test that was not known.
fn learn(facts: &mut Facts, test: Test, result: bool) {
    if result && test.comparison == op::IF_EQUAL {
        facts.insert(test.load, Known::Value(test.k));
    } else if let Known::Results(results) = facts.entry(test.load).or_insert(Known::Results(Vec::new()))
        && results.len() < MOST_RESULTS
    {
        results.push((test, result));
    }
}

/// Keeps what is also true under other facts.
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
    /// The node with this test. A test whose results both reject is not made, even where it would read past a frame's end:
    /// that rejects too.
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

    /// A node by its id; `None` for the two ends.
    pub fn get(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.checked_sub(ENDS)?)
    }

    /// Nodes that can be reached, each before those that follow it; the ends are left out.
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

    /// Skips tests whose results are known from the tests before them, and joins nodes that became alike. Every value that
    /// is read on the way of a packet is still read, so a packet that ends too early is rejected where it was before.
    pub fn simplify(&mut self, root: NodeId) -> NodeId {
        let mut root = root;
        for _ in 0..MOST_ROUNDS {
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
            // A node that is skipped on every way to it has no facts.
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
