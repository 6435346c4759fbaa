//! A chain of kernels as one, tile by tile: each item of a group has a column of the tile, or an element of some columns, and all go
//! down its rows, a barrier for each. An item's own values are in registers; values that others need are in local memory,
//! too.

use super::part::{Part, is_wide};
use super::{Code, Target, Variant, Writer};
use bh_bytecode::DType;
use bh_bytecode::c::type_name;
use bh_kernel::{BufferRef, ColumnTiling, Reach, Stage, Step, TileSlot};

/// The kernel of a tiling.
pub(crate) fn columns(found: &ColumnTiling, target: &Target) -> Code {
    let tiling = &found.tiling;
    let stages: Vec<Stage> = tiling.nests.iter().map(|nest| in_memory(&nest.stage, &nest.slots)).collect();
    let wide = stages.iter().any(|stage| is_wide(&stage.parameters, target));
    let mut text = Text { found, stages: &stages, body: String::new() };
    let mut writer = Writer::new(Variant::Specialised, wide);
    text.begin(writer.index());
    for nest in 0..stages.len() {
        text.loads_ahead(nest, &mut writer, Ahead::First);
    }
    // Tiles without a part in a border have turns without a question about it, one after the other in one piece.
    if found.nests.iter().any(|nest| nest.thin) {
        text.body += "if (edge) {\n";
        writer = text.turns(writer, true);
        text.body += "} else {\n";
        writer = text.turns(writer, false);
        text.body += "}\n";
    } else {
        writer = text.turns(writer, false);
    }
    text.body += "}\n";
    let groups = text.tiles(0) * text.tiles(1) * text.tiles(2);
    writer.finish(target, groups as usize, text.items() as usize, &text.body)
}

