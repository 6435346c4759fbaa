//! A chain of kernels as one, tile by tile: each item of a group has a column of the tile, and all go down its rows, a barrier
//! for each. What an item needs of its own column is in registers, what others need of it in local memory, too.

use super::part::{Part, is_wide};
use super::{Code, Target, Variant, Writer};
use bh_bytecode::DType;
use bh_bytecode::c::type_name;
use bh_kernel::{BufferRef, ColumnTiling, Reach, Stage, Step, TileSlot};

/// The kernel of a tiling for groups of `target.group` items.
pub(crate) fn columns(found: &ColumnTiling, target: &Target) -> Code {
    let tiling = &found.tiling;
    let stages: Vec<Stage> = tiling.nests.iter().map(|nest| in_memory(&nest.stage, &nest.slots)).collect();
    let wide = stages.iter().any(|stage| is_wide(&stage.parameters, target));
    let mut text = Text { found, target, stages: &stages, body: String::new() };
    let mut writer = Writer::new(Variant::Specialised, wide);
    text.begin(writer.index());
    for nest in 0..stages.len() {
        text.loads_ahead(nest, &mut writer, Ahead::First);
    }
    // Tiles without a part in a border have turns without a question about it, one after the other in one piece.
    if (0..stages.len()).any(|nest| text.is_thin(nest)) {
        text.body += "if (edge) {\n";
        writer = text.turns(writer, true);
        text.body += "} else {\n";
        writer = text.turns(writer, false);
        text.body += "}\n";
    } else {
        writer = text.turns(writer, false);
    }
    text.body += "}\n";
    let groups = text.tiles(0) * text.tiles(1);
    writer.finish(target, groups as usize, target.group, &text.body)
}

/// The stage with its slots as memory knows them: those in rows of a tile address none.
fn in_memory(stage: &Stage, slots: &[TileSlot]) -> Stage {
    let mut stage = stage.clone();
    let rank = stage.parameters.extents.len();
    for (at, slot) in slots.iter().enumerate() {
        stage.parameters.buffers[at] = match *slot {
            TileSlot::Base(base) => BufferRef::Base(base),
            TileSlot::Fresh(base) => BufferRef::Fresh(base),
            TileSlot::Index | TileSlot::Rows(_) => BufferRef::None,
        };
        if let TileSlot::Rows(_) = slot {
            stage.parameters.starts[at] = 0;
            stage.parameters.strides[at * rank..][..rank].fill(0);
        }
    }
    stage
}

/// A zero of a type.
fn zero(dtype: DType) -> String {
    let name = type_name(dtype);
    if dtype.is_complex() { format!("({name}){{0}}") } else { format!("({name})0") }
}

/// Nests that are so many times smaller than the area along an axis are asked for together.
const THIN: i64 = 16;

/// Bits of a word that says in which nests an item has a part.
const BITS: usize = 32;

/// Which row of a copy from memory is read: the first of a tile, or the one of the next turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ahead {
    First,
    Next,
}

struct Text<'a> {
    found: &'a ColumnTiling,
    target: &'a Target,
    stages: &'a [Stage],
    body: String,
}

