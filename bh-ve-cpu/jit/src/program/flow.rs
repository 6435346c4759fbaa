//! Branches, blocks and loops of lanes under masks. Each register is a known SSA value at every point, so nothing goes through
//! memory; where paths join, phi nodes join the values.

use super::lanes::{Exit, Mask, State};
use super::operation::Operations;
use super::refill::{self, Refill};
use super::scope::{keepers, temporaries};
use super::tables::Tables;
use crate::builder::{Block, Builder, Element, Kind, Phi, Value};
use bh_jit_abi::Function;
use bh_scalar::{Arg, Compute, Load, Program, Statement, leaves};
use inkwell::IntPredicate as Int;
use std::collections::{BTreeSet, HashSet};

/// Branches that cost no more than this many simple operations are done for all lanes, without a jump.
const CHEAP: u32 = 8;

/// Builds the statements of a program.
pub(super) struct Flow<'a, 'c> {
    b: &'a Builder<'c>,
    program: &'a Program,
    pub(super) operations: Operations<'c>,
    pub(super) tables: Tables<'c>,
    /// The lanes that the vector has.
    all: Value<'c>,
    temporary: Vec<bool>,
    /// The operations that preserve the values of other lanes.
    keepers: HashSet<*const Compute>,
    /// Where the turns are that are left to all loops.
    turns: Value<'c>,
    /// The loop whose lanes take other elements when they have finished.
    pub(super) refill: Option<Refill<'c>>,
}

/// The exits of a loop: no lane is left in it, or few are.
struct Ends<'c> {
    ways: Vec<(State<'c>, Block<'c>)>,
    /// The states where an iteration began or the next one begins: the remaining lanes continue there.
    resumed: Vec<(State<'c>, Block<'c>)>,
    /// The values at the head.
    head: Vec<Value<'c>>,
    /// The loop is left when there are no more lanes than this in it, if there are others to come.
    least: Option<Value<'c>>,
    /// The sum over iterations of active lanes beyond the number that pays, if it is counted.
    sum: Option<Value<'c>>,
}