/// The stage with its slots as memory knows them: those in rows of a tile address none.
fn in_memory(stage: &Stage, slots: &[TileSlot]) -> Stage {
    let mut stage = stage.clone();
    let rank = stage.parameters.extents.len();
    for (at, slot) in slots.iter().enumerate() {
        stage.parameters.buffers[at] = match *slot {
            TileSlot::Base(base) => BufferRef::Base(base),
            TileSlot::Fresh(base) => BufferRef::Fresh(base),
            TileSlot::Index | TileSlot::Rows(_) | TileSlot::Temporary(_) => BufferRef::None,
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
    if dtype.is_complex() { format!("bh_make_{dtype}(0, 0)") } else { format!("({name})0") }
}

/// The names of a tile's first row, column and element, and of those past the last ones.
const EDGES: [(&str, &str); 3] = [("top", "bottom"), ("left", "right"), ("begin", "end")];

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

    /// Items of a group.
    fn items(&self) -> i64 {
        self.found.square[0] * self.found.square[1] / self.found.each
    }

    /// Elements of a column in local memory, and of a row.
    fn width(&self) -> (i64, i64) {
        let [columns, elements] = [0, 1].map(|axis| self.found.square[axis] + 2 * self.found.margin[axis]);
        (elements, columns * elements)
    }

    /// The name of a register with an item's element of a row, counted from the turn, in a column of its own.
    fn own(&self, array: u32, row: i64, column: i64) -> String {
        format!("r{array}_{}_{column}", row - self.found.arrays[array as usize].own.low)
    }

    /// The element that is so many columns and elements beside one of the item's own columns.
    fn near(&self, array: u32, [row, columns, elements]: [i64; 3], column: i64) -> String {
        let (found, own) = (self.found, self.found.arrays[array as usize].own);
        let is_own =
            elements == 0 && (0..found.each).contains(&(column + columns)) && (own.low..=own.high).contains(&row);
        if is_own {
            self.own(array, row, column + columns)
        } else {
            self.shared(array, row, [column + columns, elements])
        }
    }

    /// The element in local memory that is so many columns, and elements, beside the item's first own one.
    fn shared(&self, array: u32, row: i64, beside: [i64; 2]) -> String {
        let rows = self.found.arrays[array as usize].shared.map_or(1, |(_, rows)| rows);
        let (column, whole) = self.width();
        // Items that have no part in a nest read beside those that have one, too.
        let [columns, elements] = [0, 1].map(|axis| beside[axis] + self.found.margin[axis]);
        format!("t{array}[(int)((t + ({row})) & {}) * {whole} + at + {}]", rows - 1, columns * column + elements)
    }

    /// Everything before the turns of a tile: memory, the tile's rows and columns, and which nests the item has a part in.
    fn begin(&mut self, index: &str) {
        let (found, tiling) = (self.found, &self.found.tiling);
        for (number, array) in found.arrays.iter().enumerate() {
            if let Some((_, rows)) = array.shared {
                let len = rows * self.width().1;
                self.body += &format!("BH_LOCAL {} t{number}[{len}];\n", type_name(array.dtype));
            }
        }
        let tiles = [0, 1, 2].map(|axis| self.tiles(axis));
        let (column, _) = self.width();
        self.body += &format!(
            "const int item1 = BH_ITEM / {width} * {}, item2 = BH_ITEM % {width}, at = item1 * {column} + item2;\n\
             for (int g = BH_GROUP; g < {}; g += BH_GROUPS) {{\n",
            found.each,
            tiles.iter().product::<i64>(),
            width = found.square[1],
        );
        let parts = [
            format!("g / {}", tiles[1] * tiles[2]),
            format!("g / {} % {}", tiles[2], tiles[1]),
            format!("g % {}", tiles[2]),
        ];
        for (axis, ((low, high), part)) in EDGES.into_iter().zip(parts).enumerate() {
            let (area, step) = (&tiling.area[axis], tiling.tile[axis]);
            self.body += &format!(
                "const {index} {low} = {} + ({index})({part}) * {step}, {high} = min(({index})({low} + {step}), ({index}){});\n",
                area.start, area.end
            );
        }
        let (turns, columns) = (found.turns, found.columns);
        self.body += &format!(
            "const {index} x1 = left + ({}) + item1, x2 = begin + ({}) + item2, first = top + ({}), last = bottom + ({});\n",
            columns[0].low, columns[1].low, turns.low, turns.high
        );
        for column in 0..found.each {
            self.parts(column, index);
        }
        let thin = (0..tiling.nests.len()).filter(|&nest| found.nests[nest].thin);
        let parts = thin.map(|nest| self.reaches(nest, index));
        let parts: Vec<String> = parts.collect();
        if !parts.is_empty() {
            self.body += &format!("const int edge = {};\n", parts.join("\n|| "));
        }
        for (number, array) in found.arrays.iter().enumerate() {
            for (row, column) in
                (array.own.low..=array.own.high).flat_map(|row| (0..found.each).map(move |it| (row, it)))
            {
                let own = self.own(number as u32, row, column);
                self.body += &format!("{} {own} = {};\n", type_name(array.dtype), zero(array.dtype));
            }
        }
    }

    /// In which nests an item has a part with one of its columns.
    fn parts(&mut self, column: i64, index: &str) {
        let (found, tiling) = (self.found, &self.found.tiling);
        for word in 0..tiling.nests.len().div_ceil(BITS) {
            self.body += &format!("uint m{word}_{column} = 0;\n");
        }
        for (number, nest) in tiling.nests.iter().enumerate() {
            let inside = |axis: usize, column: i64| {
                let (extent, reach, align) =
                    (self.extent(number, axis), nest.reach[axis], found.nests[number].align[axis - 1]);
                let clamp =
                    |edge: &str, by: i64| format!("clamp(({index})({edge} + ({by})), ({index})0, ({index}){extent})");
                let (low, high) = EDGES[axis];
                let (low, high) = (clamp(low, reach.low), clamp(high, reach.high));
                format!("x{axis} - ({at}) >= {low} && x{axis} - ({at}) < {high}", at = align - column)
            };
            let (word, bit) = (number / BITS, 1u32 << (number % BITS));
            self.body += &format!("if ({} && {}) m{word}_{column} |= {bit}u;\n", inside(1, column), inside(2, 0));
        }
    }

    /// Iterations of a nest along an axis.
    fn extent(&self, nest: usize, axis: usize) -> i64 {
        self.stages[nest].parameters.extents.get(axis).copied().unwrap_or(1)
    }

    /// Has the tile a part in a nest?
    fn reaches(&self, nest: usize, index: &str) -> String {
        let inside = |axis: usize| {
            let Reach { low: first, high: last } = self.found.tiling.nests[nest].reach[axis];
            let ((low, high), extent) = (EDGES[axis], self.extent(nest, axis));
            format!(
                "max(({index})({low} + ({first})), ({index})0) < min(({index})({high} + ({last})), ({index}){extent})"
            )
        };
        format!("({} && {} && {})", inside(0), inside(1), inside(2))
    }

    /// Has the item a part in a nest with one of its columns?
    fn has_part(&self, nest: usize, column: i64) -> String {
        format!("(m{}_{column} & {}u)", nest / BITS, 1u32 << (nest % BITS))
    }

    /// Has the tile a row of a nest to do in this turn?
    fn takes_part(&self, nest: usize, turn: &str, index: &str) -> String {
        let known = &self.found.tiling.nests[nest];
        let (Reach { low, high }, late) = (known.reach[0], known.late);
        let end = self.stages[nest].parameters.extents[0] + late;
        format!(
            "{turn} >= max(({index})(top + ({})), ({index}){late}) && {turn} < min(({index})(bottom + ({})), ({index}){end})",
            low + late,
            high + late,
        )
    }

    /// The indices of the item's iteration of a nest in one of its columns.
    fn indices(&self, nest: usize, turn: &str, column: i64, index: &str) -> String {
        let (late, align) = (self.found.tiling.nests[nest].late, self.found.nests[nest].align);
        let mut text = format!("const {index} i0 = {turn} - ({late}), i1 = x1 - ({});\n", align[0] - column);
        if self.stages[nest].parameters.extents.len() > 2 {
            text += &format!("const {index} i2 = x2 - ({});\n", align[1]);
        }
        text
    }

    /// All turns of a tile; `thin`: with the nests that are sides of a border.
    fn turns(&mut self, mut writer: Writer, thin: bool) -> Writer {
        self.body += &format!("for ({} t = first; t < last; t++) {{\n", writer.index());
        self.pass_on();
        for nest in 0..self.stages.len() {
            if thin || !self.found.nests[nest].thin {
                writer = self.nest(nest, writer);
            }
        }
        self.body += "BH_BARRIER;\n}\n";
        writer
    }

    /// A turn later, what was a row is the one before it.
    fn pass_on(&mut self) {
        for (number, array) in self.found.arrays.iter().enumerate() {
            for (row, column) in
                (array.own.low..array.own.high).flat_map(|row| (0..self.found.each).map(move |column| (row, column)))
            {
                let [to, from] = [row, row + 1].map(|row| self.own(number as u32, row, column));
                self.body += &format!("{to} = {from};\n");
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
        let turn = if ahead == Ahead::First { "first" } else { "(t + 1)" };
        if ahead == Ahead::First {
            for column in 0..self.found.each {
                self.body += &format!("{} p{nest}_{column} = {};\n", type_name(dtype), zero(dtype));
            }
        }
        self.body += &format!("if ({}) {{\n", self.takes_part(nest, turn, index));
        for column in 0..self.found.each {
            let (part, indices) = (self.has_part(nest, column), self.indices(nest, turn, column, index));
            self.body += &format!("if ({part}) {{\n{indices}p{nest}_{column} = {element};\n}}\n");
        }
        self.body += "}\n";
    }

    /// A nest's row in the item's columns. All is computed whether the item has a part in it or not, so that nothing waits for a branch, but for sides
    /// of borders; what is not its own part is not kept.
    fn nest(&mut self, nest: usize, mut writer: Writer) -> Writer {
        let index = writer.index();
        let takes_part = self.takes_part(nest, "t", index);
        let thin = self.found.nests[nest].thin;
        self.body +=
            &if thin { format!("if ({takes_part}) {{\n") } else { format!("{{\nconst int now = {takes_part};\n") };
        for column in 0..self.found.each {
            let part = self.has_part(nest, column);
            self.body += &if thin {
                format!("if ({part}) {{\nconst int own = 1;\n")
            } else {
                format!("{{\nconst int own = now && {part};\n")
            };
            if self.loads(nest) {
                self.kept(nest, 1, column, &format!("p{nest}_{column}"));
            } else {
                writer = self.computed(nest, column, writer);
            }
            self.body += "}\n";
        }
        self.body += "}\n";
        self.loads_ahead(nest, &mut writer, Ahead::Next);
        writer
    }

    /// Keeps a value for a slot in rows of the tile, in one of the item's columns.
    fn kept(&mut self, nest: usize, slot: usize, column: i64, value: &str) {
        let TileSlot::Rows(array) = self.found.tiling.nests[nest].slots[slot] else { return };
        let row = self.found.nests[nest].near[slot][0];
        let element = self.own(array, row, column);
        self.body += &format!("{element} = own ? {value} : {element};\n");
        // A later read of a row has the same distance from the iteration or a smaller one.
        if self.found.arrays[array as usize].shared.is_some_and(|(low, _)| row >= low) {
            self.body += &format!("{} = {element};\n", self.shared(array, row, [column, 0]));
        }
    }

    /// The operations of a nest in one of the item's columns, and what comes of them.
    fn computed(&mut self, nest: usize, column: i64, writer: Writer) -> Writer {
        let (known, near) = (&self.found.tiling.nests[nest], &self.found.nests[nest]);
        let mut part = Part::with(&self.stages[nest], writer, 0);
        let slots = &self.stages[nest].kernel.slots;
        let index = part.writer.index();
        part.body += &self.indices(nest, "t", column, index);
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
                (TileSlot::Rows(array), false) => self.near(array, near.near[at], column),
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
            self.kept(nest, at, column, &format!("s{at}"));
        }
        writer
    }
}