impl Text<'_> {
    /// Tiles along an axis.
    fn tiles(&self, axis: usize) -> i64 {
        let tiling = &self.found.tiling;
        let length = tiling.area[axis].end - tiling.area[axis].start;
        (length + tiling.tile[axis] - 1) / tiling.tile[axis]
    }

    /// Elements of a row in local memory.
    fn width(&self) -> i64 {
        self.target.group as i64 + 2 * self.found.margin
    }

    /// The name of a register with an item's element of a row, counted from the turn.
    fn own(&self, array: u32, row: i64) -> String {
        format!("r{array}_{}", row - self.found.arrays[array as usize].own.low)
    }

    /// The element in local memory that is so many columns beside the item's own one.
    fn shared(&self, array: u32, row: i64, beside: i64) -> String {
        let rows = self.found.arrays[array as usize].shared.map_or(1, |(_, rows)| rows);
        // Items that have no part in a nest read beside those that have one, too.
        let beside = beside + self.found.margin;
        format!("t{array}[(int)((t + ({row})) & {}) * {} + item + {beside}]", rows - 1, self.width())
    }

    /// Everything before the turns of a tile: memory, the tile's rows and columns, and which nests the item has a part in.
    fn begin(&mut self, index: &str) {
        let (found, tiling) = (self.found, &self.found.tiling);
        for (number, array) in found.arrays.iter().enumerate() {
            if let Some((_, rows)) = array.shared {
                let len = rows * self.width();
                self.body += &format!("__local {} t{number}[{len}];\n", type_name(array.dtype));
            }
        }
        let tiles = [self.tiles(0), self.tiles(1)];
        self.body += &format!(
            "const int item = get_local_id(0);\n\
             for (int g = get_group_id(0); g < {}; g += get_num_groups(0)) {{\n",
            tiles[0] * tiles[1]
        );
        for (axis, (low, high), part) in
            [(0, ("top", "bottom"), format!("g / {}", tiles[1])), (1, ("left", "right"), format!("g % {}", tiles[1]))]
        {
            let (area, step) = (&tiling.area[axis], tiling.tile[axis]);
            self.body += &format!(
                "const {index} {low} = {} + ({index})({part}) * {step}, {high} = min(({index})({low} + {step}), ({index}){});\n",
                area.start, area.end
            );
        }
        let (turns, columns) = (found.turns, found.columns);
        self.body += &format!(
            "const {index} x = left + ({}) + item, first = top + ({}), last = bottom + ({});\n",
            columns.low, turns.low, turns.high
        );
        for word in 0..tiling.nests.len().div_ceil(BITS) {
            self.body += &format!("uint m{word} = 0;\n");
        }
        for (number, nest) in tiling.nests.iter().enumerate() {
            let (extent, column) = (self.stages[number].parameters.extents[1], nest.reach[1]);
            let clamp =
                |edge: &str, by: i64| format!("clamp(({index})({edge} + ({by})), ({index})0, ({index}){extent})");
            self.body += &format!(
                "if (x - ({align}) >= {} && x - ({align}) < {}) m{} |= {}u;\n",
                clamp("left", column.low),
                clamp("right", column.high),
                number / BITS,
                1u32 << (number % BITS),
                align = found.nests[number].align,
            );
        }
        let parts = (0..tiling.nests.len()).filter(|&nest| self.is_thin(nest)).map(|nest| self.reaches(nest, index));
        let parts: Vec<String> = parts.collect();
        if !parts.is_empty() {
            self.body += &format!("const int edge = {};\n", parts.join("\n|| "));
        }
        for (number, array) in found.arrays.iter().enumerate() {
            for row in array.own.low..=array.own.high {
                let own = self.own(number as u32, row);
                self.body += &format!("{} {own} = {};\n", type_name(array.dtype), zero(array.dtype));
            }
        }
    }

    /// Is a nest a side of a border, in which few tiles have a part?
    fn is_thin(&self, nest: usize) -> bool {
        let (extents, area) = (&self.stages[nest].parameters.extents, &self.found.tiling.area);
        (0..2).any(|axis| extents[axis] * THIN < area[axis].end - area[axis].start)
    }

    /// Has the tile a part in a nest?
    fn reaches(&self, nest: usize, index: &str) -> String {
        let (extents, reach) = (&self.stages[nest].parameters.extents, &self.found.tiling.nests[nest].reach);
        let inside = |low: &str, high: &str, axis: usize| {
            let Reach { low: first, high: last } = reach[axis];
            let extent = extents[axis];
            format!(
                "max(({index})({low} + ({first})), ({index})0) < min(({index})({high} + ({last})), ({index}){extent})"
            )
        };
        format!("({} && {})", inside("top", "bottom", 0), inside("left", "right", 1))
    }

    /// Has the item a row of a nest to do in this turn?
    fn takes_part(&self, nest: usize, turn: &str, index: &str) -> String {
        let known = &self.found.tiling.nests[nest];
        let (Reach { low, high }, late) = (known.reach[0], known.late);
        let end = self.stages[nest].parameters.extents[0] + late;
        format!(
            "(m{} & {}u) && {turn} >= max(({index})(top + ({})), ({index}){late}) && {turn} < min(({index})(bottom + ({})), ({index}){end})",
            nest / BITS,
            1u32 << (nest % BITS),
            low + late,
            high + late,
        )
    }

    /// All turns of a tile; `thin`: with the nests that are sides of a border.
    fn turns(&mut self, mut writer: Writer, thin: bool) -> Writer {
        self.body += &format!("for ({} t = first; t < last; t++) {{\n", writer.index());
        self.pass_on();
        for nest in 0..self.stages.len() {
            if thin || !self.is_thin(nest) {
                writer = self.nest(nest, writer);
            }
        }
        self.body += "barrier(CLK_LOCAL_MEM_FENCE);\n}\n";
        writer
    }

    /// A turn later, what was a row is the one before it.
    fn pass_on(&mut self) {
        for (number, array) in self.found.arrays.iter().enumerate() {
            for row in array.own.low..array.own.high {
                let number = number as u32;
                self.body += &format!("{} = {};\n", self.own(number, row), self.own(number, row + 1));
            }
        }
    }

    /// Is the nest a copy from memory to rows of the tile?
    fn loads(&self, nest: usize) -> bool {
        let slots = &self.found.tiling.nests[nest].slots;
        let steps = &self.stages[nest].kernel.steps;
        matches!(slots[..], [TileSlot::Base(_), TileSlot::Rows(_)])
            && matches!(steps[..], [Step::Load { slot: 0 }, Step::Store { slot: 1, .. }])
    }

    /// Reads what a copy from memory needs in the next turn, so that it is under way meanwhile.
    fn loads_ahead(&mut self, nest: usize, writer: &mut Writer, ahead: Ahead) {
        if !self.loads(nest) {
            return;
        }
        let index = writer.index();
        let own = std::mem::replace(writer, Writer::new(Variant::Specialised, false));
        let mut part = Part::with(&self.stages[nest], own, 0);
        let element = part.element(0, 0);
        *writer = part.writer;
        let dtype = self.stages[nest].kernel.slots[0].dtype;
        let (late, align) = (self.found.tiling.nests[nest].late, self.found.nests[nest].align);
        let turn = if ahead == Ahead::First { "first" } else { "(t + 1)" };
        if ahead == Ahead::First {
            self.body += &format!("{} p{nest} = {};\n", type_name(dtype), zero(dtype));
        }
        self.body += &format!(
            "if ({}) {{\nconst {index} i0 = {turn} - ({late}), i1 = x - ({align});\n\
             p{nest} = {element};\n}}\n",
            self.takes_part(nest, turn, index)
        );
    }

    /// A nest's row. All is computed whether the item has a part in it or not, so that nothing waits for a branch, but for sides
    /// of borders; what is not its own part is not kept.
    fn nest(&mut self, nest: usize, mut writer: Writer) -> Writer {
        let index = writer.index();
        let takes_part = self.takes_part(nest, "t", index);
        if self.is_thin(nest) {
            self.body += &format!("if ({takes_part}) {{\nconst int own = 1;\n");
        } else {
            self.body += &format!("{{\nconst int own = {takes_part};\n");
        }
        if self.loads(nest) {
            self.kept(nest, 1, &format!("p{nest}"));
        } else {
            writer = self.computed(nest, writer);
        }
        self.body += "}\n";
        self.loads_ahead(nest, &mut writer, Ahead::Next);
        writer
    }

    /// Keeps a value for a slot in rows of the tile.
    fn kept(&mut self, nest: usize, slot: usize, value: &str) {
        let TileSlot::Rows(array) = self.found.tiling.nests[nest].slots[slot] else { return };
        let row = self.found.nests[nest].near[slot][0];
        let element = self.own(array, row);
        self.body += &format!("{element} = own ? {value} : {element};\n");
        // Who reads a row later reads it at the same distance from the turn or a smaller one.
        if self.found.arrays[array as usize].shared.is_some_and(|(low, _)| row >= low) {
            self.body += &format!("{} = {element};\n", self.shared(array, row, 0));
        }
    }

    /// The operations of a nest, and what comes of them.
    fn computed(&mut self, nest: usize, writer: Writer) -> Writer {
        let (known, near) = (&self.found.tiling.nests[nest], &self.found.nests[nest]);
        let mut part = Part::with(&self.stages[nest], writer, 0);
        let slots = &self.stages[nest].kernel.slots;
        let index = part.writer.index();
        part.body += &format!("const {index} i0 = t - ({}), i1 = x - ({});\n", known.late, near.align);
        let mut in_memory = Vec::new();
        for (at, slot) in known.slots.iter().enumerate() {
            let name = type_name(slots[at].dtype);
            let element = match (*slot, slots[at].mode.writes()) {
                (TileSlot::Index, _) => continue,
                (_, true) => {
                    part.body += &format!("{name} s{at};\n");
                    if !matches!(slot, TileSlot::Rows(_)) {
                        in_memory.push((at, part.element(at as u16, 0)));
                    }
                    format!("s{at}")
                }
                (TileSlot::Rows(array), false) => match near.near[at] {
                    [row, 0] => self.own(array, row),
                    [row, beside] => self.shared(array, row, beside),
                },
                (_, false) => format!("(own ? {} : {})", part.element(at as u16, 0), zero(slots[at].dtype)),
            };
            part.staged.push((at as u16, element));
        }
        part.steps();
        let Part { body, writer, .. } = part;
        self.body += &body;
        for (at, element) in in_memory {
            self.body += &format!("if (own) {element} = s{at};\n");
        }
        for at in (0..slots.len()).filter(|&at| slots[at].mode.writes()) {
            self.kept(nest, at, &format!("s{at}"));
        }
        writer
    }
}
