//! The trace's description of kernels: their operations, the source lines that recorded them, the least bytes that they
//! move, and the loop nest or program that computes them.

use bh_bytecode::{BatchRef, Opcode};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

/// The most kernels with a number of their own; events of further kernels are described in full each time.
const MOST: usize = 1 << 16;
/// The longest program text that is kept, in bytes.
const LONGEST: usize = 64 << 10;

/// Numbers the kernels of an engine, so that only the first event of each describes it in full.
#[derive(Default)]
pub struct KernelTrace {
    known: HashMap<Kernel, usize>,
    /// For each kernel, whether the trace has its description.
    said: Vec<bool>,
    last: Option<usize>,
}

/// A kernel as the trace describes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kernel {
    /// The names of its operations.
    pub names: Vec<String>,
    /// The source lines that recorded them, without duplicates.
    pub lines: Vec<String>,
    /// Iterations of its largest operation, in elements.
    pub elements: u64,
    /// Elements of all its operations together, except copies and operations with an algorithm of their own.
    pub work: u64,
    /// Bytes of the arrays in memory that it reads and writes; an array counts once as an input and once as an output.
    pub bytes: u64,
}

impl Kernel {
    /// The kernel that computes these blocks of a batch together.
    pub fn of(batch: &BatchRef<'_>, blocks: Range<u32>) -> Kernel {
        let mut kernel = Kernel { names: vec![], lines: vec![], elements: 0, work: 0, bytes: 0 };
        let mut seen = BTreeSet::new();
        let mut moved: BTreeMap<(u32, bool), u64> = BTreeMap::new();
        for block in blocks {
            let block = &batch.blocks[block as usize];
            for &index in batch.block_instrs(block) {
                let instr = &batch.instrs[index as usize];
                if instr.opcode.is_system() {
                    continue;
                }
                kernel.names.push(batch.operation_name(instr.opcode).to_owned());
                if let Some((file, line)) = batch.origin(instr) {
                    let place = format!("{file}:{line}");
                    if !kernel.lines.contains(&place) {
                        kernel.lines.push(place);
                    }
                }
                let mut largest = 0;
                for (at, view) in instr.operands().iter().enumerate().filter_map(|(at, it)| Some((at, it.as_view()?))) {
                    let record = &batch.views[view as usize];
                    largest = largest.max(record.len as u64);
                    let written = at < instr.outputs as usize;
                    let in_memory = !batch.contracted(block).contains(&record.base);
                    if let (Some(base), true, true) = (batch.base_of(view), in_memory, seen.insert((view, written))) {
                        let bytes = moved.entry((record.base, written)).or_default();
                        *bytes = (*bytes + elements(batch, view) * base.dtype().size() as u64).min(base.bytes());
                    }
                }
                kernel.elements = kernel.elements.max(largest);
                let computes = !instr.opcode.is_extension() && instr.opcode != Opcode::Copy;
                kernel.work += if computes { largest } else { 0 };
            }
        }
        kernel.bytes = moved.values().sum();
        kernel
    }

    /// A short name: its operation, or the first one and the number of others.
    pub fn label(&self) -> String {
        match self.names.as_slice() {
            [first, _, _, _, rest @ ..] if !rest.is_empty() => format!("{first} and {} more", self.names.len() - 1),
            few => few.join(", "),
        }
    }
}

/// The number of distinct elements of a view.
fn elements(batch: &BatchRef<'_>, view: u32) -> u64 {
    let moving = batch.shape(view).iter().zip(batch.stride(view)).filter(|(_, stride)| **stride != 0);
    moving.map(|(&extent, _)| extent as u64).product()
}

