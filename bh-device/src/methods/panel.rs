//! Some columns of a matrix that one group has in its registers, each item some rows: what factors of blocks of columns are made
//! of. Where rows are too many, and on processors, columns stay in memory.

use crate::code::Target;

/// Bytes of an item's registers that hold elements.
const BYTES: usize = 256;
/// Items at most: more would wait for each other longer.
const ITEMS: usize = 512;
/// Items at least, if the device has as many: fewer would not hide what each waits for.
const LEAST: usize = 64;
/// Rows of an item at most, if they are in registers, and columns.
const ROWS: i64 = 32;
const COLUMNS: i64 = 8;
/// Values of which one is made in a step.
const STEP: usize = 8;

/// The line before a loop that is unrolled.
const UNROLLED: &str = "#pragma unroll\n";

/// The columns of a panel: `width` of them, or fewer at the end, by one group.
pub(super) struct Panel {
    /// Items of the group.
    pub(super) group: usize,
    /// Columns that are worked on at a time.
    pub(super) columns: i64,
    /// Rows of an item in registers; 0: they are in memory.
    rows: i64,
}

impl Panel {
    /// Of columns of this many rows and elements of `size` bytes, at most `width`.
    pub(super) fn new(target: &Target, rows: i64, width: i64, size: usize) -> Panel {
        // A processor runs the items of a group one after the other: one does all. (PoCL compiles small groups with registers and
        // barriers in loops wrongly, which are right without its optimisation.)
        if target.is_processor() {
            return Panel { group: 1, columns: width, rows: 0 };
        }
        // Few rows are no work for many items.
        let group = target.largest.min(ITEMS).min((rows.max(1) as u64).next_power_of_two().max(LEAST as u64) as usize);
        let own = (rows.max(1) as u64).div_ceil(group as u64).next_power_of_two() as i64;
        let (rows, columns) = match own {
            ..=ROWS => (own, ((BYTES / size) as i64 / own).clamp(1, width.min(COLUMNS))),
            _ => (0, width),
        };
        Panel { group, columns, rows }
    }

    /// Columns in which later ones are not looked at: reading them again takes less than products do.
    pub(super) fn width(&self, least: i64, most: i64) -> i64 {
        if self.rows == 0 { self.columns } else { (4 * self.columns).clamp(least, most).max(self.columns) }
    }

    /// The declaration of what is in registers.
    pub(super) fn declare(&self, name: &str) -> String {
        if self.rows == 0 { String::new() } else { format!("{name} own[{}][{}];\n", self.rows, self.columns) }
    }

    /// An element of the present row: of column `c`, counted from `s` on.
    pub(super) fn element(&self, c: &str) -> String {
        if self.rows == 0 { format!("m[(long)(s + {c}) * n + r]") } else { format!("own[q][{c}]") }
    }

    /// Statements for each row `r` of an item, from `first` on.
    pub(super) fn each_row(&self, text: &str) -> String {
        let group = self.group;
        match self.rows {
            0 => format!("for (int r = first + item; r < n; r += {group}) {{\n{text}}}\n"),
            rows => format!(
                "{UNROLLED}for (int q = 0; q < {rows}; q++) {{\nconst int r = first + item + q * {group};\nif (r < n) {{\n{text}}}\n}}\n"
            ),
        }
    }

    /// Statements for each row `r` of an item, with a `value` of each in its register: an element of column `k` that is there for all
    /// rows, so that reads do not wait for each other.
    pub(super) fn each_row_with(&self, name: &str, k: &str, text: &str) -> String {
        let value = |r: &str| format!("m[(long)({k}) * n + {r}]");
        match self.rows {
            0 => self.each_row(&format!("const {name} value = {};\n{text}", value("r"))),
            rows => format!(
                "{{\n{name} values[{rows}];\n{UNROLLED}for (int q = 0; q < {rows}; q++) {{\nconst int r = first + item + q * {0};\n\
                 values[q] = {1};\n}}\n{2}}}\n",
                self.group,
                value("(r < n ? r : n - 1)"),
                self.each_row(&format!("const {name} value = values[q];\n{text}"))
            ),
        }
    }

    /// Statements for the rows of an item, if `row` is one of them.
    pub(super) fn if_own(&self, row: &str, text: &str) -> String {
        let statements = match self.rows {
            0 => format!("const int r = {row};\nif (r < n) {{\n{text}}}\n"),
            _ => self.each_row(&format!("if (r == {row}) {{\n{text}}}\n")),
        };
        format!("if (({row} - first) % {} == item) {{\n{statements}}}\n", self.group)
    }

    /// Statements for each column with the number `c`.
    pub(super) fn each_column(&self, c: &str, text: &str) -> String {
        let (unroll, end) = match self.rows {
            0 => ("", "width".to_owned()),
            _ => (UNROLLED, self.columns.to_string()),
        };
        format!("{unroll}for (int {c} = 0; {c} < {end}; {c}++) {{\n{text}}}\n")
    }

    /// Brings the columns from `s` on to registers, or back; those from `width` on are zeros.
    pub(super) fn copy(&self, writes: bool) -> String {
        if self.rows == 0 {
            return String::new();
        }
        let one = match writes {
            true => "if (s + c < width) m[(long)(s + c) * n + r] = own[q][c];\n",
            false => "own[q][c] = s + c < width ? m[(long)(s + c) * n + r] : 0;\n",
        };
        self.each_row(&self.each_column("c", one))
    }

    /// Joins `count` values of each item, which lie at `sums[value][item]`, in `sums[value][0]`. `join` makes `a` of `a` and `b`.
    pub(super) fn join(&self, count: usize, join: &str) -> String {
        let (mut text, mut left) = (String::from("BH_BARRIER;\n"), self.group);
        while left > 1 {
            let step = STEP.min(left);
            left /= step;
            // By halves, as operations that wait for each other take long.
            let mut one = format!("const int l = e / {left}, i = e % {left};\n");
            (0..step).for_each(|k| one += &format!("JOINED v{k} = sums[l][i + {}];\n", k * left));
            let mut half = step;
            while half > 1 {
                half /= 2;
                (0..half).for_each(|k| {
                    one += &format!("{{\nJOINED a = v{k};\nconst JOINED b = v{};\n{join}v{k} = a;\n}}\n", k + half)
                });
            }
            one += "sums[l][i] = v0;\n";
            text += &shared(self.group, (count * left) as i64, &one);
            text += "BH_BARRIER;\n";
        }
        text
    }
}

/// Statements for each `e` of a count of them, shared by the items of a group. (PoCL does loops of one turn for all items.)
pub(super) fn shared(group: usize, count: i64, text: &str) -> String {
    match count <= group as i64 {
        true => format!("{{\nconst int e = item;\nif (e < {count}) {{\n{text}}}\n}}\n"),
        false => format!("for (int e = item; e < {count}; e += {group}) {{\n{text}}}\n"),
    }
}