/// The values that an iteration of a loop hands to the next one: the active lanes, registers, and lanes that have left blocks.
struct Head<'c> {
    active: Phi<'c>,
    registers: Vec<(usize, Phi<'c>)>,
    exits: Vec<(usize, Phi<'c>)>,
}

impl<'c> Ends<'c> {
    /// The loop may end here; `begins`: a turn begins next.
    fn note(&mut self, state: &State<'c>, block: Block<'c>, begins: bool) {
        let mut registers = if begins { state.registers.clone() } else { self.head.clone() };
        registers.extend(self.sum);
        self.resumed.push((State { registers, ..state.clone() }, block));
        self.ways.push((state.clone(), block));
    }
}

impl<'a, 'c> Flow<'a, 'c> {
    pub(super) fn new(
        b: &'a Builder<'c>,
        program: &'a Program,
        (operations, tables): (Operations<'c>, Tables<'c>),
        (all, turns): (Value<'c>, Value<'c>),
    ) -> Flow<'a, 'c> {
        let (temporary, keepers) = (temporaries(program), keepers(program));
        Flow { b, program, operations, tables, all, temporary, keepers, turns, refill: None }
    }

    pub(super) fn list(&mut self, state: &mut State<'c>, statements: &'a [Statement]) -> Result<(), String> {
        for (at, statement) in statements.iter().enumerate() {
            if state.active == Mask::Nobody {
                break;
            }
            self.statement(state, statement)?;
            let rest = &statements[at + 1..];
            // Others may be in a loop from before.
            let skips = self.refill.is_none() || !rest.iter().any(refill::has_loops);
            if skips && leaves(std::slice::from_ref(statement), 0) && state.active != Mask::Nobody && cost(rest) > CHEAP
            {
                // Nobody may be left for the rest.
                let before = state.clone();
                return self.unless_empty(state, before, |flow, state| flow.list(state, rest));
            }
        }
        Ok(())
    }

    /// Builds code for lanes, and a jump over it if no lane is active.
    fn unless_empty(
        &mut self,
        state: &mut State<'c>,
        otherwise: State<'c>,
        build: impl FnOnce(&mut Self, &mut State<'c>) -> Result<(), String>,
    ) -> Result<(), String> {
        let any = self.any(state.active);
        let ([some, join], skipped) = (self.b.blocks(["some", "join"]), self.b.current());
        self.b.branch(any, (some, join));
        self.b.begin(some);
        build(self, state)?;
        let end = self.b.current();
        self.b.jump(join);
        self.b.begin(join);
        *state = self.meet(&[(otherwise, skipped), (state.clone(), end)]);
        Ok(())
    }

    fn statement(&mut self, state: &mut State<'c>, statement: &'a Statement) -> Result<(), String> {
        match statement {
            Statement::Compute(compute) => self.compute(state, compute),
            Statement::Load(load) => {
                self.load(state, load);
                Ok(())
            }
            Statement::If(condition, then, orelse) => self.branch(state, *condition, then, orelse),
            Statement::Block(body) => self.block(state, body),
            Statement::Loop(body) => self.repeat(state, body),
            Statement::Leave(block) => {
                let place = state.exits.len() - 1 - usize::from(*block);
                if let Exit::Counted(before) = state.exits[place] {
                    state.exits[place] = Exit::Counted(self.or(before, state.active));
                }
                state.active = Mask::Nobody;
                Ok(())
            }
        }
    }

    fn compute(&mut self, state: &mut State<'c>, compute: &Compute) -> Result<(), String> {
        let operands: Vec<Value> = compute.args.iter().map(|arg| self.operand(state, arg)).collect();
        let (input, output) = self.program.types_of(compute);
        let function = Function { opcode: compute.opcode, param: compute.param, input, output };
        let mask = self.value(state.active);
        let made = self.operations.compute(self.b, (compute, function), &operands, Some(mask))?;
        let target = usize::from(compute.target);
        state.registers[target] = match state.active {
            Mask::Some(active) if self.keepers.contains(&std::ptr::from_ref(compute)) => {
                self.kept(active, made, state.registers[target])
            }
            _ => made,
        };
        Ok(())
    }

    fn operand(&self, state: &State<'c>, arg: &Arg) -> Value<'c> {
        match arg {
            Arg::Register(register) => state.registers[usize::from(*register)],
            Arg::Constant(constant) => self.operations.constant(constant),
        }
    }

    /// The value of a register that some lanes assign.
    fn kept(&self, active: Value<'c>, made: Value<'c>, before: Value<'c>) -> Value<'c> {
        let is_complex = made.lanes() > active.lanes();
        self.b.select(if is_complex { self.b.concatenate(active, active) } else { active }, made, before)
    }

    fn load(&mut self, state: &mut State<'c>, load: &Load) {
        let subscripts: Vec<Value> = load.subscripts.iter().map(|arg| self.operand(state, arg)).collect();
        let made = self.tables.load(self.b, load, &subscripts, (self.value(state.active), self.turns));
        let target = usize::from(load.target);
        state.registers[target] = match state.active {
            Mask::Some(active) => self.kept(active, made, state.registers[target]),
            _ => made,
        };
    }

    fn branch(
        &mut self,
        state: &mut State<'c>,
        condition: u16,
        then: &'a [Statement],
        orelse: &'a [Statement],
    ) -> Result<(), String> {
        let holds = state.registers[usize::from(condition)];
        let entry = state.active;
        let out = leaves(then, 0) || leaves(orelse, 0);
        let mut ends = [Mask::Nobody; 2];
        for (end, (part, condition)) in ends.iter_mut().zip([(then, holds), (orelse, self.b.not(holds))]) {
            if part.is_empty() && !out {
                continue;
            }
            state.active = self.and(entry, condition);
            if cost(part) > CHEAP {
                let before = state.clone();
                self.unless_empty(state, before, |flow, state| flow.list(state, part))?;
            } else {
                self.list(state, part)?;
            }
            *end = state.active;
        }
        state.active = if out { self.or(ends[0], ends[1]) } else { entry };
        Ok(())
    }

    fn block(&mut self, state: &mut State<'c>, body: &'a [Statement]) -> Result<(), String> {
        let entry = state.active;
        // Lanes that do not leave an outer block all reach its end, unless they stay in the loop.
        let counted = leaves(body, 1) || self.refill.as_ref().is_some_and(|refill| refill.is_around(body));
        state.exits.push(if counted { Exit::Counted(Mask::Nobody) } else { Exit::Uncounted });
        self.list(state, body)?;
        state.active = match state.exits.pop() {
            Some(Exit::Counted(left)) => self.or(state.active, left),
            _ => entry,
        };
        Ok(())
    }

    fn repeat(&mut self, state: &mut State<'c>, body: &'a [Statement]) -> Result<(), String> {
        let b = self.b;
        let [start, exit] = b.blocks(["loop", "left"]);
        let entry = b.current();
        state.active = Mask::Some(self.value(state.active));
        let refill = self.refill.take_if(|refill| refill.is_loop(body));
        if let Some(refill) = &refill {
            refill.enter(b, state, self.value(state.active));
        }
        b.jump(start);
        b.begin(start);
        let head = self.head(state, body, entry);
        let least = refill.as_ref().map(|refill| refill.least);
        let sum = least.map(|least| b.phi(least.kind, &[(b.index(0), entry)]));
        let mut ends = Ends {
            ways: Vec::new(),
            resumed: Vec::new(),
            head: state.registers.clone(),
            least,
            sum: sum.as_ref().map(|sum| sum.value),
        };
        let tested = self.turn(state, body, (exit, &mut ends))?;
        if state.active == Mask::Nobody {
            ends.note(state, b.current(), true);
            b.jump(exit);
        } else {
            self.close(state, &head)?;
            let end = b.current();
            let (goes_on, next) = self.goes_on(state, &mut ends, tested);
            if let (Some(phi), Some(next)) = (sum, next) {
                phi.add(next, end);
            }
            ends.note(state, b.current(), true);
            b.branch(goes_on, (start, exit));
        }
        b.begin(exit);
        *state = self.meet(&ends.ways);
        if let Some(mut refill) = refill {
            let mut resumed = self.meet(&ends.resumed).registers;
            let sum = resumed.pop().ok_or("lanes that are not counted")?;
            refill.leave(self.value(state.active), resumed, sum);
            self.refill = Some(refill);
        }
        state.active = Mask::Nobody;
        Ok(())
    }

    /// The values that change from iteration to iteration of a loop, which become the state; before the first one they are those of
    /// the state at `entry`.
    fn head(&self, state: &mut State<'c>, body: &[Statement], entry: Block<'c>) -> Head<'c> {
        let b = self.b;
        let mut changed = BTreeSet::new();
        assigned(body, &mut changed);
        let active = b.phi(self.all.kind, &[(self.value(state.active), entry)]);
        let register = |register: usize| {
            let before = state.registers[register];
            (register, b.phi(before.kind, &[(before, entry)]))
        };
        let registers: Vec<_> =
            changed.into_iter().filter(|register| !self.temporary[*register]).map(register).collect();
        let counts = state.exits.iter().enumerate().filter_map(|(place, exit)| match exit {
            Exit::Counted(mask) if leaves(body, (state.exits.len() - 1 - place) as u16) => Some((place, *mask)),
            _ => None,
        });
        let exits: Vec<_> =
            counts.map(|(place, mask)| (place, b.phi(self.all.kind, &[(self.value(mask), entry)]))).collect();
        state.active = Mask::Some(active.value);
        registers.iter().for_each(|(register, phi)| state.registers[*register] = phi.value);
        exits.iter().for_each(|(place, phi)| state.exits[*place] = Exit::Counted(Mask::Some(phi.value)));
        Head { active, registers, exits }
    }

    /// Hands the state at the end of an iteration to the next one.
    fn close(&self, state: &State<'c>, head: &Head<'c>) -> Result<(), String> {
        let end = self.b.current();
        head.active.add(self.value(state.active), end);
        head.registers.iter().for_each(|(register, phi)| phi.add(state.registers[*register], end));
        for (place, phi) in &head.exits {
            let Exit::Counted(mask) = state.exits[*place] else { return Err("an exit is not counted".into()) };
            phi.add(self.value(mask), end);
        }
        Ok(())
    }

    /// Does a loop go on with another iteration? Loops that never end are given up. `tested`: lanes are left for sure. Also returns the
    /// sum that the next iteration begins with, if it is counted.
    fn goes_on(&self, state: &State<'c>, ends: &mut Ends<'c>, tested: bool) -> (Value<'c>, Option<Value<'c>>) {
        let b = self.b;
        let left = b.sub(b.load(Kind::I64, self.turns, 8), b.index(1));
        b.store(left, self.turns, 8);
        let goes_on = b.compare(Int::SGE, left, b.index(0));
        if tested {
            return (goes_on, ends.sum);
        }
        let (enough, next) = self.enough(state.active, ends);
        (b.and(goes_on, enough), next)
    }

    /// The body of a loop. Where nobody may be left, it goes to the end of the loop. Returns whether somebody is left for sure.
    fn turn(
        &mut self,
        state: &mut State<'c>,
        body: &'a [Statement],
        (exit, ends): (Block<'c>, &mut Ends<'c>),
    ) -> Result<bool, String> {
        let mut tested = false;
        for (at, statement) in body.iter().enumerate() {
            if state.active == Mask::Nobody {
                break;
            }
            self.statement(state, statement)?;
            let out = leaves(std::slice::from_ref(statement), 0);
            tested &= !out;
            if out && state.active != Mask::Nobody && cost(&body[at + 1..]) > 0 {
                // Lanes that continue later repeat the statements before, which have no visible effect.
                let (some, (any, sum)) = (self.b.block("some"), self.enough(state.active, ends));
                ends.note(state, self.b.current(), false);
                ends.sum = sum;
                self.b.branch(any, (some, exit));
                self.b.begin(some);
                tested = true;
            }
        }
        Ok(tested)
    }

    /// The state where paths join.
    fn meet(&self, ways: &[(State<'c>, Block<'c>)]) -> State<'c> {
        let (first, _) = &ways[0];
        let meet = |of: &dyn Fn(&State<'c>) -> Value<'c>| {
            let value = of(first);
            if ways.iter().all(|(state, _)| of(state) == value) {
                return value;
            }
            let from: Vec<_> = ways.iter().map(|(state, block)| (of(state), *block)).collect();
            self.b.phi(value.kind, &from).value
        };
        let registers = (0..first.registers.len()).map(|register| meet(&|state| state.registers[register])).collect();
        let mask = |of: &dyn Fn(&State<'c>) -> Mask<'c>| {
            let mask = of(first);
            if ways.iter().all(|(state, _)| of(state) == mask) {
                return mask;
            }
            Mask::Some(meet(&|state| self.value(of(state))))
        };
        let active = mask(&|state| state.active);
        let exits = (0..first.exits.len()).map(|place| match first.exits[place] {
            Exit::Uncounted => Exit::Uncounted,
            Exit::Counted(_) => Exit::Counted(mask(&|state| match state.exits[place] {
                Exit::Counted(mask) => mask,
                Exit::Uncounted => Mask::Nobody,
            })),
        });
        State { registers, active, exits: exits.collect() }
    }

    fn value(&self, mask: Mask<'c>) -> Value<'c> {
        match mask {
            Mask::All => self.all,
            Mask::Some(value) => value,
            Mask::Nobody => self.b.zero(Kind::vector(Element::Bit, self.all.lanes())),
        }
    }

    /// Are there lanes for the rest of a turn, or where these are counted, enough? They are counted once in a turn; given is their sum, then.
    fn enough(&self, mask: Mask<'c>, ends: &mut Ends<'c>) -> (Value<'c>, Option<Value<'c>>) {
        let Some(least) = ends.least.take() else { return (self.any(mask), ends.sum) };
        let count = refill::count(self.b, self.value(mask));
        let more = self.b.sub(count, self.b.index(refill::worth(self.all.lanes())));
        (self.b.compare(Int::SGT, count, least), ends.sum.map(|sum| self.b.add(sum, more)))
    }

    fn any(&self, mask: Mask<'c>) -> Value<'c> {
        self.b.any(self.value(mask))
    }

    fn and(&self, mask: Mask<'c>, condition: Value<'c>) -> Mask<'c> {
        match mask {
            Mask::Nobody => Mask::Nobody,
            mask => Mask::Some(self.b.and(self.value(mask), condition)),
        }
    }

    fn or(&self, one: Mask<'c>, other: Mask<'c>) -> Mask<'c> {
        match (one, other) {
            (Mask::Nobody, mask) | (mask, Mask::Nobody) => mask,
            (Mask::All, _) | (_, Mask::All) => Mask::All,
            (one, other) if one == other => one,
            (one, other) => Mask::Some(self.b.or(self.value(one), self.value(other))),
        }
    }
}

/// About how many simple operations statements take at least.
fn cost(statements: &[Statement]) -> u32 {
    let all = statements.iter().map(|statement| match statement {
        Statement::Compute(compute) => compute.opcode.info().cost,
        Statement::Load(_) => 10,
        Statement::Loop(_) => 100,
        Statement::Leave(_) => 0,
        other => 1 + other.parts().into_iter().map(cost).sum::<u32>(),
    });
    all.sum()
}

/// The registers that statements set.
fn assigned(statements: &[Statement], found: &mut BTreeSet<usize>) {
    for statement in statements {
        match statement {
            Statement::Compute(compute) => _ = found.insert(usize::from(compute.target)),
            Statement::Load(load) => _ = found.insert(usize::from(load.target)),
            _ => {}
        }
        statement.parts().into_iter().for_each(|part| assigned(part, found));
    }
}
