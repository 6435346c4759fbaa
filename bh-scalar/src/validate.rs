//! The rules for valid programs.

use crate::{Arg, Compute, Load, MOST_REGISTERS, Program, Statement, leaves};
use bh_bytecode::batch::MAX_OPERANDS;
use bh_bytecode::{DType, Kind, MAX_RANK};

impl Program {
    /// Checks everything that engines and interpreters rely on.
    pub fn validate(&self) -> Result<(), String> {
        let is_named = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if self.name.is_empty() || !self.name.chars().all(is_named) {
            return Err(format!("'{}' is no name", self.name));
        }
        if self.inputs == 0 || self.outputs == 0 || self.inputs + self.outputs + self.tables.len() > MAX_OPERANDS {
            return Err(format!("{} inputs, {} outputs and {} tables", self.inputs, self.outputs, self.tables.len()));
        }
        if let Some(table) = self.tables.iter().find(|table| {
            table.name.is_empty() || !table.name.chars().all(is_named) || !(1..=MAX_RANK).contains(&table.rank)
        }) {
            return Err(format!("the table '{}' of {} dimensions", table.name, table.rank));
        }
        if self.registers.len() < self.inputs + self.outputs || self.registers.len() > MOST_REGISTERS {
            return Err(format!("{} registers", self.registers.len()));
        }
        self.list(&self.body, 0)
    }

    fn list(&self, statements: &[Statement], blocks: u16) -> Result<(), String> {
        for (at, statement) in statements.iter().enumerate() {
            match statement {
                Statement::Compute(compute) => self.operation(compute)?,
                Statement::Load(load) => self.element(load)?,
                Statement::If(condition, then, orelse) => {
                    if self.registers.get(usize::from(*condition)) != Some(&DType::Bool) {
                        return Err(format!("the condition r{condition} is no truth value"));
                    }
                    self.list(then, blocks)?;
                    self.list(orelse, blocks)?;
                }
                Statement::Block(body) => self.list(body, blocks + 1)?,
                Statement::Loop(body) if !leaves(body, 0) => return Err("a loop that nothing leaves".into()),
                Statement::Loop(body) => self.list(body, blocks)?,
                Statement::Leave(block) => {
                    if *block >= blocks {
                        return Err(format!("leave {block}: there are {blocks} blocks around"));
                    }
                    if at + 1 != statements.len() {
                        return Err("statements behind one that leaves".into());
                    }
                }
            }
        }
        Ok(())
    }

    fn known(&self, register: u16) -> Option<DType> {
        self.registers.get(usize::from(register)).copied()
    }

    fn types(&self, args: &[Arg]) -> Option<Vec<DType>> {
        let dtype = |arg: &Arg| match *arg {
            Arg::Register(register) => self.known(register),
            Arg::Constant(constant) => Some(constant.dtype()),
        };
        args.iter().map(dtype).collect()
    }

    fn element(&self, load: &Load) -> Result<(), String> {
        let wrong = || format!("an element of the table t{} does not fit", load.table);
        let table = self.tables.get(usize::from(load.table)).ok_or_else(wrong)?;
        let subscripts = self.types(&load.subscripts).ok_or_else(wrong)?;
        let fits = subscripts.len() == table.rank && subscripts.iter().all(|dtype| *dtype == DType::I64);
        if fits && self.known(load.target) == Some(table.dtype) { Ok(()) } else { Err(wrong()) }
    }

    fn operation(&self, compute: &Compute) -> Result<(), String> {
        let types = self.types(&compute.args);
        let (Some(output), Some(types)) = (self.known(compute.target), types) else {
            return Err(format!("'{compute}' names registers that do not exist"));
        };
        let info = compute.opcode.info();
        let fits = compute.opcode.kind() == Kind::Elementwise
            && usize::from(info.inputs) == types.len()
            && compute.opcode.check_types(output, &types);
        if fits && compute.opcode.takes_param(compute.param) {
            Ok(())
        } else {
            Err(format!("'{compute}' does not fit the types"))
        }
    }
}
