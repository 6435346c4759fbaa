//! Random programs in the subset of Matlab: most are valid, some have operands that do not fit.

use bh_bytecode::random::Rng;

/// A variable of a program.
#[derive(Clone)]
struct Variable {
    name: String,
    shape: Shape,
    /// Its elements do not depend on the order of operations.
    exact: bool,
}

type Shape = (usize, usize);

struct Generator {
    rng: Rng,
    variables: Vec<Variable>,
    text: String,
    names: usize,
}

/// The program of this number.
pub fn program(seed: u64) -> String {
    let mut generator = Generator {
        rng: Rng::new(seed.wrapping_mul(0x9e37_79b9)),
        variables: Vec::new(),
        text: String::new(),
        names: 0,
    };
    let count = generator.rng.between(1, 5);
    for _ in 0..count {
        generator.statement(0);
    }
    generator.text
}

const EXTENTS: &[usize] = &[1, 1, 2, 2, 3, 3, 4, 5];

impl Generator {
    fn shape(&mut self) -> Shape {
        let mut extent = || *self.rng.pick(EXTENTS).unwrap_or(&1);
        match (extent(), extent()) {
            (rows, cols) if self.rng.chance(35) => {
                if self.rng.chance(50) {
                    (1, cols)
                } else {
                    (rows, 1)
                }
            }
            _ if self.rng.chance(15) => (1, 1),
            _ if self.rng.chance(3) => (0, 3),
            shape => shape,
        }
    }