impl KernelTrace {
    /// The name and the detail of an event of this kernel; `how` says how it runs. The detail describes the kernel in
    /// full, with the text of `code`, until [`KernelTrace::said`] has been called for one of its events.
    pub fn event(&mut self, kernel: Kernel, how: &str, code: impl FnOnce() -> String) -> (String, String) {
        let label = kernel.label();
        let number = self.known.get(&kernel).copied().or((self.known.len() < MOST).then_some(self.known.len()));
        self.last = number;
        if number.is_some_and(|number| self.said.get(number) == Some(&true)) {
            return (label, json!({ "kernel": number, "how": how }).to_string());
        }
        let mut detail = json!({
            "kernel": number,
            "how": how,
            "operations": kernel.names.join(", "),
            "lines": kernel.lines,
            "elements": kernel.elements,
            "work": kernel.work,
            "bytes": kernel.bytes,
        });
        if let Some(number) = number {
            detail["code"] = shortened(code()).into();
            if self.known.insert(kernel, number).is_none() {
                self.said.push(false);
            }
        }
        (label, detail.to_string())
    }

    /// Records that the last event went to the trace.
    pub fn said(&mut self) {
        if let Some(said) = self.last.and_then(|last| self.said.get_mut(last)) {
            *said = true;
        }
    }

    /// The detail of a further event of the same kernel as the last event.
    pub fn more(&self) -> String {
        json!({ "kernel": self.last, "more": true }).to_string()
    }
}

/// The detail of an event that compiles this text.
pub fn code_detail(text: &str) -> String {
    json!({ "bytes": text.len(), "code": shortened(text.to_owned()) }).to_string()
}

fn shortened(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(LONGEST));
    text
}

/// The arguments of an event: the entries of a detail that is a JSON object, else the detail itself.
pub(crate) fn arguments(detail: &str) -> Map<String, Value> {
    let object = detail.starts_with('{').then(|| serde_json::from_str(detail).ok()).flatten();
    object.unwrap_or_else(|| Map::from_iter([("detail".to_owned(), detail.into())]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_bytecode::text;

    const BATCH: &str = r#"bh batch 1
base b0 = f64[100] id 1 row 100
base b1 = f64[100] id 2 row 100 born
base b2 = f64[100] id 3 row 100 born
base b3 = f64[1] id 4 row 1 born
view v0 = b0 at 0 [100:1]
view v1 = b1 at 0 [100:1]
view v2 = b2 at 0 [10:10,10:0]
view v3 = b2 at 0 [100:1]
view v4 = b3 at 0 []
const c0 = f64 2.0
origin o1 = "a.c":4
origin o2 = "a.c":5
i0: v1 = multiply v0, c0 @o1
i1: v3 = add v1, v0 @o2
i2: v4 = add_reduce axes(0) v3 @o2
"#;

    #[test]
    fn kernels_are_described_once_and_arrays_within_move_nothing() {
        let mut batch = text::parse(BATCH).unwrap();
        batch.push_block(&[0, 1, 2], &[1]);
        let kernel = Kernel::of(&batch.as_ref(), 0..1);
        assert_eq!(kernel.names, ["multiply", "add", "add_reduce"]);
        assert_eq!(kernel.lines, ["a.c:4", "a.c:5"]);
        // b0 is read, b2 written and read, b3 written.
        assert_eq!((kernel.elements, kernel.work, kernel.bytes), (100, 300, 3 * 800 + 8));
        let mut trace = KernelTrace::default();
        let (label, first) = trace.event(kernel.clone(), "blocks", || "for [100]".into());
        assert_eq!(label, "multiply, add, add_reduce");
        let first = arguments(&first);
        assert_eq!((&first["kernel"], &first["code"]), (&json!(0), &json!("for [100]")));
        // An event that was not recorded does not count as the description.
        let (_, second) = trace.event(kernel.clone(), "blocks", || "for [100]".into());
        assert_eq!(arguments(&second), first);
        trace.said();
        assert_eq!(Value::Object(arguments(&trace.more())), json!({ "kernel": 0, "more": true }));
        let (_, again) = trace.event(kernel, "compiled", || unreachable!());
        assert_eq!(Value::Object(arguments(&again)), json!({ "kernel": 0, "how": "compiled" }));
    }

    #[test]
    fn repeated_elements_of_a_view_count_once() {
        let batch = text::parse(BATCH).unwrap();
        assert_eq!(elements(&batch.as_ref(), 2), 10);
        assert_eq!(arguments("{no object"), Map::from_iter([("detail".into(), "{no object".into())]));
    }
}
