//! Sizes, strides and offsets: numbers in the text, or arguments of the kernel.

/// Where numbers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    /// Arguments: one text serves all sizes.
    Parameterised,
    /// In the text.
    Specialised,
}

/// The numbers of a kernel under construction.
pub(crate) struct Numbers {
    variant: Variant,
    pub(crate) wide: bool,
    pub(crate) values: Vec<i64>,
}

impl Numbers {
    pub(super) fn new(variant: Variant, wide: bool) -> Numbers {
        Numbers { variant, wide, values: Vec::new() }
    }

    /// The text of a number.
    pub(crate) fn text(&mut self, value: i64) -> String {
        match self.variant {
            Variant::Specialised => self.literal(value),
            Variant::Parameterised => {
                self.values.push(value);
                format!("n{}", self.values.len() - 1)
            }
        }
    }

    fn literal(&self, value: i64) -> String {
        match (self.wide, value) {
            (true, i64::MIN) => "(-0x7fffffffffffffffL - 1)".into(),
            (true, 0..) => format!("{value}L"),
            (true, _) => format!("({value}L)"),
            (false, 0..) => value.to_string(),
            (false, _) => format!("({value})"),
        }
    }

    /// The sum of products of strides and index names, and an offset. Terms that are 0 and factors of 1 are left out.
    pub(crate) fn address(&mut self, start: i64, terms: &[(i64, String)]) -> String {
        let mut parts = Vec::new();
        if start != 0 || self.variant == Variant::Parameterised {
            parts.push(self.text(start));
        }
        for (stride, index) in terms {
            match stride {
                0 => {}
                1 => parts.push(index.clone()),
                _ => parts.push(format!("{} * {index}", self.text(*stride))),
            }
        }
        if parts.is_empty() { "0".into() } else { parts.join(" + ") }
    }

    /// Statements that take a linear index apart into `names`, outermost first.
    pub(crate) fn split(&mut self, index: &str, linear: &str, extents: &[i64], names: &[String]) -> String {
        let [first, rest @ ..] = names else { return String::new() };
        if rest.is_empty() {
            return format!("const {index} {first} = {linear};\n");
        }
        let mut text = format!("{index} rest_{first} = {linear};\n");
        for (name, &extent) in names.iter().zip(extents).skip(1).rev() {
            let extent = self.text(extent);
            text += &format!("const {index} {name} = rest_{first} % {extent}; rest_{first} /= {extent};\n");
        }
        text + &format!("const {index} {first} = rest_{first};\n")
    }
}
