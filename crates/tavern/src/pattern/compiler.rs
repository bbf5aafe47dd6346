//! Compiles a syntax tree to a program.

use crate::pattern::char_set::CharSet;
use crate::pattern::program::{Instruction, Loop, MatchSet, Program, Run};
use crate::pattern::syntax::tree::{Look, Node, Repeat, SyntaxTree};

/// Where a node is compiled.
#[derive(Clone, Copy)]
struct Context {
    /// Look-behind matches from right to left.
    is_backward: bool,
    /// Whether a loop with a counter contains the node.
    is_counted: bool,
}

struct Compiler {
    program: Program,
    /// Whether capture groups must be stored, because a back-reference or the caller reads them.
    has_captures: bool,
    /// Whether what follows an instruction depends only on the position, because nothing in the
    /// pattern reads captures.
    is_memoizable: bool,
}

/// Compiles a pattern; with `keeps_captures`, a match has the bounds of its capture groups.
pub fn compile(tree: &SyntaxTree, is_unicode: bool, keeps_captures: bool) -> Program {
    let mut compiler = Compiler {
        program: Program {
            is_unicode,
            ..Program::default()
        },
        has_captures: tree.has_back_references || keeps_captures,
        is_memoizable: !tree.has_back_references,
    };
    if compiler.has_captures {
        compiler.program.n_registers = (tree.n_groups as usize + 1) * 2;
    }
    let context = Context {
        is_backward: false,
        is_counted: false,
    };
    compiler.compile(&tree.root, context);
    compiler.emit(Instruction::Match);
    compiler.program
}

impl Compiler {
    fn compile(&mut self, node: &Node, context: Context) {
        let is_backward = context.is_backward;
        match node {
            Node::Char(char) => {
                self.emit(Instruction::Char {
                    char: *char,
                    is_backward,
                });
            }
            Node::Set(set) => {
                let set = self.add_set(set);
                self.emit(Instruction::Set { set, is_backward });
            }
            Node::Assertion(assertion) => {
                self.emit(Instruction::Assertion(*assertion));
            }
            Node::Sequence(nodes) if is_backward => {
                nodes.iter().rev().for_each(|it| self.compile(it, context));
            }
            Node::Sequence(nodes) => nodes.iter().for_each(|it| self.compile(it, context)),
            Node::Alternation(nodes) => self.compile_alternation(nodes, context),
            Node::Group(group, body) => self.compile_group(*group, body, context),
            Node::BackReference(reference) => {
                let number = self.program.back_references.len() as u32;
                self.program.back_references.push(reference.clone());
                self.emit(Instruction::BackReference {
                    reference: number,
                    is_backward,
                });
            }
            Node::Look(look) => self.compile_look(look),
            Node::Repeat(repeat) => self.compile_repeat(repeat, context),
        }
    }

    fn compile_alternation(&mut self, nodes: &[Node], context: Context) {
        let mut ends = Vec::new();
        for (n, node) in nodes.iter().enumerate() {
            if n + 1 == nodes.len() {
                self.compile(node, context);
                break;
            }
            let split = self.emit(Instruction::Match);
            self.compile(node, context);
            ends.push(self.emit(Instruction::Match));
            self.set_split(split, split + 1, self.next(), false);
        }
        let end = self.next();
        for jump in ends {
            self.program.instructions[jump as usize] = Instruction::Jump(end);
        }
    }

    fn compile_group(&mut self, group: u32, body: &Node, context: Context) {
        if !self.has_captures {
            return self.compile(body, context);
        }
        let (start, end) = (group * 2, group * 2 + 1);
        let (first, last) = match context.is_backward {
            true => (end, start),
            false => (start, end),
        };
        self.emit(Instruction::Save(first));
        self.compile(body, context);
        self.emit(Instruction::Save(last));
    }

    fn compile_look(&mut self, look: &Look) {
        let start = self.emit(Instruction::Match);
        // The result of look-around depends on nothing outside of it but captures.
        let inner = Context {
            is_backward: look.is_behind,
            is_counted: false,
        };
        self.compile(&look.body, inner);
        self.emit(Instruction::LookEnd);
        self.program.instructions[start as usize] = Instruction::Look {
            is_negated: look.is_negated,
            after: self.next(),
        };
    }

