//! Code generation: converts a graph of tests to instructions.

use std::collections::HashMap;

use super::graph::{ACCEPT, Graph, Load, NodeId, REJECT};
use super::{Instruction, op};

/// Register contents before a node, as far as they are the same on every path to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Registers {
    /// The value in `A`.
    value: Option<Load>,
    /// Offset of the IPv4 header whose length is in `X`.
    header: Option<u32>,
}

impl Registers {
    fn intersect(self, other: Self) -> Self {
        Self {
            value: self.value.filter(|_| self.value == other.value),
            header: self.header.filter(|_| self.header == other.header),
        }
    }
}

/// Program under construction, last instruction first, so that jump distances are known.
struct ReverseProgram {
    code: Vec<Instruction>,
    /// Number of instructions from a node's first one to the end.
    begins: HashMap<NodeId, usize>,
}

impl ReverseProgram {
    fn push(&mut self, code: u16, k: u32) {
        self.code.push(Instruction { code, jt: 0, jf: 0, k });
    }

    /// Number of instructions to skip from the next emitted one to `target`.
    fn skip(&self, target: usize) -> usize {
        self.code.len() - target
    }

    /// Emits a comparison. A target beyond the range of 8 bits is reached by an unconditional jump after the
    /// comparison.
    fn branch(&mut self, comparison: u16, k: u32, yes: NodeId, no: NodeId) {
        let mut targets = [self.begins[&yes], self.begins[&no]];
        // A jump emitted for one target increases the distance to the other by one.
        for at in [0, 1] {
            if self.skip(targets[at]) >= usize::from(u8::MAX) {
                let skip = self.skip(targets[at]);
                self.push(op::JUMP, u32::try_from(skip).unwrap_or(u32::MAX));
                targets[at] = self.code.len();
            }
        }
        let [jt, jf] = targets.map(|target| u8::try_from(self.skip(target)).unwrap_or(u8::MAX));
        self.code.push(Instruction { code: comparison, jt, jf, k });
    }
}

/// Generates the program of a graph; accepted packets are truncated to `snap_bytes`.
pub fn emit(graph: &Graph, root: NodeId, snap_bytes: u32) -> Vec<Instruction> {
    let order = graph.reachable(root);
    let registers = follow_registers(graph, root, &order);
    let mut backwards = ReverseProgram { code: vec![Instruction::pass(0)], begins: HashMap::from([(REJECT, 1)]) };
    backwards.code.push(Instruction::pass(snap_bytes));
    backwards.begins.insert(ACCEPT, 2);
    for &id in order.iter().rev() {
        let Some(node) = graph.get(id) else { continue };
        let load = node.test.load;
        backwards.branch(node.test.comparison, node.test.k, node.yes, node.no);
        let held = registers.get(&id).copied().unwrap_or_default();
        if held.value != Some(load) {
            if load.mask != u32::MAX {
                backwards.push(op::AND, load.mask);
            }
            match load.behind_ipv4 {
                None => backwards.push(load.width, load.offset),
                Some(header) => {
                    backwards.push(load.width + op::INDIRECT, load.offset);
                    if held.header != Some(header) {
                        backwards.push(op::LOAD_HEADER_LENGTH, header);
                    }
                }
            }
        }
        backwards.begins.insert(id, backwards.code.len());
    }
    let mut program = backwards.code;
    program.reverse();
    program
}

fn follow_registers(graph: &Graph, root: NodeId, order: &[NodeId]) -> HashMap<NodeId, Registers> {
    let mut before: HashMap<NodeId, Registers> = HashMap::from([(root, Registers::default())]);
    for id in order {
        let (Some(node), Some(held)) = (graph.get(*id), before.get(id).copied()) else { continue };
        let load = node.test.load;
        let after = Registers { value: Some(load), header: load.behind_ipv4.or(held.header) };
        for next in [node.yes, node.no] {
            before.entry(next).and_modify(|held| *held = held.intersect(after)).or_insert(after);
        }
    }
    before
}
