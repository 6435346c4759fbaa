//! The code of a kernel: reading the call, the loops over rows, blocks and vectors, and their bodies.

mod blocks;
mod body;
mod call;
mod loops;
mod rows;

use crate::builder::Builder;
use crate::kernel::{CurrentVector, Kernel, Rows};
use crate::plan::Plan;
use bh_jit_abi::{Level, Request};
use inkwell::IntPredicate;
use inkwell::context::Context;
use inkwell::module::Module;

/// Builds the module of a kernel. An error names the part that cannot be compiled.
pub(crate) fn build<'c>(context: &'c Context, request: &'c Request, plan: &'c Plan) -> Result<Module<'c>, String> {
    let b = Builder::new(context, "kernel");
    set_attributes(&b, request.level);
    let parameters = call::load(&b, request, plan);
    let mut kernel = Kernel {
        request,
        plan,
        rows: Rows::new(&parameters),
        parameters,
        vector: CurrentVector::default(),
        sums: Vec::new(),
        carried: Vec::new(),
        streams: Vec::new(),
        in_lines: false,
    };
    function(&b, &mut kernel)?;
    Ok(b.finish())
}

/// How LLVM is to make code of a function.
pub(crate) fn set_attributes(b: &Builder<'_>, level: Level) {
    // Vectors that find no register lie in the stack. Without `alignstack` they lie there as the caller's frame has it, mostly
    // across two cache lines: a quarter of D3Q19's time, or nothing, from build to build.
    let processor = match level {
        Level::Avx512 => "skylake-avx512",
        Level::Avx2 => "haswell",
        Level::Neon => "neoverse-n1",
    };
    let bits = (8 * level.bytes()).to_string();
    b.set_attribute("nounwind", 0);
    b.set_attribute("alignstack", level.bytes() as u64);
    b.set_text_attribute("prefer-vector-width", &bits);
    b.set_text_attribute("min-legal-vector-width", &bits);
    b.set_text_attribute("tune-cpu", processor);
}

fn function<'c>(b: &Builder<'c>, kernel: &mut Kernel<'c>) -> Result<(), String> {
    let (none, all) = (b.index(0), kernel.parameters.rows);
    let some = b.compare(IntPredicate::SGT, kernel.parameters.count, none);
    let [one, exit] = b.blocks(["rows", "exit"]);
    let side_by_side = kernel.plan.vectors.rows;
    if side_by_side > 1 {
        let many = b.block("rows.side.by.side");
        let grouped = b.and(all, b.index(-i64::from(side_by_side)));
        b.branch(some, (many, exit));
        b.begin(many);
        rows::build(b, kernel, side_by_side, (none, grouped), one)?;
        b.begin(one);
        rows::build(b, kernel, 1, (grouped, all), exit)?;
    } else {
        b.branch(some, (one, exit));
        b.begin(one);
        rows::build(b, kernel, 1, (none, all), exit)?;
    }
    b.begin(exit);
    b.end();
    Ok(())
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use bh_jit_abi::{Level, Request};
    use bh_kernel::{Arg, SlotMode, Step};

    /// More values at a time than there are registers: all slots are read before the first is written.
    fn kernel(level: Level) -> Request {
        let count = 40;
        let loads = (0..count).map(|slot| Step::Load { slot });
        let stores = (0..count).map(|value| Step::Store { slot: count + value, arg: Arg::Value(value) });
        let modes = [SlotMode::Read, SlotMode::Write].map(|mode| vec![mode; count.into()]).concat();
        crate::request(level, &modes, loads.chain(stores).collect())
    }

    #[test]
    fn what_finds_no_register_is_aligned() {
        for (level, register, bytes) in [(Level::Avx512, "%zmm", 64), (Level::Avx2, "%ymm", 32)] {
            let assembly = crate::assembly(&kernel(level)).unwrap();
            let spills = assembly.lines().filter(|line| line.contains("%rsp)") && line.contains(register));
            let spills: Vec<&str> = spills.collect();
            assert!(!spills.is_empty(), "{assembly}");
            let is_aligned = |line: &&str| line.contains("vmova") || line.contains("vmovdqa");
            assert!(spills.iter().all(is_aligned), "{spills:?}");
            assert!(assembly.contains(&format!("andq\t$-{bytes}, %rsp")), "{assembly}");
        }
    }
}