    fn compile_repeat(&mut self, repeat: &Repeat, context: Context) {
        let (min, max, is_lazy) = (repeat.min, repeat.max, repeat.is_lazy);
        if max == 0 {
            return;
        }
        if let Some(set) = self.single_char_set(&repeat.body) {
            return self.compile_run(set, repeat, context);
        }
        let is_nullable = repeat.body.min_len() == 0;
        match (min, max) {
            (1, 1) => self.compile_body(repeat, context),
            (0, 1) if !is_nullable => {
                let split = self.emit(Instruction::Match);
                self.compile_body(repeat, context);
                self.set_split(split, split + 1, self.next(), is_lazy);
            }
            (0, u32::MAX) if !is_nullable => {
                let split = self.emit(Instruction::Match);
                self.compile_body(repeat, context);
                self.emit(Instruction::Jump(split));
                self.set_split(split, split + 1, self.next(), is_lazy);
            }
            (1, u32::MAX) if !is_nullable => {
                let start = self.next();
                self.compile_body(repeat, context);
                let split = self.emit(Instruction::Match);
                self.set_split(split, start, split + 1, is_lazy);
            }
            _ => self.compile_loop(repeat, context),
        }
    }

    fn compile_loop(&mut self, repeat: &Repeat, context: Context) {
        let counter = self.program.n_registers as u32;
        self.program.n_registers += 2;
        self.emit(Instruction::StartLoop(counter));
        let head = self.emit(Instruction::Match);
        let inner = Context {
            is_counted: true,
            ..context
        };
        self.compile_body(repeat, inner);
        self.emit(Instruction::Jump(head));
        self.program.instructions[head as usize] = Instruction::Loop(Loop {
            counter,
            min: repeat.min,
            max: repeat.max,
            is_lazy: repeat.is_lazy,
            exit: self.next(),
        });
    }

    /// Compiles one iteration, which starts without the captures of the one before it.
    fn compile_body(&mut self, repeat: &Repeat, context: Context) {
        let (first, end) = repeat.groups;
        if self.has_captures && first < end {
            self.emit(Instruction::Clear(first * 2, end * 2));
        }
        self.compile(&repeat.body, context);
    }

    fn compile_run(&mut self, set: u32, repeat: &Repeat, context: Context) {
        let number = self.program.n_runs as u32;
        self.program.n_runs += 1;
        self.emit(Instruction::Run(Run {
            number,
            set,
            min: repeat.min,
            max: repeat.max,
            is_lazy: repeat.is_lazy,
            is_backward: context.is_backward,
            is_memoized: self.is_memoizable && !context.is_counted,
        }));
    }

    /// Returns the set of a node that matches exactly one character without a capture.
    fn single_char_set(&mut self, node: &Node) -> Option<u32> {
        match node {
            Node::Char(char) => Some(self.add_set(&CharSet::single(*char))),
            Node::Set(set) => Some(self.add_set(set)),
            Node::Group(_, body) if !self.has_captures => self.single_char_set(body),
            Node::Sequence(nodes) => match nodes.as_slice() {
                [node] => self.single_char_set(node),
                _ => None,
            },
            _ => None,
        }
    }

    fn add_set(&mut self, set: &CharSet) -> u32 {
        self.program.sets.push(MatchSet::new(set));
        self.program.sets.len() as u32 - 1
    }

    fn set_split(&mut self, split: u32, body: u32, exit: u32, is_lazy: bool) {
        let (first, other) = match is_lazy {
            true => (exit, body),
            false => (body, exit),
        };
        self.program.instructions[split as usize] = Instruction::Split { first, other };
    }

    fn emit(&mut self, instruction: Instruction) -> u32 {
        self.program.instructions.push(instruction);
        self.next() - 1
    }

    fn next(&self) -> u32 {
        self.program.instructions.len() as u32
    }
}