    fn one_of(&mut self, items: &[&'static str]) -> &'static str {
        self.rng.pick(items).copied().unwrap_or("")
    }

    fn fresh(&mut self) -> String {
        self.names += 1;
        format!("v{}", self.names)
    }

    fn indent(&self, depth: usize) -> String {
        "  ".repeat(depth)
    }

    fn line(&mut self, depth: usize, line: &str) {
        self.text += &format!("{}{line}\n", self.indent(depth));
    }

    /// The end of a statement, usually without printing its value.
    fn end(&mut self, exact: bool) -> &'static str {
        if exact && self.rng.chance(40) { "" } else { ";" }
    }

    fn set(&mut self, name: &str, shape: Shape, exact: bool) {
        self.variables.retain(|variable| variable.name != name);
        self.variables.push(Variable { name: name.to_owned(), shape, exact });
    }

    fn statement(&mut self, depth: usize) {
        match self.rng.below([16, 14, 9][depth.min(2)]) {
            0..6 => self.assign(depth),
            6 | 7 => self.assign_part(depth),
            8 => self.several_results(depth),
            9 => self.grow_or_delete(depth),
            10 => self.conditional(depth),
            11 => self.counted(depth),
            12 => self.repeated(depth),
            13 => self.function_value(depth),
            14 => self.function(),
            _ => self.texts(depth),
        }
    }

    fn assign(&mut self, depth: usize) {
        let (shape, exact) = (self.shape(), self.rng.chance(70));
        let value = self.value(shape, 3, exact);
        let end = self.end(exact);
        if depth == 0 && self.rng.chance(25) {
            self.line(depth, &format!("{value}{end}"));
            return;
        }
        let name = self.fresh();
        self.line(depth, &format!("{name} = {value}{end}"));
        // After a block, its variables may be unset or have another size.
        if depth == 0 {
            self.set(&name, shape, exact);
        }
    }

    /// A variable, with an index if it has elements.
    fn variable(&mut self, wanted: impl Fn(&Variable) -> bool) -> Option<Variable> {
        let fitting: Vec<Variable> = self.variables.iter().filter(|variable| wanted(variable)).cloned().collect();
        self.rng.pick(&fitting).cloned()
    }

    fn assign_part(&mut self, depth: usize) {
        let Some(variable) = self.variable(|variable| variable.shape.0 * variable.shape.1 > 0) else {
            return self.assign(depth);
        };
        let (name, (rows, cols)) = (&variable.name, variable.shape);
        let end = self.end(variable.exact);
        if self.rng.chance(15) {
            let operator = self.one_of(&["+=", "-=", "*="]);
            let value = self.value((1, 1), 1, variable.exact);
            self.line(depth, &format!("{name} {operator} {value}{end}"));
            return;
        }
        if self.rng.chance(20) {
            let limit = self.rng.between(-3, 5);
            let value = self.value((1, 1), 1, variable.exact);
            if variable.exact {
                self.line(depth, &format!("{name}({name} > {limit}) = {value}{end}"));
            }
            return;
        }
        if self.rng.chance(30) {
            let (index, count) = self.index(rows * cols);
            let shape = if self.rng.chance(60) {
                (1, 1)
            } else if cols == 1 {
                (count, 1)
            } else {
                (1, count)
            };
            // If an index names an element twice, the last value counts.
            let value = self.value(shape, 2, variable.exact);
            self.line(depth, &format!("{name}({index}) = {value}{end}"));
            return;
        }
        let ((down, height), (across, width)) = (self.index(rows), self.index(cols));
        let shape = if self.rng.chance(50) { (1, 1) } else { (height, width) };
        let value = self.value(shape, 2, variable.exact);
        self.line(depth, &format!("{name}({down}, {across}) = {value}{end}"));
    }

    fn several_results(&mut self, depth: usize) {
        let shape = self.shape();
        let value = self.value(shape, 2, true);
        let (a, b) = (self.fresh(), self.fresh());
        let call = match self.rng.below(6) {
            0 => format!("max({value})"),
            1 => format!("min({value})"),
            2 => format!("sort({value})"),
            3 => format!("sort({value}, \"descend\")"),
            4 => format!("size({value})"),
            _ => format!("find({value})"),
        };
        let end = self.end(true);
        self.line(depth, &format!("[{a}, {b}] = {call}{end}"));
    }

    fn grow_or_delete(&mut self, depth: usize) {
        let Some(variable) = self.variable(|variable| variable.shape.0 * variable.shape.1 > 1) else {
            return self.assign(depth);
        };
        let (name, (rows, cols)) = (variable.name.clone(), variable.shape);
        let end = self.end(variable.exact);
        let value = self.value((1, 1), 1, variable.exact);
        let (line, shape) = match self.rng.below(6) {
            0 => (format!("{name}({}, {}) = {value}", rows + 1, cols + 1), (rows + 1, cols + 1)),
            1 => (format!("{name}(end + 1, :) = {value}"), (rows + 1, cols)),
            2 => (format!("{name}(:, end + 1) = {value}"), (rows, cols + 1)),
            3 => (format!("{name}(:, {}) = []", self.rng.between(1, cols as i64)), (rows, cols - 1)),
            4 => (format!("{name}({}, :) = []", self.rng.between(1, rows as i64)), (rows - 1, cols)),
            _ => (format!("{name}(:) = {value}"), (rows, cols)),
        };
        self.line(depth, &format!("{line}{end}"));
        if depth == 0 {
            self.set(&name, shape, variable.exact);
        } else {
            // The block may not run.
            self.variables.retain(|variable| variable.name != name);
        }
    }

    fn conditional(&mut self, depth: usize) {
        let shape = self.shape();
        let first = self.condition((1, 1));
        let second = self.condition(shape);
        self.line(depth, &format!("if {first}"));
        self.statement(depth + 1);
        self.line(depth, &format!("elseif {second}"));
        self.statement(depth + 1);
        if self.rng.chance(60) {
            self.line(depth, "else");
            self.statement(depth + 1);
        }
        self.line(depth, "end");
    }

    fn counted(&mut self, depth: usize) {
        let (name, sum) = (self.fresh(), self.fresh());
        self.line(depth, &format!("{sum} = 0;"));
        let shape = self.shape();
        let over = match self.rng.below(3) {
            0 => format!("1:{}", self.rng.between(0, 5)),
            1 => format!("{}:-2:{}", self.rng.between(0, 5), self.rng.between(-3, 2)),
            _ => self.value(shape, 1, true),
        };
        self.line(depth, &format!("for {name} = {over}"));
        let more = self.value((1, 1), 1, true);
        self.line(depth + 1, &format!("{sum} = {sum} + sum({name}) * {more};"));
        if self.rng.chance(40) {
            let word = self.one_of(&["break", "continue"]);
            self.line(depth + 1, &format!("if {sum} > {}, {word}, end", self.rng.clone().between(-3, 6)));
        }
        self.statement(depth + 1);
        self.line(depth, "end");
        if depth == 0 {
            self.set(&sum, (1, 1), true);
        }
    }

    fn repeated(&mut self, depth: usize) {
        let name = self.fresh();
        self.line(depth, &format!("{name} = {};", self.rng.clone().between(0, 9)));
        let step = self.rng.between(1, 4);
        if self.rng.chance(50) {
            let and = self.condition((1, 1));
            self.line(depth, &format!("while {name} > 0 && ({and} || {name} > 2)"));
            self.line(depth + 1, &format!("{name} -= {step};"));
            self.statement(depth + 1);
            self.line(depth, "end");
        } else {
            self.line(depth, "do");
            self.line(depth + 1, &format!("{name} -= {step};"));
            self.statement(depth + 1);
            self.line(depth, &format!("until {name} < 1"));
        }
        if depth == 0 {
            self.set(&name, (1, 1), true);
        }
    }

    fn function_value(&mut self, depth: usize) {
        let (f, name) = (self.fresh(), self.fresh());
        let (shape, c) = (self.shape(), self.rng.between(-3, 4));
        let body =
            self.one_of(&["x .* x + c", "max(x, c)", "-x' * c", "[x; x]", "x(end:-1:1)", "x > c", "sum(x(:)) - c"]);
        let value = self.value(shape, 1, true);
        self.line(depth, &format!("c = {c}; {f} = @(x) {body};"));
        let end = self.end(true);
        self.line(depth, &format!("{name} = {f}({value}){end}"));
    }

    fn function(&mut self) {
        let name = self.fresh();
        let (a, b) = (self.shape(), self.shape());
        let (first, second) = (self.value(a, 1, true), self.value(b, 1, true));
        let (body, call) = match self.rng.below(4) {
            0 => ("if nargin < 2, b = 2; end\n  r = a * b;", format!("{name}_f({first})")),
            1 => (
                "r = 0;\n  for k = a\n    if any(k < 0), return, end\n    r = r + sum(k);\n  end",
                format!("{name}_f({first}, 1)"),
            ),
            2 => (
                "if numel(a) <= 1, r = b; return, end\n  r = NAME(a(2:end), b + 1);",
                format!("{name}_f({first}, {second})"),
            ),
            _ => ("r = a(:)' + sum(b(:));", format!("{name}_f({first}, {second})")),
        };
        let body = body.replace("NAME", &format!("{name}_f"));
        self.line(0, &format!("function r = {name}_f(a, b)\n  {body}\nend"));
        let end = self.end(true);
        self.line(0, &format!("{name} = {call}{end}"));
    }

    fn texts(&mut self, depth: usize) {
        let name = self.fresh();
        let n = self.rng.between(-20, 300);
        let (shape, word) = (self.shape(), self.one_of(&["abc", "x y", "it''s", ""]));
        let list = self.value(shape, 1, true);
        let end = self.end(true);
        let line = match self.rng.below(9) {
            0 => format!("{name} = ['{word}', 'def']{end}"),
            1 => format!("{name} = num2str({n}){end}"),
            2 => format!("{name} = sprintf('%d,%g;', {list}){end}"),
            3 => format!("{name} = sprintf('%5.2f|%-6d|%s|', {n} / 4, {n}, 'ab'){end}"),
            4 => format!("{name} = '{word}' + 0{end}"),
            5 => format!("{name} = 'abcdef'([end, 1:2:end]){end}"),
            6 => format!("{name} = strcmp('{word}', 'abc'){end}"),
            7 => format!("disp({list})"),
            _ => format!("{name} = length('{word}') + ('abc' == 'abd'){end}"),
        };
        self.line(depth, &line);
    }

    /// A boolean value of a shape.
    fn condition(&mut self, shape: Shape) -> String {
        let (a, b) = (self.value(shape, 1, true), self.value(shape, 1, true));
        let comparison = self.one_of(&["<", "<=", ">", ">=", "==", "~=", "!="]);
        format!("{a} {comparison} {b}")
    }

    /// An index into an extent, and its number of elements.
    fn index(&mut self, extent: usize) -> (String, usize) {
        let n = extent as i64;
        if extent == 0 || self.rng.chance(20) {
            return (":".to_owned(), extent);
        }
        if self.rng.chance(2) {
            // Out of range, or invalid.
            return (self.one_of(&["0", "end + 1", "1.5", "-1"]).to_owned(), 1);
        }
        let a = self.rng.between(1, n);
        match self.rng.below(8) {
            0 | 1 => (a.to_string(), 1),
            2 => ("end".to_owned(), 1),
            3 => (format!("{a}:end"), (n - a + 1) as usize),
            4 => (format!("1:2:{n}"), extent.div_ceil(2)),
            5 => ("end:-1:1".to_owned(), extent),
            6 => {
                let list: Vec<String> =
                    (0..self.rng.between(1, 4)).map(|_| self.rng.between(1, n).to_string()).collect();
                (format!("[{}]", list.join(", ")), list.len())
            }
            _ => {
                let mask: Vec<bool> = (0..n).map(|_| self.rng.chance(50)).collect();
                let words: Vec<&str> = mask.iter().map(|one| if *one { "true" } else { "false" }).collect();
                (format!("[{}]", words.join(", ")), mask.iter().filter(|one| **one).count())
            }
        }
    }

    fn number(&mut self) -> String {
        match self.rng.below(20) {
            0 => "0".to_owned(),
            1 => format!("{}", self.rng.between(10, 1000)),
            2 => self.one_of(&["Inf", "NaN", "-Inf", "pi - pi", "1e3", "true", "false", "-0.5"]).to_owned(),
            3..6 => format!("{}", self.rng.between(-16, 16) as f64 / 4.0),
            6 => format!("({})", self.rng.between(-9, -1)),
            _ => format!("{}", self.rng.between(0, 9)),
        }
    }

    /// An expression of a shape. `exact`: its elements are equal for any order of operations, so that the value may be
    /// compared, rounded and printed.
    fn value(&mut self, shape: Shape, depth: usize, exact: bool) -> String {
        // Occasionally another shape.
        let (rows, cols) = if self.rng.chance(1) { self.shape() } else { shape };
        if depth == 0 || self.rng.chance(20) {
            return self.leaf((rows, cols), exact);
        }
        let below = depth - 1;
        if (rows, cols) == (1, 1) && self.rng.chance(35) {
            return self.folded(below, exact);
        }
        match self.rng.below(24) {
            0..5 => {
                let mut operator = self.one_of(&["+", "-", ".*", "+", "-", ".*", "./", ".\\"]);
                if exact && operator.ends_with(['/', '\\']) {
                    operator = "+";
                }
                let (a, b) = self.stretched((rows, cols));
                format!("({} {operator} {})", self.value(a, below, exact), self.value(b, below, exact))
            }
            5 => {
                let operator = self.one_of(&["*", "*", "/"]);
                let factor = if exact && operator == "/" { "4".to_owned() } else { self.value((1, 1), below, exact) };
                format!("{} {operator} {factor}", self.leaf((rows, cols), exact))
            }
            6 => format!("{}({})", self.one_of(&["-", "+", "-", "~"]), self.value((rows, cols), below, true)),
            7 => format!("{}'", self.operand((cols, rows), below, exact)),
            8 => format!("({})", self.condition((rows, cols))),
            9 => {
                let (a, b) = self.stretched((rows, cols));
                let operator = self.one_of(&["&", "|"]);
                format!("({} {operator} {})", self.value(a, below, true), self.value(b, below, true))
            }
            10 => {
                let name = self.one_of(&["abs", "floor", "ceil", "round", "fix", "sign", "isnan", "isinf", "double"]);
                format!("{name}({})", self.value((rows, cols), below, true))
            }
            11 if !exact => {
                let name = self.one_of(&["sin", "cos", "exp", "atan", "tanh", "erf", "erfc", "asinh", "expm1"]);
                format!("{name}({})", self.leaf((rows, cols), true))
            }
            12 if !exact => {
                let name = self.one_of(&["sqrt", "log1p", "log2", "log10", "log"]);
                format!("{name}(abs({}) + 1)", self.value((rows, cols), below, true))
            }
            13 => {
                let (a, b) = self.stretched((rows, cols));
                let name = self.one_of(&["mod", "rem", "max", "min"]);
                // Octave has no remainder of booleans.
                format!("{name}(double({}), double({}))", self.value(a, below, true), self.value(b, below, true))
            }
            14 => format!("({}) .^ {}", self.leaf((rows, cols), true), self.one_of(&["2", "3", "2", "0"])),
            15 if rows * cols > 0 => {
                let inner = *self.rng.pick(&[1, 2, 3]).unwrap_or(&1);
                format!("{} * {}", self.operand((rows, inner), below, exact), self.operand((inner, cols), below, exact))
            }
            16 => self.joined((rows, cols), below, exact),
            17 => {
                let name = self.one_of(&["cumsum", "sort", "fliplr", "flipud", "cumsum"]);
                format!("{name}({})", self.value((rows, cols), below, true))
            }
            18 => self.part((rows, cols)).unwrap_or_else(|| self.leaf((rows, cols), exact)),
            19 if rows == 1 && cols > 0 => {
                let height = *self.rng.pick(&[2, 3]).unwrap_or(&2);
                let name = self.one_of(&["sum", "max", "min", "any", "all", "sum"]);
                format!("{name}({})", self.value((height, cols), below, true))
            }
            20 if cols == 1 && rows > 0 => {
                let width = *self.rng.pick(&[1, 2, 3]).unwrap_or(&2);
                // Octave's `all` counts NaN as false in this direction only.
                let name = self.one_of(&["sum", "any", "sum"]);
                format!("{name}({}, 2)", self.value((rows, width), below, true))
            }
            21 => format!("reshape({}, {rows}, {cols})", self.value((cols, rows), below, exact)),
            22 if rows % 2 == 0 => format!("repmat({}, 2, 1)", self.value((rows / 2, cols), below, exact)),
            22 => format!("repmat({}, 1, 1)", self.value((rows, cols), below, exact)),
            _ => format!("({})", self.value((rows, cols), below, exact)),
        }
    }

    /// An expression that can be an operand.
    fn operand(&mut self, shape: Shape, depth: usize, exact: bool) -> String {
        format!("({})", self.value(shape, depth, exact))
    }

    /// Shapes of operands that broadcast to a shape.
    fn stretched(&mut self, (rows, cols): Shape) -> (Shape, Shape) {
        let full = (rows, cols);
        match self.rng.below(8) {
            0 => ((1, 1), full),
            1 => (full, (1, 1)),
            2 => ((1, cols), full),
            3 => (full, (rows, 1)),
            4 => ((rows, 1), (1, cols)),
            _ => (full, full),
        }
    }

    /// One number from a reduction.
    fn folded(&mut self, depth: usize, exact: bool) -> String {
        let shape = self.shape();
        let of = self.value(shape, depth, true);
        match self.rng.below(14) {
            0 => format!("sum(sum({of}))"),
            1 => format!("max(max({of}))"),
            2 => format!("numel({of})"),
            3 => format!("any(any({of}))"),
            4 => format!("all(all({of}))"),
            5 => format!("size({of}, {})", self.rng.between(1, 3)),
            6 => format!("isempty({of})"),
            7 => format!("length({of})"),
            8 if !exact && shape.0 * shape.1 > 0 => format!("mean(mean({of}))"),
            9 if shape.0 * shape.1 > 0 => format!("prod(prod(sign({of})))"),
            10 => format!("isequal({of}, {})", self.value(shape, depth, true)),
            11 => format!("columns({of})"),
            12 => {
                let inner = self.value((1, 3), depth, true);
                format!("{inner} * [1; 2; 3]").replacen(&inner, &format!("({inner})"), 1)
            }
            _ => format!("min(min({of}))"),
        }
    }

    /// A part of a variable with this shape.
    fn part(&mut self, (rows, cols): Shape) -> Option<String> {
        let variable =
            self.variable(|variable| variable.shape.0 >= rows && variable.shape.1 >= cols && variable.exact)?;
        let mut span = |wanted: usize, extent: usize| match wanted {
            _ if wanted == extent && self.rng.chance(50) => ":".to_owned(),
            1 => self.rng.between(1, extent as i64).to_string(),
            _ => {
                let first = self.rng.between(1, (extent - wanted) as i64 + 1);
                format!("{first}:{}", first + wanted as i64 - 1)
            }
        };
        let (down, across) = (span(rows, variable.shape.0), span(cols, variable.shape.1));
        Some(format!("{}({down}, {across})", variable.name))
    }

    fn joined(&mut self, (rows, cols): Shape, depth: usize, exact: bool) -> String {
        if cols > 1 && self.rng.chance(50) {
            let left = self.rng.between(1, cols as i64 - 1) as usize;
            let (a, b) = (self.value((rows, left), depth, exact), self.value((rows, cols - left), depth, exact));
            return format!("[{a}, {b}]");
        }
        if rows > 1 {
            let top = self.rng.between(1, rows as i64 - 1) as usize;
            let (a, b) = (self.value((top, cols), depth, exact), self.value((rows - top, cols), depth, exact));
            return format!("[{a}; {b}]");
        }
        format!("[{}]", self.value((rows, cols), depth, exact))
    }

    fn leaf(&mut self, (rows, cols): Shape, exact: bool) -> String {
        if let Some(variable) = self.variable(|variable| variable.shape == (rows, cols) && (variable.exact || !exact))
            && self.rng.chance(50)
        {
            return variable.name;
        }
        if (rows, cols) == (1, 1) {
            return self.number();
        }
        if rows * cols == 0 {
            return format!("zeros({rows}, {cols})");
        }
        match self.rng.below(8) {
            // Octave prints diagonal matrices differently.
            0 if self.rng.chance(30) => format!("(eye({rows}, {cols}) + 0)"),
            0 => format!("{}({rows}, {cols})", self.one_of(&["zeros", "ones"])),
            1 if rows == 1 => {
                let (first, step) = (self.rng.between(-5, 5), *self.rng.pick(&[1, 2, 3, -1]).unwrap_or(&1));
                let last = first + step * (cols as i64 - 1);
                if step == 1 { format!("({first}:{last})") } else { format!("({first}:{step}:{last})") }
            }
            2 if rows == 1 => {
                let first = self.rng.between(-3, 3);
                format!("({first}:0.25:{})", first as f64 + 0.25 * (cols as f64 - 1.0))
            }
            3 if rows == 1 => {
                format!("linspace({}, {}, {cols})", self.rng.between(-2, 0), self.rng.between(1, 4) * (cols as i64 - 1))
            }
            _ => {
                let lines: Vec<String> = (0..rows)
                    .map(|_| {
                        let numbers: Vec<String> = (0..cols).map(|_| self.number()).collect();
                        numbers.join(if self.rng.chance(50) { ", " } else { " " })
                    })
                    .collect();
                format!("[{}]", lines.join("; "))
            }
        }
    }
}
